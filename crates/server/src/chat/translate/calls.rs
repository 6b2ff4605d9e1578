//! The tool calls of a turn, and which of them failed.

use std::collections::HashSet;

use serde_json::Value;
use tiller_message::ToolCalls;

use crate::chat::wire::ServerMessage;

/// How much of a failed tool's output its error repeats; the result has all of it.
const FAILURE_WORDS: usize = 500;

/// The tool calls of a turn.
#[derive(Default)]
pub(super) struct Calls {
    tools: ToolCalls,
    /// The calls that a person denied.
    denied: HashSet<String>,
    /// Failures that were not sent yet. They are sent when the agent continues: a call that ended because the turn was
    /// stopped did not fail.
    failed: Vec<ServerMessage>,
}

impl Calls {
    pub(super) fn called(&mut self, id: &str, name: &str) {
        self.tools.called(id, name);
    }

    /// `content` is the result as clients get it.
    pub(super) fn returned(&mut self, id: &str, is_error: bool, content: &Value) {
        if is_error && !self.denied.contains(id) {
            let name = self.tools.name(id).unwrap_or_default().to_owned();
            let words = match content {
                Value::String(text) => text.chars().take(FAILURE_WORDS).collect(),
                _ => "The tool failed.".to_owned(),
            };
            self.failed
                .push(ServerMessage::tool_error(name, id.to_owned(), words));
        }
    }

    pub(super) fn denied(&mut self, id: &str) {
        self.denied.insert(id.to_owned());
    }

    /// The failures since the last call of this method.
    pub(super) fn failures(&mut self) -> Vec<ServerMessage> {
        std::mem::take(&mut self.failed)
    }
}
