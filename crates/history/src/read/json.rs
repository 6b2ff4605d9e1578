//! A lazy walk over JSON text: finds values and returns their bytes without building anything.
//!
//! Most of a transcript is text that the list of sessions never needs. Walking a line key by key and skipping other
//! values is many times faster than parsing, and still detects a line that is torn or has another one spliced into it:
//! brackets must match, only literals may be outside of strings, and the line must end with the object. It does not
//! know what the values mean.

#![allow(
    clippy::inline_always,
    reason = "what these compile to depends on the function that they become part of"
)]

use std::borrow::Cow;
use std::marker::PhantomData;

use crate::read::scan::{ALLOWED, BLOCK, Plain, Scan};

/// Deeper nesting counts as damage.
const MAX_DEPTH: u32 = 128;

/// The class of a byte outside of a string.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Invalid,
    Filler,
    Quote,
    Open,
    Close,
}

const CLASS: [Class; 256] = {
    let mut table = [Class::Invalid; 256];
    let mut i = 0;
    while i < ALLOWED.len() {
        table[ALLOWED[i] as usize] = Class::Filler;
        i += 1;
    }
    table[b'"' as usize] = Class::Quote;
    table[b'{' as usize] = Class::Open;
    table[b'[' as usize] = Class::Open;
    table[b'}' as usize] = Class::Close;
    table[b']' as usize] = Class::Close;
    table
};

/// The bytes of a JSON value, of which only the structure was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a>(pub(crate) &'a [u8]);

impl<'a> Raw<'a> {
    /// The text between the quotes, still escaped, if this is a string.
    pub(crate) fn escaped(self) -> Option<&'a [u8]> {
        let inner = self.0.strip_prefix(b"\"")?;
        inner.strip_suffix(b"\"")
    }

    /// The text of a string.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        self.escaped().map(text_of)
    }

    pub(crate) fn is_true(self) -> bool {
        self.0 == b"true"
    }

    pub(crate) fn is_string(self) -> bool {
        self.0.first() == Some(&b'"')
    }

    pub(crate) fn is_array(self) -> bool {
        self.0.first() == Some(&b'[')
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// A count; anything else is 0.
    pub(crate) fn number(self) -> u64 {
        std::str::from_utf8(self.0)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0)
    }

    /// Calls `each` with every key (still escaped) and value. `None` if this is not an object or is torn.
    pub(crate) fn entries(self, mut each: impl FnMut(&'a [u8], Raw<'a>)) -> Option<()> {
        Walk::<Plain>::new(self.0).object(|walk, key| {
            let value = walk.value()?;
            each(key, value);
            Some(())
        })
    }

    /// As [`entries`](Self::entries), while `each` returns true: the rest is not checked.
    pub(crate) fn first_entries(self, mut each: impl FnMut(&'a [u8], Raw<'a>) -> bool) {
        Walk::<Plain>::new(self.0).object(|walk, key| {
            let value = walk.value()?;
            each(key, value).then_some(())
        });
    }

    /// Calls `each` with every item of an array.
    pub(crate) fn items(self, mut each: impl FnMut(Raw<'a>)) -> Option<()> {
        let mut walk = Walk::<Plain>::new(self.0);
        walk.expect(b'[')?;
        if walk.peek()? == b']' {
            return Some(());
        }
        loop {
            each(walk.value()?);
            match walk.next()? {
                b',' => {}
                b']' => return Some(()),
                _ => return None,
            }
        }
    }

    /// The value of one key of an object. The rest after it is not checked.
    pub(crate) fn get(self, key: &[u8]) -> Option<Raw<'a>> {
        let mut walk = Walk::<Plain>::new(self.0);
        walk.expect(b'{')?;
        loop {
            let name = walk.key()?;
            let value = walk.value()?;
            if name == key {
                return Some(value);
            }
            if walk.next()? != b',' {
                return None;
            }
        }
    }
}

/// A walk over bytes that begin with a JSON value, up to the end of the value.
///
/// Its methods are small and always inlined: their code depends on the instructions that the calling function may use.
pub(crate) struct Walk<'a, S = Plain> {
    bytes: &'a [u8],
    at: usize,
    /// The quotes that may begin or end a string, for one block of bytes: strings are most of a line.
    block: usize,
    quotes: u64,
    /// The objects and arrays directly inside the last value.
    children: u32,
    scan: PhantomData<S>,
}

