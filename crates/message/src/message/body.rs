//! What messages say, typed. One struct for each type of message, and for each kind of `system` message.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::content::{Block, Content};
use super::{Kind, Message};
use crate::mode::PermissionMode;
use crate::{records, variants};

variants! {
    /// What a message says.
    Body by "type" {
        /// What the model said.
        Assistant = "assistant"(AssistantMessage),
        /// An echoed prompt, or the results of tools.
        User = "user"(EchoedMessage),
        /// The end of a turn.
        Result = "result"(TurnResult),
        /// Everything that has a subtype.
        System = "system"(SystemMessage),
        /// A piece of a model message while it is being written.
        StreamEvent = "stream_event"(StreamEventMessage),
        /// How long a tool has been running.
        ToolProgress = "tool_progress"(ToolProgress),
        /// Progress of a login.
        AuthStatus = "auth_status"(AuthStatus),
        /// A summary of several tool calls.
        ToolUseSummary = "tool_use_summary"(ToolUseSummary),
        /// The state of the account's rate limits.
        RateLimitEvent = "rate_limit_event"(RateLimitEvent),
        /// A guess of what the user may want to say next.
        PromptSuggestion = "prompt_suggestion"(PromptSuggestion),
        /// The conversation was cleared.
        ConversationReset = "conversation_reset"(ConversationReset),
        /// A slash command was queued, started, finished.
        CommandLifecycle = "command_lifecycle"(CommandLifecycle),
        /// The goal that the session works towards.
        ActiveGoal = "active_goal"(ActiveGoal),
    }
}

impl Message {
    /// The message, typed. Never fails: what is not understood is [`Body::Other`].
    ///
    /// ```
    /// use tiller_message::{Body, Message};
    ///
    /// let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Hello"}]}}"#;
    /// let Body::Assistant(assistant) = Message::parse(line)?.body() else { panic!() };
    /// assert_eq!(assistant.text(), "Hello");
    /// # Ok::<(), tiller_message::ParseError>(())
    /// ```
    pub fn body(&self) -> Body {
        // Only a line that is nested too deeply can't be read here; it is still there as raw JSON.
        let fields: Map<String, Value> = self.decode().unwrap_or_else(|error| {
            tracing::warn!(%error, "a message can't be decoded");
            Map::new()
        });
        fields.into()
    }

    /// The result, if the message is the end of a turn.
    pub fn result(&self) -> Option<TurnResult> {
        if self.kind() != Kind::Result {
            return None;
        }
        match self.body() {
            Body::Result(result) => Some(result),
            _ => None,
        }
    }
}

