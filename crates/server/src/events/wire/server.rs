//! Payloads of events that the server sends without being asked.

use serde::Serialize;
use tiller_core::RawJson;
use tiller_message::{SummaryView, TurnFigures};
use ts_rs::TS;
use utoipa::ToSchema;

use super::{Approval, Behavior, PermissionMode, QueuedPrompt, SessionStatus, UiContext};
use crate::decided::DecidedCall;
use crate::error::ErrorCode;
use crate::events::settings::SettingsInfo;

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionReset {
    pub session_id: String,
    #[ts(type = "number")]
    pub last_seq: u64,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct StreamUserPrompt {
    pub session_id: String,
    pub prompt: String,
    /// The prompt's id. Files can be rewound to it.
    #[ts(optional, as = "Option<String>")]
    pub prompt_id: String,
    /// The same id, under its earlier name.
    pub uuid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<Attachment>>")]
    pub attachments: Vec<Attachment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<UiContext>,
    #[ts(type = "number")]
    pub seq: u64,
    /// When it happened.
    #[ts(optional, as = "Option<f64>")]
    pub at: i64,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct StreamMessage {
    pub session_id: String,
    /// The agent's own message, unchanged.
    #[ts(type = "Record<string, unknown>")]
    #[schema(value_type = Object)]
    pub message: RawJson,
    #[ts(type = "number")]
    pub seq: u64,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct PermissionResolved {
    pub session_id: String,
    pub tool_use_id: String,
    pub request_id: String,
    pub behavior: Behavior,
    /// What ran, where a person changed what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Record<string, unknown>")]
    #[schema(value_type = Option<Object>)]
    pub edited_input: Option<RawJson>,
    #[ts(type = "number")]
    pub seq: u64,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct RunnerError {
    /// In English.
    pub message: String,
    /// The error as a code, for programs and for translated pages.
    pub code: ErrorCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// With the code `driven_elsewhere`: the process that uses the session's conversation. The user can watch it, take
    /// the session over, or fork it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverInfo>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct DriverInfo {
    pub pid: u32,
    /// The beginning of its command line.
    pub command: String,
    /// When the process was started.
    #[ts(type = "number")]
    pub since: i64,
}

/// Events that the conversation no longer has.
#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct RewoundRange {
    /// The number of the last event before them.
    #[ts(type = "number")]
    pub after_seq: u64,
    /// The number of the last of them.
    #[ts(type = "number")]
    pub through_seq: u64,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionInfo {
    pub id: String,
    pub title: String,
    pub status: SessionStatus,
    pub cwd: String,
    /// The agent's own id of this conversation, known once the agent has started.
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
    /// The number of pending decisions.
    pub pending: u32,
    /// The session's queue.
    pub queue: Vec<String>,
    /// The same prompts with their ids.
    #[ts(optional, as = "Option<Vec<QueuedPrompt>>")]
    pub queue_items: Vec<QueuedPrompt>,
    pub agent: AgentInfo,
    /// When the session will be deleted, unless the deletion is cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub delete_at: Option<i64>,
    /// The parts of the log that the conversation no longer has: it was rewound.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<RewoundRange>>")]
    pub rewound: Vec<RewoundRange>,
    /// The last rewind can be undone: nothing was said since.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub can_undo_rewind: bool,
    #[ts(type = "number")]
    pub last_seq: u64,
    /// The totals of the whole session as of `lastSeq`. Absent for a session that an earlier version stored, until the
    /// server has counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub summary: Option<SummaryView>,
    /// The session's stored data can't be read: it can only be deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub damaged: bool,
    /// What can't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The session's agent process.
#[derive(Debug, Serialize, TS, ToSchema)]
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
    /// Whether agents that are started now are shielded: they can't see Tiller's own files and processes, and leave no
    /// processes behind.
    #[ts(optional, as = "Option<bool>")]
    pub shielded: bool,
    /// Why agents are not shielded, and what to do about it. In English.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_shielded: Option<String>,
    /// The sandbox in which agents of this session run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxInfo>,
}

/// A sandbox: what an agent can write to and reach, with what the agent itself needs and what the configuration adds.
#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SandboxInfo {
    /// Beside the working directory and a `/tmp` of its own.
    pub folders: Vec<String>,
    /// The hosts that it can reach. Absent: the network is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "lowercase")]
#[ts(export_to = "events.ts")]
pub enum AgentState {
    Absent,
    Starting,
    Running,
    Idle,
    /// Ended to save memory; the next prompt starts it again.
    Hibernated,
}

/// An image of a prompt. Its bytes are at `/api/sessions/SESSION/images/ID`.
#[derive(Debug, Serialize, TS, ToSchema)]
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

/// The kind of a history entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "events.ts")]
pub enum HistoryKind {
    /// A prompt: `{type: "user_prompt", prompt, promptId, uuid, attachments?, context?}`. Live it is `stream.user_prompt`.
    UserPrompt,
    /// A message of the agent. Live it is `stream.message`.
    Message,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct History {
    pub session_id: String,
    pub status: SessionStatus,
    /// `{type: "user_prompt", prompt, promptId, uuid, attachments?, context?}` or the agent's own message, oldest
    /// first.
    #[ts(type = "Array<Record<string, unknown>>")]
    #[schema(value_type = Vec<Object>)]
    pub messages: Vec<RawJson>,
    /// The `seq` of each message.
    #[ts(type = "Array<number>")]
    pub seqs: Vec<u64>,
    /// The kind of each message. Its JSON does not tell: an agent may write anything, including JSON that looks like a
    /// prompt.
    pub kinds: Vec<HistoryKind>,
    /// The changes of status among these messages, and right after them. Live they are `session.status`.
    #[ts(optional, as = "Option<Vec<StatusChange>>")]
    pub statuses: Vec<StatusChange>,
    /// The permissions of the whole session that were not simply allowed as they were asked for, whatever page was asked
    /// for.
    #[ts(optional, as = "Option<Vec<DecidedCall>>")]
    pub decided: Vec<DecidedCall>,
    /// When each message came.
    #[ts(optional, type = "Array<number>")]
    pub times: Vec<i64>,
    /// The number of the session's last event: subscribe after it to continue live.
    #[ts(type = "number")]
    pub last_seq: u64,
    /// The totals of the whole session, whichever page was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    #[schema(value_type = Option<Object>)]
    pub summary: Option<SummaryView>,
    /// The pending decisions.
    pub pending: Vec<PermissionRequest>,
    /// The session's queue.
    pub queue: Vec<String>,
    /// The same prompts with their ids.
    #[ts(optional, as = "Option<Vec<QueuedPrompt>>")]
    pub queue_items: Vec<QueuedPrompt>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
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
    /// What the turn took that ended with this change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    #[schema(value_type = Option<Object>)]
    pub turn: Option<TurnFigures>,
    /// Absent if this is not an event of a session's log: in the answer to a duplicate prompt, and to a refused start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub seq: Option<u64>,
}

#[derive(Debug, Serialize, TS, ToSchema)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct PermissionRequest {
    pub session_id: String,
    /// The id of the `tool_use` block that needs the decision, so that a request and its card match exactly.
    pub tool_use_id: String,
    /// The server's own unique id.
    pub request_id: String,
    pub tool_name: String,
    #[ts(type = "Record<string, unknown>")]
    #[schema(value_type = Object)]
    pub input: RawJson,
    /// The SHA-256, in hex, of the input's JSON. An answer that carries it as `shown` counts only for this input.
    pub shown: String,
    /// Rules that the agent suggests for 'always allow'.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Array<unknown>")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub suggestions: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Absent in a history's `pending`, and if a pending request is sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "number")]
    pub seq: Option<u64>,
}
