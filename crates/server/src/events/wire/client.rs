//! What a client may send.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use ts_rs::TS;

use super::{Approval, PermissionMode, Subject, UiContext};

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
    SessionDelete(SessionDelete),
    /// Takes a deletion back whose time has not come.
    #[serde(rename = "session.undelete")]
    SessionUndelete(SessionRef),
    #[serde(rename = "session.configure")]
    SessionConfigure(SessionConfigure),
    #[serde(rename = "session.rename")]
    SessionRename(SessionRename),
    #[serde(rename = "session.archive")]
    SessionArchive(SessionArchive),
    /// Replaces the prompts that wait.
    #[serde(rename = "session.queue")]
    SessionQueue(ReplaceQueue),
    /// Sends the first prompt that waits, if no turn runs.
    #[serde(rename = "session.flush")]
    SessionFlush(SessionRef),
    #[serde(rename = "session.fork")]
    SessionFork(SessionFork),
    #[serde(rename = "session.rewind")]
    SessionRewind(SessionRewind),
    #[serde(rename = "session.inquire")]
    SessionInquire(SessionInquire),
    /// Ends the foreign process that drives the session's conversation; `session.updated` says that it is done.
    #[serde(rename = "session.takeover")]
    SessionTakeover(SessionRef),
    #[serde(rename = "session.history")]
    SessionHistory(HistoryRequest),
    #[serde(rename = "session.subscribe")]
    SessionSubscribe(Subscribe),
    #[serde(rename = "permission.response")]
    PermissionResponse(PermissionResponse),
    /// Wants `hook.callback` for these events, from the next turn on, in place of those registered before.
    #[serde(rename = "session.hooks")]
    SessionHooks(SessionHooks),
    #[serde(rename = "hook.response")]
    HookResponse(HookResponse),
    /// From then on, `statistics` once a second.
    #[serde(rename = "statistics.subscribe")]
    StatisticsSubscribe,
}

impl ClientEvent {
    /// The session that it is about, where it names one.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::SessionList | Self::SessionStart(_) | Self::StatisticsSubscribe => None,
            Self::SessionContinue(event) => Some(&event.session_id),
            Self::SessionStop(event)
            | Self::SessionUndelete(event)
            | Self::SessionFlush(event)
            | Self::SessionTakeover(event) => Some(&event.session_id),
            Self::SessionDelete(event) => Some(&event.session_id),
            Self::SessionConfigure(event) => Some(&event.session_id),
            Self::SessionRename(event) => Some(&event.session_id),
            Self::SessionArchive(event) => Some(&event.session_id),
            Self::SessionQueue(event) => Some(&event.session_id),
            Self::SessionFork(event) => Some(&event.session_id),
            Self::SessionRewind(event) => Some(&event.session_id),
            Self::SessionInquire(event) => Some(&event.session_id),
            Self::SessionHistory(event) => Some(&event.session_id),
            Self::SessionSubscribe(event) => Some(&event.session_id),
            Self::PermissionResponse(event) => Some(&event.session_id),
            Self::SessionHooks(event) => Some(&event.session_id),
            Self::HookResponse(event) => Some(&event.session_id),
        }
    }
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
    /// How hard the model tries, as the agent lists it with its models.
    #[serde(default)]
    pub effort: Option<String>,
    /// How often the model may be called in one turn.
    #[serde(default)]
    pub max_turns: Option<u32>,
    #[serde(default)]
    pub max_budget_usd: Option<f64>,
    /// Who runs the agent: this server's backend by its name, or `auto`. Another one is refused.
    #[serde(default)]
    pub backend: Option<String>,
    /// The id of a conversation in the agent's own history to go on with; its folder is then the session's.
    #[serde(default)]
    pub resume: Option<String>,
    /// With `resume`: begins with what was said there and leaves that conversation alone, whoever drives it.
    #[serde(default)]
    #[ts(optional, as = "Option<bool>")]
    pub fork: bool,
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<NewAttachment>>")]
    pub attachments: Vec<NewAttachment>,
    #[serde(default)]
    pub context: Option<UiContext>,
    /// A word of the client's own: `session.started` comes back with it and tells which session this became.
    #[serde(default)]
    pub request_id: Option<String>,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionContinue {
    pub session_id: String,
    pub prompt: String,
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<NewAttachment>>")]
    pub attachments: Vec<NewAttachment>,
    #[serde(default)]
    pub context: Option<UiContext>,
}

/// An image: PNG, JPEG, GIF or WebP, at most 5 MiB, at most 20 with one prompt.
#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct NewAttachment {
    pub media_type: String,
    /// Base64.
    pub data: String,
    #[serde(default)]
    pub name: Option<String>,
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

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionDelete {
    pub session_id: String,
    /// Until this many milliseconds have passed the session can be brought back. Its agent is ended at once.
    #[serde(default)]
    pub after_ms: Option<u32>,
}

/// What is absent stays as it is; `null` is the default.
#[derive(Debug, Default, Deserialize, TS)]
#[serde(rename_all = "camelCase", default)]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionConfigure {
    pub session_id: String,
    #[serde(deserialize_with = "present")]
    #[ts(as = "Option<Option<String>>", optional)]
    pub model: Option<Option<String>>,
    #[serde(deserialize_with = "present")]
    #[ts(as = "Option<Option<PermissionMode>>", optional)]
    pub permission_mode: Option<Option<PermissionMode>>,
    #[serde(deserialize_with = "present")]
    #[ts(as = "Option<Option<Approval>>", optional)]
    pub approval: Option<Option<Approval>>,
    #[serde(deserialize_with = "present")]
    #[ts(as = "Option<Option<String>>", optional)]
    pub effort: Option<Option<String>>,
    #[serde(deserialize_with = "present")]
    #[ts(as = "Option<Option<String>>", optional)]
    pub allowed_tools: Option<Option<String>>,
    #[serde(deserialize_with = "present")]
    #[ts(as = "Option<Option<f64>>", optional)]
    pub max_budget_usd: Option<Option<f64>>,
    #[serde(deserialize_with = "present")]
    #[ts(as = "Option<Option<u32>>", optional)]
    pub max_turns: Option<Option<u32>>,
}

/// Tells `null` from what is absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionRename {
    pub session_id: String,
    pub title: String,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionArchive {
    pub session_id: String,
    pub archived: bool,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct ReplaceQueue {
    pub session_id: String,
    pub prompts: Vec<String>,
    /// What the client believes to be waiting; refused if something else is.
    #[serde(default)]
    pub expected: Option<Vec<String>>,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionFork {
    pub session_id: String,
    #[serde(default)]
    pub title: Option<String>,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionRewind {
    pub session_id: String,
    /// The `uuid` of a prompt: files become what they were before it.
    pub user_message_id: String,
    /// Only tells what would change.
    pub dry_run: bool,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts", optional_fields)]
pub struct SessionInquire {
    pub session_id: String,
    /// Comes back with the answer.
    pub request_id: String,
    pub subject: Subject,
    #[serde(default)]
    pub query: Option<String>,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct SessionHooks {
    pub session_id: String,
    pub events: Vec<HookEvent>,
}

/// What an agent can call back about.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, TS)]
#[ts(export_to = "events.ts")]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    UserPromptSubmit,
    Stop,
    SubagentStop,
    PreCompact,
}

#[derive(Debug, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(export_to = "events.ts")]
pub struct HookResponse {
    pub session_id: String,
    pub callback_id: String,
    /// In the agent's own form: `{"continue": true}` and more.
    #[ts(type = "Record<string, unknown>")]
    pub output: Map<String, Value>,
}
