//! [`Card`]: the compact form of a [`Digest`], in memory and in the index.
//!
//! A history has thousands of cards, most of which never change. So a card has one text, and all texts of a digest are
//! slices of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bytes::Input;
use crate::list::digest::{Digest, relative};
use crate::list::names::{END, Names, Naming, is_list, listed};
use crate::list::shared::Text;
use crate::read::follow::Saved;
use crate::read::typed::TITLE_CHARS;

/// A slice of a card's text. The first ones are in the order of [`Digest::texts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Created,
    FirstTime,
    LastTime,
    Cwd,
    Prompt,
    Command,
    CustomTitle,
    AiTitle,
    Summary,
    GitBranch,
    Version,
    SidechainOf,
    Tools,
    Files,
    Models,
    /// Unknown types of lines, each followed by its number of lines.
    Unknown,
}

const PIECES: usize = Piece::Unknown as usize + 1;
/// A flag beside the bits of the pieces.
const CWD_IS_OF_USER: u32 = 1 << 31;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Card {
    pub(crate) message_count: u64,
    pub(crate) damaged: u64,
    /// A bit for each piece that is present.
    flags: u32,
    /// The end of each piece in `text`; it begins at the end of the previous one.
    ends: [u32; PIECES],
    text: Arc<str>,
}

impl Card {
    pub(crate) fn of(digest: &Digest) -> Self {
        let mut text = String::with_capacity(1024);
        let mut flags = u32::from(digest.cwd_is_of_user) * CWD_IS_OF_USER;
        let mut ends = [0; PIECES];
        let mut unknown = String::new();
        for (kind, count) in &digest.unknown {
            for word in [kind, &count.to_string()] {
                unknown.push_str(word);
                unknown.push(END);
            }
        }
        let lists = [&digest.tools, &digest.files, &digest.models].map(|names| Some(names.as_str()));
        let lists = lists.into_iter().chain([Some(unknown.as_str())]);
        let pieces = digest.texts().map(|text| text.as_deref());
        for (place, piece) in pieces.into_iter().chain(lists).enumerate() {
            // Texts beyond four gigabytes are not shown.
            if let Some(piece) = piece.filter(|piece| u32::try_from(text.len() + piece.len()).is_ok()) {
                text.push_str(piece);
                flags |= 1 << place;
            }
            ends[place] = u32::try_from(text.len()).unwrap_or_default();
        }
        Self {
            message_count: digest.message_count,
            damaged: digest.damaged,
            flags,
            ends,
            text: text.into(),
        }
    }

    /// Restores the digest, to add further lines.
    pub(crate) fn digest(&self) -> Digest {
        let names = |piece| listed(self.get(piece).unwrap_or_default()).collect::<Naming>();
        let mut digest = Digest {
            message_count: self.message_count,
            damaged: self.damaged,
            cwd_is_of_user: self.flags & CWD_IS_OF_USER != 0,
            tools: names(Piece::Tools),
            files: names(Piece::Files),
            models: names(Piece::Models),
            unknown: self.unknown(),
            ..Digest::default()
        };
        for (place, text) in digest.texts_mut().into_iter().enumerate() {
            *text = self.at(place).map(str::to_owned);
        }
        digest
    }

    pub(crate) fn get(&self, piece: Piece) -> Option<&str> {
        self.at(piece as usize)
    }

    fn at(&self, place: usize) -> Option<&str> {
        let (start, end) = self.place(place)?;
        self.text.get(start as usize..end as usize)
    }

    fn place(&self, place: usize) -> Option<(u32, u32)> {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        (self.flags & 1 << place != 0).then(|| (start, self.ends[place]))
    }

    /// A piece as a shared text.
    pub(crate) fn text(&self, piece: Piece) -> Option<Text> {
        let (start, end) = self.place(piece as usize)?;
        Some(Text::part(&self.text, start, end))
    }

    pub(crate) fn names(&self, piece: Piece) -> Names {
        Names::of(self.text(piece).unwrap_or_default())
    }

    /// The session's title: the name that a person gave it, or the beginning of the first prompt.
    pub(crate) fn title(&self) -> Text {
        let named = [
            Piece::CustomTitle,
            Piece::Prompt,
            Piece::Summary,
            Piece::AiTitle,
            Piece::Command,
        ];
        let named = named
            .into_iter()
            .find(|piece| self.get(*piece).is_some_and(|title| !title.is_empty()));
        named
            .and_then(|piece| self.text(piece))
            .map(|title| title.first(TITLE_CHARS))
            .unwrap_or_default()
    }

