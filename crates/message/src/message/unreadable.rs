//! Lines that are no messages, as messages: clients see that there was a line, why it can't be read, and how it began.

use serde::Serialize;

use super::{Message, ParseError};

/// How much of a line that can't be read its message repeats.
pub const RAW_BYTES: usize = 64 * 1024;

#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    subtype: &'static str,
    reason: &'static str,
    raw: &'a str,
}

/// Why a line can't be read as a message, as clients know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnreadableReason {
    /// It is nested too deeply.
    Depth,
    /// It is JSON, but not an object.
    NotAnObject,
    /// It is not JSON.
    NotJson,
    /// It is not UTF-8.
    Utf8,
}

impl UnreadableReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Depth, Self::NotAnObject, Self::NotJson, Self::Utf8];

    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Depth => "depth",
            Self::NotAnObject => "not_an_object",
            Self::NotJson => "not_json",
            Self::Utf8 => "utf8",
        }
    }

    /// The reason of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

impl ParseError {
    /// The reason as clients know it.
    pub fn reason(&self) -> UnreadableReason {
        match self {
            Self::Utf8 { .. } => UnreadableReason::Utf8,
            Self::Json { .. } => UnreadableReason::NotJson,
            Self::NotAnObject => UnreadableReason::NotAnObject,
            Self::TooDeep => UnreadableReason::Depth,
        }
    }
}

impl Message {
    /// Stands in for a line that is no message: `{"type":"system","subtype":"unreadable","reason":…,"raw":…}` with the
    /// first [`RAW_BYTES`] bytes of the line. The same line leads to the same message.
    ///
    /// ```
    /// use tiller_message::{Message, UnreadableReason};
    ///
    /// let message = Message::unreadable(UnreadableReason::NotAnObject, b"[1]");
    /// assert_eq!(message.json(), r#"{"type":"system","subtype":"unreadable","reason":"not_an_object","raw":"[1]"}"#);
    /// ```
    pub fn unreadable(reason: UnreadableReason, line: &[u8]) -> Self {
        let beginning = &line[..line.len().min(RAW_BYTES)];
        let beginning = match std::str::from_utf8(beginning) {
            // Cut within a character.
            Err(error) if error.error_len().is_none() => &beginning[..error.valid_up_to()],
            _ => beginning,
        };
        let line = Line {
            r#type: "system",
            subtype: "unreadable",
            reason: reason.as_str(),
            raw: &String::from_utf8_lossy(beginning),
        };
        let read = serde_json::to_string(&line)
            .map_err(|error| error.to_string())
            .and_then(|json| Self::parse_shared(json.into()).map_err(|error| error.to_string()));
        match read {
            Ok(message) => message,
            Err(error) => unreachable!("four strings are a message: {error}"),
        }
    }

    /// The message of a line, or what stands in for it.
    pub fn of_line(line: &[u8]) -> Self {
        Self::parse(line).unwrap_or_else(|error| Self::unreadable(error.reason(), line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, SystemMessage};

    fn shown(line: &[u8]) -> (String, String) {
        let Body::System(SystemMessage::Unreadable(shown)) = Message::of_line(line).body() else {
            panic!("not unreadable: {}", String::from_utf8_lossy(line))
        };
        (shown.reason, shown.raw)
    }

    #[test]
    fn every_line_that_is_no_message_has_a_reason() {
        let cases: [(&[u8], &str); 8] = [
            (b"null", "not_an_object"),
            (b"[{\"type\":\"assistant\"}]", "not_an_object"),
            (b"\"text\"", "not_an_object"),
            (b"17", "not_an_object"),
            (b"hello", "not_json"),
            (b"[1", "not_json"),
            (b"{\"type\":\"assistant\"", "not_json"),
            (b"{\"type\":\"\xff\"}", "utf8"),
        ];
        for (line, reason) in cases {
            let (found, raw) = shown(line);
            assert_eq!(found, reason, "{raw}");
            assert_eq!(raw, String::from_utf8_lossy(line));
        }
        let deep = format!("{{\"v\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let (reason, raw) = shown(deep.as_bytes());
        assert_eq!(reason, "depth");
        assert_eq!(raw, deep[..RAW_BYTES]);
    }

    #[test]
    fn the_beginning_is_cut_between_characters() {
        let line = format!("[\"{}\"]", "ä".repeat(RAW_BYTES));
        let (_, raw) = shown(line.as_bytes());
        assert_eq!(raw.len(), RAW_BYTES);
        let line = format!("[\"x{}\"]", "ä".repeat(RAW_BYTES));
        let (_, raw) = shown(line.as_bytes());
        assert_eq!(raw.len(), RAW_BYTES - 1);
        assert!(line.starts_with(&raw));
    }
}
