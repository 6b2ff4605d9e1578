//! Translates the events of one turn into those of the task API. Pure: the same events lead to the same output, so that
//! a reader of the log gets what a live reader got.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tiller_core::{DecisionRequest, Event, EventBody, SessionStatus, StatusChange, Timestamp};
use tiller_message::{
    AssistantMessage, Block as ContentBlock, Body, DeltaKind, EchoedMessage, Kind, Message, StreamEventKind,
    Todo, Todos, ToolCalls, ToolUseBlock, TurnResult, Usage, changed_file, cost_since, is_editing_tool,
};

use super::questions::{Questions, is_question};
use super::wire::{Granularity, TaskEvent, TaskResponse};
use crate::error::{ApiError, Language};

/// What is known about a task before its first event.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) session_id: String,
    pub(super) cwd: String,
    /// The cost of the conversation before this task: the agent reports only the total.
    pub(super) cost_before: f64,
    pub(super) granularity: Granularity,
    pub(super) language: Language,
}

/// The translation of one event.
#[derive(Debug, Default)]
pub(super) struct Translated {
    pub(super) events: Vec<TaskEvent>,
    /// Set with the last event.
    pub(super) response: Option<TaskResponse>,
}

pub(super) struct Translator {
    about: About,
    started_at: Option<Timestamp>,
    /// The message that is being streamed, and its blocks and those of earlier messages.
    streaming: String,
    blocks: HashMap<(String, u64), Block>,
    next_block: u64,
    /// How many blocks of each message have arrived complete.
    whole: HashMap<String, u64>,
    calls: ToolCalls,
    todos: Todos,
    files_changed: Vec<String>,
    result: Option<TurnResult>,
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
            calls: ToolCalls::default(),
            todos: Todos::default(),
            files_changed: Vec::new(),
            result: None,
        }
    }

    /// Translates the next event, the task's prompt first. `was_overdue`: if the task ends here, it reached its time
    /// limit.
    pub(super) fn push(&mut self, event: &Event, was_overdue: bool) -> Translated {
        let mut translated = Translated::default();
        match &event.body {
            EventBody::UserPrompt { .. } => {
                self.started_at.get_or_insert(event.at);
            }
            EventBody::Message { raw, .. } => {
                if let Ok(message) = Message::parse_shared(Arc::clone(raw.shared())) {
                    let message = message.stopped_result().unwrap_or(message);
                    self.message(&message, &mut translated.events);
                }
            }
            EventBody::DecisionRequested(asked) => translated.events = asks(asked),
            EventBody::Status(change)
                if self.started_at.is_some() && change.status != SessionStatus::Running =>
            {
                self.end(event.at, change, was_overdue, &mut translated);
            }
            EventBody::Status(_) | EventBody::DecisionResolved { .. } | EventBody::Unreadable(_) => {}
        }
        translated
    }

    fn message(&mut self, message: &Message, out: &mut Vec<TaskEvent>) {
        match message.kind() {
            Kind::StreamEvent if message.parent_tool_use_id().is_none() => self.piece(message, out),
            Kind::Assistant | Kind::User | Kind::Result => match message.body() {
                Body::Assistant(assistant) => self.said(assistant, out),
                Body::User(user) => self.returned(user, out),
                Body::Result(result) => self.result = Some(result),
                _ => {}
            },
            _ => {}
        }
    }

    /// Translates a fragment of a block that is being streamed.
    fn piece(&mut self, message: &Message, out: &mut Vec<TaskEvent>) {
        if message.stream_event_kind() == Some(StreamEventKind::MessageStart) {
            self.streaming = message.model_message_id().unwrap_or_default();
        }
        let Some(delta) = message.delta() else { return };
        let kind = match delta.kind {
            DeltaKind::Text => "text",
            DeltaKind::Thinking => "thinking",
            DeltaKind::InputJson | DeltaKind::Signature => return,
        };
        if self.about.granularity == Granularity::Block {
            return;
        }
        let message = self.streaming.clone();
        let block = self.block(message, delta.index.into());
        block.streamed = true;
        let number = block.number;
        out.push(words_event(kind, delta.text, number, None));
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

    /// Translates complete blocks of a message; the agent sends each in a line of its own, all with the message's id.
    fn said(&mut self, assistant: AssistantMessage, out: &mut Vec<TaskEvent>) {
        let id = assistant.message.id;
        let parent = assistant.parent_tool_use_id.as_deref();
        for block in assistant.message.content {
            let count = self.whole.entry(id.clone()).or_default();
            let index = *count;
            *count += 1;
            let (kind, words) = match block {
                ContentBlock::Text(text) => ("text", text.text),
                ContentBlock::Thinking(thinking) => ("thinking", thinking.thinking),
                ContentBlock::ToolUse(call) => {
                    self.called(call, parent, out);
                    continue;
                }
                _ => continue,
            };
            let Block { number, streamed } = *self.block(id.clone(), index);
            // A block that was streamed was already sent. A block that was not, because fragments are kept only for a
            // while or because a subagent wrote it, is sent as a whole.
            if !streamed && !words.is_empty() {
                out.push(words_event(kind, &words, number, parent));
            }
        }
    }

    fn called(&mut self, call: ToolUseBlock, parent: Option<&str>, out: &mut Vec<TaskEvent>) {
        self.calls.called(&call.id, &call.name);
        let written = parent.is_none() && self.todos.called(&call);
        let data = json!({ "tool_use_id": call.id, "name": call.name, "input": call.input });
        out.push(TaskEvent {
            kind: "tool_use",
            data: of_subagent(data, parent),
        });
        if written {
            out.push(todos_event(&self.todos));
        }
    }

    fn returned(&mut self, user: EchoedMessage, out: &mut Vec<TaskEvent>) {
        let parent = user.parent_tool_use_id.as_deref();
        let blocks = user.message.content.blocks().iter();
        for result in blocks.filter_map(|block| block.as_tool_result()) {
            let id = &result.tool_use_id;
            self.calls.returned(id, result.is_error);
            let name = self.calls.name(id).unwrap_or_default();
            if !result.is_error && is_editing_tool(name) {
                let path = changed_file(&user.tool_use_result, &self.about.cwd);
                let is_new = |path: &String| !self.files_changed.contains(path);
                self.files_changed.extend(path.filter(is_new));
            }
            let data = json!({
                "tool_use_id": id, "name": name, "content": result.content, "is_error": result.is_error,
            });
            out.push(TaskEvent {
                kind: "tool_result",
                data: of_subagent(data, parent),
            });
            if self.todos.returned(result, &user.tool_use_result) {
                out.push(todos_event(&self.todos));
            }
        }
    }

    /// The session was deleted; no more events will follow.
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
        let result = self.result.take();
        let language = self.about.language;
        let message = match &failure {
            Some((_, message)) => message.clone(),
            None if success => result
                .as_ref()
                .and_then(|result| result.result.clone())
                .unwrap_or_default(),
            None => ApiError::TaskInterrupted.text(language).to_owned(),
        };
        if let Some((error, message)) = failure {
            translated.events.push(TaskEvent {
                kind: "error",
                data: json!({ "code": error.code(), "message": message }),
            });
        }
        let elapsed = elapsed.and_then(|elapsed| u64::try_from(elapsed).ok());
        let mut response = TaskResponse {
            success,
            message,
            session_id: self.about.session_id.clone(),
            cost_usd: None,
            duration_ms: elapsed,
            files_changed: std::mem::take(&mut self.files_changed),
            tools_used: Vec::new(),
            num_turns: None,
            usage: None,
            permission_denials: Vec::new(),
        };
        if let Some(result) = result {
            self.calls.denied(&result.permission_denials);
            response.cost_usd = Some(cost_since(self.about.cost_before, result.total_cost_usd));
            response.duration_ms = Some(result.duration_ms).filter(|time| *time > 0).or(elapsed);
            response.num_turns = Some(result.num_turns);
            response.usage = (result.usage != Usage::default()).then(|| as_json(&result.usage));
            response.permission_denials = result.permission_denials.iter().map(as_json).collect();
        }
        response.tools_used = self.calls.used();
        translated.events.push(TaskEvent {
            kind: "complete",
            data: serde_json::to_value(&response).unwrap_or_default(),
        });
        translated.response = Some(response);
    }
}

