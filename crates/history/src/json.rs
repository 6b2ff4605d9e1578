//! A lazy walk over JSON text: finds values and hands out their bytes, builds nothing.
//!
//! Most of a transcript is text that the list of sessions never looks at. Walking a line key by key and jumping over what
//! is not asked for is many times faster than building values, and still notices a line that is torn or has another one
//! spliced into it: brackets must match, nothing but literals may stand outside strings, and the line must end where the
//! object does. It knows nothing of what the values mean.

use std::borrow::Cow;

/// Deeper nesting is taken for damage.
const MAX_DEPTH: u32 = 128;

/// What a byte outside of a string is.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    Invalid,
    Filler,
    Quote,
    Open,
    Close,
}

/// Everything that numbers, `true`, `false`, `null`, commas, colons and blanks are made of is filler.
const CLASS: [Class; 256] = {
    let mut table = [Class::Invalid; 256];
    let filler = b"0123456789+-.eEtrufalsn,: \t\r";
    let mut i = 0;
    while i < filler.len() {
        table[filler[i] as usize] = Class::Filler;
        i += 1;
    }
    table[b'"' as usize] = Class::Quote;
    table[b'{' as usize] = Class::Open;
    table[b'[' as usize] = Class::Open;
    table[b'}' as usize] = Class::Close;
    table[b']' as usize] = Class::Close;
    table
};

/// The bytes of one JSON value, of which only the outline is known to be right.
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
        let inner = self.escaped()?;
        if memchr::memchr(b'\\', inner).is_none() {
            return Some(String::from_utf8_lossy(inner));
        }
        Some(Cow::Owned(unescape(inner)))
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

    /// Calls `each` with every key (still escaped) and value. `None` if this is no object or a torn one.
    pub(crate) fn entries(self, mut each: impl FnMut(&'a [u8], Raw<'a>)) -> Option<()> {
        Walk::new(self.0).object(|walk, key| {
            let value = walk.value()?;
            each(key, value);
            Some(())
        })
    }

    /// Calls `each` with every item of an array.
    pub(crate) fn items(self, mut each: impl FnMut(Raw<'a>)) -> Option<()> {
        let mut walk = Walk::new(self.0);
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

    /// The value of one key of an object. Stops there: what comes after is not looked at.
    pub(crate) fn get(self, key: &[u8]) -> Option<Raw<'a>> {
        let mut walk = Walk::new(self.0);
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

/// A walk over bytes that begin with a JSON value. It goes no further than the value does.
pub(crate) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the quotes are, for a block of bytes at a time: strings are most of a line, and each ends with one.
    block: usize,
    quotes: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            block: usize::MAX - BLOCK,
            quotes: 0,
        }
    }

    /// How far it has come.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    /// Walks over an object, calling `each` with every key at the place of its value, over which `each` must walk.
    #[inline]
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

    #[inline]
    fn key(&mut self) -> Option<&'a [u8]> {
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

    #[inline]
    pub(crate) fn value(&mut self) -> Option<Raw<'a>> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => self.string()?,
            b'{' | b'[' => self.container()?,
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

    /// Past the closing quote of the string that begins here. Looks for quotes only, and back for the backslashes before
    /// one: text is full of `\n`, and stopping at each would cost more than it tells.
    #[inline]
    fn string(&mut self) -> Option<()> {
        let open = self.at;
        let mut from = open + 1;
        loop {
            let quote = self.quote(from)?;
            let mut slashes = 0;
            while quote - slashes > open + 1 && self.bytes[quote - slashes - 1] == b'\\' {
                slashes += 1;
            }
            from = quote + 1;
            if slashes % 2 == 0 {
                self.at = from;
                return Some(());
            }
        }
    }

    /// The first quote at or behind `from`.
    #[inline]
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
            let rest = self.bytes.get(self.block..)?;
            self.quotes = match rest.first_chunk::<BLOCK>() {
                Some(block) => quotes(block),
                None if rest.is_empty() => return None,
                None => {
                    let mut last = [0; BLOCK];
                    last[..rest.len()].copy_from_slice(rest);
                    quotes(&last)
                }
            };
            if self.quotes != 0 {
                return Some(self.block + self.quotes.trailing_zeros() as usize);
            }
            self.block += BLOCK;
        }
    }

    fn container(&mut self) -> Option<()> {
        // One bit a level: set for an object. Kinds must match when they close.
        let mut kinds: u128 = 0;
        let mut depth = 0u32;
        loop {
            let byte = *self.bytes.get(self.at)?;
            match CLASS[usize::from(byte)] {
                Class::Filler => self.at += 1,
                Class::Quote => self.string()?,
                Class::Open => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return None;
                    }
                    kinds = (kinds << 1) | u128::from(byte == b'{');
                    self.at += 1;
                }
                Class::Close => {
                    if (kinds & 1 == 1) != (byte == b'}') {
                        return None;
                    }
                    kinds >>= 1;
                    depth -= 1;
                    self.at += 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                Class::Invalid => return None,
            }
        }
    }
}

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// A bit for each byte of a block that is a quote.
#[cfg(target_arch = "x86_64")]
#[inline]
fn quotes(block: &[u8; BLOCK]) -> u64 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let half = |at: usize| {
        block[at..]
            .first_chunk()
            .map_or(0, |bytes| i64::from_le_bytes(*bytes))
    };
    let mut mask = 0;
    for part in (0..BLOCK).step_by(16).rev() {
        // SAFETY: SSE2, all that these need, is part of every x86-64; they touch no memory.
        let found = unsafe {
            let bytes = _mm_set_epi64x(half(part + 8), half(part));
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed())))
        };
        mask = mask << 16 | u64::from(found.cast_unsigned());
    }
    mask
}

/// A bit for each byte of a block that is a quote.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn quotes(block: &[u8; BLOCK]) -> u64 {
    block
        .iter()
        .rev()
        .fold(0, |mask, byte| mask << 1 | u64::from(*byte == b'"'))
}

/// Undoes the escapes of a JSON string; what is not a right escape is kept as it stands.
fn unescape(escaped: &[u8]) -> String {
    let mut out = Vec::with_capacity(escaped.len());
    unescape_into(escaped, &mut out);
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// As [`unescape`], appending bytes to a buffer that is used again and again.
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

    fn keys(line: &str) -> Option<Vec<String>> {
        let mut keys = Vec::new();
        let mut walk = Walk::new(line.as_bytes());
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
