//! Hooks: functions that the CLI calls when something happens, and whose answer it follows.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use tiller_message::{records, variants};

/// What a hook waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HookEvent {
    /// A tool is about to be used.
    PreToolUse,
    /// A tool was used.
    PostToolUse,
    /// A tool was used, and failed.
    PostToolUseFailure,
    /// The user has said something.
    UserPromptSubmit,
    /// A session begins.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// The agent is about to stop.
    Stop,
    /// A subagent begins.
    SubagentStart,
    /// A subagent is about to stop.
    SubagentStop,
    /// The conversation is about to be shortened.
    PreCompact,
    /// The conversation was shortened.
    PostCompact,
    /// The user is to be told something.
    Notification,
    /// The user is to be asked for permission.
    PermissionRequest,
    /// Permission was denied.
    PermissionDenied,
    /// An event that has no name here.
    Other(String),
}

impl HookEvent {
    /// The CLI's name of the event.
    pub fn as_str(&self) -> &str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::Notification => "Notification",
            Self::PermissionRequest => "PermissionRequest",
            Self::PermissionDenied => "PermissionDenied",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

records! {
    /// What has happened. Which fields are there depends on the event.
    HookInput {
        /// The event's name, as [`HookEvent::as_str`] has it.
        hook_event_name: String,
        /// The session's id, with which it can be resumed.
        session_id: String,
        /// The session's transcript.
        transcript_path: String,
        /// The working directory.
        cwd: String,
        /// The permission mode.
        permission_mode: Option<String>,
        /// The tool's name, such as `Bash` or `mcp__SERVER__TOOL`.
        tool_name: Option<String>,
        /// What the tool is called with.
        tool_input: Value,
        /// What the tool returned.
        tool_response: Value,
        /// The tool call.
        tool_use_id: Option<String>,
        /// What the user has said.
        prompt: Option<String>,
    }
}

records! {
    /// A tool is about to be used.
    PreToolUseInput {
        /// The tool's name, such as `Bash` or `mcp__SERVER__TOOL`.
        tool_name: String,
        /// What the tool will be called with.
        tool_input: Value,
        /// The id of the `tool_use` block.
        tool_use_id: Option<String>,
    }

    /// A tool was used.
    PostToolUseInput {
        /// The tool's name, such as `Bash` or `mcp__SERVER__TOOL`.
        tool_name: String,
        /// What the tool was called with.
        tool_input: Value,
        /// What the tool returned, in its own structure.
        tool_response: Value,
        /// The id of the `tool_use` block.
        tool_use_id: Option<String>,
    }

    /// A tool was used, and failed.
    PostToolUseFailureInput {
        /// The tool's name, such as `Bash` or `mcp__SERVER__TOOL`.
        tool_name: String,
        /// What the tool was called with.
        tool_input: Value,
        /// What went wrong.
        error: String,
        /// Whether the user has interrupted it.
        is_interrupt: bool,
        /// The id of the `tool_use` block.
        tool_use_id: Option<String>,
    }

    /// The user has sent a prompt.
    UserPromptSubmitInput {
        /// The text of the prompt.
        prompt: String,
    }

    /// A session begins.
    SessionStartInput {
        /// `startup`, `resume`, `clear` or `compact`.
        source: String,
    }

    /// A session ends.
    SessionEndInput {
        /// Why: `clear`, `logout`, `prompt_input_exit`, `other`.
        reason: String,
    }

    /// The agent, or a subagent, is about to stop.
    StopInput {
        /// Whether a hook has kept the agent from stopping before: a hook that does so again may never end.
        stop_hook_active: bool,
        /// What the agent said last; newer versions tell.
        last_assistant_message: Option<String>,
        /// The subagent, if it is one.
        agent_id: Option<String>,
        /// The kind of subagent.
        agent_type: Option<String>,
    }

    /// A subagent begins.
    SubagentStartInput {
        /// The subagent.
        agent_id: String,
        /// The kind of subagent.
        agent_type: String,
    }

    /// The conversation is about to be compacted, or was.
    CompactInput {
        /// `manual` or `auto`.
        trigger: String,
        /// What the user said about how to do it.
        custom_instructions: Option<String>,
    }

    /// The user is to be told something.
    NotificationInput {
        /// The text to show to the user.
        message: String,
        /// The notification's title.
        title: Option<String>,
        /// The kind of notification.
        notification_type: Option<String>,
    }

    /// The user is to be asked for permission, or permission was denied.
    PermissionInput {
        /// The tool's name, such as `Bash` or `mcp__SERVER__TOOL`.
        tool_name: String,
        /// What the tool would be called with.
        tool_input: Value,
        /// Changes of the rules that would make the question unnecessary.
        permission_suggestions: Value,
    }
}

variants! {
    /// What has happened, with the fields of the event. See [`HookInput::detail`].
    HookDetail by "hook_event_name" {
        /// A tool is about to be used.
        PreToolUse = "PreToolUse"(PreToolUseInput),
        /// A tool was used.
        PostToolUse = "PostToolUse"(PostToolUseInput),
        /// A tool was used, and failed.
        PostToolUseFailure = "PostToolUseFailure"(PostToolUseFailureInput),
        /// The user has sent a prompt.
        UserPromptSubmit = "UserPromptSubmit"(UserPromptSubmitInput),
        /// A session begins.
        SessionStart = "SessionStart"(SessionStartInput),
        /// A session ends.
        SessionEnd = "SessionEnd"(SessionEndInput),
        /// The agent is about to stop.
        Stop = "Stop"(StopInput),
        /// A subagent begins.
        SubagentStart = "SubagentStart"(SubagentStartInput),
        /// A subagent is about to stop.
        SubagentStop = "SubagentStop"(StopInput),
        /// The conversation is about to be compacted.
        PreCompact = "PreCompact"(CompactInput),
        /// The conversation was compacted.
        PostCompact = "PostCompact"(CompactInput),
        /// The user is to be told something.
        Notification = "Notification"(NotificationInput),
        /// The user is to be asked for permission.
        PermissionRequest = "PermissionRequest"(PermissionInput),
        /// Permission was denied.
        PermissionDenied = "PermissionDenied"(PermissionInput),
    }
}

impl HookInput {
    /// The fields of the event, typed.
    ///
    /// ```
    /// use tiller_agent::hooks::{HookDetail, HookInput, HookOutput};
    ///
    /// async fn on_stop(input: HookInput) -> HookOutput {
    ///     match input.detail() {
    ///         HookDetail::Stop(stop) if !stop.stop_hook_active => HookOutput::block("Run the tests first."),
    ///         _ => HookOutput::proceed(),
    ///     }
    /// }
    /// ```
    pub fn detail(&self) -> HookDetail {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields.into(),
            // Made from an object, it is one.
            _ => HookDetail::default(),
        }
    }
}

