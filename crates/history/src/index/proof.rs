//! Whether a text is what was asked for, where having the words alone does not prove it: phrases, and runs of characters in
//! scripts without blanks.

use crate::text::Term;

/// Everything that must stand in a text just so.
pub(super) struct Proof(Vec<Needle>);

impl Proof {
    pub(super) fn of(terms: &[Term]) -> Self {
        let terms = terms.iter().filter(|term| term.needs_proof);
        Self(terms.map(|term| Needle::new(&term.text)).collect())
    }

    /// Whether the words alone are enough.
    pub(super) fn is_trivial(&self) -> bool {
        self.0.is_empty()
    }

    /// A quick look at a line as it is in its file, where text that needs no escapes stands as it is. False is certain.
    pub(super) fn may_be_in(&self, line: &[u8]) -> bool {
        self.0.iter().all(|needle| {
            let may_be_escaped = needle.text.contains(['"', '\\', '\n', '\t']);
            let may_be_encoded = || !needle.text.is_ascii() && memchr::memmem::find(line, b"\\u").is_some();
            needle.has_other_cases || may_be_escaped || needle.is_in(line) || may_be_encoded()
        })
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.0.iter().all(|needle| {
            if needle.has_other_cases {
                text.to_lowercase().contains(&needle.text)
            } else {
                needle.is_in(text.as_bytes())
            }
        })
    }
}

/// One text to be found, whatever the case of its letters.
struct Needle {
    /// In lower case.
    text: String,
    /// Its letters beyond ASCII may stand in another case.
    has_other_cases: bool,
    /// Where its rarest byte is: looking for that one alone passes over most of a text quickly.
    rarest: usize,
}

impl Needle {
    fn new(text: &str) -> Self {
        let has_case = |letter: char| !letter.is_ascii() && (letter.is_lowercase() || letter.is_uppercase());
        let rarest = (0..text.len()).max_by_key(|at| rarity(text.as_bytes()[*at]));
        Self {
            text: text.to_owned(),
            has_other_cases: text.contains(has_case),
            rarest: rarest.unwrap_or(0),
        }
    }

    /// Regardless of the case of ASCII letters.
    fn is_in(&self, bytes: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let Some(&rarest) = text.get(self.rarest) else {
            return true;
        };
        let stands = |at: usize| {
            let start = at.checked_sub(self.rarest);
            let found = start.and_then(|start| bytes.get(start..start + text.len()));
            found.is_some_and(|found| found.eq_ignore_ascii_case(text))
        };
        if rarest.is_ascii_lowercase() {
            memchr::memchr2_iter(rarest, rarest.to_ascii_uppercase(), bytes).any(stands)
        } else {
            memchr::memchr_iter(rarest, bytes).any(stands)
        }
    }
}

/// How rare a byte is in text, roughly.
fn rarity(byte: u8) -> usize {
    const LETTERS: &[u8; 26] = b"etaoinsrhldcumfpgwybvkxjqz";
    match byte {
        b' ' => 0,
        // The first byte of a character is shared by many characters.
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
    use crate::text::terms;

    #[test]
    fn a_phrase_must_stand_as_it_is() {
        let proof = |query: &str| Proof::of(&terms(query));
        assert!(proof("login page").is_trivial());
        for (query, text, expected) in [
            ("\"login page\"", "The LOGIN Page.", true),
            ("\"login page\"", "page of login", false),
            ("\"login page\"", "login  page", false),
            ("登录页面", "请修复登录页面的错误", true),
            ("登录页面", "登录的页面", false),
            ("用React写", "用react写", true),
            ("\"größe über\"", "GRÖSSE GRÖßE ÜBER", true),
            ("parent_uuid", "x.Parent_UUID", true),
            ("parent_uuid", "parent uuid", false),
            ("\"login page\" \"save it\"", "save it on the login page", true),
            ("\"login page\" \"save it\"", "on the login page", false),
        ] {
            let proof = proof(query);
            assert_eq!(proof.is_in(text), expected, "{query} in {text}");
            assert!(!expected || proof.may_be_in(text.as_bytes()), "{query} in {text}");
        }
        let encoded = br#"{"content":"\u767b\u5f55\u9875\u9762"}"#;
        assert!(proof("登录页面").may_be_in(encoded));
        assert!(proof("\"say \\ it\"").may_be_in(br"say \\\\ it"));
        assert!(!proof("\"login page\"").may_be_in(encoded));
    }
}
