//! From the events of one turn to those of the task API. Pure: what went in decides what comes out, so that whoever
//! reads the log again arrives at the same events.

#[cfg(test)]
mod tests;
mod todos;

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use tiller_core::{DecisionRequest, Event, EventBody, SessionStatus, StatusChange, Timestamp};

use self::todos::Todos;
use super::questions::{Questions, is_question};
use super::wire::{Granularity, TaskEvent, TaskResponse};
use crate::error::{ApiError, Language};

/// Tools whose result names the file that they changed.
const EDITING_TOOLS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// What is known of a task before its first event.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) session_id: String,
    pub(super) cwd: String,
    /// What the conversation had cost before: the agent tells only the sum of everything.
    pub(super) cost_before: f64,
    pub(super) granularity: Granularity,
    pub(super) language: Language,
}

/// What one event of the session means for the task.
#[derive(Debug, Default)]
pub(super) struct Translated {
    pub(super) events: Vec<TaskEvent>,
    /// Set with the last event.
    pub(super) response: Option<TaskResponse>,
}

pub(super) struct Translator {
    about: About,
    started_at: Option<Timestamp>,
    /// The message that streams in, and the blocks of it and of earlier ones.
    streaming: String,
    blocks: HashMap<(String, u64), Block>,
    next_block: u64,
    /// How many blocks of a message have come whole.
    whole: HashMap<String, u64>,
    calls: HashMap<String, String>,
    todos: Todos,
    /// Every call's id and tool, in order.
    tool_calls: Vec<(String, String)>,
    files_changed: Vec<String>,
    result: Option<Value>,
}

#[derive(Clone, Copy)]
struct Block {
    number: u64,
    streamed: bool,
}

impl Translator {
    pub(super) fn new(about: About) -> Self {
        Self {
            about,
            started_at: None,
            streaming: String::new(),
            blocks: HashMap::new(),
            next_block: 0,
            whole: HashMap::new(),
            calls: HashMap::new(),
            todos: Todos::default(),
            tool_calls: Vec::new(),
            files_changed: Vec::new(),
            result: None,
        }
    }

    /// Takes the next event, the task's prompt first. `was_overdue`: if it ends here, its time limit was the reason.
    pub(super) fn push(&mut self, event: &Event, was_overdue: bool) -> Translated {
        let mut translated = Translated::default();
        match &event.body {
            EventBody::UserPrompt { .. } => {
                self.started_at.get_or_insert(event.at);
            }
            EventBody::Message { raw, .. } => {
                // What is no JSON that we know is for other readers.
                let raw = tiller_message::stopped_result(raw.as_str()).unwrap_or(raw.as_str());
                if let Ok(message) = serde_json::from_str::<Value>(raw) {
                    self.message(message, &mut translated.events);
                }
            }
            EventBody::DecisionRequested(asked) => translated.events = asks(asked),
            EventBody::Status(change)
                if self.started_at.is_some() && change.status != SessionStatus::Running =>
            {
                self.end(event.at, change, was_overdue, &mut translated);
            }
            EventBody::Status(_) | EventBody::DecisionResolved { .. } => {}
        }
        translated
    }

    fn message(&mut self, mut message: Value, out: &mut Vec<TaskEvent>) {
        match message["type"].as_str() {
            Some("stream_event") if message["parent_tool_use_id"].is_null() => {
                self.piece(&message["event"], out);
            }
            Some("assistant") => self.said(&mut message, out),
            Some("user") => self.returned(&mut message, out),
            Some("result") => self.result = Some(message),
            _ => {}
        }
    }

    /// A piece of something that is being said.
    fn piece(&mut self, event: &Value, out: &mut Vec<TaskEvent>) {
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str() {
            Some("message_start") => {
                event["message"]["id"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut self.streaming);
            }
            Some("content_block_delta") => {
                let delta = &event["delta"];
                let (kind, words) = match delta["type"].as_str() {
                    Some("text_delta") => ("text", &delta["text"]),
                    Some("thinking_delta") => ("thinking", &delta["thinking"]),
                    _ => return,
                };
                if self.about.granularity == Granularity::Block {
                    return;
                }
                let message = self.streaming.clone();
                let block = self.block(message, index);
                block.streamed = true;
                let number = block.number;
                out.push(words_event(kind, words.clone(), number, &Value::Null));
            }
            _ => {}
        }
    }

    fn block(&mut self, message: String, index: u64) -> &mut Block {
        let next = &mut self.next_block;
        self.blocks.entry((message, index)).or_insert_with(|| {
            let number = *next;
            *next += 1;
            Block {
                number,
                streamed: false,
            }
        })
    }

