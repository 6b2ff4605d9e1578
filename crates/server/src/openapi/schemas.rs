//! The forms of requests and answers.
//!
//! Written down here and not derived from the types that handlers use: those of the history and of the core must not
//! know what an OpenAPI description is. That both agree is what the schemathesis test is for.
#![expect(dead_code, reason = "only described, never made")]
#![expect(clippy::struct_field_names, reason = "the names are the contract's")]

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

/// Any JSON object.
pub(super) type Object = BTreeMap<String, serde_json::Value>;

/// Every refusal.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({ "error": { "code": "unauthorized", "message": "A valid API key or the link from `tiller link` is needed." } }))]
pub(super) struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ErrorDetail {
    /// For programs.
    code: ErrorCode,
    /// For people, in the language of `Accept-Language`.
    message: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErrorCode {
    PromptEmpty,
    PromptTooLong,
    WorkingDirInvalid,
    WorkingDirLocked,
    SessionNotFound,
    QuestionNotFound,
    RequestNotFound,
    InvalidAnswer,
    TaskInterrupted,
    InvalidRequest,
    Unauthorized,
    Forbidden,
    RateLimited,
    AlreadyAnswered,
    Timeout,
    Internal,
}

/// What every operation that needs a key may answer.
#[derive(IntoResponses)]
pub(super) enum Refusals {
    /// The key is missing or wrong.
    #[response(status = 401)]
    Unauthorized(#[to_schema] ErrorBody),
    /// The key does not allow this, or the request came from another site.
    #[response(status = 403)]
    Forbidden(#[to_schema] ErrorBody),
    /// Too many wrong keys, or too many tasks. `Retry-After` says when to try again.
    #[response(status = 429)]
    RateLimited(#[to_schema] ErrorBody),
    /// Something went wrong in the server.
    #[response(status = 500)]
    Internal(#[to_schema] ErrorBody),
}

/// What every operation with a body may answer beside.
#[derive(IntoResponses)]
pub(super) enum BodyRefusals {
    /// The body is not JSON.
    #[response(status = 400)]
    NotJson(#[to_schema] ErrorBody),
    /// The body did not arrive in time.
    #[response(status = 408)]
    Timeout(#[to_schema] ErrorBody),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(#[to_schema] ErrorBody),
    /// The content type is not `application/json`.
    #[response(status = 415)]
    NotJsonType(#[to_schema] ErrorBody),
    /// A field is unknown, missing or of the wrong form; the message names it.
    #[response(status = 422)]
    WrongForm(#[to_schema] ErrorBody),
}

#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    #[schema(example = "ok")]
    status: String,
    version: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct System {
    cpu_model: String,
    #[serde(rename = "totalMemoryGB")]
    total_memory_gb: u64,
    /// In GB.
    total_storage: u64,
    version: String,
    backend: Backend,
    /// Where a session works that does not say where.
    cwd: String,
    roots: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct BackendList {
    /// The default one first.
    backends: Vec<AgentKind>,
}

/// An agent that a session can choose.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentKind {
    /// By which a session chooses it.
    name: String,
    /// For a person.
    title: String,
    version: Option<String>,
    installed: bool,
    /// Null: the agent does not say.
    signed_in: Option<bool>,
    capabilities: Capabilities,
    options: Vec<AgentOption>,
    how_to_install: Option<String>,
}

/// What can be chosen for an agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentOption {
    name: String,
    title: String,
    /// `string`, `number`, `bool`, `choice` or `list`.
    kind: String,
    /// The values that can be chosen from, where they are known.
    choices: Vec<String>,
    default: serde_json::Value,
    /// A running agent can change it; otherwise it takes effect with the next turn.
    live: bool,
    /// It lets the agent do more without asking.
    grants: bool,
}

/// Which agent runs, and why.
#[derive(Serialize, ToSchema)]
pub(super) struct Backend {
    /// `claude` or `demo`.
    name: String,
    version: Option<String>,
    /// `stdio` or `sdk-url`.
    transport: String,
    /// For a person, in English.
    reason: String,
    /// `found`, `stdioChosen`, `connects`, `cannotConnect`, `versionUnknown`, `notInstalled` or `demoChosen`.
    why: String,
    /// Where it was found on this machine.
    path: Option<String>,
    capabilities: Capabilities,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Capabilities {
    streaming: bool,
    permissions: bool,
    resume: bool,
    subagents: bool,
}

#[derive(Serialize, ToSchema)]
pub(super) struct RecentCwds {
    /// Newest first.
    cwds: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignIns {
    sign_ins: Vec<SignIn>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignIn {
    id: String,
    /// What the browser calls itself.
    user_agent: String,
    /// The address from which it signed in.
    address: String,
    /// Milliseconds since 1970.
    created_at: i64,
    last_used_at: i64,
    /// Whether it is the one that asks.
    current: bool,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Success {
    success: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignOut {
    /// Every browser.
    all: Option<bool>,
    /// One of the list.
    id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Directories {
    path: String,
    parent: Option<String>,
    entries: Vec<DirectoryEntry>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct DirectoryEntry {
    name: String,
    path: String,
}

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "prompt": "Explain the parser" }))]
pub(super) struct TitleRequest {
    #[schema(pattern = r"\S")]
    prompt: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Title {
    title: String,
}

/// A task: what to do, where, and with what.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "prompt": "Explain the parser", "working_dir": "~/project", "tools": ["Read", "Grep"] }))]
pub(super) struct TaskRequest {
    /// 1 to 10,000 characters, without the white space around it.
    #[schema(max_length = 10_000, min_length = 1, pattern = r"^[^\x00]*\S[^\x00]*$")]
    prompt: String,
    /// Absolute, or beginning with `~/`; inside a root.
    #[schema(pattern = r"^[^\x00]*$")]
    working_dir: Option<String>,
    /// The tools that the task may use, which then need no permission. Absent: the agent's usual ones; empty: none.
    tools: Option<Vec<String>>,
    /// Goes on with the newest conversation of the folder. Not together with `resume`.
    continue_conversation: Option<bool>,
    /// Goes on with this conversation, in its own folder.
    #[schema(format = "uuid")]
    resume: Option<String>,
    permission_mode: Option<PermissionMode>,
    #[schema(
        max_length = 128,
        pattern = r"^([A-Za-z0-9._:/@\[\]][A-Za-z0-9._:/@\[\]-]*)?$"
    )]
    model: Option<String>,
    /// How often the model may be called.
    #[schema(minimum = 1)]
    max_turns: Option<u32>,
    /// The agent of a new conversation, one of `GET /api/backends`; the default one unless given.
    agent: Option<String>,
    /// The task is stopped after so many seconds.
    #[schema(exclusive_minimum = 0.0, maximum = 604_800.0)]
    timeout_s: Option<f64>,
    granularity: Option<Granularity>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum PermissionMode {
    Default,
    AcceptEdits,
    Plan,
    BypassPermissions,
}

/// How text and thinking arrive in a stream: in pieces as they come, or in whole blocks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Granularity {
    Piece,
    Block,
}

/// How a task went.
#[derive(Serialize, ToSchema)]
pub(super) struct TaskResponse {
    success: bool,
    /// The answer, or what went wrong.
    message: String,
    session_id: String,
    cost_usd: Option<f64>,
    duration_ms: Option<u64>,
    /// Relative to the working directory where inside it.
    files_changed: Vec<String>,
    tools_used: Vec<String>,
    num_turns: Option<u64>,
    #[schema(value_type = Option<Object>)]
    usage: Option<Object>,
    permission_denials: Vec<PermissionDenial>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct PermissionDenial {
    tool_name: String,
    tool_use_id: String,
    #[schema(value_type = Object)]
    tool_input: Object,
}

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "session_id": "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a10", "question_id": "…-0", "answer": "OAuth 2" }))]
pub(super) struct AnswerRequest {
    session_id: String,
    question_id: String,
    answer: Answer,
}

/// A label, a list of labels, or free text; `null` cancels the question.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Answer {
    Text(String),
    Labels(Vec<String>),
    Cancel(()),
}

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PermissionAnswer {
    session_id: String,
    request_id: String,
    decision: Decision,
    /// Told to the agent with a denial.
    message: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Decision {
    Allow,
    /// And keep the rules that the agent suggested.
    AllowAlways,
    Deny,
}

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopRequest {
    session_id: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Done {
    success: bool,
    message: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Projects {
    projects: Vec<Project>,
    /// How long Claude Code keeps transcripts, in days.
    retention_days: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Project {
    id: String,
    path: String,
    name: String,
    session_count: u64,
    last_active: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Sessions {
    sessions: Vec<Session>,
    total: u64,
}

/// A conversation of Claude Code's.
#[derive(Serialize, ToSchema)]
pub(super) struct Session {
    id: String,
    title: String,
    project_path: String,
    timestamp: String,
    message_count: u64,
    tools_used: Vec<String>,
    files_changed: Vec<String>,
    /// A program works on it right now.
    live: Option<bool>,
    /// That program, where it can be told.
    driver: Option<SessionDriver>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct SessionDriver {
    pid: u32,
    /// The beginning of its command line.
    command: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Messages {
    session: Session,
    messages: Vec<Message>,
    total: u64,
    /// What to type to go on in a terminal.
    resume_command: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Message {
    role: Role,
    content: Vec<Object>,
    timestamp: String,
    uuid: String,
    #[serde(rename = "parentUuid")]
    parent_uuid: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
}

#[derive(Serialize, ToSchema)]
pub(super) struct SearchResults {
    results: Vec<SearchResult>,
    total: u64,
    /// False when there are more than were counted.
    total_is_exact: bool,
    /// False while the transcripts are still being indexed for the first time: more may be found in a moment.
    is_complete: bool,
}

#[derive(Serialize, ToSchema)]
pub(super) struct SearchResult {
    session_id: String,
    project: String,
    uuid: String,
    role: Role,
    timestamp: String,
    excerpt: String,
    /// The excerpt again, cut where matches begin and end.
    fragments: Vec<Fragment>,
    /// What the session is called.
    title: String,
    /// Returned by a tool, and not typed by anyone.
    is_tool_result: Option<bool>,
    /// What a compaction put in the place of what was said before.
    is_summary: Option<bool>,
    /// Said by this subagent.
    agent_id: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Fragment {
    text: String,
    /// Whether it is what was searched for.
    is_match: bool,
}

/// Tokens and cost, added up.
#[derive(Serialize, ToSchema)]
pub(super) struct UsageReport {
    #[schema(value_type = Object)]
    total: Object,
    days: Vec<Object>,
    projects: Vec<Object>,
    models: Vec<Object>,
    sessions: Vec<Object>,
    models_without_price: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct VaultState {
    enabled: bool,
    /// Whether a round of archiving is at work, or about to be.
    archiving: bool,
    retention_days: u32,
    stored_sessions: u64,
    stored_bytes: u64,
    /// Those that only the vault has any more.
    sessions: Vec<Session>,
    total: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VaultSetting {
    enabled: bool,
}

/// One server-sent event. `data` is JSON.
#[derive(Serialize, ToSchema)]
pub(super) struct ServerSentEvent {
    event: Option<String>,
    id: Option<String>,
    data: String,
}
