//! What a run of the agent should be like.

mod parts;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use tiller_message::PermissionMode;
use tiller_process::StderrCallback;

pub use parts::*;

/// What a run of the agent should be like. Everything has a default; see the methods for what can be changed.
///
/// ```
/// use tiller_agent::{Options, PermissionMode};
///
/// let options = Options::new()
///     .cwd("/srv/project")
///     .model("sonnet")
///     .permission_mode(PermissionMode::AcceptEdits)
///     .allowed_tools(["Read", "Bash(git *)"])
///     .max_turns(20);
/// ```
#[derive(Clone)]
#[doc(alias = "ClaudeAgentOptions")]
pub struct Options {
    pub(crate) executable: Option<PathBuf>,
    pub(crate) claude_home: Option<PathBuf>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) exact_cwd: bool,
    pub(crate) confinement: Option<tiller_process::Sandbox>,
    pub(crate) sandbox: Option<SandboxSettings>,
    pub(crate) env: Vec<(OsString, Option<OsString>)>,
    pub(crate) env_remove_prefixes: Vec<String>,
    pub(crate) conversation: Conversation,
    pub(crate) fork: bool,
    pub(crate) resume_at: Option<String>,
    pub(crate) persist: bool,
    pub(crate) title: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) fallback_model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) betas: Vec<String>,
    pub(crate) permission_mode: Option<PermissionMode>,
    pub(crate) allow_bypass: bool,
    pub(crate) ask: bool,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) allowed_tools: Vec<String>,
    pub(crate) disallowed_tools: Vec<String>,
    pub(crate) add_dirs: Vec<PathBuf>,
    pub(crate) system_prompt: SystemPrompt,
    pub(crate) max_turns: Option<u32>,
    pub(crate) max_budget_usd: Option<f64>,
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    pub(crate) strict_mcp: bool,
    pub(crate) agent: Option<String>,
    pub(crate) agents: BTreeMap<String, AgentDefinition>,
    pub(crate) plugin_dirs: Vec<PathBuf>,
    pub(crate) settings: Option<String>,
    pub(crate) setting_sources: Option<Vec<String>>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) partial_messages: bool,
    pub(crate) hook_events: bool,
    pub(crate) replay_user_messages: bool,
    pub(crate) prompt_suggestions: bool,
    pub(crate) file_checkpointing: bool,
    pub(crate) todos: bool,
    #[cfg(feature = "history")]
    pub(crate) session_store: Option<Arc<dyn crate::sessions::SessionStore>>,
    pub(crate) extra_args: Vec<(String, Option<String>)>,
    pub(crate) on_stderr: Option<StderrCallback>,
    pub(crate) grace: Grace,
    pub(crate) request_timeout: Duration,
    pub(crate) inbox_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            executable: None,
            claude_home: None,
            cwd: None,
            exact_cwd: false,
            confinement: None,
            sandbox: None,
            env: Vec::new(),
            env_remove_prefixes: Vec::new(),
            conversation: Conversation::New,
            fork: false,
            resume_at: None,
            persist: true,
            title: None,
            model: None,
            fallback_model: None,
            effort: None,
            thinking: None,
            betas: Vec::new(),
            permission_mode: None,
            allow_bypass: false,
            ask: true,
            tools: None,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            add_dirs: Vec::new(),
            system_prompt: SystemPrompt::ClaudeCode,
            max_turns: None,
            max_budget_usd: None,
            mcp_servers: BTreeMap::new(),
            strict_mcp: false,
            agent: None,
            agents: BTreeMap::new(),
            plugin_dirs: Vec::new(),
            settings: None,
            setting_sources: None,
            output_schema: None,
            partial_messages: false,
            hook_events: false,
            replay_user_messages: false,
            prompt_suggestions: false,
            file_checkpointing: false,
            todos: true,
            #[cfg(feature = "history")]
            session_store: None,
            extra_args: Vec::new(),
            on_stderr: None,
            grace: Grace::default(),
            request_timeout: Duration::from_secs(60),
            // Two lines of the greatest length: one that waits and one that is being looked at.
            inbox_bytes: 2 * tiller_process::MAX_LINE,
        }
    }
}

