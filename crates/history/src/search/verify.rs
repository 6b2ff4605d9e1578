//! Verifies a match if its words don't prove it: phrases with their punctuation, and names that consist of several
//! words.

use crate::search::text::{self, Term};

/// How many positions of a text are checked together.
const TOGETHER: usize = 64;

/// All texts that must occur literally.
pub(super) struct Verifier(Vec<Needle>);

impl Verifier {
    pub(super) fn of(terms: &[Term]) -> Self {
        let terms = terms.iter().filter(|term| term.needs_proof);
        Self(terms.map(Needle::new).collect())
    }

    /// Whether the words alone are enough.
    pub(super) fn is_trivial(&self) -> bool {
        self.0.is_empty()
    }

    /// A quick check of a raw line, in which text without escapes occurs unchanged. False is certain.
    pub(super) fn may_be_in(&self, line: &[u8]) -> bool {
        self.0.iter().all(|needle| {
            let may_be_escaped = needle.text.contains(['"', '\\', '\n', '\t']);
            let may_be_encoded = || !needle.text.is_ascii() && memchr::memmem::find(line, b"\\u").is_some();
            needle.has_other_cases || may_be_escaped || needle.stands(line, |_| true) || may_be_encoded()
        })
    }

    /// Whether all needles occur in this text, at word boundaries.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.iter().all(|needle| {
            let stands = |text: &str| needle.stands(text.as_bytes(), |at| needle.is_cut_at(text, at));
            if needle.has_other_cases {
                stands(&text::lower(text))
            } else {
                stands(text)
            }
        })
    }
}

/// One text to be found, ignoring case.
struct Needle {
    /// In lower case.
    text: String,
    /// Its letters beyond ASCII may occur in another case.
    has_other_cases: bool,
    /// The positions of its two rarest bytes: searching for these skips most of a text quickly.
    rarest: [usize; 2],
    /// Whether it begins with a word, which must begin there, and ends with one, which must end there.
    begins_word: bool,
    ends_word: bool,
}

impl Needle {
    fn new(term: &Term) -> Self {
        let text = term.text.as_str();
        let has_case = |letter: char| !letter.is_ascii() && text::is_in_word(letter);
        let mut places: Vec<usize> = (0..text.len()).collect();
        places.sort_by_key(|at| std::cmp::Reverse(rarity(text.as_bytes()[*at])));
        let place = |rank: usize| places.get(rank).copied();
        Self {
            text: text.to_owned(),
            has_other_cases: text.contains(has_case),
            rarest: [place(0).unwrap_or(0), place(1).or(place(0)).unwrap_or(0)],
            begins_word: text.starts_with(text::is_in_word),
            ends_word: !term.open_end && text.ends_with(text::is_in_word),
        }
    }

    /// Whether it occurs in these bytes at a position that `is_wanted` accepts, case-insensitive for ASCII letters.
    fn stands(&self, bytes: &[u8], is_wanted: impl Fn(usize) -> bool) -> bool {
        let text = self.text.as_bytes();
        let Some(last) = bytes.len().checked_sub(text.len()) else {
            return false;
        };
        let [one, other] = self.rarest.map(|place| (place, Letter::of(text, place)));
        let stands = |at: usize| {
            one.1.is(bytes[at + one.0])
                && other.1.is(bytes[at + other.0])
                && bytes[at..at + text.len()].eq_ignore_ascii_case(text)
                && is_wanted(at)
        };
        let mut at = 0;
        // Many positions at once: a search for a frequent phrase spends most of its time here.
        while let (Some(ones), Some(others)) = (
            bytes[at + one.0..].first_chunk::<TOGETHER>(),
            bytes[at + other.0..].first_chunk::<TOGETHER>(),
        ) {
            let mut any = false;
            for place in 0..TOGETHER {
                any |= one.1.is(ones[place]) & other.1.is(others[place]);
            }
            if any && (at..=last.min(at + TOGETHER - 1)).any(stands) {
                return true;
            }
            at += TOGETHER;
            if at > last {
                return false;
            }
        }
        (at..=last).any(stands)
    }

    /// Whether it occurs at this position as whole words, and not as a part of longer ones.
    fn is_cut_at(&self, text: &str, at: usize) -> bool {
        let begins = || !text[..at].ends_with(text::is_in_word);
        let ends = || !text[at + self.text.len()..].starts_with(text::is_in_word);
        (!self.begins_word || begins()) && (!self.ends_word || ends())
    }
}

/// A byte, ignoring case.
#[derive(Clone, Copy)]
struct Letter {
    byte: u8,
    /// The bit in which the cases of a letter differ; 0 for other bytes.
    case: u8,
}

impl Letter {
    fn of(text: &[u8], place: usize) -> Self {
        let byte = text.get(place).copied().unwrap_or_default();
        let case = if byte.is_ascii_lowercase() { 0x20 } else { 0 };
        Self { byte, case }
    }

    fn is(self, byte: u8) -> bool {
        byte | self.case == self.byte
    }
}

/// How rare a byte is in text, roughly.
fn rarity(byte: u8) -> usize {
    const LETTERS: &[u8; 26] = b"etaoinsrhldcumfpgwybvkxjqz";
    match byte {
        b' ' => 0,
        // Many characters share the same first byte.
        0xC0..=0xFF => 40,
        0x80..=0xBF => 50,
        _ => LETTERS
            .iter()
            .position(|letter| *letter == byte)
            .map_or(13, |place| place + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::text::terms;

    #[test]
    fn a_phrase_must_occur_literally() {
        let verifier = |query: &str| Verifier::of(&terms(query));
        assert!(verifier("login page").is_trivial());
        for (query, text, expected) in [
            ("\"login page\"", "The LOGIN Page.", true),
            ("\"login page\"", "page of login", false),
            ("\"login page\"", "login  page", false),
            ("\"login page\"", "the login pages, and a relogin page", false),
            ("\"login page\"", "relogin page, then a login page", true),
            ("\"login page", "the login pages", true),
            ("\"login page", "a relogin page", false),
            ("\"the the\"", "the theme", false),
            ("\"the the\"", "Then the the.", true),
            ("\"page (\"", "a page(", false),
            ("\"page(\"", "homepage page(", true),
            ("用R", "用 r", false),
            ("用R", "使用r，", true),
            ("\"登录，页面\"", "请修复登录，页面", true),
            ("\"登录，页面\"", "登录页面", false),
            ("用React写", "用react写", true),
            ("\"größe über\"", "GRÖSSE GRÖßE ÜBER", true),
            ("\"größe über\"", "GRÖßE ÜBERALL", false),
            ("\"ΟΔΟΣ ΑΒΓ\"", "Η ΟΔΟΣ ΑΒΓ", true),
            ("parent_uuid", "x.Parent_UUID", true),
            ("parent_uuid", "parent uuid", false),
            ("\"login page\" \"save it\"", "save it on the login page", true),
            ("\"login page\" \"save it\"", "on the login page", false),
        ] {
            let verifier = verifier(query);
            assert_eq!(verifier.is_in(text), expected, "{query} in {text}");
            assert!(
                !expected || verifier.may_be_in(text.as_bytes()),
                "{query} in {text}"
            );
        }
        let encoded = br#"{"content":"\u767b\u5f55\u9875\u9762"}"#;
        assert!(verifier("\"登录 页面\"").may_be_in(encoded));
        assert!(verifier("\"say \\ it\"").may_be_in(br"say \\\\ it"));
        assert!(!verifier("\"login page\"").may_be_in(encoded));
    }
}
