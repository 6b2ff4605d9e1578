//! Which messages have which words, gathered in memory until there is enough of it to be written.
//!
//! A word is looked up once for every occurrence, so the structure is made for lookups: one table, one list of words, and
//! one pool of bytes for all lists of numbers, without an allocation for any of them.

use crate::search::text;

use super::pairs::{Pairs, hash};
use super::varint;

/// The first bytes that a word's list of numbers gets; each later piece has twice as many, up to the largest.
const FIRST_PIECE: u32 = 8;
const LARGEST_PIECE: u32 = 1024;
/// At the end of a piece: where the list goes on.
const LINK: u32 = 4;

/// Lists of message numbers by word.
#[derive(Default)]
pub(super) struct Gathered {
    /// Numbers are kept relative to this one.
    first: i64,
    last: i64,
    /// Places in `words`, plus one; 0 is free. Its length is a power of two.
    table: Vec<u32>,
    words: Vec<Word>,
    letters: Vec<u8>,
    /// Pieces of lists of numbers, each number as its distance from the one before.
    pool: Vec<u8>,
    pairs: Pairs,
}

struct Word {
    hash: u32,
    letters: u32,
    length: u16,
    piece: u32,
    /// The number noted last, plus one, relative to the first of all.
    last: u32,
    head: u32,
    at: u32,
    end: u32,
}

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Bytes of memory in use.
    pub(super) fn size(&self) -> usize {
        self.words.len() * size_of::<Word>()
            + self.table.len() * 4
            + self.letters.len()
            + self.pool.len()
            + self.pairs.size()
    }

    /// Forgets everything, and keeps the memory for what comes.
    pub(super) fn clear(&mut self) {
        self.table.fill(0);
        self.words.clear();
        self.letters.clear();
        self.pool.clear();
        self.pairs.clear();
    }

    /// The numbers that are in it, the last included.
    pub(super) fn numbers(&self) -> (i64, i64) {
        (self.first, self.last)
    }

    /// Notes all words of a message, and which of them are neighbours. Numbers never go down.
    pub(super) fn text(&mut self, number: i64, text: &str) {
        text::words(text, |word| {
            let hash = self.note(number, word.as_bytes());
            // Where every pair of characters is a word, neighbours are known already.
            if text::is_dense(word) {
                self.pairs.interrupt();
            } else {
                self.pairs.next(hash);
            }
        });
        self.pairs.end(self.relative(number));
    }

    /// Notes that a message has a word, and returns the word's hash.
    pub(super) fn note(&mut self, number: i64, word: &[u8]) -> u32 {
        if self.words.is_empty() {
            self.first = number;
        }
        self.last = number;
        let relative = self.relative(number);
        let hash = hash(word);
        let found = self.find(word, hash);
        let known = &mut self.words[found];
        if known.last != relative {
            let distance = relative - known.last;
            known.last = relative;
            self.append(found, distance);
        }
        hash
    }

    /// How a message is called in here: its place, counted from 1.
    fn relative(&self, number: i64) -> u32 {
        // A flush comes long before this many messages.
        u32::try_from(number - self.first).unwrap_or(u32::MAX - 1) + 1
    }

    fn find(&mut self, word: &[u8], hash: u32) -> usize {
        if self.words.len() * 2 >= self.table.len() {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let place = self.table[slot] as usize;
            if place == 0 {
                break;
            }
            let known = &self.words[place - 1];
            if known.hash == hash && self.letters_of(known) == word {
                return place - 1;
            }
            slot = (slot + 1) & mask;
        }
        let start = self.pool.len();
        self.pool.resize(start + (FIRST_PIECE + LINK) as usize, 0);
        let head = small(start);
        self.words.push(Word {
            hash,
            letters: small(self.letters.len()),
            length: u16::try_from(word.len()).unwrap_or(u16::MAX),
            piece: FIRST_PIECE,
            last: 0,
            head,
            at: head,
            end: head + FIRST_PIECE,
        });
        self.letters.extend_from_slice(word);
        self.table[slot] = small(self.words.len());
        self.words.len() - 1
    }

    fn letters_of(&self, word: &Word) -> &[u8] {
        &self.letters[word.letters as usize..][..usize::from(word.length)]
    }

    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(1 << 12);
        self.table.clear();
        self.table.resize(size, 0);
        for (place, word) in self.words.iter().enumerate() {
            let mut slot = word.hash as usize & (size - 1);
            while self.table[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.table[slot] = small(place + 1);
        }
    }

    fn append(&mut self, word: usize, mut number: u32) {
        loop {
            let [low, ..] = number.to_le_bytes();
            number >>= 7;
            self.append_byte(word, if number == 0 { low & 127 } else { low | 128 });
            if number == 0 {
                return;
            }
        }
    }

    fn append_byte(&mut self, word: usize, byte: u8) {
        let word = &mut self.words[word];
        if word.at == word.end {
            let piece = (word.piece * 2).min(LARGEST_PIECE);
            let start = self.pool.len();
            self.pool.resize(start + (piece + LINK) as usize, 0);
            let next = small(start);
            self.pool[word.end as usize..][..LINK as usize].copy_from_slice(&next.to_le_bytes());
            word.piece = piece;
            word.at = next;
            word.end = next + piece;
        }
        self.pool[word.at as usize] = byte;
        word.at += 1;
    }

    /// Calls `each` with every word and its list of numbers, in the order of words; pairs come last.
    pub(super) fn in_order<E>(
        &mut self,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut order: Vec<&Word> = self.words.iter().collect();
        order.sort_unstable_by(|a, b| self.letters_of(a).cmp(self.letters_of(b)));
        let mut list = Vec::new();
        for word in order {
            list.clear();
            let mut at = word.head as usize;
            let mut piece = FIRST_PIECE;
            while !(at..=at + piece as usize).contains(&(word.at as usize)) {
                let end = at + piece as usize;
                list.extend_from_slice(&self.pool[at..end]);
                let mut link = [0; LINK as usize];
                link.copy_from_slice(&self.pool[end..end + LINK as usize]);
                at = u32::from_le_bytes(link) as usize;
                piece = (piece * 2).min(LARGEST_PIECE);
            }
            list.extend_from_slice(&self.pool[at..word.at as usize]);
            each(self.letters_of(word), &list)?;
        }
        self.pairs.in_order(|key, messages| {
            list.clear();
            let mut before = 0;
            for message in messages {
                varint::push(&mut list, u64::from(message - before));
                before = *message;
            }
            each(key, &list)
        })
    }
}

