//! Which tools a turn has called, and which of them failed.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::chat::wire::ServerMessage;

/// How much of what a failed tool said its error repeats; the whole is in the result.
const FAILURE_WORDS: usize = 500;

/// The tools that a turn has called.
#[derive(Default)]
pub(super) struct Calls {
    /// The tool of each call.
    names: HashMap<String, String>,
    /// Those that a person said no to.
    denied: HashSet<String>,
    /// What failed and has not been told. Told when the agent goes on: a call that ended because the turn was stopped
    /// is no failure.
    failed: Vec<ServerMessage>,
}

impl Calls {
    pub(super) fn called(&mut self, block: &Value) {
        if let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) {
            self.names.insert(id.to_owned(), name.to_owned());
        }
    }

    /// `block` is a result as clients get it.
    pub(super) fn returned(&mut self, block: &Value) {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if block["is_error"] == true && !self.denied.contains(id) {
            let name = self.names.get(id).cloned().unwrap_or_default();
            let words = match &block["content"] {
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
