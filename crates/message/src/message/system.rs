//! `system` messages: one struct for each `subtype`.

use serde_json::{Map, Value};

use super::body::Usage;
use crate::mode::PermissionMode;
use crate::record::{message_records, message_variants};

message_variants! {
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
        /// Of Tiller: stands in for the result of a turn that the user stopped.
        TurnStopped = "turn_stopped"(TurnStopped),
        /// Of Tiller: stands in for a line that is no message.
        Unreadable = "unreadable"(UnreadableLine),
        /// Of Tiller: something to tell the user about the agent's output.
        Notice = "notice"(Notice),
    }
}

message_records! {
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
        /// What stands in for the messages before, in transcripts.
        summary: Option<String>,
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
        /// Whether it runs beside the conversation.
        is_backgrounded: bool,
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
    /// A turn that the user stopped.
    TurnStopped {
        /// How long the turn took.
        duration_ms: Option<u64>,
        /// The tokens of the turn.
        usage: Option<Usage>,
        /// The cost of the conversation so far, in dollars.
        total_cost_usd: Option<f64>,
    }

    /// A line that is no message.
    UnreadableLine {
        /// `depth`, `not_an_object`, `not_json` or `utf8`.
        reason: String,
        /// How the line begins.
        raw: String,
    }

    /// Something to tell the user about the agent's output.
    Notice {
        /// `warning`.
        level: String,
        /// The sentence.
        message: String,
    }
}
