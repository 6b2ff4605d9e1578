//! The typed bodies of messages: one struct for each `type`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::content::{Block, Content};
use super::results::StructuredResult;
use super::stream::StreamEvent;
use super::system::SystemMessage;
use super::{Kind, Message};
use crate::record::message_records;
use crate::variants;

/// [`Body`] is the page's `AgentMessage`, which has one more member: prompts, as the history gives them.
macro_rules! bodies {
    ($($tokens:tt)*) => {
        variants! { $($tokens)* }
        #[cfg(feature = "ts")]
        crate::types::variant_types! {
            @as "AgentMessage", crate::types::MessageHead, ["user_prompt"(UserPrompt)]; $($tokens)*
        }
    };
}

bodies! {
    /// A message, by its type.
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

message_records! {
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
        tool_use_result: StructuredResult,
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
        /// The answer in the form that the option `output_schema` asked for.
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
        /// An event of the model's streaming API. [`Message::delta`] has the texts at a lower price.
        event: StreamEvent,
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

message_records! {
    /// A prompt in a session's history. It is Tiller's own record, not a message of an agent.
    UserPrompt {
        /// The text.
        prompt: String,
        /// The prompt's id.
        prompt_id = "promptId": String,
        /// The agent's id of the prompt.
        uuid: Option<String>,
        /// The images.
        attachments: Vec<PromptAttachment>,
        /// What the user was looking at.
        context: Option<PromptContext>,
        /// The tool call that the prompt answers.
        parent_tool_use_id: Option<String>,
    }

    /// An image of a prompt. Its bytes are at `/api/sessions/SESSION/images/ID`.
    PromptAttachment {
        /// Its id.
        id: String,
        /// Its media type.
        media_type = "mediaType": String,
        /// Its file name.
        name: Option<String>,
        /// Its size in bytes.
        size: u64,
    }

    /// What the user was looking at when they wrote a prompt.
    PromptContext {
        /// The mode of the user interface.
        mode: String,
        /// The view.
        current_view = "currentView": String,
        /// An element of the page.
        selected_element = "selectedElement": Option<PromptElement>,
        /// A file, or lines of it.
        selected_file = "selectedFile": Option<PromptFile>,
    }

    /// An element of a page.
    PromptElement {
        /// Its tag.
        tag_name = "tagName": String,
        /// A selector that finds it.
        selector: String,
        /// Its text.
        text_content = "textContent": String,
    }

    /// A file, or lines of it.
    PromptFile {
        /// Its path.
        path: String,
        /// The first line.
        start_line = "startLine": Option<u32>,
        /// The last line.
        end_line = "endLine": Option<u32>,
    }
}