    /// Whole blocks of a message; the agent sends each in a line of its own, all with the message's id.
    fn said(&mut self, message: &mut Value, out: &mut Vec<TaskEvent>) {
        let id = message["message"]["id"].as_str().unwrap_or_default().to_owned();
        let parent = message["parent_tool_use_id"].take();
        let Value::Array(content) = message["message"]["content"].take() else {
            return;
        };
        for mut block in content {
            let count = self.whole.entry(id.clone()).or_default();
            let index = *count;
            *count += 1;
            match block["type"].as_str() {
                Some(kind @ ("text" | "thinking")) => {
                    let kind = if kind == "text" { "text" } else { "thinking" };
                    let words = block[kind].take();
                    let Block { number, streamed } = *self.block(id.clone(), index);
                    // What came in pieces has been told. What did not, because pieces are kept for a while only, or
                    // because a subagent said it, is told as a whole.
                    if !streamed && words.as_str().is_some_and(|words| !words.is_empty()) {
                        out.push(words_event(kind, words, number, &parent));
                    }
                }
                Some("tool_use") => self.called(&block, &parent, out),
                _ => {}
            }
        }
    }

    fn called(&mut self, block: &Value, parent: &Value, out: &mut Vec<TaskEvent>) {
        let (id, name) = (
            block["id"].as_str().unwrap_or_default(),
            block["name"].as_str().unwrap_or_default(),
        );
        self.calls.insert(id.to_owned(), name.to_owned());
        self.tool_calls.push((id.to_owned(), name.to_owned()));
        let data = json!({ "tool_use_id": id, "name": name, "input": block["input"] });
        out.push(TaskEvent {
            kind: "tool_use",
            data: of_subagent(data, parent),
        });
        if parent.is_null() && self.todos.called(id, name, &block["input"]) {
            out.push(self.todos.event());
        }
    }

    fn returned(&mut self, message: &mut Value, out: &mut Vec<TaskEvent>) {
        let parent = message["parent_tool_use_id"].take();
        let structured = message["tool_use_result"].take();
        let Value::Array(content) = message["message"]["content"].take() else {
            return;
        };
        for mut block in content {
            if block["type"] != "tool_result" {
                continue;
            }
            let id = block["tool_use_id"].as_str().unwrap_or_default().to_owned();
            let name = self.calls.get(&id).cloned().unwrap_or_default();
            let failed = block["is_error"].as_bool().unwrap_or(false);
            if !failed && EDITING_TOOLS.contains(&name.as_str()) {
                self.changed(&structured);
            }
            let data = json!({
                "tool_use_id": id, "name": name, "content": block["content"].take(), "is_error": failed,
            });
            out.push(TaskEvent {
                kind: "tool_result",
                data: of_subagent(data, &parent),
            });
            if self.todos.returned(&id, failed, &structured) {
                out.push(self.todos.event());
            }
        }
    }

    /// Relative to the working directory where inside it, as the history has it.
    fn changed(&mut self, structured: &Value) {
        let path = ["filePath", "notebook_path"]
            .iter()
            .find_map(|key| structured[key].as_str());
        let Some(path) = path else { return };
        let inside = Path::new(path).strip_prefix(&self.about.cwd).ok();
        let path = inside.and_then(Path::to_str).unwrap_or(path);
        if !self.files_changed.iter().any(|known| known == path) {
            self.files_changed.push(path.to_owned());
        }
    }

    /// The session is gone; nothing more will come of it.
    pub(super) fn abandon(&mut self, reason: ApiError) -> Translated {
        let mut translated = Translated::default();
        let message = reason.text(self.about.language).to_owned();
        self.finish(None, Some((reason, message)), false, &mut translated);
        translated
    }

    fn end(&mut self, at: Timestamp, change: &StatusChange, was_overdue: bool, translated: &mut Translated) {
        let success = change.status == SessionStatus::Completed;
        let language = self.about.language;
        let failure = match change.status {
            SessionStatus::Idle if was_overdue => {
                Some((ApiError::Timeout, ApiError::Timeout.text(language).to_owned()))
            }
            SessionStatus::Idle | SessionStatus::Completed | SessionStatus::Running => None,
            SessionStatus::Error => Some((ApiError::Internal, change.error.clone().unwrap_or_default())),
        };
        let elapsed = self.started_at.map(|started| at.0.saturating_sub(started.0));
        self.finish(elapsed, failure, success, translated);
    }

