//! Reads a transcript into a [`Part`] (the list's digest, the chain's outline, the ledger of tokens) and continues when
//! it grows.
//!
//! A file is identified by inode, size and modification time. If only its size grew, and the bytes before the old end
//! are the same, reading continues at the old end; otherwise it starts afresh. A line without a newline is read, but
//! read again later: its writer may not have finished it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use cap_std::fs::MetadataExt as _;

use crate::read::gaps::Gaps;
use crate::read::lines::{Buffer, Line, take_lines};
use crate::read::record::Record;

/// A file's state when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
}

impl Stamp {
    pub(crate) fn of(metadata: &cap_std::fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            modified_ns: metadata
                .mtime()
                .wrapping_mul(1_000_000_000)
                .wrapping_add(metadata.mtime_nsec()),
        }
    }

    #[allow(
        clippy::useless_conversion,
        reason = "the types of these differ between systems"
    )]
    pub(crate) fn of_stat(stat: &rustix::fs::Stat) -> Self {
        Self {
            inode: stat.st_ino.into(),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified_ns: i64::from(stat.st_mtime)
                .wrapping_mul(1_000_000_000)
                .wrapping_add(i64::try_from(stat.st_mtime_nsec).unwrap_or_default()),
        }
    }
}

/// Something that is built from the lines of a transcript.
pub(crate) trait Part: Clone + Default {
    fn add(&mut self, offset: u64, line: &[u8], record: &Record<'_>);
    /// A line was torn, spliced or too long.
    fn damaged(&mut self) {}
}

/// Something that the index saves for each transcript.
pub(crate) trait Saved: Sized {
    /// The table in which it is saved.
    const TABLE: &'static str;
    fn to_bytes(&self) -> Vec<u8>;
    /// `None` if the bytes can't be decoded.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

/// A part, and how far the file was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followed<P> {
    pub(crate) stamp: Stamp,
    /// The offset after the last whole line.
    pub(crate) offset: u64,
    /// A fingerprint of the bytes before `offset`, to detect a file that was rewritten in place.
    pub(crate) check: u64,
    pub(crate) part: P,
    /// `part` with the unfinished last line, if there is one.
    pub(crate) with_unfinished: Option<Box<P>>,
}

impl<P> Followed<P> {
    /// The part with everything that can be read right now.
    pub(crate) fn current(&self) -> &P {
        self.with_unfinished.as_deref().unwrap_or(&self.part)
    }

    /// Whether it matches the file's current state. A line without a newline is not saved in the index, and is read
    /// again.
    pub(crate) fn is_as_of(&self, stamp: Stamp) -> bool {
        self.stamp == stamp && (self.offset == stamp.size || self.with_unfinished.is_some())
    }

    /// The same progress with a converted part.
    pub(crate) fn map<Q>(&self, form: impl Fn(&P) -> Q) -> Followed<Q> {
        Followed {
            stamp: self.stamp,
            offset: self.offset,
            check: self.check,
            part: form(&self.part),
            with_unfinished: self.with_unfinished.as_deref().map(|part| Box::new(form(part))),
        }
    }
}

/// Reads `file`, continuing from `known` if possible.
pub(crate) fn follow<P: Part>(
    file: &mut File,
    stamp: Stamp,
    known: Option<Followed<P>>,
    buffer: &mut Buffer,
) -> io::Result<Followed<P>> {
    let mut state = match known {
        Some(known) if continues(file, stamp, &known)? => known,
        _ => Followed::default(),
    };
    state.stamp = stamp;
    state.with_unfinished = None;
    let Followed {
        part,
        with_unfinished,
        offset: from,
        ..
    } = &mut state;
    let shared = std::cell::RefCell::new(part);
    let end = Gaps::with(|gaps| {
        let take = |offset: u64, bytes: &[u8]| {
            let mut record = Record::default();
            let length = record.begin(bytes, gaps)?;
            if bytes.get(length) != Some(&b'\n') {
                return None;
            }
            shared.borrow_mut().add(offset, &bytes[..length], &record);
            Some(length + 1)
        };
        take_lines(file, *from, buffer, take, |line| {
            let part = &mut **shared.borrow_mut();
            match line {
                Line::Whole { offset, bytes } => add_line(part, offset, bytes),
                Line::TooLong => part.damaged(),
                Line::Unfinished { offset, bytes } => {
                    let mut with = Box::new(part.clone());
                    add_line(&mut *with, offset, bytes);
                    *with_unfinished = Some(with);
                }
            }
            true
        })
    })?;
    state.offset = end;
    state.check = check(file, end)?;
    Ok(state)
}

fn add_line<P: Part>(part: &mut P, offset: u64, bytes: &[u8]) {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    match Record::read(bytes) {
        Some(record) => part.add(offset, bytes, &record),
        None => part.damaged(),
    }
}

fn continues<P>(file: &mut File, stamp: Stamp, known: &Followed<P>) -> io::Result<bool> {
    if known.stamp.inode != stamp.inode || stamp.size < known.stamp.size || known.offset > stamp.size {
        return Ok(false);
    }
    Ok(check(file, known.offset)? == known.check)
}

/// A fingerprint of the bytes before an offset.
pub(crate) fn check(file: &mut File, offset: u64) -> io::Result<u64> {
    let length = offset.min(256);
    let mut tail = Vec::with_capacity(256);
    file.seek(SeekFrom::Start(offset - length))?;
    file.take(length).read_to_end(&mut tail)?;
    Ok(fingerprint(&tail))
}

/// FNV-1a: stable across builds, as a number on disk must be.
pub(crate) fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::read::json::Raw;
    use crate::read::record::Kind;