    /// Changed files without duplicates, relative to the working directory if inside it.
    pub(crate) fn files_changed(&self) -> Names {
        if self.flags & CWD_IS_OF_USER != 0 {
            return self.names(Piece::Files);
        }
        let files = listed(self.get(Piece::Files).unwrap_or_default());
        Names::of(relative(self.get(Piece::Cwd), files).as_str().into())
    }

    /// Whether the path of a changed file contains `part`.
    pub(crate) fn has_changed(&self, part: &str) -> bool {
        self.files_changed().iter().any(|file| file.contains(part))
    }

    /// The number of lines of each unknown type.
    pub(crate) fn unknown(&self) -> BTreeMap<String, u64> {
        let mut words = listed(self.get(Piece::Unknown).unwrap_or_default());
        let mut unknown = BTreeMap::new();
        while let (Some(kind), Some(count)) = (words.next(), words.next()) {
            unknown.insert(kind.to_owned(), count.parse().unwrap_or(0));
        }
        unknown
    }
}

impl Saved for Card {
    const TABLE: &'static str = "digest";

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128 + self.text.len());
        out.extend(self.message_count.to_le_bytes());
        out.extend(self.damaged.to_le_bytes());
        for number in [self.flags].iter().chain(&self.ends) {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.text.as_bytes());
        out
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let (message_count, damaged, flags) = (input.u64()?, input.u64()?, input.u32()?);
        let mut ends = [0; PIECES];
        for end in &mut ends {
            *end = input.u32()?;
        }
        let text = std::str::from_utf8(input.0).ok()?;
        let is_sound = ends.is_sorted()
            && ends.last().is_some_and(|last| *last as usize == text.len())
            && ends.iter().all(|end| text.is_char_boundary(*end as usize));
        let card = is_sound.then(|| Self {
            message_count,
            damaged,
            flags,
            ends,
            text: text.into(),
        })?;
        let lists = [Piece::Tools, Piece::Files, Piece::Models, Piece::Unknown];
        let has_lists = lists.into_iter().all(|list| card.get(list).is_some_and(is_list));
        has_lists.then_some(card)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::digest::tests::digest;

    /// A digest with something in every piece, with characters of every length.
    fn full() -> Digest {
        let mut digest = digest(&[
            r#"{"type":"user","cwd":"/p","timestamp":"2026-11-15T10:00:00.000Z","version":"2.1","gitBranch":"main","message":{"content":"修复 it, é and 🌱"}}"#,
            r#"{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","name":"Edit"}]}}"#,
            r#"{"type":"assistant","message":{"model":"n","content":[{"type":"tool_use","name":"\u0000 工具"}]}}"#,
            r#"{"type":"file-history-delta","trackingPath":"/p/src/a.rs"}"#,
            r#"{"type":"file-history-delta","trackingPath":"/elsewhere/é🌱.rs"}"#,
            r#"{"type":"of-tomorrow"}"#,
            r#"{"type":"of-tomorrow"}"#,
            r#"{"none":1}"#,
        ]);
        for (place, text) in digest.texts_mut().into_iter().enumerate() {
            let default = ["", "登录", "🌱\u{0}\u{10ffff}", "e\u{301}"][place % 4];
            text.get_or_insert_with(|| default.to_owned());
        }
        digest
    }

    #[test]
    fn a_card_keeps_everything_of_its_digest() {
        assert_eq!(full().unknown.len(), 2);
        assert_eq!(Card::of(&full()).names(Piece::Tools), ["Edit", "\u{fffd} 工具"]);
        for digest in [
            full(),
            Digest::default(),
            digest(&[r#"{"type":"system","cwd":"/p"}"#]),
        ] {
            let card = Card::of(&digest);
            assert_eq!(card.digest(), digest);
            let saved = card.to_bytes();
            assert_eq!(Card::from_bytes(&saved), Some(card));
        }
    }

    #[test]
    fn a_truncated_card_is_rejected_and_a_changed_one_can_be_shown() {
        let card = Card::of(&full());
        let saved = card.to_bytes();
        for cut in 0..saved.len() {
            assert_eq!(Card::from_bytes(&saved[..cut]), None, "cut at {cut}");
        }
        for place in 0..saved.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = saved.clone();
                damaged[place] = value;
                if let Some(other) = Card::from_bytes(&damaged) {
                    assert_eq!(other == card, damaged == saved);
                    assert!(other.title().chars().count() <= TITLE_CHARS);
                    assert_eq!(other.digest().message_count, other.message_count);
                    assert!(other.files_changed().len() + other.names(Piece::Models).len() < 1000);
                }
            }
        }
    }
}