/// What a hook wants done about it.
///
/// ```
/// use tiller_agent::HookOutput;
///
/// let nothing = HookOutput::proceed();
/// let veto = HookOutput::deny_tool("Not on a Sunday.");
/// let hint = HookOutput::proceed().with_context("The build is broken at the moment.");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookOutput {
    fields: Map<String, Value>,
    specific: Map<String, Value>,
}

impl HookOutput {
    /// Nothing: everything goes on.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// The agent stops.
    pub fn stop(reason: impl Into<String>) -> Self {
        Self::default()
            .with("continue", json!(false))
            .with("stopReason", json!(reason.into()))
    }

    /// What is about to happen does not; the model is told why. For [`HookEvent::Stop`]: the agent goes on.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::default()
            .with("decision", json!("block"))
            .with("reason", json!(reason.into()))
    }

    /// For [`HookEvent::PreToolUse`]: the tool is used, without asking.
    pub fn allow_tool(reason: impl Into<String>) -> Self {
        Self::tool_decision("allow", reason)
    }

    /// For [`HookEvent::PreToolUse`]: the tool is not used; the model is told why.
    pub fn deny_tool(reason: impl Into<String>) -> Self {
        Self::tool_decision("deny", reason)
    }

    /// For [`HookEvent::PreToolUse`]: the user is asked.
    pub fn ask_tool(reason: impl Into<String>) -> Self {
        Self::tool_decision("ask", reason)
    }

    fn tool_decision(decision: &str, reason: impl Into<String>) -> Self {
        Self::default()
            .with_specific("permissionDecision", json!(decision))
            .with_specific("permissionDecisionReason", json!(reason.into()))
    }

    /// For [`HookEvent::PreToolUse`]: the tool is called with this instead.
    pub fn with_updated_input(self, input: Value) -> Self {
        self.with_specific("updatedInput", input)
    }

    /// Something that the model should know.
    pub fn with_context(self, context: impl Into<String>) -> Self {
        self.with_specific("additionalContext", json!(context.into()))
    }

    /// Something that the user should know.
    pub fn with_system_message(self, message: impl Into<String>) -> Self {
        self.with("systemMessage", json!(message.into()))
    }

    /// A field of the answer that has no method here.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// A field of the answer's part for this event that has no method here.
    pub fn with_specific(mut self, name: &str, value: Value) -> Self {
        self.specific.insert(name.to_owned(), value);
        self
    }

    /// The answer to send for an event of this name.
    pub fn to_json(&self, event: &str) -> Value {
        let mut fields = self.fields.clone();
        fields.entry("continue").or_insert(Value::Bool(true));
        if !self.specific.is_empty() {
            let mut specific = self.specific.clone();
            specific.insert("hookEventName".to_owned(), json!(event));
            fields.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
        }
        Value::Object(fields)
    }
}

pub(crate) type HookCallback = Arc<dyn Fn(HookInput) -> BoxFuture<'static, HookOutput> + Send + Sync>;

/// A hook: when it is due, and what it does.
#[derive(Clone)]
pub struct Hook {
    pub(crate) event: HookEvent,
    pub(crate) matcher: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) callback: HookCallback,
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("event", &self.event)
            .field("matcher", &self.matcher)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Hook {
    /// A hook for every event of this kind.
    pub fn new<F, R>(event: HookEvent, callback: F) -> Self
    where
        F: Fn(HookInput) -> R + Send + Sync + 'static,
        R: Future<Output = HookOutput> + Send + 'static,
    {
        Self {
            event,
            matcher: None,
            timeout: None,
            callback: Arc::new(move |input| Box::pin(callback(input))),
        }
    }

    /// Only for tools (or other subjects of the event) that match, such as `Bash` or `Write|Edit`.
    pub fn matching(mut self, matcher: impl Into<String>) -> Self {
        self.matcher = Some(matcher.into());
        self
    }

    /// How long the CLI waits for the hook.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}
