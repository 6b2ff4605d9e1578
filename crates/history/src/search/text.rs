//! The words of a message: what is searchable, and how text and queries are cut into words.
//!
//! Letters and digits form words, in lower case. Scripts without blanks have no word boundaries, so every character
//! forms a word with the next one, and the last character of a run forms one alone. Any piece of Chinese text is found
//! in the middle of any sentence: several characters as a phrase of such pairs, which overlap and therefore prove that
//! the characters are neighbours, and a single character as the beginning of a pair.

use crate::read::json::{Raw, unescape_into};
use crate::read::record::{Kind, Record};

/// Longer words are cut: they are hashes and encoded data, and their beginning is enough to distinguish them.
pub(crate) const MAX_WORD: usize = 40;

/// Marks a word that stands for a tool's name and not for text. A private-use character, which no text has by accident.
const TOOL_MARK: char = '\u{e000}';

/// The word that stands for a tool.
pub(crate) fn tool_word(name: &str) -> String {
    let mut word = String::from(TOOL_MARK);
    word.extend(
        name.chars()
            .filter(|letter| letter.is_alphanumeric())
            .flat_map(char::to_lowercase),
    );
    word
}

/// Appends the texts, tool calls and results of this line, each on lines of its own.
pub(crate) fn searchable(record: &Record<'_>, out: &mut Vec<u8>) {
    if !record.kind.is_message() {
        return;
    }
    let Some(content) = record.content else { return };
    pieces(content, out);
}

fn pieces(content: Raw<'_>, out: &mut Vec<u8>) {
    if let Some(text) = content.escaped() {
        push(text, out);
        return;
    }
    if !content.is_array() {
        return;
    }
    content.items(|block| {
        if let Some(text) = block.escaped() {
            push(text, out);
            return;
        }
        match block.get(b"type").and_then(Raw::escaped) {
            Some(b"text") => field(block, b"text", out),
            Some(b"thinking") => field(block, b"thinking", out),
            Some(b"tool_use" | b"server_tool_use" | b"mcp_tool_use") => {
                field(block, b"name", out);
                if let Some(input) = block.get(b"input") {
                    strings(input, out);
                }
            }
            Some(b"image" | b"document" | b"redacted_thinking") => {}
            _ => {
                if let Some(content) = block.get(b"content") {
                    pieces(content, out);
                }
            }
        }
    });
}

fn field(block: Raw<'_>, name: &[u8], out: &mut Vec<u8>) {
    if let Some(text) = block.get(name).and_then(Raw::escaped) {
        push(text, out);
    }
}

fn push(escaped: &[u8], out: &mut Vec<u8>) {
    unescape_into(escaped, out);
    out.push(b'\n');
}

/// Every string inside a value.
fn strings(value: Raw<'_>, out: &mut Vec<u8>) {
    if let Some(text) = value.escaped() {
        push(text, out);
    } else if value.is_array() {
        value.items(|item| strings(item, out));
    } else if value.is_object() {
        value.entries(|_, item| strings(item, out));
    }
}

/// Calls `each` with the id and name of every tool call of this line.
pub(crate) fn tool_calls<'a>(record: &Record<'a>, mut each: impl FnMut(&'a [u8], &'a [u8])) {
    if record.kind != Kind::Assistant {
        return;
    }
    let Some(content) = record.content.filter(|content| content.is_array()) else {
        return;
    };
    if memchr::memmem::find(content.0, b"tool_use\"").is_none() {
        return;
    }
    content.items(|block| {
        if block
            .get(b"type")
            .and_then(Raw::escaped)
            .is_some_and(|kind| kind.ends_with(b"tool_use"))
        {
            let id = block.get(b"id").and_then(Raw::escaped);
            let name = block.get(b"name").and_then(Raw::escaped);
            if let (Some(id), Some(name)) = (id, name) {
                each(id, name);
            }
        }
    });
}

/// Calls `each` with the id of the call that a result of this line answers.
pub(crate) fn tool_results<'a>(record: &Record<'a>, mut each: impl FnMut(&'a [u8])) {
    if record.kind != Kind::User {
        return;
    }
    let Some(content) = record.content.filter(|content| content.is_array()) else {
        return;
    };
    if memchr::memmem::find(content.0, b"tool_result\"").is_none() {
        return;
    }
    content.items(|block| {
        if let Some(id) = block.get(b"tool_use_id").and_then(Raw::escaped) {
            each(id);
        }
    });
}