records! {
    /// What the model said: usually one content block of a model message. Lines with the same `message.id` belong
    /// together.
    AssistantMessage {
        /// The message of the model's API.
        message: ModelMessage,
        /// Set on what a subagent says: the tool call that started it.
        parent_tool_use_id: Option<String>,
        /// What went wrong, if this stands in for an answer: `rate_limit`, `authentication_failed` and so on.
        error: Option<String>,
        /// The kind of subagent that says it.
        subagent_type: Option<String>,
    }

    /// A message of the model's API.
    ModelMessage {
        /// Its id, the same for all lines of one message.
        id: String,
        /// The model.
        model: String,
        /// The blocks.
        content: Vec<Block>,
        /// Why the model stopped.
        stop_reason: Option<String>,
        /// What it used, as of the start of the message: not to be added up, see [`TurnResult::usage`].
        usage: Usage,
    }

    /// Tokens that were used.
    Usage {
        /// Read, and not from the cache.
        input_tokens: u64,
        /// Written.
        output_tokens: u64,
        /// Written to the cache.
        cache_creation_input_tokens: u64,
        /// Read from the cache.
        cache_read_input_tokens: u64,
        /// Calls of the provider's tools.
        server_tool_use: Option<Value>,
        /// The tier that served the request.
        service_tier: Option<String>,
    }

    /// A user message that the CLI reports: an echoed prompt, or the results of tools.
    EchoedMessage {
        /// The message.
        message: UserContent,
        /// Set on what happens inside a subagent: the tool call that started it.
        parent_tool_use_id: Option<String>,
        /// The structured result of a tool, which differs from tool to tool.
        tool_use_result: Value,
        /// The CLI's own words, not the user's.
        is_synthetic = "isSynthetic": bool,
        /// A prompt of ours, sent back.
        is_replay = "isReplay": bool,
        /// When it was sent.
        timestamp: Option<String>,
    }

    /// What a user message contains.
    UserContent {
        /// `user`.
        role: String,
        /// Text or blocks.
        content: Content,
    }

    /// The end of a turn.
    TurnResult {
        /// `success`, `error_during_execution`, `error_max_turns`, `error_max_budget_usd`,
        /// `error_max_structured_output_retries`.
        subtype: String,
        /// Whether the turn failed; may be true for `success` as well.
        is_error: bool,
        /// The final text.
        result: Option<String>,
        /// What went wrong.
        errors: Vec<String>,
        /// How long the turn took.
        duration_ms: u64,
        /// How much of that was spent waiting for the model.
        duration_api_ms: u64,
        /// How often the model was called.
        num_turns: u64,
        /// What the session has cost so far, in dollars.
        total_cost_usd: f64,
        /// The tokens of the turn.
        usage: Usage,
        /// The tokens by model.
        model_usage = "modelUsage": BTreeMap<String, ModelUsage>,
        /// What was denied.
        permission_denials: Vec<PermissionDenial>,
        /// Why the model stopped.
        stop_reason: Option<String>,
        /// The answer in the form that [`Options::output_schema`](crate::Options::output_schema) asked for.
        structured_output: Value,
        /// The session.
        session_id: String,
        /// What started the turn, if it was not the user: a background task that has ended, another session.
        origin: Option<TurnOrigin>,
    }

    /// What started a turn.
    TurnOrigin {
        /// `human`, `task-notification`, `peer` and so on.
        kind: String,
    }

    /// What one model used.
    ModelUsage {
        /// Tokens read, and not from the cache.
        input_tokens = "inputTokens": u64,
        /// Tokens written.
        output_tokens = "outputTokens": u64,
        /// Tokens read from the cache.
        cache_read_input_tokens = "cacheReadInputTokens": u64,
        /// Tokens written to the cache.
        cache_creation_input_tokens = "cacheCreationInputTokens": u64,
        /// Searches of the web.
        web_search_requests = "webSearchRequests": u64,
        /// The cost in dollars.
        cost_usd = "costUSD": f64,
        /// How many tokens fit into its context.
        context_window = "contextWindow": u64,
        /// How many tokens it can write at once.
        max_output_tokens = "maxOutputTokens": u64,
    }

    /// A tool call that was denied.
    PermissionDenial {
        /// The tool.
        tool_name: String,
        /// The call.
        tool_use_id: String,
        /// What it would have been called with.
        tool_input: Value,
    }

    /// A piece of a model message while it is being written.
    StreamEventMessage {
        /// An event of the model's streaming API. Texts are also in [`Message::delta`], for less.
        event: Map<String, Value>,
        /// Set on what a subagent says.
        parent_tool_use_id: Option<String>,
    }

    /// How long a tool has been running.
    ToolProgress {
        /// The call.
        tool_use_id: String,
        /// The tool.
        tool_name: String,
        /// For how long.
        elapsed_time_seconds: f64,
        /// The background task that it runs in.
        task_id: Option<String>,
    }

    /// Progress of a login.
    AuthStatus {
        /// Whether it is going on.
        is_authenticating = "isAuthenticating": bool,
        /// What to show.
        output: Vec<String>,
        /// What went wrong.
        error: Option<String>,
    }

    /// A summary of several tool calls.
    ToolUseSummary {
        /// The summary.
        summary: String,
        /// The calls.
        preceding_tool_use_ids: Vec<String>,
    }

    /// The state of the account's rate limits.
    RateLimitEvent {
        /// The state.
        rate_limit_info: RateLimitInfo,
    }

    /// The state of one rate limit.
    RateLimitInfo {
        /// `allowed`, `allowed_warning` or `rejected`.
        status: String,
        /// When it starts again, in seconds since 1970.
        resets_at = "resetsAt": Option<f64>,
        /// Which limit.
        rate_limit_type = "rateLimitType": Option<String>,
        /// How much of it is used, from 0 to 1.
        utilization: Option<f64>,
    }

    /// A guess of what the user may want to say next.
    PromptSuggestion {
        /// The guess.
        suggestion: String,
    }

    /// The conversation was cleared.
    ConversationReset {
        /// The id from now on.
        new_conversation_id: String,
        /// What cleared it.
        trigger: Option<String>,
    }

    /// A slash command was queued, started, finished.
    CommandLifecycle {
        /// The user message that carried the command.
        command_uuid: String,
        /// `queued`, `started`, `completed` and so on.
        state: String,
    }

    /// The goal that the session works towards.
    ActiveGoal {
        /// The goal.
        value: Value,
    }
}

