//! What the server sends.

use serde::Serialize;
use tiller_core::RawJson;
use ts_rs::TS;

use super::{Approval, Behavior, PermissionMode, SessionStatus, Subject, UiContext};

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
    /// Something about the session is another that `session.status` does not tell.
    #[serde(rename = "session.updated")]
    SessionUpdated { session: Box<SessionInfo> },
    #[serde(rename = "session.forked", rename_all = "camelCase")]
    SessionForked {
        session_id: String,
        new_session_id: String,
    },
    #[serde(rename = "session.rewound", rename_all = "camelCase")]
    SessionRewound {
        session_id: String,
        user_message_id: String,
        dry_run: bool,
        can_rewind: bool,
        files_changed: Vec<String>,
        insertions: u32,
        deletions: u32,
        /// Why it can't be done.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        error: Option<String>,
    },
    /// Either `data`, in the agent's own form, or `error`.
    #[serde(rename = "session.answer", rename_all = "camelCase")]
    SessionAnswer {
        session_id: String,
        request_id: String,
        subject: Subject,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional, type = "unknown")]
        data: Option<RawJson>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        error: Option<String>,
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
        /// What the agent knows the prompt by; files can be rewound to it.
        uuid: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[ts(optional, as = "Option<Vec<Attachment>>")]
        attachments: Vec<Attachment>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        context: Option<UiContext>,
        #[ts(type = "number")]
        seq: u64,
    },
    #[serde(rename = "stream.message", rename_all = "camelCase")]
    StreamMessage {
        session_id: String,
        /// The agent's own message, untouched.
        #[ts(type = "Record<string, unknown>")]
        message: RawJson,
        #[ts(type = "number")]
        seq: u64,
    },
    #[serde(rename = "permission.request")]
    PermissionRequest(PermissionRequest),
    /// The agent waits for a `hook.response`, a minute at most; then it goes on without a decision.
    #[serde(rename = "hook.callback", rename_all = "camelCase")]
    HookCallback {
        session_id: String,
        callback_id: String,
        hook_event: String,
        /// What has happened, in the agent's own form.
        #[ts(type = "Record<string, unknown>")]
        input: RawJson,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        tool_use_id: Option<String>,
    },
    /// The callback waits no longer: it was answered here or elsewhere, or its agent went on by itself.
    #[serde(rename = "hook.resolved", rename_all = "camelCase")]
    HookResolved { session_id: String, callback_id: String },
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
        /// For programs, and for those who read another language.
        code: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        session_id: Option<String>,
        /// With the code `driven_elsewhere`: the process that drives the session's conversation. The user may watch
        /// it, take the session over, or fork it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        driver: Option<DriverInfo>,
    },
}

#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct DriverInfo {
    pub pid: u32,
    /// The beginning of its command line.
    pub command: String,
    /// When it was started.
    #[ts(type = "number")]
    pub since: i64,
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
    pub settings: SettingsInfo,
    pub archived: bool,
    /// How many decisions wait for the user.
    pub pending: u32,
    /// The prompts that wait for the running turn to end.
    pub queue: Vec<String>,
    pub agent: AgentInfo,
    /// When the session is going to be deleted for good, unless that is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub delete_at: Option<i64>,
    #[ts(type = "number")]
    pub last_seq: u64,
}

#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SettingsInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    pub permission_mode: PermissionMode,
    pub approval: Approval,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<String>,
}

/// The session's agent process.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct AgentInfo {
    pub state: AgentState,
    /// Of the whole process tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub memory_bytes: Option<u64>,
    /// The share of one processor, of the whole process tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum AgentState {
    Absent,
    Starting,
    Running,
    Idle,
    /// Ended to save memory; the next message wakes it.
    Hibernated,
}

/// An image of a prompt. Its bytes are at `/api/sessions/SESSION/images/ID`.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct Attachment {
    pub id: String,
    pub media_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[ts(type = "number")]
    pub size: u64,
}

#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct History {
    pub session_id: String,
    pub status: SessionStatus,
    /// `{type: "user_prompt", prompt, uuid?, attachments?, context?}` or the agent's own message, oldest first.
    #[ts(type = "Array<Record<string, unknown>>")]
    pub messages: Vec<RawJson>,
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
    pub input: RawJson,
    /// Rules that the agent offers to keep, for 'always allow'.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Array<unknown>")]
    pub suggestions: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Absent among a history's `pending`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub seq: Option<u64>,
}
