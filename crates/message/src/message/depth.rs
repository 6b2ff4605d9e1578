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

#[cfg(test)]
mod tests {
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
        assert!(deepest.decode::<serde_json::Value>().is_ok());
        for levels in [129, 200, 100_000] {
            assert_eq!(
                Message::parse(nested(levels)),
                Err(ParseError::TooDeep),
                "{levels}"
            );
        }
    }

    #[test]
    fn brackets_in_texts_are_no_levels() {
        let text = format!(r#"{{"type":"x","v":"\"{}\\"}}"#, "[{".repeat(500));
        assert!(Message::parse(text).is_ok());
    }
}