impl TurnResult {
    /// Whether the turn was the answer to something that the user said. The CLI also starts turns of its own, for
    /// example when a background task has ended.
    pub fn is_answer(&self) -> bool {
        self.origin
            .as_ref()
            .is_none_or(|origin| origin.kind.is_empty() || origin.kind == "human")
    }
}

impl AssistantMessage {
    /// The text of the message.
    pub fn text(&self) -> String {
        self.message.content.iter().filter_map(Block::as_text).collect()
    }
}

variants! {
    /// A `system` message.
    SystemMessage by "subtype" {
        /// A turn begins.
        Init = "init"(Init),
        /// What the CLI is doing.
        Status = "status"(Status),
        /// The conversation was shortened.
        CompactBoundary = "compact_boundary"(CompactBoundary),
        /// A call of the model failed and will be tried again.
        ApiRetry = "api_retry"(ApiRetry),
        /// A control request of ours takes its time.
        ControlRequestProgress = "control_request_progress"(ControlRequestProgress),
        /// Another model steps in for one that refused.
        ModelRefusalFallback = "model_refusal_fallback"(ModelRefusal),
        /// A model refused, and no other steps in.
        ModelRefusalNoFallback = "model_refusal_no_fallback"(ModelRefusal),
        /// What a slash command printed.
        LocalCommandOutput = "local_command_output"(LocalCommandOutput),
        /// A hook was started.
        HookStarted = "hook_started"(HookReport),
        /// A hook prints.
        HookProgress = "hook_progress"(HookReport),
        /// A hook has ended.
        HookResponse = "hook_response"(HookReport),
        /// A plugin is being installed.
        PluginInstall = "plugin_install"(PluginInstall),
        /// A background task was started.
        TaskStarted = "task_started"(TaskReport),
        /// A background task goes on.
        TaskProgress = "task_progress"(TaskReport),
        /// A background task has changed.
        TaskUpdated = "task_updated"(TaskReport),
        /// A background task has ended.
        TaskNotification = "task_notification"(TaskReport),
        /// Which background tasks there are.
        BackgroundTasksChanged = "background_tasks_changed"(BackgroundTasksChanged),
        /// How much the model has thought.
        ThinkingTokens = "thinking_tokens"(ThinkingTokens),
        /// The session is idle, running, or waits for the user.
        SessionStateChanged = "session_state_changed"(SessionStateChanged),
        /// The session has another title.
        SessionTitleChanged = "session_title_changed"(SessionTitleChanged),
        /// The process is about to end.
        WorkerShuttingDown = "worker_shutting_down"(WorkerShuttingDown),
        /// The slash commands have changed.
        CommandsChanged = "commands_changed"(CommandsChanged),
        /// Something to tell the user.
        Notification = "notification"(Notification),
        /// Something to tell the user, as part of the conversation.
        Informational = "informational"(Informational),
        /// Files were stored.
        FilesPersisted = "files_persisted"(FilesPersisted),
        /// Memories were recalled.
        MemoryRecall = "memory_recall"(MemoryRecall),
        /// An elicitation is over.
        ElicitationComplete = "elicitation_complete"(ElicitationComplete),
        /// A tool call was denied.
        PermissionDenied = "permission_denied"(PermissionDenied),
        /// A copy of the transcript could not be written.
        MirrorError = "mirror_error"(MirrorError),
        /// The disk is full: something was not written.
        SessionWritesLost = "session_writes_lost"(SessionWritesLost),
    }
}

