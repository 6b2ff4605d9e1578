//! Determines which messages the model would see, and why not the others.
//!
//! The rules are the CLI's own, found by resuming crafted transcripts and looking at what it sent to the model:
//! - The chain ends at the last link in the file (not the newest by time) that no subagent wrote. Where the CLI noted the end
//!   of a branch (`last-prompt`), it ends at the last link in the file that goes on from there.
//! - It is followed by `parentUuid`. A parent that is not in the file (torn away) is replaced by the link before it in time.
//! - It stops at a compaction boundary; what the compaction kept follows its summary.
//! - Calls made side by side are lines of one model message, and each result hangs on its own call: following parents alone
//!   would lose all but one. All lines of a model message, and all their results, belong to the chain.
//! - Of two lines with one id the later one counts.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::read::outline::{Key, Node, Outline, flag};

/// A message's relation to the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The model sees it.
    Chain,
    /// A compaction replaced it with a summary.
    Compacted,
    /// It was abandoned when the conversation went back to an earlier point.
    Left,
    /// A subagent wrote it.
    Sidechain,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    /// Indices of nodes, in the order in which the model sees them.
    pub(crate) seen: Vec<usize>,
    /// Indices of messages that compactions replaced, in their original order. The file may have another order, because a
    /// CLI that resumes may write a line again.
    pub(crate) compacted: Vec<usize>,
    /// The mark of each node of the outline.
    pub(crate) marks: Vec<Mark>,
}

impl Chain {
    pub(crate) fn of(outline: &Outline) -> Self {
        let links = Links::new(outline);
        let mut marks: Vec<Mark> = outline
            .nodes
            .iter()
            .map(|node| {
                if node.has(flag::SIDECHAIN) {
                    Mark::Sidechain
                } else {
                    Mark::Left
                }
            })
            .collect();
        let Some(leaf) = links.leaf() else {
            return Self {
                marks,
                ..Self::default()
            };
        };

        let (path, boundary) = links.path(leaf);
        let seen = links.with_siblings(&links.with_kept(path, boundary));
        for index in &seen {
            marks[*index] = Mark::Chain;
        }
        // The messages that compactions replaced, compaction by compaction back to the beginning.
        let mut boundary = boundary;
        let mut rounds: Vec<Vec<usize>> = Vec::new();
        while let Some(before) = boundary.and_then(|index| links.before_compaction(index)) {
            let (path, next) = links.path(before);
            let mut round = links.with_siblings(&path);
            round.retain(|index| marks[*index] == Mark::Left);
            for index in &round {
                marks[*index] = Mark::Compacted;
            }
            rounds.push(round);
            boundary = next.filter(|_| rounds.len() < outline.nodes.len());
        }
        let compacted = rounds.into_iter().rev().flatten().collect();
        Self {
            seen,
            compacted,
            marks,
        }
    }
}

/// Keys are already random: mixing their halves spreads them well enough, and there are tens of thousands to look up.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u128(&mut self, number: u128) {
        let [low, high] =
            [number, number >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0));
        self.write_u64(low);
        self.write_u64(high);
        self.0 ^= self.0 >> 32;
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

struct Links<'a> {
    outline: &'a Outline,
    by_key: Map<Key, usize>,
    parents: Vec<Option<usize>>,
}

impl<'a> Links<'a> {
    fn new(outline: &'a Outline) -> Self {
        let nodes = &outline.nodes;
        let mut by_key = Map::with_capacity_and_hasher(nodes.len(), BuildHasherDefault::default());
        for (index, node) in nodes.iter().enumerate() {
            by_key.insert(node.key, index);
        }
        let parents = (0..nodes.len())
            .map(|index| parent(nodes, &by_key, index))
            .collect();
        Self {
            outline,
            by_key,
            parents,
        }
    }

    fn find(&self, key: Key) -> Option<usize> {
        (key != 0).then(|| self.by_key.get(&key).copied()).flatten()
    }

    fn counts(&self, index: usize) -> bool {
        let node = &self.outline.nodes[index];
        !node.has(flag::SIDECHAIN) && self.by_key.get(&node.key) == Some(&index)
    }

    /// The end of the branch that the CLI would continue.
    fn leaf(&self) -> Option<usize> {
        let count = self.outline.nodes.len();
        if let Some(noted) = self.find(self.outline.noted_leaf) {
            let mut reached = vec![false; count];
            reached[noted] = true;
            let mut last = noted;
            for index in noted + 1..count {
                let from = self.parents[index].or_else(|| self.before_compaction(index));
                if from.is_some_and(|from| reached[from]) && self.counts(index) {
                    reached[index] = true;
                    last = index;
                }
            }
            return Some(last);
        }
        (0..count).rev().find(|index| self.counts(*index))
    }