    /// The values that were read, as JSON.
    #[derive(Clone, Default, Debug, PartialEq)]
    struct Seen {
        lines: Vec<(u64, Value)>,
        damaged: usize,
    }

    impl Part for Seen {
        fn add(&mut self, offset: u64, _line: &[u8], record: &Record<'_>) {
            let text = |raw: Option<Raw<'_>>| raw.and_then(Raw::text).map(std::borrow::Cow::into_owned);
            let escaped =
                |bytes: Option<&[u8]>| bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            let content = record
                .content
                .map(|content| serde_json::from_slice::<Value>(content.0).unwrap());
            let kind = match record.kind {
                Kind::User => "user",
                Kind::Assistant => "assistant",
                Kind::Untyped => "",
                _ => "other",
            };
            let seen = json!({"kind": kind, "uuid": text(record.uuid), "time": text(record.timestamp),
                "cwd": text(record.cwd), "side": record.is_sidechain, "model": escaped(record.model),
                "content": content, "path": text(record.result_path), "edit": record.result_is_edit});
            self.lines.push((offset, seen));
        }

        fn damaged(&mut self) {
            self.damaged += 1;
        }
    }

    /// The same values, by parsing whole lines.
    fn slowly(file: &[u8]) -> Seen {
        let mut seen = Seen::default();
        let mut offset = 0;
        for line in file.split_inclusive(|byte| *byte == b'\n') {
            let parsed = serde_json::from_slice::<Value>(line);
            match parsed {
                _ if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(value) if value.is_object() => {
                    let kind = match value["type"].as_str() {
                        Some(known @ ("user" | "assistant")) => known,
                        Some(_) => "other",
                        None => "",
                    };
                    let message = &value["message"];
                    let result = &value["toolUseResult"];
                    seen.lines.push((
                        offset,
                        json!({"kind": kind, "uuid": value["uuid"], "time": value["timestamp"], "cwd": value["cwd"],
                            "side": value["isSidechain"] == true, "model": message["model"],
                            "content": message["content"], "path": result["filePath"],
                            "edit": !result["structuredPatch"].is_null()}),
                    ));
                }
                _ => seen.damaged += 1,
            }
            offset += line.len() as u64;
        }
        seen
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % limit
        }

        fn one_in(&mut self, count: usize) -> bool {
            self.below(count) == 0
        }

        /// Text of about this length that contains JSON syntax.
        fn text(&mut self, length: usize) -> String {
            let pieces = [
                "plain words, ",
                "\"quoted\"",
                "\\",
                "\n",
                "{",
                "}",
                "[",
                "]",
                "登录页面",
                "C:\\",
                "\u{1f600}",
                "\u{1}",
                "\"type\":\"user\",",
                "a long piece of text that has nothing special in it at all; ",
            ];
            let mut text = String::new();
            while text.len() < length {
                text.push_str(pieces[self.below(pieces.len())]);
            }
            text
        }

        fn length(&mut self) -> usize {
            match self.below(300) {
                0 => 700_000,
                1..=4 => 100_000,
                5..=20 => 9_000,
                _ => self.below(200),
            }
        }