impl<'a, S: Scan> Walk<'a, S> {
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            block: usize::MAX - BLOCK,
            quotes: 0,
            children: 0,
            scan: PhantomData,
        }
    }

    /// The current position.
    #[inline(always)]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Skips known bytes.
    #[inline(always)]
    pub(crate) fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// How many objects and arrays are directly inside the last value.
    #[inline(always)]
    pub(crate) fn children(&self) -> u32 {
        self.children
    }

    #[inline(always)]
    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.bytes.get(self.at).copied()
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    #[inline(always)]
    pub(crate) fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Walks over an object, calling `each` with every key at the position of its value, over which `each` must walk.
    #[inline(always)]
    pub(crate) fn object(&mut self, mut each: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = self.key()?;
            each(self, key)?;
            match self.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// A key of an object, up to its value.
    #[inline(always)]
    pub(crate) fn key(&mut self) -> Option<&'a [u8]> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at;
        self.string()?;
        let key = &self.bytes[start + 1..self.at - 1];
        self.expect(b':')?;
        self.blanks();
        Some(key)
    }

    #[inline(always)]
    pub(crate) fn value(&mut self) -> Option<Raw<'a>> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.string()?,
            b'{' | b'[' if S::IS_WIDE => self.container_by_blocks()?,
            b'{' | b'[' => self.container_by_bytes()?,
            _ => {
                while let Some(byte) = self.bytes.get(self.at) {
                    match byte {
                        b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n' => break,
                        b if CLASS[usize::from(*b)] == Class::Filler && *b != b':' => self.at += 1,
                        _ => return None,
                    }
                }
                if self.at == start {
                    return None;
                }
            }
        }
        Some(Raw(&self.bytes[start..self.at]))
    }

    /// Moves past the closing quote of the string that begins here. It searches for quotes only, and then checks the
    /// backslashes before them: text is full of `\n`, and stopping at each would be slow.
    #[inline(always)]
    fn string(&mut self) -> Option<()> {
        let open = self.at;
        let mut from = open + 1;
        loop {
            let quote = self.quote(from)?;
            from = quote + 1;
            if !self.is_escaped(quote, open + 1) {
                self.at = from;
                return Some(());
            }
        }
    }

    /// Whether an odd number of backslashes stands before `at`, as far back as `start`.
    #[inline(always)]
    fn is_escaped(&self, at: usize, start: usize) -> bool {
        let mut slashes = 0;
        while at - slashes > start && self.bytes[at - slashes - 1] == b'\\' {
            slashes += 1;
        }
        slashes % 2 == 1
    }

    /// The first quote at or after `from` that may end a string.
    #[inline(always)]
    fn quote(&mut self, from: usize) -> Option<usize> {
        let into = from.wrapping_sub(self.block);
        if into < BLOCK {
            let left = self.quotes & (!0 << into);
            if left != 0 {
                return Some(self.block + left.trailing_zeros() as usize);
            }
            self.block += BLOCK;
        } else {
            self.block = from;
        }
        loop {
            (self.quotes, _) = self.ends(self.block)?;
            if self.quotes != 0 {
                return Some(self.block + self.quotes.trailing_zeros() as usize);
            }
            self.block += BLOCK;
            self.block += S::before_end(self.bytes, self.block);
        }
    }

    /// The quotes in the block at `at` that may begin or end a string, and a mask of the bytes that exist.
    #[inline(always)]
    fn ends(&self, at: usize) -> Option<(u64, u64)> {
        let rest = self.bytes.get(at..)?;
        let Some(block) = rest.first_chunk() else {
            return (!rest.is_empty()).then(|| (S::quotes(&padded(rest)), (1 << rest.len()) - 1));
        };
        let before = self.bytes[..at].last_chunk().copied().unwrap_or_default();
        Some((S::ends(before, block), !0))
    }

    fn container_by_bytes(&mut self) -> Option<()> {
        let mut nesting = Nesting::default();
        loop {
            let byte = *self.bytes.get(self.at)?;
            match CLASS[usize::from(byte)] {
                Class::Filler => self.at += 1,
                Class::Quote => self.string()?,
                Class::Open => {
                    nesting.open(byte)?;
                    self.at += 1;
                }
                Class::Close => {
                    self.at += 1;
                    if nesting.close(byte)? {
                        self.children = nesting.children;
                        return Some(());
                    }
                }
                Class::Invalid => return None,
            }
        }
    }

    /// As by bytes, but skips strings, and looks at other bytes only at brackets.
    #[inline(always)]
    fn container_by_blocks(&mut self) -> Option<()> {
        let start = self.at;
        let mut nesting = Nesting::default();
        let mut base = start;
        // All ones while a string continues from the previous block.
        let mut in_string = 0u64;
        loop {
            if in_string != 0 {
                base += S::before_end(self.bytes, base);
            }
            let (quotes, present) = self.ends(base)?;
            if quotes == 0 && in_string != 0 {
                base += BLOCK;
                continue;
            }
            let rest = &self.bytes[base..];
            let last;
            let block = if let Some(block) = rest.first_chunk::<BLOCK>() {
                block
            } else {
                last = padded(rest);
                &last
            };
            let classes = S::classes(block);
            let mut real = quotes;
            let follows_slash = base > start && self.bytes[base - 1] == b'\\';
            let mut doubtful = quotes & (classes.backslash << 1 | u64::from(follows_slash));
            while doubtful != 0 {
                let at = doubtful.trailing_zeros();
                if self.is_escaped(base + at as usize, start) {
                    real &= !(1 << at);
                }
                doubtful &= doubtful - 1;
            }
            let inside = S::ones_between(real) ^ in_string;
            let refused = !inside & !classes.allowed & present;
            let mut brackets = !inside & classes.bracket & present;
            while brackets != 0 {
                let at = brackets.trailing_zeros();
                let place = base + at as usize;
                let byte = self.bytes[place];
                if matches!(byte, b'{' | b'[') {
                    nesting.open(byte)?;
                } else if nesting.close(byte)? {
                    if refused & ((1 << at) - 1) != 0 {
                        return None;
                    }
                    self.at = place + 1;
                    self.block = base;
                    self.quotes = quotes;
                    self.children = nesting.children;
                    return Some(());
                }
                brackets &= brackets - 1;
            }
            if refused != 0 {
                return None;
            }
            in_string = ((inside.cast_signed()) >> 63).cast_unsigned();
            base += BLOCK;
        }
    }
}