    fn before_compaction(&self, index: usize) -> Option<usize> {
        let node = &self.outline.nodes[index];
        if !node.has(flag::COMPACT_BOUNDARY) {
            return None;
        }
        self.find(node.logical_parent)
            .or_else(|| (0..index).rev().find(|before| self.counts(*before)))
    }

    /// The path from the first link to this one, and the compaction boundary that it begins with, if any.
    fn path(&self, leaf: usize) -> (Vec<usize>, Option<usize>) {
        let mut path = Vec::new();
        let mut visited = vec![false; self.outline.nodes.len()];
        let mut boundary = None;
        let mut at = Some(leaf);
        while let Some(index) = at {
            if std::mem::replace(&mut visited[index], true) {
                break;
            }
            path.push(index);
            if self.outline.nodes[index].has(flag::COMPACT_BOUNDARY) {
                boundary = Some(index);
                break;
            }
            at = self.parents[index];
        }
        path.reverse();
        (path, boundary)
    }

    /// Inserts the messages that a compaction kept after its summary.
    fn with_kept(&self, path: Vec<usize>, boundary: Option<usize>) -> Vec<usize> {
        let boundary = boundary.map(|index| self.outline.nodes[index].key);
        let Some(kept) =
            boundary.and_then(|key| self.outline.kept.iter().rev().find(|kept| kept.boundary == key))
        else {
            return path;
        };
        let keys: Vec<usize> = if kept.keys.is_empty() {
            let mut segment = Vec::new();
            let mut at = self.find(kept.tail);
            while let Some(index) = at.filter(|_| segment.len() <= self.outline.nodes.len()) {
                segment.push(index);
                at = if self.outline.nodes[index].key == kept.head {
                    None
                } else {
                    self.parents[index]
                };
            }
            segment.reverse();
            segment
        } else {
            kept.keys.iter().filter_map(|key| self.find(*key)).collect()
        };
        let Some(anchor) = path
            .iter()
            .position(|index| self.outline.nodes[*index].key == kept.anchor)
        else {
            return path;
        };
        let mut joined = path[..=anchor].to_vec();
        joined.extend(keys.iter().filter(|index| !path.contains(index)));
        joined.extend(&path[anchor + 1..]);
        joined
    }

    /// Adds the lines of each model message that are not ancestors, and the results of its calls.
    fn with_siblings(&self, path: &[usize]) -> Vec<usize> {
        let nodes = &self.outline.nodes;
        let mut groups: Map<u64, Group> = Map::default();
        for index in path {
            let node = &nodes[*index];
            if node.has(flag::ASSISTANT) && node.message != 0 {
                groups.insert(node.message, Group::default());
            }
        }
        // Only lines of the same message: other branches may continue it differently.
        for (index, node) in nodes.iter().enumerate() {
            if !self.counts(index) {
                continue;
            }
            if node.has(flag::ASSISTANT) && node.message != 0 {
                if let Some(group) = groups.get_mut(&node.message) {
                    group.lines.push(index);
                }
            } else if node.has(flag::TOOL_RESULT) {
                let call = self.parents[index].map(|parent| &nodes[parent]);
                if let Some(group) = call
                    .filter(|call| call.message != 0)
                    .and_then(|call| groups.get_mut(&call.message))
                {
                    group.results.push(index);
                }
            }
        }
        let mut out = Vec::with_capacity(path.len());
        let mut emitted = vec![false; nodes.len()];
        for index in path {
            let node = &nodes[*index];
            let group = groups.get(&node.message).filter(|_| node.has(flag::ASSISTANT));
            match group {
                Some(group) => {
                    for index in group.lines.iter().chain(&group.results) {
                        if !std::mem::replace(&mut emitted[*index], true) {
                            out.push(*index);
                        }
                    }
                }
                None if !emitted[*index] => {
                    emitted[*index] = true;
                    out.push(*index);
                }
                None => {}
            }
        }
        out
    }
}

#[derive(Default)]
struct Group {
    lines: Vec<usize>,
    results: Vec<usize>,
}