/// The name of the file beside the transcript that stores a large result.
pub(crate) fn persisted_name(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("<persisted-output>")?;
    let (_, after) = after.split_once("saved to: ")?;
    let path = after.lines().next()?.trim();
    let name = path.rsplit(['/', '\\']).next()?;
    let in_folder = path.strip_suffix(name)?.ends_with("tool-results/")
        || path.strip_suffix(name)?.ends_with("tool-results\\");
    (in_folder && !name.is_empty()).then_some(name)
}

/// The role of a character in words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    /// Of a script without blanks.
    Dense,
    Other,
}

fn class(letter: char) -> Class {
    if letter.is_ascii() {
        return if letter.is_ascii_alphanumeric() {
            Class::Word
        } else {
            Class::Other
        };
    }
    match u32::from(letter) {
        // Thai to Myanmar, Khmer, kana, CJK ideographs with all extensions, Hangul.
        0x0E00..=0x109F
        | 0x1780..=0x17FF
        | 0x3040..=0x30FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF => Class::Dense,
        0xE000 => Class::Other,
        _ if letter.is_alphanumeric() => Class::Word,
        _ => Class::Other,
    }
}

/// Whether a word is of a script without blanks.
pub(crate) fn is_dense(word: &str) -> bool {
    word.chars()
        .next()
        .is_some_and(|first| class(first) == Class::Dense)
}

/// Whether a character is part of a word with other characters.
pub(crate) fn is_in_word(letter: char) -> bool {
    class(letter) == Class::Word
}

/// Cuts text into words, including repetitions.
pub(crate) fn words(text: &str, mut each: impl FnMut(&str)) {
    let bytes = text.as_bytes();
    let mut word = String::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() && !byte.is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        // Nearly all words consist of ASCII letters and digits and take this fast path.
        let mut end = at;
        while bytes.get(end).is_some_and(u8::is_ascii_alphanumeric) {
            end += 1;
        }
        if end > at && bytes.get(end).is_none_or(u8::is_ascii) {
            word.clear();
            word.push_str(&text[at..end.min(at + MAX_WORD)]);
            word.make_ascii_lowercase();
            each(&word);
            at = end;
        } else {
            at += run(&text[at..], &mut word, &mut each);
        }
    }
}

/// Cuts the run of one class at the beginning of a text into words. Returns its length.
fn run(text: &str, word: &mut String, each: &mut impl FnMut(&str)) -> usize {
    let Some(first) = text.chars().next() else {
        return text.len();
    };
    let of = class(first);
    let end = text.find(|letter| class(letter) != of).unwrap_or(text.len());
    let run = &text[..end];
    match of {
        Class::Other => {}
        Class::Word => {
            word.clear();
            for letter in run.chars() {
                if letter.is_ascii() {
                    word.push(letter.to_ascii_lowercase());
                } else {
                    word.extend(letter.to_lowercase());
                }
                if word.len() >= MAX_WORD {
                    break;
                }
            }
            each(word);
        }
        Class::Dense => {
            let mut characters = run
                .char_indices()
                .map(|(at, letter)| (at, at + letter.len_utf8()))
                .peekable();
            while let Some((start, end)) = characters.next() {
                let end = characters.peek().map_or(end, |(_, next)| *next);
                each(&run[start..end]);
            }
        }
    }
    end
}

/// A part of a query that a message must contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// In lower case, as it must occur in the text.
    pub(crate) text: String,
    /// The words to look up, which must be consecutive in the message.
    pub(crate) words: Vec<String>,
    /// The last word may continue.
    pub(crate) is_prefix: bool,
    /// The user may still be typing the last word.
    pub(crate) open_end: bool,
    /// The words alone don't prove that the text occurs.
    pub(crate) needs_proof: bool,
}

/// Cuts a query into terms: words, runs of scripts without blanks, and "phrases in quotes", all of which must occur.
/// The last word may be unfinished, as it is while the user types.
pub(crate) fn terms(query: &str) -> Vec<Term> {
    let mut found = Vec::new();
    for (position, part) in query.split('"').enumerate() {
        if position % 2 == 1 {
            let phrase = part.trim();
            found.extend(term(phrase).map(|term| Term {
                // Text in quotes is matched literally, including its punctuation.
                needs_proof: term.needs_proof || phrase.contains(|letter| class(letter) == Class::Other),
                ..term
            }));
            continue;
        }
        for word in part.split(|letter: char| {
            class(letter) == Class::Other && !matches!(letter, '_' | '-' | '.' | '/' | ':')
        }) {
            found.extend(term(word));
        }
    }
    if let Some(last) = found.last_mut() {
        let unfinished = query.ends_with(is_in_word);
        let long_enough = last.words.last().is_some_and(|word| word.chars().count() >= 3);
        last.open_end = unfinished && long_enough;
        last.is_prefix |= last.open_end;
    }
    found
}