impl Options {
    /// A run like a plain `claude`, in the current folder.
    pub fn new() -> Self {
        Self::default()
    }

    /// The executable to start, instead of searching for it. A `.js` file is run with Node.js.
    #[doc(alias = "cli_path")]
    #[doc(alias = "pathToClaudeCodeExecutable")]
    pub fn executable(mut self, path: impl Into<PathBuf>) -> Self {
        self.executable = Some(path.into());
        self
    }

    /// Where the CLI keeps its settings and transcripts, instead of `~/.claude`.
    pub fn claude_home(mut self, path: impl Into<PathBuf>) -> Self {
        self.claude_home = Some(path.into());
        self
    }

    /// The folder to work in.
    pub fn cwd(mut self, path: impl Into<PathBuf>) -> Self {
        self.cwd = Some(path.into());
        self
    }

    /// The folder to work in was checked under its path, in which nothing is a symbolic link: if something is by the time the
    /// agent is started, it is not started.
    pub fn exact_cwd(mut self, exact: bool) -> Self {
        self.exact_cwd = exact;
        self
    }

    /// The agent, and what it starts, can write to some folders only. For programs that start the process themselves:
    /// the launch must go through a [`Shield`](tiller_process::Shield). See [`Options::sandbox`] for the CLI's own sandbox.
    pub fn confine(mut self, sandbox: tiller_process::Sandbox) -> Self {
        self.confinement = Some(sandbox);
        self
    }

    /// Has the CLI run shell commands in its own sandbox. Goes on top of [`Options::settings`].
    ///
    /// ```
    /// use tiller_agent::Options;
    /// use tiller_agent::options::SandboxSettings;
    ///
    /// let options = Options::new().sandbox(SandboxSettings {
    ///     enabled: true,
    ///     excluded_commands: vec!["docker".to_owned()],
    ///     ..SandboxSettings::default()
    /// });
    /// ```
    pub fn sandbox(mut self, sandbox: SandboxSettings) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Whether the agent has a to-do list. It does, unless said otherwise: the tool is `TodoWrite`, with every version of
    /// the CLI, and [`Digest::todos`](crate::Digest::todos) has the list. (2.1.325 offers no to-do tool by itself.)
    /// `false` leaves it to the CLI; so does [`Options::tools`] with a list in which `TodoWrite` is missing. The
    /// environment variables `CLAUDE_CODE_ENABLE_TODO_TOOLS` and `CLAUDE_CODE_ENABLE_TASKS`, if set, win.
    pub fn todos(mut self, todos: bool) -> Self {
        self.todos = todos;
        self
    }