/// The previous link. If its parent is missing, the newest earlier one that is not younger.
fn parent(nodes: &[Node], by_key: &Map<Key, usize>, index: usize) -> Option<usize> {
    let node = &nodes[index];
    if node.parent == 0 {
        return None;
    }
    if let Some(found) = by_key.get(&node.parent) {
        return Some(*found);
    }
    let side = node.flags & flag::SIDECHAIN;
    let mut best: Option<usize> = None;
    for before in (0..index).rev() {
        let candidate = &nodes[before];
        if candidate.flags & flag::SIDECHAIN != side || candidate.time > node.time {
            continue;
        }
        // Lines are nearly in order of time: the first match is right, unless a later one in time is further up.
        if best.is_none_or(|best| nodes[best].time < candidate.time) {
            best = Some(before);
        }
        if index - before > 256 && best.is_some() {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::follow::Part;
    use crate::read::record::Record;

    /// Lines in short: `u1<-0@5` is user 1, whose parent is 0 (none), at second 5; `a` assistant, `x` attachment,
    /// `s` sidechain user, `L4` notes leaf 4, `a2m7` is a line of model message 7 with a call, `r3<-2` its result.
    fn seen(script: &str) -> Vec<String> {
        let mut outline = Outline::default();
        let mut names = Vec::new();
        for (number, word) in script.split_whitespace().enumerate() {
            if let Some(leaf) = word.strip_prefix('L') {
                let line = format!(r#"{{"type":"last-prompt","leafUuid":"{leaf}"}}"#);
                outline.add(0, b"", &Record::read(line.as_bytes()).unwrap());
                continue;
            }
            let (head, second) = word.split_once('@').unwrap_or((word, ""));
            let second = second.parse().unwrap_or(number);
            let (name, parent) = head.split_once("<-").unwrap();
            let (id, message) = name[1..].split_once('m').unwrap_or((&name[1..], ""));
            let parent = if parent == "0" {
                "null".to_owned()
            } else {
                format!("\"{parent}\"")
            };
            let (kind, body) = match &name[..1] {
                "u" | "s" => ("user", r#""message":{"content":"x"}"#.to_owned()),
                "r" => (
                    "user",
                    r#""message":{"content":[{"type":"tool_result"}]}"#.to_owned(),
                ),
                "a" => (
                    "assistant",
                    format!(r#""message":{{"id":"{message}","content":[{{"type":"tool_use"}}]}}"#),
                ),
                _ => ("attachment", r#""attachment":{}"#.to_owned()),
            };
            let side = name.starts_with('s');
            let line = format!(
                r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"isSidechain":{side},"timestamp":"2026-11-15T10:00:{second:02}.000Z",{body}}}"#
            );
            outline.add(0, b"", &Record::read(line.as_bytes()).unwrap());
            names.push(id.to_owned());
        }
        Chain::of(&outline)
            .seen
            .into_iter()
            .map(|index| names[index].clone())
            .collect()
    }

    /// Each of these was resumed with the real CLI, which sent these messages to the model.
    #[test]
    fn the_branch_that_the_cli_resumes() {
        let base = "u1<-0@1 a2<-1@2 u3<-2@3 a4<-3@4";
        let branch = "u5<-2@5 a6<-5@6";
        let cases = [
            (format!("{base} {branch}"), "1 2 5 6"),
            (format!("{base} u5<-2@2 a6<-5@3"), "1 2 5 6"),
            (format!("{base} {branch} x7<-4@7"), "1 2 3 4 7"),
            (format!("{base} {branch} L4"), "1 2 3 4"),
            (format!("{base} L4 {branch}"), "1 2 3 4"),
            (format!("{base} {branch} L6 x7<-4@7"), "1 2 5 6"),
            (format!("{base} {branch} L77"), "1 2 5 6"),
            (format!("{base} {branch} L2"), "1 2 5 6"),
            (format!("{base} {branch} s11<-0@9"), "1 2 5 6"),
            (format!("{base} u8<-99@8 a9<-8@9"), "1 2 3 4 8 9"),
            (format!("{base} {branch} u8<-99@8 a9<-8@9"), "1 2 5 6 8 9"),
            (format!("{base} {branch} u8<-99@3 a9<-8@4"), "1 2 3 8 9"),
            (format!("{base} u13<-0@7 a14<-13@8"), "13 14"),
            ("u8<-99@0 a9<-8@0".into(), "8 9"),
            ("u1<-2@1 a2<-1@2".into(), "1 2"),
        ];
        for (script, expected) in cases {
            assert_eq!(seen(&script).join(" "), expected, "{script}");
        }
    }

    #[test]
    fn calls_made_side_by_side_keep_all_their_results() {
        assert_eq!(
            seen("u1<-0 a2m7<-1 a3m7<-2 a4m7<-3 r5<-3 r6<-2 r7<-4 a8m9<-7").join(" "),
            "1 2 3 4 5 6 7 8"
        );
    }

    #[test]
    fn of_two_lines_with_one_id_the_later_counts() {
        let script = "u1<-0 a2<-1 a2<-1 u3<-2";
        assert_eq!(seen(script).len(), 3);
    }
}
