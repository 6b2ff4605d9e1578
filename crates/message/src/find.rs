//! Whether a message has some words in it, where a reader of the conversation would see them.

use serde_json::Value;

use crate::message::{Block, Body, Content, Kind, Message, SystemMessage};

/// Words that are looked for, whatever the case of their letters.
#[derive(Clone, Debug)]
pub struct Words {
    lower: String,
}

impl Words {
    /// `None`: there is nothing to look for.
    pub fn new(words: &str) -> Option<Self> {
        let lower = words.trim().to_lowercase();
        (!lower.is_empty()).then_some(Self { lower })
    }

    /// Whether they are in the text.
    pub fn are_in(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.lower)
    }

    fn are_in_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.are_in(text),
            Value::Array(values) => values.iter().any(|value| self.are_in_value(value)),
            Value::Object(fields) => fields.values().any(|value| self.are_in_value(value)),
            Value::Number(number) => self.are_in(&number.to_string()),
            Value::Null | Value::Bool(_) => false,
        }
    }

    fn are_in_content(&self, content: &Content) -> bool {
        match content {
            Content::Text(text) => self.are_in(text),
            Content::Blocks(blocks) => blocks
                .iter()
                .filter_map(Block::as_text)
                .any(|text| self.are_in(text)),
        }
    }

    fn place_in(&self, block: &Block) -> Option<FoundIn> {
        let (found, tool_use_id) = match block {
            Block::Text(block) => (self.are_in(&block.text), None),
            Block::Thinking(block) => (self.are_in(&block.thinking), None),
            Block::ToolUse(call) | Block::ServerToolUse(call) | Block::McpToolUse(call) => (
                self.are_in(&call.name) || self.are_in_value(&call.input),
                Some(&call.id),
            ),
            Block::ToolResult(result) | Block::McpToolResult(result) => {
                (self.are_in_content(&result.content), Some(&result.tool_use_id))
            }
            _ => (false, None),
        };
        found.then(|| FoundIn {
            tool_use_id: tool_use_id.cloned(),
        })
    }
}

/// Where in a message words were found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FoundIn {
    /// In a tool call or its result: the call's id. Both are shown as one.
    pub tool_use_id: Option<String>,
}

/// Looks for words in a message. `None`: they are not in what is shown of it.
///
/// ```
/// use tiller_message::{Message, Words, find_in};
///
/// let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Hello, World"}]}}"#;
/// let message = Message::parse(line)?;
/// assert!(find_in(&message, &Words::new("hello, w").unwrap()).is_some());
/// assert!(find_in(&message, &Words::new("assistant").unwrap()).is_none());
/// # Ok::<(), tiller_message::ParseError>(())
/// ```
pub fn find_in(message: &Message, words: &Words) -> Option<FoundIn> {
    // Pieces of streamed messages, which are most, come again whole.
    if !matches!(
        message.kind(),
        Kind::Assistant | Kind::User | Kind::Result | Kind::System
    ) {
        return None;
    }
    let whole = |found: bool| found.then_some(FoundIn { tool_use_id: None });
    match message.body() {
        Body::Assistant(assistant) => {
            let mut blocks = assistant.message.content.iter();
            blocks.find_map(|block| words.place_in(block))
        }
        Body::User(echoed) => echoed
            .message
            .content
            .blocks()
            .iter()
            .find_map(|block| match block {
                // An echoed prompt is found as the prompt that it is.
                Block::ToolResult(_) | Block::McpToolResult(_) => words.place_in(block),
                _ => None,
            }),
        Body::Result(result) => whole(result.errors.iter().any(|error| words.are_in(error))),
        Body::System(SystemMessage::Notice(notice)) => whole(words.are_in(&notice.message)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_where_they_are_shown() {
        let call = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls Übersicht"}}]}}"#;
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"登录页面.md"}]}]}}"#;
        let thought =
            r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"Hm, 42 then"}]}}"#;
        let piece = r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"hm"}}}"#;
        let echo = r#"{"type":"user","message":{"content":"hm"}}"#;
        let found = |line: &str, words: &str| {
            let message = Message::parse(line).unwrap();
            find_in(&message, &Words::new(words).unwrap()).map(|found| found.tool_use_id)
        };
        assert_eq!(found(call, "übersicht"), Some(Some("t1".to_owned())));
        assert_eq!(found(call, "bash"), Some(Some("t1".to_owned())));
        assert_eq!(found(result, "登录"), Some(Some("t1".to_owned())));
        assert_eq!(found(thought, "42 THEN"), Some(None));
        for (line, words) in [(piece, "hm"), (echo, "hm"), (call, "tool_use"), (result, "t1")] {
            assert_eq!(found(line, words), None, "{words} in {line}");
        }
        assert!(Words::new("  ").is_none());
    }
}
