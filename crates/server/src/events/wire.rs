//! The event API's types, to the letter of its contract. They are the source of `web/src/gen`.
//!
//! Each text frame is one [`ClientEvent`] or one [`ServerEvent`]. This module knows nothing of sessions: turning
//! these types into commands, and events into these types, is the work of `translate`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use ts_rs::TS;

/// What a client may send.
#[derive(Debug, Deserialize, TS)]
#[serde(tag = "type", content = "payload")]
#[ts(export_to = "events.ts")]
pub enum ClientEvent {
    #[serde(rename = "session.list")]
    SessionList,
    #[serde(rename = "session.start")]
    SessionStart(SessionStart),
    #[serde(rename = "session.continue")]
    SessionContinue(SessionContinue),
    #[serde(rename = "session.stop")]
    SessionStop(SessionRef),
    #[serde(rename = "session.delete")]
    SessionDelete(SessionRef),
    #[serde(rename = "session.history")]
    SessionHistory(HistoryRequest),
    #[serde(rename = "session.subscribe")]
    SessionSubscribe(Subscribe),
    #[serde(rename = "permission.response")]
    PermissionResponse(PermissionResponse),
    /// From then on, `statistics` once a second.
    #[serde(rename = "statistics.subscribe")]
    StatisticsSubscribe,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionStart {
    /// Empty or absent: a readable one is made from the prompt.
    #[serde(default)]
    pub title: Option<String>,
    pub prompt: String,
    /// Absent: the server's default working directory.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Comma-separated tools and rules that run without asking, such as `Read,Bash(git *)`.
    #[serde(default)]
    pub allowed_tools: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub permission_mode: Option<PermissionMode>,
    #[serde(default)]
    pub approval: Option<Approval>,
    /// A word of the client's own: `session.started` comes back with it and tells which session this became.
    #[serde(default)]
    pub request_id: Option<String>,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionContinue {
    pub session_id: String,
    pub prompt: String,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionRef {
    pub session_id: String,
}

/// `afterSeq` with `limit`: the first after it. `beforeSeq` with `limit`: the last before it. `limit` alone: the last.
#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct HistoryRequest {
    pub session_id: String,
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub after_seq: Option<u64>,
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub before_seq: Option<u64>,
    #[serde(default)]
    pub limit: Option<u32>,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct Subscribe {
    pub session_id: String,
    #[serde(default)]
    #[ts(optional, type = "number")]
    pub after_seq: Option<u64>,
}

/// Names the decision by `toolUseId`, by `requestId`, or by both, which must then belong together.
#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct PermissionResponse {
    pub session_id: String,
    #[serde(default)]
    pub tool_use_id: Option<String>,
    #[serde(default)]
    pub request_id: Option<String>,
    pub result: PermissionResult,
}

#[derive(Debug, Deserialize, TS)]
#[serde(tag = "behavior", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub enum PermissionResult {
    Allow {
        /// Absent: the tool runs with the input that was shown.
        #[serde(default)]
        #[ts(optional, type = "Record<string, unknown>")]
        updated_input: Option<Map<String, Value>>,
        /// Rules to keep, as the request's `suggestions` offer them.
        #[serde(default)]
        #[ts(optional, type = "Array<unknown>")]
        updated_permissions: Option<Vec<Value>>,
    },
    Deny {
        #[serde(default)]
        message: Option<String>,
        /// Also ends the turn.
        #[serde(default)]
        interrupt: Option<bool>,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub enum PermissionMode {
    Default,
    AcceptEdits,
    Plan,
    BypassPermissions,
}

/// Who answers when the agent asks for a tool.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum Approval {
    /// The user, for every tool that the agent asks about.
    Ask,
    /// Everything but questions, plans and elicitations is allowed.
    Auto,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum SessionStatus {
    Idle,
    Running,
    Completed,
    Error,
}

/// What the server sends.
#[derive(Debug, Serialize, TS)]
#[serde(tag = "type", content = "payload")]
#[ts(export_to = "events.ts")]
pub enum ServerEvent {
    #[serde(rename = "session.list")]
    SessionList { sessions: Vec<SessionInfo> },
    #[serde(rename = "session.history")]
    SessionHistory(History),
    /// For a client that gave its `session.start` a `requestId`, and for nobody else.
    #[serde(rename = "session.started", rename_all = "camelCase")]
    SessionStarted { session_id: String, request_id: String },
    #[serde(rename = "session.status")]
    SessionStatus(StatusChange),
    #[serde(rename = "session.deleted", rename_all = "camelCase")]
    SessionDeleted { session_id: String },
    #[serde(rename = "session.queue", rename_all = "camelCase")]
    SessionQueue {
        session_id: String,
        prompts: Vec<String>,
    },
    #[serde(rename = "session.reset", rename_all = "camelCase")]
    SessionReset {
        session_id: String,
        #[ts(type = "number")]
        last_seq: u64,
    },
    #[serde(rename = "stream.user_prompt", rename_all = "camelCase")]
    StreamUserPrompt {
        session_id: String,
        prompt: String,
        #[ts(type = "number")]
        seq: u64,
    },
    #[serde(rename = "stream.message", rename_all = "camelCase")]
    StreamMessage {
        session_id: String,
        /// The agent's own message, untouched.
        #[ts(type = "Record<string, unknown>")]
        message: Arc<RawValue>,
        #[ts(type = "number")]
        seq: u64,
    },
    #[serde(rename = "permission.request")]
    PermissionRequest(PermissionRequest),
    #[serde(rename = "permission.resolved", rename_all = "camelCase")]
    PermissionResolved {
        session_id: String,
        tool_use_id: String,
        request_id: String,
        behavior: Behavior,
        #[ts(type = "number")]
        seq: u64,
    },
    /// Shares from 0 to 1.
    #[serde(rename = "statistics", rename_all = "camelCase")]
    Statistics {
        cpu_usage: f64,
        ram_usage: f64,
        storage_usage: f64,
    },
    #[serde(rename = "runner.error", rename_all = "camelCase")]
    RunnerError {
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        session_id: Option<String>,
    },
}

#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionInfo {
    pub id: String,
    pub title: String,
    pub status: SessionStatus,
    pub cwd: String,
    /// The agent's own id for this conversation, known once it has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claude_session_id: Option<String>,
    #[ts(type = "number")]
    pub created_at: i64,
    #[ts(type = "number")]
    pub updated_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub permission_mode: PermissionMode,
    pub approval: Approval,
    /// How many decisions wait for the user.
    pub pending: u32,
    #[ts(type = "number")]
    pub last_seq: u64,
}

#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct History {
    pub session_id: String,
    pub status: SessionStatus,
    /// `{type: "user_prompt", prompt}` or the agent's own message, oldest first.
    #[ts(type = "Array<Record<string, unknown>>")]
    pub messages: Vec<Arc<RawValue>>,
    /// The `seq` of each message.
    #[ts(type = "Array<number>")]
    pub seqs: Vec<u64>,
    /// The session's newest: subscribe after this one to go on live.
    #[ts(type = "number")]
    pub last_seq: u64,
    /// The decisions that wait for the user right now.
    pub pending: Vec<PermissionRequest>,
    /// The prompts that wait for the running turn to end.
    pub queue: Vec<String>,
}

#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct StatusChange {
    pub session_id: String,
    pub status: SessionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[ts(type = "number")]
    pub seq: u64,
}

#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct PermissionRequest {
    pub session_id: String,
    /// The id of the `tool_use` block that asks, so that a request and its card match exactly.
    pub tool_use_id: String,
    /// Ours, unique.
    pub request_id: String,
    pub tool_name: String,
    #[ts(type = "Record<string, unknown>")]
    pub input: Arc<RawValue>,
    /// Rules that the agent offers to keep, for 'always allow'.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Array<unknown>")]
    pub suggestions: Option<Arc<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Absent among a history's `pending`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub seq: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum Behavior {
    Allow,
    Deny,
    /// Nobody answered: the turn was stopped or the agent ended.
    Withdrawn,
}
