//! What stands between the values of a line that differ from line to line.
//!
//! A transcript has thousands of lines with the same keys in the same order, and most of their small values are the same,
//! too: `,"isSidechain":false,"type":"user","message":{"role":"user","content":` is one step of the way, not five keys.
//! Such a piece of a line, a gap, is remembered, and next time compared as a whole instead of being read again. A piece
//! that is not found here is read key by key, and then remembered; nothing depends on what the keys are.

#![allow(
    clippy::inline_always,
    reason = "what these compile to depends on the function that they become part of"
)]

use std::cell::Cell;

use crate::read::json::{Raw, Walk, text_of};
use crate::read::record::{Inside, Key, Record};
use crate::read::scan::Scan;

/// Places from which gaps begin: behind the value of a key, so many for each object. Keys of an object that share one by
/// accident share its gaps; keys of different objects must not, since the same text means something else there.
const NODES: u8 = 64;
/// Where a line begins: behind the places of the three objects.
pub(crate) const START: u8 = 3 * NODES;
/// Gaps known from one place. The oldest makes room for a new one.
const KNOWN: usize = 8;
/// A value that is longer is not part of a gap.
const MAX_FIXED: usize = 256;

/// Keys whose strings are the same in most lines of a file.
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

/// The gaps of the lines read so far.
pub(crate) struct Gaps {
    nodes: Vec<Node>,
    /// The gap met last: its node, and its place there.
    last: (u8, u8),
}

#[derive(Default)]
struct Node {
    /// The newest first: they are of this file, and those behind them may be of others.
    gaps: Vec<Gap>,
}

struct Gap {
    text: Box<[u8]>,
    /// Values inside of it that are asked for: from and to.
    fixed: Box<[(Key, u16, u16)]>,
    then: Then,
    /// The value behind it is no object. If it were one, the gap would go on into it.
    ends_before_object: bool,
    /// The place of the gap that came next the last time, which is likely to come next again: lines of a kind are alike.
    next: u8,
}

/// What comes behind a gap.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// The line ends.
    End,
    /// A value, of a key of this object; the next gap begins at that node.
    Value { key: Key, inside: Inside, node: u8 },
}

thread_local! {
    /// Kept from file to file: most look alike.
    static KEPT: Cell<Option<Gaps>> = const { Cell::new(None) };
}

impl Gaps {
    /// Runs something with what this thread has seen so far.
    pub(crate) fn with<T>(run: impl FnOnce(&mut Self) -> T) -> T {
        let mut gaps = KEPT.take().unwrap_or_else(|| Self {
            nodes: (0..=START).map(|_| Node::default()).collect(),
            last: (START, 0),
        });
        let result = run(&mut gaps);
        KEPT.set(Some(gaps));
        result
    }

    /// The gap that `bytes` begin with: its length and what comes behind it. Values inside of it go into the record.
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

    /// Reads a gap key by key, and remembers it.
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

/// Walks from behind a value to the next one that is no part of a gap, calling `each` for those that are. Tells, too, which
/// object that value would be, were it one.
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
        // The CLI has no escapes in its keys; others may.
        let key = text_of(walk.key()?);
        let name = key.as_bytes();
        // An object that is asked for more than its extent is read as if its keys were the line's own.
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
