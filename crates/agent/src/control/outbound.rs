//! What we ask of the CLI: each operation is a type that knows its name and its answer.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use tiller_message::records;
use tiller_message::{PermissionMode, SlashCommand};

/// An operation of the control protocol. Send it with [`Link::request`](crate::link::Link::request).
///
/// An operation that this crate does not know is a type of the caller's:
///
/// ```
/// #[derive(serde::Serialize)]
/// struct MakeTea { sugar: bool }
///
/// impl tiller_agent::control::ControlRequest for MakeTea {
///     const SUBTYPE: &'static str = "make_tea";
///     type Answer = tiller_agent::control::Fields;
/// }
/// ```
pub trait ControlRequest: Serialize + Send + Sync {
    /// The operation's name on the wire.
    const SUBTYPE: &'static str;
    /// What the CLI answers.
    type Answer: DeserializeOwned;
}

/// An answer of which nothing is known but that it is an object, or nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fields(pub Map<String, Value>);

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $subtype:literal { $($(#[$field_doc:meta])* $field:ident : $kind:ty,)* } -> $answer:ty;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, Serialize)]
            pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

            impl ControlRequest for $name {
                const SUBTYPE: &'static str = $subtype;
                type Answer = $answer;
            }
        )*
    };
}

operations! {
    /// The first request: registers hooks and asks what this CLI has to offer.
    Initialize = "initialize" {
        /// Hooks by event.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        hooks: BTreeMap<String, Vec<HookMatcher>>,
        /// The names of MCP servers inside this process.
        #[serde(rename = "sdkMcpServers", skip_serializing_if = "Vec::is_empty")]
        sdk_mcp_servers: Vec<String>,
        /// Other fields that this version of the CLI understands.
        #[serde(flatten)]
        extra: Map<String, Value>,
    } -> Initialized;

    /// Stops the turn. It ends with a result whose subtype is `error_during_execution`.
    Interrupt = "interrupt" {} -> Fields;

    /// Uses another model from now on; `None` is the default one.
    SetModel = "set_model" {
        /// The model: an alias such as `sonnet`, or a full name.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    } -> Fields;

    /// Switches the permission mode.
    SetPermissionMode = "set_permission_mode" {
        /// The permission mode to switch to.
        mode: PermissionMode,
    } -> Fields;

    /// Limits thinking; `None` lifts the limit.
    SetMaxThinkingTokens = "set_max_thinking_tokens" {
        /// At most this many tokens of thinking.
        max_thinking_tokens: Option<u32>,
    } -> Fields;

    /// The state of the MCP servers.
    McpStatus = "mcp_status" {} -> McpStatusAnswer;

    /// Connects to an MCP server again.
    McpReconnect = "mcp_reconnect" {
        /// The name under which the MCP server is configured.
        #[serde(rename = "serverName")]
        server_name: String,
    } -> Fields;

    /// Switches an MCP server on or off.
    McpToggle = "mcp_toggle" {
        /// The name under which the MCP server is configured.
        #[serde(rename = "serverName")]
        server_name: String,
        /// Whether it is on.
        enabled: bool,
    } -> Fields;

    /// Replaces the MCP servers that were added by control requests.
    McpSetServers = "mcp_set_servers" {
        /// The servers by name.
        servers: BTreeMap<String, crate::options::McpServer>,
    } -> McpSetServersAnswer;

    /// Calls a tool of an MCP server, without the model.
    McpCall = "mcp_call" {
        /// The tool, as `mcp__SERVER__TOOL`.
        tool: String,
        /// What it is called with.
        arguments: Map<String, Value>,
    } -> Fields;

    /// Reads a resource of an MCP server.
    McpReadResource = "mcp_read_resource" {
        /// The name under which the MCP server is configured.
        #[serde(rename = "serverName")]
        server_name: String,
        /// The resource's address, as the server lists it.
        uri: String,
    } -> Fields;

    /// Sends a JSON-RPC message of an MCP server inside this process to the CLI.
    McpMessage = "mcp_message" {
        /// The name under which the MCP server is configured.
        server_name: String,
        /// A JSON-RPC message.
        message: Value,
    } -> Fields;

    /// What fills the model's context.
    GetContextUsage = "get_context_usage" {} -> ContextUsage;

    /// What the session has cost and how much of the account's limits is used.
    GetUsage = "get_usage" {
        /// Leaves out what takes a look at all recent transcripts.
        skip_behaviors: bool,
    } -> UsageReport;

    /// What the session has cost, in words.
    GetSessionCost = "get_session_cost" {} -> Fields;

    /// The settings in force, and where they come from.
    GetSettings = "get_settings" {} -> Fields;

    /// The version of the CLI.
    GetBinaryVersion = "get_binary_version" {} -> Fields;

    /// The models that can be chosen.
    ListModels = "list_models" {} -> ModelList;

    /// The permission rules in force.
    ListPermissionRules = "list_permission_rules" {} -> Fields;

    /// The hooks in force.
    GetHooksListing = "get_hooks_listing" {} -> HooksListing;

    /// Files to mention, for what was typed after an `@`.
    FileSuggestions = "file_suggestions" {
        /// What was typed.
        query: String,
    } -> FileSuggestionList;

    /// Restores the files to what they were when a user message was sent. Needs
    /// [`Options::file_checkpointing`](crate::Options::file_checkpointing).
    RewindFiles = "rewind_files" {
        /// The uuid of the user message.
        user_message_id: String,
        /// Only tells what would change.
        dry_run: bool,
    } -> Rewound;

    /// Tells the CLI of a repository that was added to the working directories.
    RegisterRepoRoot = "register_repo_root" {
        /// The repository's folder.
        directory: String,
    } -> Fields;

    /// Gives the session a title.
    RenameSession = "rename_session" {
        /// The title to show for the session.
        title: String,
    } -> Fields;

    /// Ends a background task.
    StopTask = "stop_task" {
        /// The background task's id, from a `task_started` message.
        task_id: String,
    } -> Fields;

    /// Moves running tools to the background: the one that is named, or all.
    BackgroundTasks = "background_tasks" {
        /// The tool call.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<String>,
    } -> Fields;

    /// What a background task has printed.
    GetTaskOutput = "get_task_output" {
        /// The background task's id, from a `task_started` message.
        task_id: String,
    } -> TaskOutput;

    /// Takes back a user message that is still queued.
    CancelAsyncMessage = "cancel_async_message" {
        /// The message's uuid.
        message_uuid: String,
    } -> Fields;

    /// Reads a file as the agent would.
    ReadFile = "read_file" {
        /// The file's path, absolute or from the working directory.
        path: String,
    } -> Fields;

    /// Reads the skills from disk again.
    ReloadSkills = "reload_skills" {} -> Fields;

    /// Reads the plugins from disk again.
    ReloadPlugins = "reload_plugins" {} -> Fields;

    /// Reads the output styles from disk again.
    ReloadOutputStyles = "reload_output_styles" {} -> Fields;

    /// Changes a settings file.
    UpdateSettings = "update_settings" {
        /// The fields of the request, which differ from version to version.
        #[serde(flatten)]
        fields: Map<String, Value>,
    } -> Fields;

    /// Changes the settings that the command line gave.
    ApplyFlagSettings = "apply_flag_settings" {
        /// Settings in the form of `settings.json`.
        settings: Map<String, Value>,
    } -> Fields;
}

impl SetModel {
    /// Another model.
    pub fn to(model: impl Into<String>) -> Self {
        Self {
            model: Some(model.into()),
        }
    }
}

/// Which hooks are due for what.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookMatcher {
    /// Which tools (or what else the event is about); everything if `None`.
    pub matcher: Option<String>,
    /// The ids that come back with a [`HookRequest`](super::HookRequest).
    pub hook_callback_ids: Vec<String>,
    /// Seconds after which the CLI goes on without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

records! {
    /// What this CLI has to offer.
    Initialized {
        /// The slash commands.
        commands: Vec<SlashCommand>,
        /// The models that can be chosen.
        models: Vec<ModelInfo>,
        /// The subagents.
        agents: Vec<Value>,
        /// Who is logged in.
        account: Option<Value>,
        /// How answers are styled.
        output_style: Option<String>,
        /// How answers could be styled.
        available_output_styles: Vec<String>,
        /// The CLI's version; newer versions tell it.
        claude_code_version: Option<String>,
    }

    /// A model that can be chosen.
    ModelInfo {
        /// What to give to [`SetModel`].
        value: String,
        /// Its name for people.
        display_name = "displayName": String,
        /// What it is good for.
        description: String,
        /// How hard it can be asked to try.
        supported_effort_levels = "supportedEffortLevels": Vec<String>,
    }

    /// The models that can be chosen.
    ModelList {
        /// The models, in the CLI's order.
        models: Vec<ModelInfo>,
    }

    /// The state of the MCP servers.
    McpStatusAnswer {
        /// The MCP servers, of the user's settings as well as of the options.
        mcp_servers = "mcpServers": Vec<McpServerStatus>,
    }

    /// The state of one MCP server.
    McpServerStatus {
        /// The name under which the server is configured.
        name: String,
        /// `connected`, `failed`, `needs-auth`, `pending` or `disabled`.
        status: String,
        /// What is wrong with it.
        error: Option<String>,
        /// The server's tools: name, description, annotations.
        tools: Vec<Value>,
    }

    /// What became of the MCP servers.
    McpSetServersAnswer {
        /// Servers that were added.
        added: Vec<String>,
        /// Servers that were removed.
        removed: Vec<String>,
        /// What went wrong, by server.
        errors: BTreeMap<String, String>,
    }

    /// What fills the model's context.
    ContextUsage {
        /// Tokens in use.
        total_tokens = "totalTokens": u64,
        /// Tokens that can be used.
        max_tokens = "maxTokens": u64,
        /// How full it is, from 0 to 100.
        percentage: f64,
        /// The model whose context it is.
        model: String,
        /// What the tokens are used for.
        categories: Vec<ContextCategory>,
    }

    /// One use of the context.
    ContextCategory {
        /// What the tokens are used for, such as `System prompt` or `Messages`.
        name: String,
        /// How much of it there is.
        tokens: u64,
    }

    /// What was used and spent.
    UsageReport {
        /// The session's own.
        session: SessionUsage,
        /// The account's plan.
        subscription_type: Option<String>,
        /// Whether the limits are known.
        rate_limits_available: bool,
        /// The account's limits.
        rate_limits: Option<Value>,
    }

    /// What a session has used and spent.
    SessionUsage {
        /// The cost in dollars.
        total_cost_usd: f64,
        /// Time spent waiting for the model.
        total_api_duration_ms: f64,
        /// Time since the session was started.
        total_duration_ms: f64,
        /// Usage by model.
        model_usage: BTreeMap<String, Value>,
    }

    /// The hooks in force.
    HooksListing {
        /// The events that have hooks.
        events: Vec<Value>,
        /// All events that there are.
        event_catalog = "eventCatalog": Vec<Value>,
        /// The hooks, with their event, matcher and source.
        hooks: Vec<Value>,
        /// What an administrator has decided about hooks.
        policy: Option<Value>,
    }

    /// Files to mention.
    FileSuggestionList {
        /// The files, best first.
        suggestions: Vec<FileSuggestion>,
    }

    /// A file to mention.
    FileSuggestion {
        /// Its path, relative to the working directory.
        path: String,
    }

    /// What rewinding changed, or would change.
    Rewound {
        /// Whether it can be done.
        can_rewind = "canRewind": bool,
        /// Why not.
        error: Option<String>,
        /// The paths of the files that are restored.
        files_changed = "filesChanged": Vec<String>,
        /// Lines that come back.
        insertions: Option<u64>,
        /// Lines that go.
        deletions: Option<u64>,
    }

    /// What a background task has printed.
    TaskOutput {
        /// The end of it.
        output: String,
        /// How much there was in all.
        total_bytes: u64,
        /// Whether something is missing.
        truncated: bool,
    }
}
