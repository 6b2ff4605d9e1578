//! The outline of a transcript: the position of each message and its parent, without the text.
//!
//! With the outline a page of messages is read directly from its positions, however large the file is.
//! [`chain`](crate::read::chain) determines which messages the model would see.

use crate::bytes::Input;
use crate::read::follow::{Part, Saved, fingerprint};
use crate::read::json::Raw;
use crate::read::record::{Kind, Record, millis};

/// A message id as a number: the UUID itself, or a hash of any other id. 0 means no id.
pub(crate) type Key = u128;

/// One link of the chain of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) flags: u32,
    pub(crate) key: Key,
    pub(crate) parent: Key,
    /// For a compaction boundary: the message before it.
    pub(crate) logical_parent: Key,
    /// The hash of `message.id`: the lines of one model message share it.
    pub(crate) message: u64,
    pub(crate) time: i64,
}

pub(crate) mod flag {
    pub(crate) const USER: u32 = 1;
    pub(crate) const ASSISTANT: u32 = 1 << 1;
    pub(crate) const SIDECHAIN: u32 = 1 << 2;
    pub(crate) const TOOL_RESULT: u32 = 1 << 3;
    pub(crate) const COMPACT_BOUNDARY: u32 = 1 << 4;
    /// Has no content to show.
    pub(crate) const EMPTY: u32 = 1 << 5;
    pub(crate) const TOOL_USE: u32 = 1 << 6;
    /// A result that names a subagent, or a call that starts one.
    pub(crate) const SUBAGENT: u32 = 1 << 7;
}

impl Node {
    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether it is shown: a user or assistant message with content.
    pub(crate) fn is_shown(&self) -> bool {
        self.has(flag::USER | flag::ASSISTANT) && !self.has(flag::EMPTY)
    }
}

/// Messages that a compaction kept unchanged, placed after its summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) boundary: Key,
    /// The message they follow.
    pub(crate) anchor: Key,
    pub(crate) keys: Vec<Key>,
    /// If there is no list of `keys`: the first and the last of them.
    pub(crate) head: Key,
    pub(crate) tail: Key,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) nodes: Vec<Node>,
    pub(crate) kept: Vec<Kept>,
    /// The end of the branch that the CLI recorded last; 0 if none.
    pub(crate) noted_leaf: Key,
    pub(crate) damaged: u64,
}

impl Part for Outline {
    fn add(&mut self, offset: u64, line: &[u8], record: &Record<'_>) {
        if record.kind == Kind::LastPrompt {
            if let Some(leaf) = record.leaf {
                self.noted_leaf = key(Some(leaf));
            }
            return;
        }
        let Ok(length) = u32::try_from(line.len()) else {
            return;
        };
        if !record.kind.is_link() || record.uuid.is_none() {
            return;
        }
        let node = Node {
            offset,
            length,
            flags: flags(record),
            key: key(record.uuid),
            parent: key(record.parent),
            logical_parent: key(record.logical_parent),
            message: if record.kind == Kind::Assistant {
                message_hash(record)
            } else {
                0
            },
            time: record
                .timestamp
                .and_then(Raw::escaped)
                .and_then(millis)
                .unwrap_or(0),
        };
        if node.has(flag::COMPACT_BOUNDARY)
            && let Some(kept) = record.compact.and_then(|compact| kept(node.key, compact))
        {
            self.kept.push(kept);
        }
        self.nodes.push(node);
    }

    fn damaged(&mut self) {
        self.damaged += 1;
    }
}

impl Saved for Outline {
    const TABLE: &'static str = "outline";

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.nodes.len() * NODE_BYTES + 64);
        out.extend(self.noted_leaf.to_le_bytes());
        out.extend(self.damaged.to_le_bytes());
        out.extend((self.nodes.len() as u64).to_le_bytes());
        for node in &self.nodes {
            out.extend(node.offset.to_le_bytes());
            out.extend(node.length.to_le_bytes());
            out.extend(node.flags.to_le_bytes());
            out.extend(node.key.to_le_bytes());
            out.extend(node.parent.to_le_bytes());
            out.extend(node.logical_parent.to_le_bytes());
            out.extend(node.message.to_le_bytes());
            out.extend(node.time.to_le_bytes());
        }
        for kept in &self.kept {
            for key in [kept.boundary, kept.anchor, kept.head, kept.tail] {
                out.extend(key.to_le_bytes());
            }
            out.extend((kept.keys.len() as u64).to_le_bytes());
            for key in &kept.keys {
                out.extend(key.to_le_bytes());
            }
        }
        out
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let mut outline = Self {
            noted_leaf: input.u128()?,
            damaged: input.u64()?,
            ..Self::default()
        };
        let count = input.count(NODE_BYTES)?;
        outline.nodes.reserve_exact(count);
        for _ in 0..count {
            outline.nodes.push(Node {
                offset: input.u64()?,
                length: input.u32()?,
                flags: input.u32()?,
                key: input.u128()?,
                parent: input.u128()?,
                logical_parent: input.u128()?,
                message: input.u64()?,
                time: input.i64()?,
            });
        }
        while !input.0.is_empty() {
            let (boundary, anchor, head, tail) = (input.u128()?, input.u128()?, input.u128()?, input.u128()?);
            let count = input.count(16)?;
            let keys = (0..count).map(|_| input.u128()).collect::<Option<_>>()?;
            outline.kept.push(Kept {
                boundary,
                anchor,
                keys,
                head,
                tail,
            });
        }
        Some(outline)
    }
}

