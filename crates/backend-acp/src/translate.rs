//! Translates an ACP agent's updates into the product's messages. A fold over the lines of one run: reading the same
//! lines again leads to the same messages with the same ids.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tiller_acp::{Diff, PlanEntry, Prompted, RpcError, ToolCall, ToolContent, Update};
use tiller_core::RawJson;
use tiller_core::backend::{AgentEvent, Meaning, TurnEnd};
use uuid::Uuid;

use crate::patch::structured_patch;

/// The block that is being streamed.
struct Block {
    thinking: bool,
    text: String,
}

struct Call {
    call: ToolCall,
    /// Its `tool_use` was sent.
    told: bool,
}

pub(crate) struct Translator {
    run: String,
    pub(crate) conversation: String,
    open: Option<Block>,
    /// The number of messages that the agent has begun; part of their ids.
    messages: u64,
    calls: HashMap<String, Call>,
    /// The last text of the turn, which is its result.
    last_text: String,
    /// Where the current line ends, and how many messages it has produced: both are part of a message's id.
    position: u64,
    told: u32,
    out: Vec<AgentEvent>,
}

impl Translator {
    pub(crate) fn new(run: String, conversation: String) -> Self {
        Self {
            run,
            conversation,
            open: None,
            messages: 0,
            calls: HashMap::new(),
            last_text: String::new(),
            position: 0,
            told: 0,
            out: Vec::new(),
        }
    }

    /// Begins with the line that ends there.
    pub(crate) fn at(&mut self, position: u64) {
        self.position = position;
        self.told = 0;
    }