fn term(text: &str) -> Option<Term> {
    let mut list: Vec<String> = Vec::new();
    words(text, |word| list.push(word.to_owned()));
    let is_single = |word: &String| is_dense(word) && word.chars().nth(1).is_none();
    let is_one_run = !text.contains(|letter| class(letter) != Class::Dense);
    let needs_proof = !(is_one_run || list.len() == 1 && list[0].len() < MAX_WORD);
    // A run of a script without blanks at the end of the term may continue in the text, where its last character then
    // begins a pair.
    let mut is_prefix = false;
    if text.ends_with(|letter| class(letter) == Class::Dense) {
        let is_in_pair = |before: &String| is_dense(before) && !is_single(before);
        if list.len() >= 2 && is_in_pair(&list[list.len() - 2]) {
            list.pop();
        } else {
            is_prefix = true;
        }
    }
    (!list.is_empty()).then(|| Term {
        text: lower(text),
        words: list,
        is_prefix,
        open_end: false,
        needs_proof,
    })
}

/// Lowercases letter by letter, as words are: the result must not depend on neighbouring letters.
pub(crate) fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let mut out = Vec::new();
        words(text, |word| out.push(word.to_owned()));
        out
    }

    #[test]
    fn words_are_cut_in_every_script() {
        assert_eq!(
            cut("Fix the Login-page, please: Ünïcode_2"),
            ["fix", "the", "login", "page", "please", "ünïcode", "2"]
        );
        assert_eq!(cut("修复登录"), ["修复", "复登", "登录", "录"]);
        assert_eq!(cut("用React写"), ["用", "react", "写"]);
        assert_eq!(cut(&"x".repeat(100)), ["x".repeat(MAX_WORD)]);
    }

    #[test]
    fn queries_become_terms() {
        let of = |query: &str| {
            terms(query)
                .into_iter()
                .map(|term| (term.words.join("+"), term.is_prefix, term.needs_proof))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("login page"),
            [("login".into(), false, false), ("page".into(), true, false)]
        );
        assert_eq!(of("录"), [("录".into(), true, false)]);
        assert_eq!(of("登录"), [("登录".into(), false, false)]);
        assert_eq!(of("登录页面"), [("登录+录页+页面".into(), false, false)]);
        assert_eq!(of("\"登录，页面\""), [("登录+录+页面".into(), false, true)]);
        assert_eq!(of("登录React"), [("登录+录+react".into(), true, true)]);
        assert_eq!(of("React登"), [("react+登".into(), true, true)]);
        assert_eq!(
            of("\"login page\" 修"),
            [("login+page".into(), false, true), ("修".into(), true, false)]
        );
        assert_eq!(of("\"the the\""), [("the+the".into(), false, true)]);
        assert_eq!(of("parent_uuid"), [("parent+uuid".into(), true, true)]);
        assert_eq!(of(&"x".repeat(50)), [("x".repeat(MAX_WORD), true, true)]);
        assert_eq!(of(" ... "), []);
    }

    #[test]
    fn everything_said_called_and_returned_is_searchable() {
        let of = |line: &str| {
            let mut out = Vec::new();
            searchable(&Record::read(line.as_bytes()).unwrap(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(of(r#"{"type":"user","message":{"content":"a\nb"}}"#), "a\nb\n");
        assert_eq!(
            of(
                r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls \"x\"","n":3,"list":["deep"]}}]}}"#
            ),
            "hm\nBash\nls \"x\"\ndeep\n"
        );
        assert_eq!(
            of(
                r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"out"},{"type":"image","source":{"data":"AAAA"}}]}]},"toolUseResult":{"stdout":"twice"}}"#
            ),
            "out\n"
        );
        assert_eq!(of(r#"{"type":"attachment","attachment":{"content":"no"}}"#), "");
    }

    #[test]
    fn names_the_file_of_a_large_result() {
        let text = "<persisted-output>\nOutput too large (340.7KB). Full output saved to: /home/u/.claude/projects/-p/s/tool-results/b25.txt\n\nPreview";
        assert_eq!(persisted_name(text), Some("b25.txt"));
        assert_eq!(
            persisted_name("<persisted-output>\nsaved to: /etc/passwd\n"),
            None
        );
    }
}