const NODE_BYTES: usize = 8 + 4 + 4 + 16 * 3 + 8 + 8;

fn flags(record: &Record<'_>) -> u32 {
    let mut flags = 0;
    if record.is_sidechain {
        flags |= flag::SIDECHAIN;
    }
    if record.is_compact_boundary() {
        flags |= flag::COMPACT_BOUNDARY;
    }
    if !record.kind.is_message() {
        return flags;
    }
    flags |= if record.kind == Kind::User {
        flag::USER
    } else {
        flag::ASSISTANT
    };
    let Some(content) = record.content else {
        return flags | flag::EMPTY;
    };
    if is_empty(content) {
        flags |= flag::EMPTY;
    }
    if content.is_array() {
        // Inside a text these words would be escaped, so unescaped they are the block's own.
        if memchr::memmem::find(content.0, b"\"tool_result\"").is_some() {
            flags |= flag::TOOL_RESULT;
        }
        if memchr::memmem::find(content.0, b"\"tool_use\"").is_some() {
            flags |= flag::TOOL_USE;
            if content.0.len() > 40
                && [&b"\"Task\""[..], b"\"Agent\""]
                    .iter()
                    .any(|name| memchr::memmem::find(content.0, name).is_some())
            {
                flags |= flag::SUBAGENT;
            }
        }
    }
    if flags & flag::TOOL_RESULT != 0 && record.result_agent.is_some() {
        flags |= flag::SUBAGENT;
    }
    flags
}

/// Empty strings, empty arrays, and arrays of nothing but empty texts are not shown.
pub(crate) fn is_empty(content: Raw<'_>) -> bool {
    if content.is_string() {
        return content.0.len() == 2;
    }
    if !content.is_array() {
        return true;
    }
    let mut empty = true;
    content.items(|block| {
        let is_text = block.get(b"type").and_then(Raw::escaped) == Some(b"text");
        if !is_text || block.get(b"text").and_then(Raw::escaped) != Some(b"") {
            empty = false;
        }
    });
    empty
}

pub(crate) fn message_hash(record: &Record<'_>) -> u64 {
    record
        .message_id
        .filter(|id| !id.is_empty())
        .map_or(0, |id| fingerprint(id).max(1))
}

/// The key of a string value.
pub(crate) fn key(value: Option<Raw<'_>>) -> Key {
    value.and_then(Raw::escaped).map_or(0, key_of)
}

pub(crate) fn key_of(text: &[u8]) -> Key {
    uuid_number(text).unwrap_or_else(|| {
        if text.is_empty() {
            return 0;
        }
        let first = fingerprint(text);
        let second = fingerprint(&[text, b"\0"].concat());
        (u128::from(first) << 64 | u128::from(second)).max(1)
    })
}

fn uuid_number(text: &[u8]) -> Option<u128> {
    if text.len() != 36 {
        return None;
    }
    let mut number = 0u128;
    for (position, byte) in text.iter().enumerate() {
        if matches!(position, 8 | 13 | 18 | 23) {
            if *byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = char::from(*byte).to_digit(16)?;
        number = number << 4 | u128::from(digit);
    }
    Some(number)
}

/// Newer releases list what a compaction kept (`preservedMessages`), older ones name the first and the last
/// (`preservedSegment`).
fn kept(boundary: Key, compact: Raw<'_>) -> Option<Kept> {
    let mut kept = Kept {
        boundary,
        anchor: 0,
        keys: Vec::new(),
        head: 0,
        tail: 0,
    };
    if let Some(segment) = compact.get(b"preservedSegment") {
        kept.anchor = key(segment.get(b"anchorUuid"));
        kept.head = key(segment.get(b"headUuid"));
        kept.tail = key(segment.get(b"tailUuid"));
    }
    if let Some(messages) = compact.get(b"preservedMessages") {
        kept.anchor = key(messages.get(b"anchorUuid"));
        let list = messages.get(b"allUuids").or_else(|| messages.get(b"uuids"));
        if let Some(list) = list.filter(|list| list.is_array()) {
            list.items(|item| kept.keys.push(key(Some(item))));
        }
    }
    (kept.anchor != 0 && (kept.tail != 0 || !kept.keys.is_empty())).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_survives_the_index() {
        let mut outline = Outline {
            noted_leaf: 7,
            damaged: 2,
            ..Outline::default()
        };
        for line in [
            r#"{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","parentUuid":null,"timestamp":"2026-11-15T10:00:01.000Z","message":{"content":"x"}}"#,
            r#"{"type":"system","subtype":"compact_boundary","uuid":"b","parentUuid":null,"logicalParentUuid":"a","compactMetadata":{"preservedMessages":{"anchorUuid":"c","uuids":["a"]}}}"#,
            r#"{"type":"assistant","uuid":"d","parentUuid":"b","message":{"id":"m","content":[{"type":"text","text":""}]}}"#,
        ] {
            outline.add(5, line.as_bytes(), &Record::read(line.as_bytes()).unwrap());
        }
        assert_eq!(outline.nodes.len(), 3);
        assert_eq!(outline.nodes[0].key, 0x0000_0000_0000_4000_8000_0000_0000_0001);
        assert!(outline.nodes[1].has(flag::COMPACT_BOUNDARY));
        assert!(!outline.nodes[2].is_shown());
        assert_eq!(outline.kept[0].keys, [key_of(b"a")]);
        let bytes = outline.to_bytes();
        assert_eq!(Outline::from_bytes(&bytes), Some(outline));
        assert_eq!(Outline::from_bytes(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Outline::from_bytes(&[255; 40]), None);
    }
}