    /// The messages that the line produced.
    pub(crate) fn take(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.out)
    }

    pub(crate) fn opened(&mut self, cwd: &str, mode: Option<&str>, model: Option<&str>) {
        let conversation = self.conversation.clone();
        let init = json!({
            "type": "system", "subtype": "init", "cwd": cwd, "model": model.unwrap_or("default"), "tools": [],
            "mcp_servers": [], "slash_commands": [], "permissionMode": mode.unwrap_or("default"),
        });
        self.tell(init, Meaning::Init { conversation });
    }

    pub(crate) fn update(&mut self, update: Update) {
        match update {
            Update::Text(text) => self.piece(false, &text),
            Update::Thought(text) => self.piece(true, &text),
            Update::ToolCall(call) | Update::ToolCallUpdate(call) => self.call(call),
            Update::Plan(entries) => self.plan(&entries),
            Update::Mode(_) | Update::Config(_) | Update::Other => {}
        }
    }

    /// What is known about a call that the agent asks about, which it may not have announced.
    pub(crate) fn asked(&mut self, call: ToolCall) -> (String, Value) {
        let id = call.tool_call_id.clone();
        self.merge(call);
        self.close();
        self.tell_call(&id);
        match self.calls.get(&id) {
            Some(known) => (tool_name(&known.call), tool_input(&known.call)),
            None => ("Tool".to_owned(), json!({})),
        }
    }

    pub(crate) fn prompted(&mut self, outcome: Result<Prompted, RpcError>) {
        self.close();
        self.calls.clear();
        let text = std::mem::take(&mut self.last_text);
        let (subtype, end, usage) = match outcome {
            Ok(prompted) => {
                let (subtype, end) = match prompted.stop_reason.as_str() {
                    "end_turn" => ("success", TurnEnd::Success),
                    "max_turn_requests" => failure("error_max_turns", "The limit of turns was reached."),
                    "max_tokens" => failure(
                        "error_during_execution",
                        "The answer was longer than the model can write.",
                    ),
                    "refusal" => failure("error_during_execution", "The agent refused to continue."),
                    "cancelled" => failure("error_during_execution", "The turn was stopped."),
                    other => {
                        let message = format!("The turn ended with {other}.");
                        ("error_during_execution", TurnEnd::Failure { message })
                    }
                };
                (subtype, end, prompted.usage)
            }
            Err(error) => {
                let message = error.message;
                ("error_during_execution", TurnEnd::Failure { message }, None)
            }
        };
        let mut result = json!({
            "type": "result", "subtype": subtype, "is_error": end != TurnEnd::Success, "num_turns": 1,
            "result": text, "usage": usage.as_ref().map(tokens),
        });
        if let TurnEnd::Failure { message } = &end {
            result["errors"] = json!([message]);
        }
        self.tell(result, Meaning::TurnEnded(end));
    }

    fn piece(&mut self, thinking: bool, text: &str) {
        if self.open.as_ref().is_some_and(|open| open.thinking != thinking) {
            self.close();
        }
        if self.open.is_none() {
            self.messages += 1;
            let message =
                json!({ "type": "message", "role": "assistant", "id": self.message_id(), "content": [] });
            self.stream(json!({ "type": "message_start", "message": message }));
            let block = if thinking {
                json!({ "type": "thinking", "thinking": "" })
            } else {
                json!({ "type": "text", "text": "" })
            };
            self.stream(json!({ "type": "content_block_start", "index": 0, "content_block": block }));
            let text = String::new();
            self.open = Some(Block { thinking, text });
        }
        if let Some(open) = &mut self.open {
            open.text.push_str(text);
        }
        let delta = if thinking {
            json!({ "type": "thinking_delta", "thinking": text })
        } else {
            json!({ "type": "text_delta", "text": text })
        };
        self.stream(json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
    }

    /// Ends the streamed block with its complete text.
    fn close(&mut self) {
        let Some(Block { thinking, text }) = self.open.take() else {
            return;
        };
        let block = if thinking {
            json!({ "type": "thinking", "thinking": text })
        } else {
            self.last_text.clone_from(&text);
            json!({ "type": "text", "text": text })
        };
        self.assistant(block);
        self.stream(json!({ "type": "content_block_stop", "index": 0 }));
        self.stream(json!({ "type": "message_stop" }));
    }

    fn merge(&mut self, call: ToolCall) {
        if let Some(known) = self.calls.get_mut(&call.tool_call_id) {
            known.call.merge(call);
        } else {
            let id = call.tool_call_id.clone();
            self.calls.insert(id, Call { call, told: false });
        }
    }

    fn call(&mut self, call: ToolCall) {
        let id = call.tool_call_id.clone();
        self.merge(call);
        let begun = self.calls.get(&id).is_some_and(|known| {
            // Until then an agent may announce a call without its input.
            known.call.is_over() || known.call.status.as_deref() == Some("in_progress")
        });
        if begun {
            self.close();
            self.tell_call(&id);
        }
        if let Some(known) = self.calls.remove(&id) {
            if known.call.is_over() {
                self.tell_outcome(&known.call);
            } else {
                self.calls.insert(id, known);
            }
        }
    }

    fn tell_call(&mut self, id: &str) {
        let Some(known) = self.calls.get_mut(id).filter(|known| !known.told) else {
            return;
        };
        known.told = true;
        let (name, input) = (tool_name(&known.call), tool_input(&known.call));
        self.messages += 1;
        self.assistant(json!({ "type": "tool_use", "id": id, "name": name, "input": input }));
    }

    fn tell_outcome(&mut self, call: &ToolCall) {
        let texts: Vec<_> = call
            .contents()
            .filter_map(|content| match content {
                ToolContent::Text(text) => Some(text),
                ToolContent::Diff(_) | ToolContent::Other => None,
            })
            .collect();
        let text = if texts.is_empty() {
            match &call.raw_output {
                Some(Value::String(text)) => text.clone(),
                Some(output) if !output.is_null() => output.to_string(),
                _ => String::new(),
            }
        } else {
            texts.join("\n")
        };
        self.result(&call.tool_call_id, &text, call.failed(), diff(call).map(changed));
    }

    fn result(&mut self, id: &str, text: &str, is_error: bool, structured: Option<Value>) {
        let block =
            json!({ "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error });
        let mut message = json!({ "type": "user", "message": { "role": "user", "content": [block] } });
        if let Some(structured) = structured {
            message["tool_use_result"] = structured;
        }
        self.tell(message, Meaning::Nothing);
    }

    fn plan(&mut self, entries: &[PlanEntry]) {
        self.close();
        let todos: Vec<_> = entries
            .iter()
            .map(|entry| json!({ "content": entry.content, "status": entry.status, "activeForm": entry.content }))
            .collect();
        let id = format!("plan-{}", self.position);
        self.messages += 1;
        self.assistant(
            json!({ "type": "tool_use", "id": id, "name": "TodoWrite", "input": { "todos": todos } }),
        );
        self.result(&id, "", false, None);
    }

    fn message_id(&self) -> String {
        format!("{}-{}", self.run, self.messages)
    }

    fn assistant(&mut self, block: Value) {
        let message = json!({
            "type": "message", "role": "assistant", "id": self.message_id(), "model": "default", "content": [block],
        });
        self.tell(
            json!({ "type": "assistant", "message": message }),
            Meaning::Nothing,
        );
    }

    fn stream(&mut self, event: Value) {
        self.tell(
            json!({ "type": "stream_event", "event": event }),
            Meaning::Nothing,
        );
    }

    fn tell(&mut self, mut message: Value, meaning: Meaning) {
        let name = format!("{}:{}:{}", self.run, self.position, self.told);
        self.told += 1;
        let uuid = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).to_string();
        message["session_id"] = self.conversation.clone().into();
        message["parent_tool_use_id"] = Value::Null;
        message["uuid"] = uuid.clone().into();
        match RawJson::of(&message) {
            Ok(raw) => self.out.push(AgentEvent::Message {
                raw,
                uuid: Some(uuid),
                meaning,
            }),
            // A value that was just built can always be serialized.
            Err(error) => tracing::error!(%error, "can't write a message"),
        }
    }
}

fn failure(subtype: &'static str, message: &str) -> (&'static str, TurnEnd) {
    let message = message.to_owned();
    (subtype, TurnEnd::Failure { message })
}

/// The tokens of a turn under the names of the product's messages.
fn tokens(usage: &Value) -> Value {
    json!({
        "input_tokens": usage.get("inputTokens"), "output_tokens": usage.get("outputTokens"),
        "cache_read_input_tokens": usage.get("cachedReadTokens"),
        "cache_creation_input_tokens": usage.get("cachedWriteTokens"),
    })
}

fn diff(call: &ToolCall) -> Option<Diff> {
    call.contents().find_map(|content| match content {
        ToolContent::Diff(diff) => Some(diff),
        ToolContent::Text(_) | ToolContent::Other => None,
    })
}

/// The change that an edit made.
fn changed(diff: Diff) -> Value {
    let old = diff.old_text.as_deref().unwrap_or_default();
    let patch = structured_patch(old, &diff.new_text);
    let kind = if diff.old_text.is_some() {
        "update"
    } else {
        "create"
    };
    json!({
        "type": kind, "filePath": diff.path, "oldString": old, "newString": diff.new_text, "structuredPatch": patch,
    })
}

/// The tool name that readers know for this kind.
fn tool_name(call: &ToolCall) -> String {
    let name = match call.kind.as_deref() {
        Some("read") => "Read",
        Some("edit") if is_whole_file(call) => "Write",
        Some("edit") => "Edit",
        Some("execute") => "Bash",
        Some("search") => "Grep",
        Some("fetch") => "WebFetch",
        _ => call
            .title
            .as_deref()
            .filter(|title| !title.is_empty())
            .unwrap_or("Tool"),
    };
    name.to_owned()
}

/// Whether an edit creates a new file.
fn is_whole_file(call: &ToolCall) -> bool {
    match diff(call) {
        Some(diff) => diff.old_text.is_none_or(|old| old.is_empty()),
        None => call
            .raw_input
            .as_ref()
            .is_some_and(|input| input.get("content").is_some()),
    }
}

/// The agent's input, with the fields that readers look for under the names that they know.
fn tool_input(call: &ToolCall) -> Value {
    let mut input = match &call.raw_input {
        Some(Value::Object(input)) => input.clone(),
        Some(other) if !other.is_null() => Map::from_iter([("input".to_owned(), other.clone())]),
        _ => Map::new(),
    };
    if let Some(diff) = diff(call) {
        input.entry("file_path").or_insert(diff.path.into());
        if let Some(old) = diff.old_text {
            input.entry("old_string").or_insert(old.into());
            input.entry("new_string").or_insert(diff.new_text.into());
        } else {
            input.entry("content").or_insert(diff.new_text.into());
        }
    }
    if let Some(path) = input.get("filePath").cloned() {
        input.entry("file_path").or_insert(path);
    }
    if let Some(title) = call.title.as_deref().filter(|title| !title.is_empty()) {
        input.entry("description").or_insert(title.into());
    }
    Value::Object(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(translator: &mut Translator) -> Vec<Value> {
        let events = translator.take().into_iter().map(|event| match event {
            AgentEvent::Message { raw, .. } => serde_json::from_str(raw.as_str()).unwrap(),
            other => panic!("{other:?}"),
        });
        events.collect()
    }

    fn feed(translator: &mut Translator, updates: &[Value]) -> Vec<Value> {
        for (number, update) in updates.iter().enumerate() {
            translator.at(number as u64 + 1);
            translator.update(Update::parse(&json!({ "update": update })));
        }
        told(translator)
    }

    fn translator() -> Translator {
        Translator::new("run".to_owned(), "c".to_owned())
    }

    #[test]
    fn pieces_are_streamed_and_then_told_whole() {
        let mut translator = translator();
        let text = |text| json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
        let said = feed(&mut translator, &[text("Hel"), text("lo")]);
        let kinds: Vec<_> = said
            .iter()
            .map(|message| message["event"]["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_delta"
            ]
        );
        translator.at(9);
        translator.prompted(Ok(Prompted {
            stop_reason: "end_turn".to_owned(),
            usage: None,
        }));
        let said = told(&mut translator);
        assert_eq!(said[0]["message"]["content"][0]["text"], "Hello");
        let result = said.last().unwrap();
        assert_eq!(
            (&result["type"], &result["result"]),
            (&json!("result"), &json!("Hello"))
        );
    }

    #[test]
    fn an_edit_is_told_with_its_input_and_its_patch() {
        let mut translator = translator();
        let said = feed(
            &mut translator,
            &[
                json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "edit", "kind": "edit", "status": "pending", "rawInput": {} }),
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress", "rawInput": { "filePath": "/a" } }),
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
                    "content": [{ "type": "diff", "path": "/a", "oldText": "x\n", "newText": "y\n" }] }),
            ],
        );
        assert_eq!(said.len(), 2, "{said:?}");
        let tool = &said[0]["message"]["content"][0];
        assert_eq!(
            (&tool["name"], &tool["input"]["file_path"]),
            (&json!("Edit"), &json!("/a"))
        );
        assert_eq!(said[1]["message"]["content"][0]["is_error"], false);
        assert_eq!(
            said[1]["tool_use_result"]["structuredPatch"][0]["lines"],
            json!(["-x", "+y"])
        );
    }

    #[test]
    fn the_same_lines_lead_to_the_same_messages() {
        let updates = [
            json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm" } }),
            json!({ "sessionUpdate": "plan", "entries": [{ "content": "do", "status": "pending" }] }),
        ];
        let said = feed(&mut translator(), &updates);
        assert_eq!(said, feed(&mut translator(), &updates));
        assert!(
            said.iter()
                .any(|message| message["message"]["content"][0]["name"] == "TodoWrite")
        );
    }

    #[test]
    fn a_turn_that_was_cancelled_or_failed_is_no_success() {
        for outcome in [
            Ok(Prompted {
                stop_reason: "cancelled".to_owned(),
                usage: None,
            }),
            Err(RpcError::default()),
        ] {
            let mut translator = translator();
            translator.prompted(outcome);
            assert_eq!(told(&mut translator)[0]["is_error"], true);
        }
    }
}