records! {
    /// A turn begins. Comes with every turn.
    Init {
        /// The session.
        session_id: String,
        /// The working directory.
        cwd: String,
        /// The model.
        model: String,
        /// The permission mode.
        permission_mode = "permissionMode": PermissionMode,
        /// The tools.
        tools: Vec<String>,
        /// The MCP servers.
        mcp_servers: Vec<McpServerState>,
        /// The slash commands, without the slash.
        slash_commands: Vec<String>,
        /// The subagents.
        agents: Vec<String>,
        /// The skills.
        skills: Vec<String>,
        /// The plugins.
        plugins: Vec<Value>,
        /// How answers are styled.
        output_style: Option<String>,
        /// Where the API key comes from.
        api_key_source = "apiKeySource": Option<String>,
        /// The CLI's version.
        claude_code_version: Option<String>,
        /// What the CLI can do.
        capabilities: Vec<String>,
    }

    /// An MCP server, when a turn begins.
    McpServerState {
        /// Its name.
        name: String,
        /// `connected`, `failed`, `needs-auth`, `pending` or `disabled`.
        status: String,
    }

    /// What the CLI is doing.
    Status {
        /// `compacting`, `requesting`, or nothing special.
        status: Option<String>,
        /// The permission mode from now on.
        permission_mode = "permissionMode": Option<PermissionMode>,
        /// How shortening the conversation ended.
        compact_result: Option<String>,
        /// Why it failed.
        compact_error: Option<String>,
    }

    /// The conversation was shortened.
    CompactBoundary {
        /// How.
        compact_metadata: CompactMetadata,
    }

    /// How the conversation was shortened.
    CompactMetadata {
        /// `manual` or `auto`.
        trigger: String,
        /// Tokens before.
        pre_tokens: u64,
        /// Tokens after.
        post_tokens: Option<u64>,
    }

    /// A call of the model failed and will be tried again.
    ApiRetry {
        /// How often it was tried.
        attempt: u64,
        /// How often it will be tried.
        max_retries: u64,
        /// When it will be tried again.
        retry_delay_ms: f64,
        /// The HTTP status.
        error_status: Option<u16>,
        /// What went wrong.
        error: Value,
    }

    /// A control request of ours takes its time.
    ControlRequestProgress {
        /// The request.
        request_id: String,
        /// `started` or `api_retry`.
        status: String,
    }

    /// A model refused.
    ModelRefusal {
        /// The model.
        original_model: String,
        /// The one that steps in.
        fallback_model: Option<String>,
        /// What to tell the user.
        content: String,
    }

    /// What a slash command printed.
    LocalCommandOutput {
        /// The output.
        content: String,
    }

    /// A running hook.
    HookReport {
        /// The run.
        hook_id: String,
        /// The hook.
        hook_name: String,
        /// The event that started it.
        hook_event: String,
        /// What it printed.
        stdout: String,
        /// What it printed on stderr.
        stderr: String,
        /// Both.
        output: String,
        /// Its exit code.
        exit_code: Option<i64>,
        /// `success`, `error` or `cancelled`.
        outcome: Option<String>,
    }

    /// A plugin is being installed.
    PluginInstall {
        /// `started`, `installed`, `failed` or `completed`.
        status: String,
        /// The plugin.
        name: Option<String>,
        /// What went wrong.
        error: Option<String>,
    }

    /// A background task.
    TaskReport {
        /// The task.
        task_id: String,
        /// The tool call that started it.
        tool_use_id: Option<String>,
        /// What it does.
        description: Option<String>,
        /// What it is.
        task_type: Option<String>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// `completed`, `failed` or `stopped`, when it has ended.
        status: Option<String>,
        /// What came of it, or what it is doing.
        summary: Option<String>,
        /// The file with its output.
        output_file: Option<String>,
        /// The tool that it used last.
        last_tool_name: Option<String>,
        /// What it used.
        usage: Option<TaskUsage>,
        /// What has changed.
        patch: Map<String, Value>,
    }

    /// What a background task used.
    TaskUsage {
        /// Tokens.
        total_tokens: u64,
        /// Tool calls.
        tool_uses: u64,
        /// Time.
        duration_ms: u64,
    }

    /// Which background tasks there are.
    BackgroundTasksChanged {
        /// The tasks.
        tasks: Vec<BackgroundTask>,
    }

    /// A background task that is running.
    BackgroundTask {
        /// The task.
        task_id: String,
        /// What it is.
        task_type: String,
        /// What it does.
        description: String,
    }

    /// How much the model has thought.
    ThinkingTokens {
        /// In all.
        estimated_tokens: u64,
        /// Since the last time.
        estimated_tokens_delta: u64,
    }

    /// The session is idle, running, or waits for the user.
    SessionStateChanged {
        /// `idle`, `running` or `requires_action`.
        state: String,
    }

    /// The session has another title.
    SessionTitleChanged {
        /// The title from now on.
        title: String,
    }

    /// The process is about to end.
    WorkerShuttingDown {
        /// Why.
        reason: String,
    }

    /// The slash commands have changed.
    CommandsChanged {
        /// The commands from now on.
        commands: Vec<SlashCommand>,
    }

    /// A slash command.
    SlashCommand {
        /// Its name, without the slash.
        name: String,
        /// What it does.
        description: String,
        /// What it takes.
        argument_hint = "argumentHint": Value,
    }

    /// Something to tell the user.
    Notification {
        /// What it is about; a later one with the same key takes its place.
        key: String,
        /// What to tell.
        text: String,
        /// `low`, `medium`, `high` or `immediate`.
        priority: String,
    }

    /// Something to tell the user, as part of the conversation.
    Informational {
        /// What to tell.
        content: String,
        /// `info`, `notice`, `suggestion` or `warning`.
        level: String,
        /// The tool call that it is about.
        tool_use_id: Option<String>,
    }

    /// Files were stored.
    FilesPersisted {
        /// Those that were.
        files: Vec<Value>,
        /// Those that were not.
        failed: Vec<Value>,
    }

    /// Memories were recalled.
    MemoryRecall {
        /// How.
        mode: String,
        /// The memories.
        memories: Vec<Value>,
    }

    /// An elicitation is over.
    ElicitationComplete {
        /// The server that asked.
        mcp_server_name: String,
        /// The server's id of the question.
        elicitation_id: String,
    }

    /// A tool call was denied.
    PermissionDenied {
        /// The tool.
        tool_name: String,
        /// The call.
        tool_use_id: String,
        /// What the model is told.
        message: String,
        /// Why.
        decision_reason: Option<String>,
    }

    /// A copy of the transcript could not be written.
    MirrorError {
        /// Why.
        error: String,
    }

    /// The disk is full: something was not written.
    SessionWritesLost {
        /// The system's name of the error.
        error_code: String,
        /// What was lost.
        lost: Vec<String>,
    }
}
