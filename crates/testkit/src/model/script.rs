//! Scripts of the model: rules, replies and their parts, in Rust and as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All replies of a scripted model. The module's documentation explains how a reply is chosen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    #[serde(default)]
    pub(crate) rules: Vec<Rule>,
    #[serde(default)]
    pub(crate) queue: Vec<Reply>,
    #[serde(default)]
    pub(crate) otherwise: Option<Reply>,
    /// Sent with every answer, by name: the API reports an account's limits in headers.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers a prompt that contains `text` with `replies`, one for each call of the model during the turn.
    pub fn on(mut self, text: impl Into<String>, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.rules.push(Rule {
            contains: text.into(),
            replies: replies.into_iter().collect(),
        });
        self
    }

    /// Adds a reply for prompts that no rule matches; they are used in order.
    pub fn then(mut self, reply: Reply) -> Self {
        self.queue.push(reply);
        self
    }

    /// Sends a header with every answer.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The answer when nothing else is left.
    pub fn otherwise(mut self, reply: Reply) -> Self {
        self.otherwise = Some(reply);
        self
    }
}

/// Replies for the prompts that contain a text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Part of the user's prompt, exactly as written.
    pub contains: String,
    /// One reply for each call of the model during the turn.
    pub replies: Vec<Reply>,
}

/// The answer to one call of the model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// Sent in order. Ignored when there is an `error`.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// The HTTP answer is an error instead of a message. `gate` parts are still waited for.
    #[serde(default)]
    pub error: Option<Failure>,
    #[serde(default)]
    pub usage: Usage,
    /// `tool_use` when there is a tool call, else `end_turn`, unless given.
    #[serde(default)]
    pub stop_reason: Option<String>,
}

/// A piece of a reply, or an action between two pieces.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// Text, streamed in deltas of `chunk` characters (all at once if absent) with `pause_ms` between them.
    Text {
        text: String,
        #[serde(default)]
        chunk: Option<usize>,
        #[serde(default)]
        pause_ms: u64,
    },
    /// Thinking; the block closes with the signature, as the API's own do.
    Thinking {
        thinking: String,
        #[serde(default = "default_signature")]
        signature: String,
        #[serde(default)]
        chunk: Option<usize>,
        #[serde(default)]
        pause_ms: u64,
    },
    /// A tool call. Several of them in one reply are run together by the CLI.
    ToolUse {
        name: String,
        input: Value,
        /// Generated if absent.
        #[serde(default)]
        id: Option<String>,
    },
    /// Ends the current block, so that the next text starts a new one.
    EndBlock,
    /// Waits until the test opens the gate with this name. As the first part it delays the whole answer.
    Gate { name: String },
    /// Waits for a while.
    Pause { ms: u64 },
    /// Cuts the connection here and leaves everything unfinished.
    Cut,
    /// An `error` event in the middle of the stream, and its end; as the API does when it is overloaded.
    StreamError { error_type: String, message: String },
}

fn default_signature() -> String {
    "c2NyaXB0ZWQtc2lnbmF0dXJl".to_owned()
}

/// An HTTP error of the API.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub status: u16,
    /// Seconds, sent as the `retry-after` header.
    #[serde(default)]
    pub retry_after: Option<u64>,
    #[serde(default)]
    pub message: Option<String>,
}

/// The token counts that a reply reports.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub cache_read_input_tokens: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            input_tokens: 100,
            output_tokens: 20,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: 0,
        }
    }
}

impl Reply {
    /// A text, streamed word by word or so.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and_text(text)
    }

    /// Thinking, to be followed by something else.
    pub fn thinking(thinking: impl Into<String>) -> Self {
        Self::default().and(Part::Thinking {
            thinking: thinking.into(),
            signature: default_signature(),
            chunk: Some(DEFAULT_CHUNK),
            pause_ms: 0,
        })
    }

    /// A tool call.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::default().and_tool(name, input)
    }

    /// An HTTP error, such as 500 or 529.
    pub fn error(status: u16) -> Self {
        Self {
            error: Some(Failure {
                status,
                retry_after: None,
                message: None,
            }),
            ..Self::default()
        }
    }

    /// Status 429 with a `retry-after` header.
    pub fn rate_limited(retry_after: u64) -> Self {
        Self {
            error: Some(Failure {
                status: 429,
                retry_after: Some(retry_after),
                message: None,
            }),
            ..Self::default()
        }
    }

    /// Adds any part.
    pub fn and(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Part::Text {
            text: text.into(),
            chunk: Some(DEFAULT_CHUNK),
            pause_ms: 0,
        })
    }

    pub fn and_tool(self, name: impl Into<String>, input: Value) -> Self {
        self.and(Part::ToolUse {
            name: name.into(),
            input,
            id: None,
        })
    }

    /// A tool call with a known `tool_use` id.
    pub fn and_tool_with_id(self, id: impl Into<String>, name: impl Into<String>, input: Value) -> Self {
        self.and(Part::ToolUse {
            name: name.into(),
            input,
            id: Some(id.into()),
        })
    }

    /// Waits here until the test opens the gate of this name.
    pub fn gate(self, name: impl Into<String>) -> Self {
        self.and(Part::Gate { name: name.into() })
    }

    /// Cuts the connection here.
    pub fn cut(self) -> Self {
        self.and(Part::Cut)
    }

    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// The stop reason that the API would give.
    pub(crate) fn stop_reason(&self) -> &str {
        let calls_tool = || self.parts.iter().any(|part| matches!(part, Part::ToolUse { .. }));
        match &self.stop_reason {
            Some(reason) => reason,
            None if calls_tool() => "tool_use",
            None => "end_turn",
        }
    }
}

/// About a word, so that text built in Rust streams like a model's by default.
const DEFAULT_CHUNK: usize = 6;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example_is_a_script() {
        let example = crate::documented_json(include_str!("../model.rs"));
        let script: Script = serde_json::from_str(&example).unwrap();
        assert_eq!(script.rules[1].replies.len(), 4);
        assert_eq!(script.queue.len(), 1);
        assert!(script.otherwise.is_some());
    }
}