        /// An object with its keys in any order, blanks anywhere, and sometimes an escaped key.
        fn object(&mut self, mut entries: Vec<(&str, String)>, is_odd: bool) -> String {
            if is_odd {
                for last in (1..entries.len()).rev() {
                    entries.swap(last, self.below(last + 1));
                }
            }
            let blank = |random: &mut Self| {
                if is_odd {
                    ["", "", " ", "\t "][random.below(4)]
                } else {
                    ""
                }
            };
            let mut out = String::from("{");
            for (place, (key, value)) in entries.into_iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                let key = match key.split_at_checked(1) {
                    Some((first, rest)) if is_odd && self.one_in(20) => {
                        format!("\\u{:04x}{rest}", u32::from(first.as_bytes()[0]))
                    }
                    _ => key.to_owned(),
                };
                let [a, b, c, d] = [(); 4].map(|()| blank(self));
                out.extend([comma, a, "\"", &key, "\"", b, ":", c, &value, d]);
            }
            out + "}"
        }

        fn line(&mut self, number: usize) -> String {
            let is_odd = self.one_in(3);
            let string = |text: String| Value::from(text).to_string();
            let length = self.length();
            let text = self.text(length);
            let block =
                json!([{"type": "text", "text": text}, {"type": "tool_use", "input": {"a": [1, {}]}}]);
            let content = if self.one_in(2) {
                string(text)
            } else {
                block.to_string()
            };
            let model = string("claude".to_owned());
            let message = self.object(
                vec![
                    ("role", string("user".into())),
                    ("model", model),
                    ("content", content),
                ],
                is_odd,
            );
            let length = self.length();
            let original = string(self.text(length));
            let result = vec![
                ("filePath", string(self.text(10))),
                ("originalFile", original),
                (
                    "structuredPatch",
                    json!([{"lines": ["+a", "-\"b\""]}]).to_string(),
                ),
            ];
            let result = self.object(result, is_odd);
            let kind = ["user", "assistant", "of-tomorrow"][self.below(3)];
            let mut entries = vec![
                ("parentUuid", "null".to_owned()),
                ("isSidechain", self.one_in(2).to_string()),
                ("type", string(kind.to_owned())),
                ("message", message),
                ("uuid", string(format!("id-{number}"))),
                ("timestamp", string(self.text(24))),
                (
                    "toolUseResult",
                    if self.one_in(3) {
                        string("Error".into())
                    } else {
                        result
                    },
                ),
                ("cwd", string(format!("/home/{}", self.below(4)))),
                ("size", "-1.5e+3".to_owned()),
                ("none", "[]".to_owned()),
            ];
            entries.retain(|_| !self.one_in(8));
            self.object(entries, is_odd)
        }
    }

    #[test]
    fn every_line_is_read_as_if_it_were_parsed_whole() {
        let mut random = Random(6);
        for round in 0..3 {
            let mut file = Vec::new();
            for number in 0..300 {
                let line = random.line(number);
                let cut = line.floor_char_boundary(random.below(line.len()));
                match random.below(40) {
                    // Torn, and spliced: its newline is missing.
                    0 => file.extend(&line.as_bytes()[..cut]),
                    1 => {
                        file.extend(&line.as_bytes()[..cut]);
                        file.extend(random.line(number).as_bytes());
                    }
                    2 => file.extend(format!("{line}{line}").as_bytes()),
                    3 => file.extend(b"  "),
                    _ => file.extend(line.as_bytes()),
                }
                file.extend(if random.one_in(5) {
                    b"\r\n".as_slice()
                } else {
                    b"\n"
                });
            }
            let temporary = tempfile::NamedTempFile::new().unwrap();
            let expected = slowly(&file);
            let unfinished = random.line(0);
            file.extend(unfinished.as_bytes());
            std::fs::write(temporary.path(), &file).unwrap();
            let read = follow::<Seen>(
                &mut File::open(temporary.path()).unwrap(),
                Stamp {
                    size: file.len() as u64,
                    ..Stamp::default()
                },
                None,
                &mut Buffer::default(),
            )
            .unwrap();
            assert_eq!(read.offset, (file.len() - unfinished.len()) as u64);
            assert_eq!(read.part.damaged, expected.damaged, "round {round}");
            for (ours, theirs) in read.part.lines.iter().zip(&expected.lines) {
                for field in theirs.1.as_object().unwrap().keys() {
                    let (ours, theirs) = (&ours.1[field], &theirs.1[field]);
                    assert!(
                        ours == theirs,
                        "round {round}, {field}: {ours:.200} is not {theirs:.200}"
                    );
                }
                assert_eq!(ours.0, theirs.0);
            }
            assert_eq!(read.part.lines.len(), expected.lines.len());
            assert_eq!(*read.current(), slowly(&file));
        }
    }
}