/// The open brackets.
#[derive(Default)]
struct Nesting {
    /// One bit per level: set for an object. Kinds must match when they close.
    kinds: u128,
    depth: u32,
    children: u32,
}

impl Nesting {
    #[inline(always)]
    fn open(&mut self, byte: u8) -> Option<()> {
        self.depth += 1;
        self.children += u32::from(self.depth == 2);
        self.kinds = (self.kinds << 1) | u128::from(byte == b'{');
        (self.depth <= MAX_DEPTH).then_some(())
    }

    /// Whether the last bracket was closed.
    #[inline(always)]
    fn close(&mut self, byte: u8) -> Option<bool> {
        if (self.kinds & 1 == 1) != (byte == b'}') {
            return None;
        }
        self.kinds >>= 1;
        self.depth -= 1;
        Some(self.depth == 0)
    }
}

/// The end of the bytes as a block.
#[inline(always)]
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    last
}

/// The text between the quotes of a JSON string.
pub(crate) fn text_of(escaped: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', escaped).is_none() {
        return String::from_utf8_lossy(escaped);
    }
    Cow::Owned(unescape(escaped))
}

/// Resolves the escapes of a JSON string; an invalid escape is kept unchanged.
fn unescape(escaped: &[u8]) -> String {
    let mut out = Vec::with_capacity(escaped.len());
    unescape_into(escaped, &mut out);
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// As [`unescape`], appending to a reused buffer.
pub(crate) fn unescape_into(escaped: &[u8], out: &mut Vec<u8>) {
    let mut rest = escaped;
    while let Some(slash) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..slash]);
        let Some(&code) = rest.get(slash + 1) else {
            out.push(b'\\');
            return;
        };
        let mut used = 2;
        match code {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let (unit, taken) = unicode_escape(&rest[slash..]);
                used = taken;
                let mut utf8 = [0; 4];
                out.extend_from_slice(unit.encode_utf8(&mut utf8).as_bytes());
            }
            other => out.push(other),
        }
        rest = &rest[(slash + used).min(rest.len())..];
    }
    out.extend_from_slice(rest);
}