    /// Sets an environment variable for the agent. It goes before what it inherits and what its settings say.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Sets several environment variables.
    ///
    /// ```
    /// use tiller_agent::Options;
    ///
    /// let options = Options::new().envs([("ANTHROPIC_BASE_URL", "http://127.0.0.1:8000"), ("NO_COLOR", "1")]);
    /// ```
    pub fn envs<N: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        for (name, value) in variables {
            self.env.push((name.into(), Some(value.into())));
        }
        self
    }

    /// Keeps an environment variable from the agent.
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// Keeps all inherited environment variables from the agent whose name begins so.
    pub fn env_remove_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.env_remove_prefixes.push(prefix.into());
        self
    }

    /// Gives a new conversation this id, which must be a UUID.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.conversation = Conversation::NewWithId(id.into());
        self
    }

    /// Goes on with a conversation. It must have been held in the same working directory.
    pub fn resume(mut self, id: impl Into<String>) -> Self {
        self.conversation = Conversation::Resume(id.into());
        self
    }

    /// Goes on with the newest conversation of the working directory.
    #[doc(alias = "continue_conversation")]
    #[doc(alias = "continue")]
    pub fn continue_latest(mut self) -> Self {
        self.conversation = Conversation::Latest;
        self
    }

    /// Which conversation to hold.
    pub fn conversation(mut self, conversation: Conversation) -> Self {
        self.conversation = conversation;
        self
    }

    /// With a resumed conversation: goes on in a copy of it, with a new id.
    #[doc(alias = "fork_session")]
    #[doc(alias = "forkSession")]
    pub fn fork(mut self, fork: bool) -> Self {
        self.fork = fork;
        self
    }

    /// With a resumed conversation: forgets what came after the message with this uuid.
    #[doc(alias = "resume_session_at")]
    #[doc(alias = "resumeSessionAt")]
    pub fn resume_at(mut self, message_uuid: impl Into<String>) -> Self {
        self.resume_at = Some(message_uuid.into());
        self
    }

    /// Whether the conversation is written to disk, which resuming needs. It is, unless said otherwise.
    #[doc(alias = "persistSession")]
    pub fn persist(mut self, persist: bool) -> Self {
        self.persist = persist;
        self
    }

    /// The conversation's title.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// The model: an alias such as `sonnet`, or a full name.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// The model to use while the other is overloaded.
    #[doc(alias = "fallbackModel")]
    pub fn fallback_model(mut self, model: impl Into<String>) -> Self {
        self.fallback_model = Some(model.into());
        self
    }

    /// How hard the model tries: `low`, `medium`, `high` and other levels that the model offers.
    pub fn effort(mut self, effort: impl Into<String>) -> Self {
        self.effort = Some(effort.into());
        self
    }

    /// How much the model thinks before it answers.
    pub fn thinking(mut self, thinking: Thinking) -> Self {
        self.thinking = Some(thinking);
        self
    }

    /// Beta features of the model's API.
    pub fn betas(mut self, betas: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.betas = betas.into_iter().map(Into::into).collect();
        self
    }

    /// When the agent asks before it uses a tool.
    #[doc(alias = "permissionMode")]
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.permission_mode = Some(mode);
        self
    }

    /// Lets the permission mode be switched to `bypassPermissions` later. As root, the CLI also wants `IS_SANDBOX=1`
    /// in its environment.
    #[doc(alias = "allowDangerouslySkipPermissions")]
    pub fn allow_bypass_permissions(mut self, allow: bool) -> Self {
        self.allow_bypass = allow;
        self
    }

    /// Whether the agent puts its questions to us. It does, unless said otherwise; else it denies itself whatever
    /// would need asking.
    pub fn ask_permission(mut self, ask: bool) -> Self {
        self.ask = ask;
        self
    }

    /// The tools that exist for the agent; an empty list takes all away.
    pub fn tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = Some(tools.into_iter().map(Into::into).collect());
        self
    }

    /// Tools that need no asking, as names or rules such as `Bash(git *)`.
    #[doc(alias = "allowedTools")]
    pub fn allowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Tools that are denied, as names or rules.
    #[doc(alias = "disallowedTools")]
    pub fn disallowed_tools(mut self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.disallowed_tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// One more folder that the agent may work in.
    #[doc(alias = "add_dirs")]
    #[doc(alias = "additionalDirectories")]
    pub fn add_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.add_dirs.push(path.into());
        self
    }

    /// What the agent knows of itself.
    #[doc(alias = "systemPrompt")]
    pub fn system_prompt(mut self, prompt: SystemPrompt) -> Self {
        self.system_prompt = prompt;
        self
    }

    /// Ends a turn after this many calls of the model.
    #[doc(alias = "maxTurns")]
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(turns);
        self
    }

    /// Ends a turn when it has cost this much.
    #[doc(alias = "maxBudgetUsd")]
    pub fn max_budget_usd(mut self, budget: f64) -> Self {
        self.max_budget_usd = Some(budget);
        self
    }

    /// Adds an MCP server.
    #[doc(alias = "mcp_servers")]
    #[doc(alias = "mcpServers")]
    pub fn mcp_server(mut self, name: impl Into<String>, server: McpServer) -> Self {
        self.mcp_servers.insert(name.into(), server);
        self
    }

    /// Uses only the MCP servers that were added here, none of the user's.
    #[doc(alias = "strict_mcp_config")]
    #[doc(alias = "strictMcpConfig")]
    pub fn strict_mcp(mut self, strict: bool) -> Self {
        self.strict_mcp = strict;
        self
    }

    /// Runs as this subagent.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// Adds a subagent.
    #[doc(alias = "agents")]
    pub fn define_agent(mut self, name: impl Into<String>, definition: AgentDefinition) -> Self {
        self.agents.insert(name.into(), definition);
        self
    }

    /// Loads a plugin from a folder.
    #[doc(alias = "plugins")]
    pub fn plugin_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.plugin_dirs.push(path.into());
        self
    }

    /// Settings on top of the user's: JSON, or the path of a file.
    pub fn settings(mut self, settings: impl Into<String>) -> Self {
        self.settings = Some(settings.into());
        self
    }

    /// Which settings files count: `user`, `project`, `local`.
    #[doc(alias = "settingSources")]
    pub fn setting_sources(mut self, sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.setting_sources = Some(sources.into_iter().map(Into::into).collect());
        self
    }

    /// Wants the final answer as JSON of this schema.
    #[doc(alias = "output_format")]
    #[doc(alias = "outputFormat")]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Whether messages are also sent piece by piece while the model writes them.
    #[doc(alias = "include_partial_messages")]
    #[doc(alias = "includePartialMessages")]
    pub fn partial_messages(mut self, partial: bool) -> Self {
        self.partial_messages = partial;
        self
    }

    /// Whether running hooks are reported.
    #[doc(alias = "include_hook_events")]
    pub fn hook_events(mut self, report: bool) -> Self {
        self.hook_events = report;
        self
    }

    /// Whether the CLI sends each user message back, with its uuid, once it has taken it.
    pub fn replay_user_messages(mut self, replay: bool) -> Self {
        self.replay_user_messages = replay;
        self
    }

    /// Whether the CLI guesses what the user may want to say next.
    pub fn prompt_suggestions(mut self, suggest: bool) -> Self {
        self.prompt_suggestions = suggest;
        self
    }

    /// Whether the CLI remembers files before it changes them, so that they can be rewound.
    #[doc(alias = "enable_file_checkpointing")]
    #[doc(alias = "enableFileCheckpointing")]
    pub fn file_checkpointing(mut self, enabled: bool) -> Self {
        self.file_checkpointing = enabled;
        self
    }

    /// Keeps a copy of the conversation in a store, and fetches a conversation that is resumed and not on disk from there.
    /// For [`query`](crate::query()) and [`Client`](crate::Client); needs a CLI that knows `--session-mirror` (2.1.113 and
    /// 2.1.325 do).
    #[cfg(feature = "history")]
    pub fn session_store(mut self, store: impl crate::sessions::SessionStore) -> Self {
        self.session_store = Some(Arc::new(store));
        self
    }

    /// An argument for the CLI that this crate has no method for: `--name` or `--name=value`.
    #[doc(alias = "extra_args")]
    #[doc(alias = "extraArgs")]
    pub fn extra_arg(mut self, name: impl Into<String>, value: Option<String>) -> Self {
        self.extra_args.push((name.into(), value));
        self
    }

    /// Called with every line of the CLI's stderr.
    #[doc(alias = "stderr")]
    pub fn on_stderr(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(callback));
        self
    }

    /// How long each stage of ending the agent may take.
    pub fn grace(mut self, grace: Grace) -> Self {
        self.grace = grace;
        self
    }

    /// How long the CLI may take to answer a control request.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// How many bytes of messages may wait for their reader before the CLI has to wait.
    pub fn inbox_bytes(mut self, bytes: usize) -> Self {
        self.inbox_bytes = bytes;
        self
    }

    /// The conversation that this run resumes, by id; `None` for a new one.
    pub fn resumed_id(&self) -> Option<&str> {
        match &self.conversation {
            Conversation::Resume(id) => Some(id),
            Conversation::New | Conversation::NewWithId(_) | Conversation::Latest => None,
        }
    }
}

impl fmt::Debug for Options {
    /// Leaves out values of the environment and settings: they hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("executable", &self.executable)
            .field("cwd", &self.cwd)
            .field("conversation", &self.conversation)
            .field("fork", &self.fork)
            .field("model", &self.model)
            .field("permission_mode", &self.permission_mode)
            .finish_non_exhaustive()
    }
}
