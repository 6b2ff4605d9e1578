//! How deeply a message may be nested.
//!
//! Building a tree of values takes stack for each level, and so does dropping it. So nesting is bounded once, where a
//! line becomes a message; every reader after that may build trees.

use serde::de::DeserializeOwned;

/// How many levels of objects and arrays a message may have.
pub const MAX_DEPTH: usize = 128;

/// Whether a JSON text has more than [`MAX_DEPTH`] levels. The text is known to be JSON.
pub(super) fn is_too_deep(json: &[u8]) -> bool {
    // `{` and `[` differ in one bit. Most lines have few of them, and counting costs next to nothing.
    let opening = json.iter().filter(|byte| **byte | 0x20 == b'{').count();
    opening > MAX_DEPTH && depth(json) > MAX_DEPTH
}

fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Decodes a message whose depth is known to be within [`MAX_DEPTH`]. The parser's own limit is one level short of it.
pub(super) fn decode<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.disable_recursion_limit();
    T::deserialize(&mut deserializer)
}

/// How many levels a frame may put around a message.
const ENVELOPE: usize = 8;

/// Decodes a frame that may hold messages, which may be nested as deeply as messages may be.
pub fn decode_envelope<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    if depth(json.as_bytes()) > MAX_DEPTH + ENVELOPE {
        return Err(serde::de::Error::custom("it is nested too deeply"));
    }
    decode(json)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::decode_envelope;
    use crate::{Message, ParseError};

    fn nested(levels: usize) -> String {
        // The object itself is the first level.
        format!(
            r#"{{"type":"x","v":{}{}}}"#,
            "[".repeat(levels - 1),
            "]".repeat(levels - 1)
        )
    }

    #[test]
    fn messages_are_nested_at_most_128_levels() {
        let deepest = Message::parse(nested(128)).unwrap();
        assert!(deepest.decode::<Value>().is_ok());
        for levels in [129, 200, 100_000] {
            assert_eq!(
                Message::parse(nested(levels)),
                Err(ParseError::TooDeep),
                "{levels}"
            );
        }
    }

    #[test]
    fn a_frame_has_room_for_the_deepest_message() {
        let framed = |levels| format!(r#"{{"payload":{{"messages":[{}]}}}}"#, nested(levels));
        assert!(decode_envelope::<Value>(&framed(128)).is_ok());
        assert!(decode_envelope::<Value>(&framed(200)).is_err());
    }

    #[test]
    fn brackets_in_texts_are_no_levels() {
        let text = format!(r#"{{"type":"x","v":"\"{}\\"}}"#, "[{".repeat(500));
        assert!(Message::parse(text).is_ok());
    }
}
