//! Caches the constant text between the values that differ from line to line.
//!
//! A transcript has thousands of lines with the same keys in the same order, and most of their small values are the
//! same, too: `,"isSidechain":false,"type":"user","message":{"role":"user","content":` is passed in one step instead of
//! key by key. Such a piece of a line, a gap, is remembered, and next time compared as a whole. A piece that is not in
//! the cache is read key by key and then remembered; nothing depends on the names of the keys.

#![allow(
    clippy::inline_always,
    reason = "what these compile to depends on the function that they become part of"
)]

use std::cell::Cell;

use crate::read::json::{Raw, Walk, text_of};
use crate::read::record::{Inside, Key, Record};
use crate::read::scan::Scan;

/// The number of places per object from which gaps begin: after the value of a key. Keys of an object that share a
/// place share its gaps; keys of different objects must not, because the same text means something else there.
const NODES: u8 = 64;
/// The place where a line begins: after the places of the three objects.
pub(crate) const START: u8 = 3 * NODES;
/// The number of gaps per place. The oldest is replaced by a new one.
const KNOWN: usize = 8;
/// A longer value is not part of a gap.
const MAX_FIXED: usize = 256;

/// Keys whose string values are the same in most lines of a file.
const FIXED: [&[u8]; 13] = [
    b"type",
    b"role",
    b"model",
    b"cwd",
    b"sessionId",
    b"version",
    b"gitBranch",
    b"userType",
    b"entrypoint",
    b"permissionMode",
    b"stop_reason",
    b"slug",
    b"agentId",
];

/// The gaps of the lines so far.
pub(crate) struct Gaps {
    nodes: Vec<Node>,
    /// The last gap: its node, and its index there.
    last: (u8, u8),
}

#[derive(Default)]
struct Node {
    /// The newest first: they are of this file, later ones may be of others.
    gaps: Vec<Gap>,
}

struct Gap {
    text: Box<[u8]>,
    /// The ranges of requested values inside the gap.
    fixed: Box<[(Key, u16, u16)]>,
    then: Then,
    /// The value after the gap is not an object. If it were, the gap would continue into it.
    ends_before_object: bool,
    /// The index of the gap that followed last time, which is likely to follow again.
    next: u8,
}

/// What follows a gap.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// The line ends.
    End,
    /// A value of a key of this object; the next gap begins at that node.
    Value { key: Key, inside: Inside, node: u8 },
}

thread_local! {
    /// Kept from file to file: most are alike.
    static KEPT: Cell<Option<Gaps>> = const { Cell::new(None) };
}

impl Gaps {
    /// Runs `run` with the gaps of this thread.
    pub(crate) fn with<T>(run: impl FnOnce(&mut Self) -> T) -> T {
        let mut gaps = KEPT.take().unwrap_or_else(|| Self {
            nodes: (0..=START).map(|_| Node::default()).collect(),
            last: (START, 0),
        });
        let result = run(&mut gaps);
        KEPT.set(Some(gaps));
        result
    }

