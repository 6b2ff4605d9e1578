//! Which words stand next to each other, so that a phrase is looked for only where it may be.
//!
//! Every pair of neighbouring words has a name, and the messages that have it are kept like those that have a word. There
//! are many more pairs than names: a name says where a phrase may be, and is silent only where it is not.

/// Names are handled in this many parts: what one of them takes should fit the processor's caches.
const PARTS: usize = 4;
const PART_SHIFT: u32 = u8::BITS - PARTS.ilog2();

/// No text has this byte or one of those after it, so no word begins with them, and names come after all words.
const MARK: u8 = 0xFC;

/// The hash of a word. Multiplies eight bytes at a time: words are short, and there are a hundred million of them.
pub(super) fn hash(word: &[u8]) -> u32 {
    let mut hash = word.len() as u64;
    let mut mix = |number: u64| hash = (hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    let mut chunks = word.chunks_exact(8);
    for chunk in &mut chunks {
        mix(chunk.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
    }
    let mut rest = 0;
    for byte in chunks.remainder().iter().rev() {
        rest = rest << 8 | u64::from(*byte);
    }
    mix(rest);
    let [.., a, b, c, d] = hash.to_le_bytes();
    u32::from_le_bytes([d, c, b, a]).rotate_left(16) ^ u32::from_le_bytes([a, b, c, d])
}

/// What a pair of words is called.
#[derive(Clone, Copy)]
struct Name {
    part: u8,
    in_part: u16,
}

impl Name {
    /// Of the words with these hashes.
    fn of(before: u32, after: u32) -> Self {
        let mixed = (u64::from(before) << 32 | u64::from(after)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let [first, high, low, ..] = mixed.to_be_bytes();
        Self {
            part: first >> PART_SHIFT,
            in_part: u16::from_be_bytes([high, low]),
        }
    }

    /// The word under which the messages with this name are kept.
    fn key(self) -> [u8; 3] {
        let [high, low] = self.in_part.to_be_bytes();
        [MARK + self.part, high, low]
    }
}

/// The word under which the messages that have these words next to each other are kept.
pub(super) fn key_of(before: &[u8], after: &[u8]) -> [u8; 3] {
    Name::of(hash(before), hash(after)).key()
}

/// The names that messages have, gathered in memory until they are written.
#[derive(Default)]
pub(super) struct Pairs {
    parts: [Part; PARTS],
    before: Option<u32>,
    /// Messages by name, one part at a time. Kept: asking for that much memory again and again splinters it.
    sorted: Vec<u32>,
}

impl Pairs {
    /// Bytes of memory in use.
    pub(super) fn size(&self) -> usize {
        let of = |part: &Part| size_of_val(part.names.as_slice()) + size_of_val(part.messages.as_slice());
        self.parts.iter().map(of).sum()
    }

    pub(super) fn clear(&mut self) {
        for part in &mut self.parts {
            part.names.clear();
            part.messages.clear();
        }
    }

    /// Takes the hash of the next word of the message at hand.
    pub(super) fn next(&mut self, word: u32) {
        if let Some(before) = self.before.replace(word) {
            let name = Name::of(before, word);
            self.parts[usize::from(name.part)].note(name.in_part);
        }
    }

    /// Something stands here that makes no pairs.
    pub(super) fn interrupt(&mut self) {
        self.before = None;
    }

    /// Ends the message at hand.
    pub(super) fn end(&mut self, message: u32) {
        self.before = None;
        for part in &mut self.parts {
            part.end(message);
        }
    }

    /// Calls `each` with the key of every name and the messages that have it, both in order.
    pub(super) fn in_order<E>(
        &mut self,
        mut each: impl FnMut(&[u8], &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (number, part) in (0u8..).zip(&self.parts) {
            let mut start = 0;
            for (in_part, end) in (0..=u16::MAX).zip(part.sort(&mut self.sorted)) {
                if start < end {
                    let name = Name {
                        part: number,
                        in_part,
                    };
                    each(&name.key(), &self.sorted[start..end])?;
                    start = end;
                }
            }
        }
        Ok(())
    }
}

/// Some of the names that messages have.
#[derive(Default)]
struct Part {
    /// Those of one message after those of another, each once.
    names: Vec<u16>,
    /// Messages, and where their names end.
    messages: Vec<(u32, usize)>,
    /// A bit for each name of the message at hand.
    seen: Vec<u64>,
}

impl Part {
    fn note(&mut self, name: u16) {
        self.seen.resize(1 << (u16::BITS - u64::BITS.ilog2()), 0);
        let seen = &mut self.seen[usize::from(name) / 64];
        if *seen >> (name % 64) & 1 == 0 {
            *seen |= 1 << (name % 64);
            self.names.push(name);
        }
    }

    fn end(&mut self, message: u32) {
        let start = self.messages.last().map_or(0, |(_, end)| *end);
        if start < self.names.len() {
            for name in &self.names[start..] {
                self.seen[usize::from(*name) / 64] = 0;
            }
            self.messages.push((message, self.names.len()));
        }
    }

    /// Puts the messages in the order of their names, and returns where those of each name end.
    fn sort(&self, sorted: &mut Vec<u32>) -> Vec<usize> {
        let mut ends = vec![0; 1 << u16::BITS];
        for name in &self.names {
            ends[usize::from(*name)] += 1;
        }
        // Where the messages of each name begin; filling them in moves that to where they end.
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        sorted.resize(total, 0);
        let mut start = 0;
        for (message, end) in &self.messages {
            for name in &self.names[start..*end] {
                let place = &mut ends[usize::from(*name)];
                sorted[*place] = *message;
                *place += 1;
            }
            start = *end;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_pair_comes_back_with_every_message_once() {
        let mut pairs = Pairs::default();
        let mut expected: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
        for round in 0..2 {
            pairs.clear();
            expected.clear();
            for message in 0..500u32 {
                let words: Vec<String> = (0..message % 90)
                    .map(|position| format!("w{}", (position * position + message + round) % 700))
                    .collect();
                for (position, word) in words.iter().enumerate() {
                    if position == 40 {
                        pairs.interrupt();
                    }
                    pairs.next(hash(word.as_bytes()));
                    if position > 0 && position != 40 {
                        let key = key_of(words[position - 1].as_bytes(), word.as_bytes());
                        let list = expected.entry(key.to_vec()).or_default();
                        if list.last() != Some(&message) {
                            list.push(message);
                        }
                    }
                }
                pairs.end(message);
            }
            let mut found: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
            let done: Result<(), ()> = pairs.in_order(|key, messages| {
                assert!(
                    found
                        .last_key_value()
                        .is_none_or(|(before, _)| before.as_slice() < key)
                );
                found.insert(key.to_vec(), messages.to_vec());
                Ok(())
            });
            done.unwrap();
            assert!(expected.len() > 10_000);
            assert!(found == expected);
        }
    }
}
