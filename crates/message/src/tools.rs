//! Which tools an agent has called, and the status of the calls.

use std::collections::HashMap;

use crate::message::{Body, Message, PermissionDenial, SystemMessage};

/// The status of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolStatus {
    /// It has no result yet.
    Running,
    /// It has returned.
    Succeeded,
    /// It has failed.
    Failed,
    /// It was not allowed.
    Denied,
}

/// The tool calls of a conversation or of a turn, without their inputs and results.
#[derive(Debug, Clone, Default)]
pub struct ToolCalls {
    calls: Vec<Call>,
    by_id: HashMap<String, usize>,
}

#[derive(Debug, Clone)]
struct Call {
    name: String,
    status: ToolStatus,
}

/// The ids of the calls whose results a message brings, without those that failed or were refused. Empty for every other
/// message.
pub fn succeeded_calls(json: &str) -> Vec<String> {
    // Most messages bring none, and are not taken apart.
    if !json.contains("tool_result") {
        return Vec::new();
    }
    let Ok(message) = Message::parse(json) else {
        return Vec::new();
    };
    match message.body() {
        Body::User(user) => {
            let blocks = user.message.content.blocks();
            let results = blocks.iter().filter_map(|block| block.as_tool_result());
            results
                .filter(|result| !result.is_error)
                .map(|result| result.tool_use_id.clone())
                .collect()
        }
        _ => Vec::new(),
    }
}

impl ToolCalls {
    /// Takes the next message of any kind.
    pub fn push(&mut self, body: &Body) {
        match body {
            Body::Assistant(assistant) => {
                for call in assistant
                    .message
                    .content
                    .iter()
                    .filter_map(|block| block.as_tool_use())
                {
                    self.called(&call.id, &call.name);
                }
            }
            Body::User(user) => {
                for result in user
                    .message
                    .content
                    .blocks()
                    .iter()
                    .filter_map(|block| block.as_tool_result())
                {
                    self.returned(&result.tool_use_id, result.is_error);
                }
            }
            Body::System(SystemMessage::PermissionDenied(denied)) => self.deny(&denied.tool_use_id),
            Body::Result(result) => self.denied(&result.permission_denials),
            _ => {}
        }
    }

    /// A call, which may be told more than once.
    pub fn called(&mut self, id: &str, name: &str) {
        if self.by_id.contains_key(id) {
            return;
        }
        self.by_id.insert(id.to_owned(), self.calls.len());
        self.calls.push(Call {
            name: name.to_owned(),
            status: ToolStatus::Running,
        });
    }

    /// A call's result.
    pub fn returned(&mut self, id: &str, is_error: bool) {
        if let Some(call) = self.call_mut(id)
            && call.status != ToolStatus::Denied
        {
            call.status = if is_error {
                ToolStatus::Failed
            } else {
                ToolStatus::Succeeded
            };
        }
    }

    /// A call was not allowed.
    pub fn deny(&mut self, id: &str) {
        if let Some(call) = self.call_mut(id) {
            call.status = ToolStatus::Denied;
        }
    }

    /// The calls that a turn's result lists as denied.
    pub fn denied(&mut self, denials: &[PermissionDenial]) {
        for denial in denials {
            self.deny(&denial.tool_use_id);
        }
    }

    /// The tool of a call.
    pub fn name(&self, id: &str) -> Option<&str> {
        self.call(id).map(|call| call.name.as_str())
    }

    /// The status of a call.
    pub fn status(&self, id: &str) -> Option<ToolStatus> {
        self.call(id).map(|call| call.status)
    }

    /// The tools that were used, each once, in the order of their first call. A denied call has used nothing.
    pub fn used(&self) -> Vec<String> {
        let mut used: Vec<String> = Vec::new();
        for call in &self.calls {
            if call.status != ToolStatus::Denied && !used.contains(&call.name) {
                used.push(call.name.clone());
            }
        }
        used
    }

    fn call(&self, id: &str) -> Option<&Call> {
        self.calls.get(*self.by_id.get(id)?)
    }

    fn call_mut(&mut self, id: &str) -> Option<&mut Call> {
        self.calls.get_mut(*self.by_id.get(id)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    #[test]
    fn a_call_runs_returns_fails_or_is_denied() {
        let mut calls = ToolCalls::default();
        for line in [
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash"},{"type":"tool_use","id":"2","name":"Edit"}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"3","name":"Read"},{"type":"tool_use","id":"4","name":"Bash"}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1"},{"type":"tool_result","tool_use_id":"2","is_error":true}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"3","is_error":true}]}}"#,
            r#"{"type":"result","permission_denials":[{"tool_name":"Edit","tool_use_id":"2"}]}"#,
        ] {
            calls.push(&Message::parse(line).unwrap().body());
        }
        let statuses = ["1", "2", "3", "4", "5"].map(|id| calls.status(id));
        assert_eq!(
            statuses,
            [
                Some(ToolStatus::Succeeded),
                Some(ToolStatus::Denied),
                Some(ToolStatus::Failed),
                Some(ToolStatus::Running),
                None
            ]
        );
        assert_eq!(calls.name("3"), Some("Read"));
        assert_eq!(calls.used(), ["Bash", "Read"]);
    }
}