    fn finish(
        &mut self,
        elapsed: Option<i64>,
        failure: Option<(ApiError, String)>,
        success: bool,
        translated: &mut Translated,
    ) {
        let result = self.result.take().unwrap_or_default();
        let language = self.about.language;
        let message = match &failure {
            Some((_, message)) => message.clone(),
            None if success => result["result"].as_str().unwrap_or_default().to_owned(),
            None => ApiError::TaskInterrupted.text(language).to_owned(),
        };
        if let Some((error, message)) = failure {
            translated.events.push(TaskEvent {
                kind: "error",
                data: json!({ "code": error.code(), "message": message }),
            });
        }
        let response = TaskResponse {
            success,
            message,
            session_id: self.about.session_id.clone(),
            cost_usd: result["total_cost_usd"].as_f64().map(|total| self.cost(total)),
            duration_ms: result["duration_ms"]
                .as_u64()
                .or_else(|| elapsed.and_then(|elapsed| u64::try_from(elapsed).ok())),
            files_changed: std::mem::take(&mut self.files_changed),
            tools_used: self.tools_used(&result["permission_denials"]),
            num_turns: result["num_turns"].as_u64(),
            usage: Some(result["usage"].clone()).filter(|usage| !usage.is_null()),
            permission_denials: result["permission_denials"]
                .as_array()
                .cloned()
                .unwrap_or_default(),
        };
        translated.events.push(TaskEvent {
            kind: "complete",
            data: serde_json::to_value(&response).unwrap_or_default(),
        });
        translated.response = Some(response);
    }

    /// The tools that were used, each once. A call that was denied has used nothing.
    fn tools_used(&self, denials: &Value) -> Vec<String> {
        let denials = denials.as_array().map(Vec::as_slice).unwrap_or_default();
        let was_denied = |id: &str| denials.iter().any(|denial| denial["tool_use_id"] == id);
        let mut used: Vec<String> = Vec::new();
        for (id, name) in &self.tool_calls {
            if !was_denied(id) && !used.contains(name) {
                used.push(name.clone());
            }
        }
        used
    }

    /// Agents tell what the conversation has cost so far. A smaller sum than before is that of a new process, which
    /// older releases let begin at zero.
    fn cost(&self, total: f64) -> f64 {
        let before = self.about.cost_before;
        if total >= before { total - before } else { total }
    }
}

fn words_event(kind: &'static str, words: Value, block: u64, parent: &Value) -> TaskEvent {
    TaskEvent {
        kind,
        data: of_subagent(json!({ kind: words, "block": block }), parent),
    }
}

/// Marks what a subagent said or did with the call that started it.
fn of_subagent(mut data: Value, parent: &Value) -> Value {
    if let (Some(fields), false) = (data.as_object_mut(), parent.is_null()) {
        fields.insert("parent_tool_use_id".to_owned(), parent.clone());
    }
    data
}

fn asks(asked: &DecisionRequest) -> Vec<TaskEvent> {
    if is_question(asked) {
        let questions = Questions::of(asked);
        let events = questions.iter().map(|(id, question)| TaskEvent {
            kind: "ask_user_question",
            data: json!({
                "question_id": id, "question": question.text, "header": question.header,
                "options": question.options, "multi_select": question.multi_select,
            }),
        });
        return events.collect();
    }
    let parsed = |raw: &str| serde_json::from_str::<Value>(raw).unwrap_or_default();
    let suggestions = asked
        .suggestions
        .as_ref()
        .map_or_else(|| json!([]), |raw| parsed(raw.as_str()));
    vec![TaskEvent {
        kind: "permission_request",
        data: json!({
            "request_id": asked.id.to_string(), "tool_name": asked.tool_name, "tool_use_id": asked.tool_use_id,
            "input": parsed(asked.input.as_str()), "suggestions": suggestions, "description": asked.description,
            "blocked_path": asked.blocked_path,
        }),
    }]
}

impl TaskEvent {
    /// As it goes over the wire. The id is that of the last event of a group: a client that was cut off within one gets
    /// the whole group again, and misses nothing.
    pub(super) fn render(self, session_id: &str, seq: Option<u64>) -> String {
        let mut data = Map::new();
        data.insert("type".to_owned(), self.kind.into());
        data.insert("session_id".to_owned(), session_id.into());
        if let Value::Object(fields) = self.data {
            data.extend(fields);
        }
        let id = seq.map(|seq| format!("id: {seq}\n")).unwrap_or_default();
        format!("event: {}\n{id}data: {}\n\n", self.kind, Value::Object(data))
    }
}