fn todos_event(todos: &Todos) -> TaskEvent {
    let entry = |todo: &Todo| {
        let mut entry = json!({
            "content": todo.content, "status": todo.status, "activeForm": todo.active_form,
        });
        if let Some(id) = &todo.id {
            entry["id"] = id.as_str().into();
        }
        entry
    };
    let list: Vec<Value> = todos.items().iter().map(entry).collect();
    TaskEvent {
        kind: "todos",
        data: json!({ "todos": list, "completed": todos.completed(), "total": todos.total() }),
    }
}

/// Serializes a type of the message language. It was read from JSON, so this can't fail.
fn as_json(record: &impl Serialize) -> Value {
    serde_json::to_value(record).unwrap_or_default()
}

fn words_event(kind: &'static str, words: &str, block: u64, parent: Option<&str>) -> TaskEvent {
    TaskEvent {
        kind,
        data: of_subagent(json!({ kind: words, "block": block }), parent),
    }
}

/// Marks the events of a subagent with the tool call that started it.
fn of_subagent(mut data: Value, parent: Option<&str>) -> Value {
    if let (Some(fields), Some(parent)) = (data.as_object_mut(), parent) {
        fields.insert("parent_tool_use_id".to_owned(), parent.into());
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
    /// The event in its wire format. The id is set on the last event of a group: a client that is disconnected within a
    /// group gets the whole group again.
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