/// Everything in here is bounded far below four gigabytes.
fn small(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_word_comes_back_with_every_number_once() {
        let mut gathered = Gathered::default();
        let mut expected: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for round in 0..3u64 {
            gathered.clear();
            expected.clear();
            for number in 0..20_000u64 {
                let words =
                    [1, 2, 3, 10, 500, 7919].map(|step| format!("word{}", number / step * step % 9000));
                for word in words.iter().chain([&"frequent".to_owned(), &words[0]]) {
                    gathered.note((1000 * round + number).cast_signed(), word.as_bytes());
                    let list = expected.entry(word.clone().into_bytes()).or_default();
                    if list.last() != Some(&number) {
                        list.push(number);
                    }
                }
            }
            let (first, last) = gathered.numbers();
            assert_eq!(
                (first, last),
                (
                    (1000 * round).cast_signed(),
                    (1000 * round + 19_999).cast_signed()
                )
            );
            let mut found = BTreeMap::new();
            let done: Result<(), ()> = gathered.in_order(|word, list| {
                let mut number = 0;
                let mut numbers = Vec::new();
                let mut at = 0;
                while at < list.len() {
                    number += crate::search::varint::take(list, &mut at).unwrap();
                    numbers.push(number - 1);
                }
                assert!(
                    found
                        .keys()
                        .next_back()
                        .is_none_or(|before: &Vec<u8>| before.as_slice() < word)
                );
                found.insert(word.to_vec(), numbers);
                Ok(())
            });
            done.unwrap();
            assert!(found == expected);
        }
    }
}