    /// Finds the gap at the beginning of `bytes`: its length and what follows it. Values inside the gap are added to
    /// the record.
    #[inline(always)]
    pub(crate) fn pass<'a, S: Scan>(
        &mut self,
        node: u8,
        bytes: &'a [u8],
        record: &mut Record<'a>,
    ) -> Option<(usize, Then)> {
        let gaps = &self.nodes[usize::from(node)].gaps;
        let begins = |gap: &Gap| {
            S::begins(bytes, &gap.text)
                && !(gap.ends_before_object && begins_object(&bytes[gap.text.len()..]))
        };
        let expected = self.last().map_or(0, |last| last.next);
        let place = if gaps.get(usize::from(expected)).is_some_and(begins) {
            expected
        } else {
            let found = gaps.iter().position(begins)?;
            self.came_next(u8::try_from(found).ok()?)
        };
        self.last = (node, place);
        let gap = &self.nodes[usize::from(node)].gaps[usize::from(place)];
        for (key, from, to) in &gap.fixed {
            record.set(*key, Raw(&bytes[usize::from(*from)..usize::from(*to)]));
        }
        Some((gap.text.len(), gap.then))
    }

    #[inline(always)]
    fn last(&self) -> Option<&Gap> {
        let (node, place) = self.last;
        self.nodes[usize::from(node)].gaps.get(usize::from(place))
    }

    fn came_next(&mut self, place: u8) -> u8 {
        let (node, last) = self.last;
        if let Some(last) = self.nodes[usize::from(node)].gaps.get_mut(usize::from(last)) {
            last.next = place;
        }
        place
    }

    /// Reads a gap key by key and remembers it.
    #[cold]
    pub(crate) fn learn<'a>(
        &mut self,
        node: u8,
        inside: Inside,
        bytes: &'a [u8],
        record: &mut Record<'a>,
    ) -> Option<(usize, Then)> {
        let mut fixed = Vec::new();
        let (length, then, inner) = read(node, inside, bytes, |key, from, to| {
            record.set(key, Raw(&bytes[from..to]));
            if key != Key::Other {
                fixed.push((key, from, to));
            }
        })?;
        let is_small = u16::try_from(length).is_ok() && fixed.len() < 64;
        if is_small {
            let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
            let gap = Gap {
                text: bytes[..length].into(),
                fixed: fixed
                    .into_iter()
                    .map(|(key, from, to)| (key, place(from), place(to)))
                    .collect(),
                then,
                ends_before_object: inner.is_some(),
                next: 0,
            };
            self.came_next(0);
            let gaps = &mut self.nodes[usize::from(node)].gaps;
            gaps.truncate(KNOWN - 1);
            gaps.insert(0, gap);
            self.last = (node, 0);
        }
        Some((length, then))
    }
}

/// Walks from the end of a value to the next value that is not part of a gap, calling `each` for those that are. Also
/// returns which object that value would be, if it is one.
fn read(
    node: u8,
    mut inside: Inside,
    bytes: &[u8],
    mut each: impl FnMut(Key, usize, usize),
) -> Option<(usize, Then, Option<Inside>)> {
    let mut walk: Walk<'_> = Walk::new(bytes);
    let mut is_first = node == START;
    if is_first {
        walk.expect(b'{')?;
    }
    loop {
        if is_first && walk.peek()? != b'}' {
            is_first = false;
        } else {
            match (walk.next()?, inside) {
                (b',', _) => {}
                (b'}', Inside::Line) => return Some((walk.at(), Then::End, None)),
                (b'}', _) => {
                    inside = Inside::Line;
                    is_first = false;
                    continue;
                }
                _ => return None,
            }
        }
        // The CLI writes no escapes in keys; other programs may.
        let key = text_of(walk.key()?);
        let name = key.as_bytes();
        // An object with requested keys is read as if its keys were the line's own.
        let deeper = match (inside, name) {
            (Inside::Line, b"message") => Some(Inside::Message),
            (Inside::Line, b"toolUseResult") => Some(Inside::Result),
            _ => None,
        };
        if let Some(deeper) = deeper.filter(|_| walk.peek() == Some(b'{')) {
            walk.next();
            inside = deeper;
            is_first = true;
            continue;
        }
        let key = Key::of(inside, name);
        let from = walk.at();
        let may_be_fixed = match walk.peek()? {
            b't' | b'f' | b'n' => true,
            b'"' => FIXED.contains(&name),
            _ => false,
        };
        if may_be_fixed {
            let value = walk.value()?;
            if value.0.len() <= MAX_FIXED {
                each(key, from, walk.at());
                continue;
            }
        }
        let node = place(inside, name);
        return Some((from, Then::Value { key, inside, node }, deeper));
    }
}

fn begins_object(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{")
}

fn place(inside: Inside, name: &[u8]) -> u8 {
    let hash = crate::read::follow::fingerprint(name);
    let [low, ..] = (hash ^ hash >> 17 ^ hash >> 31).to_le_bytes();
    let object = match inside {
        Inside::Line => 0,
        Inside::Message => NODES,
        Inside::Result => 2 * NODES,
    };
    object + low % NODES
}
