//! Which tools a turn has called, and which of them failed.

use std::collections::HashSet;

use serde_json::Value;
use tiller_message::ToolCalls;

use crate::chat::wire::ServerMessage;

/// How much of what a failed tool said its error repeats; the whole is in the result.
const FAILURE_WORDS: usize = 500;

/// The tools that a turn has called.
#[derive(Default)]
pub(super) struct Calls {
    tools: ToolCalls,
    /// The calls that a person has denied.
    denied: HashSet<String>,
    /// Failures that clients have not been sent. They are sent when the agent goes on: a call that ended because the turn
    /// was stopped is no failure.
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

    /// What failed since this was last asked.
    pub(super) fn failures(&mut self) -> Vec<ServerMessage> {
        std::mem::take(&mut self.failed)
    }
}