/// The character of a `\uXXXX` escape, with its second half if it is a pair, and how many bytes it took.
fn unicode_escape(at: &[u8]) -> (char, usize) {
    let unit = |from: usize| -> Option<u32> {
        if at.get(from..from + 2)? != b"\\u" {
            return None;
        }
        u32::from_str_radix(std::str::from_utf8(at.get(from + 2..from + 6)?).ok()?, 16).ok()
    };
    match unit(0) {
        Some(high @ 0xD800..=0xDBFF) => match unit(6) {
            Some(low @ 0xDC00..=0xDFFF) => {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
            }
            _ => (char::REPLACEMENT_CHARACTER, 6),
        },
        Some(code) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
        None => (char::REPLACEMENT_CHARACTER, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_by<S: Scan>(line: &str) -> Option<Vec<String>> {
        let mut keys = Vec::new();
        let mut walk = Walk::<S>::new(line.as_bytes());
        walk.object(|walk, key| {
            let value = walk.value()?;
            keys.push(format!(
                "{}={}",
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(value.0)
            ));
            Some(())
        })?;
        (walk.at() == line.len()).then_some(keys)
    }

    /// With all implementations, which must agree.
    fn keys(line: &str) -> Option<Vec<String>> {
        let keys = keys_by::<Plain>(line);
        #[cfg(target_arch = "x86_64")]
        assert_eq!(keys, keys_by::<crate::read::scan::Avx2>(line), "{line}");
        keys
    }

    #[test]
    fn strings_and_brackets_may_lie_across_blocks() {
        for length in 0..200 {
            let text = "x".repeat(length);
            for inner in [
                format!(r#"{{"a":"{text}\\"}}"#),
                format!(r#"["{text}\"{{[",{{"b":[1,"\\\"{text}"]}}]"#),
                format!(r#"{{"{text}":{{}},"c":[]}}"#),
            ] {
                let line = format!(r#"{{"k":{inner},"z":"{text}"}}"#);
                assert_eq!(
                    keys(&line).unwrap(),
                    [format!("k={inner}"), format!("z={text:?}")]
                );
                let last = inner.len() - 1;
                assert_eq!(
                    keys(&format!(r#"{{"k":{}x{},"z":1}}"#, &inner[..last], &inner[last..])),
                    None
                );
            }
        }
    }

    #[test]
    fn backslashes_and_quotes_in_every_order_are_text() {
        let mut random = 7u64;
        for _ in 0..400 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut bits = random >> 8;
            let text: String = std::iter::repeat_with(|| {
                bits = bits.rotate_right(3);
                [r#"\""#, r"\\", "xxxxxxxxxxx", "{}[]:,", r"\n", r"\\", "登录", "y"]
                    [usize::try_from(bits % 8).unwrap()]
            })
            .take(40)
            .collect();
            let object = format!(r#"{{"a":"{text}","b":["{text}",{{"{text}":"{text}"}}]}}"#);
            let line = format!(r#"{{"k":"{text}","o":{object},"z":"{text}"}}"#);
            let expected = [
                format!(r#"k="{text}""#),
                format!("o={object}"),
                format!(r#"z="{text}""#),
            ];
            assert_eq!(keys(&line).unwrap(), expected);
            assert_eq!(keys(&line[..line.len() - 2]), None);
        }
    }

    #[test]
    fn walks_an_object_and_jumps_over_what_is_inside() {
        assert_eq!(
            keys(r#"{"a":{"type":"x","b":["}",1.5e-3]},"type":"user", "s" : "q\"\\" ,"n":null}"#).unwrap(),
            [
                r#"a={"type":"x","b":["}",1.5e-3]}"#,
                r#"type="user""#,
                r#"s="q\"\\""#,
                "n=null"
            ]
        );
        assert_eq!(keys("{}").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn notices_torn_and_spliced_lines() {
        let whole = r#"{"parentUuid":null,"message":{"role":"user","content":"hi \" there"},"type":"user"}"#;
        for cut in 1..whole.len() {
            assert_eq!(keys(&whole[..cut]), None, "torn at {cut}");
            assert_eq!(
                keys(&format!("{}{whole}", &whole[..cut])),
                None,
                "spliced at {cut}"
            );
        }
        assert_eq!(keys(&format!("{whole}{whole}")), None);
        assert_eq!(keys(r#"{"a":[}"#), None);
        assert_eq!(
            keys(&format!(r#"{{"a":{}1{}}}"#, "[".repeat(200), "]".repeat(200))),
            None
        );
    }

    #[test]
    fn unescapes_text() {
        let text = |raw: &str| Raw(raw.as_bytes()).text().unwrap().into_owned();
        assert_eq!(text(r#""a\n\t\"\\\/b""#), "a\n\t\"\\/b");
        assert_eq!(text(r#""\u767b\u5f55 \ud83d\ude00""#), "登录 😀");
        assert_eq!(text(r#""\ud83d broken""#), "\u{fffd} broken");
        assert_eq!(text(r#""登录""#), "登录");
    }
}
