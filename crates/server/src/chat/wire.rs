//! The chat API's messages, to the letter of its contract.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tiller_core::RawJson;

/// What a client may send.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ClientMessage {
    UserMessage {
        message: UserContent,
        /// The prompt's id, if it is a UUID: a duplicate runs once. Any other id is returned with the echo.
        #[serde(default)]
        uuid: Option<String>,
    },
    PermissionResponse(PermissionResponse),
    Interrupt,
    SetModel {
        model: String,
    },
    SetPermissionMode {
        mode: String,
    },
    /// Registers for `hook_callback` on these events.
    RegisterHooks {
        events: Vec<String>,
    },
    HookCallbackResponse {
        callback_id: String,
        output: Map<String, Value>,
    },
}

#[derive(Debug, Default, Deserialize, PartialEq)]
pub(super) struct UserContent {
    pub(super) content: String,
    /// The tool call that the message replies to.
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) images: Vec<Image>,
    /// What the user was looking at.
    #[serde(default)]
    pub(super) context: Option<tiller_core::prompt::UiContext>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct Image {
    pub(super) media_type: String,
    /// In base64.
    pub(super) data: String,
    #[serde(default)]
    pub(super) name: Option<String>,
}

#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct PermissionResponse {
    pub(super) request_id: String,
    pub(super) decision: Decision,
    #[serde(default)]
    pub(super) updated_input: Option<Map<String, Value>>,
    #[serde(default)]
    pub(super) updated_permissions: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) interrupt: Option<bool>,
    /// The SHA-256, in hex, of the input's JSON as it was shown.
    #[serde(default)]
    pub(super) shown: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Decision {
    Allow,
    Deny,
}

/// What the server sends.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ServerMessage {
    Assistant {
        content: Vec<Value>,
        model: String,
        parent_tool_use_id: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Value>,
    },
    Stream {
        uuid: Value,
        session_id: String,
        event: Option<RawJson>,
        #[serde(skip_serializing_if = "Value::is_null")]
        parent_tool_use_id: Value,
    },
    System {
        subtype: String,
        data: Value,
    },
    Result {
        subtype: &'static str,
        session_id: String,
        duration_ms: u64,
        duration_api_ms: u64,
        num_turns: u64,
        total_cost_usd: f64,
        is_error: bool,
        usage: Value,
        /// The agent's own name for the outcome of the turn.
        detail: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        interrupted: Option<bool>,
        /// The final answer, or the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        permission_denials: Value,
    },
    PermissionRequest {
        request_id: String,
        tool_name: String,
        input: Value,
        permission_suggestions: Value,
        blocked_path: Option<String>,
        tool_use_id: String,
        description: Option<String>,
    },
    HookCallback {
        callback_id: String,
        hook_event: String,
        input: Value,
        tool_use_id: Option<String>,
    },
    UserMessage {
        session_id: String,
        message: Said,
        /// The prompt's id, or the id that its sender chose.
        uuid: String,
    },
    Error {
        error: String,
        details: Details,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Said {
    pub(super) content: String,
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Details {
    pub(super) code: Code,
    pub(super) message: String,
    /// The tool that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
    /// The call that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_use_id: Option<String>,
}

/// Why a message was refused or failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Code {
    ParseError,
    InvalidSession,
    RateLimited,
    EmptyMessage,
    InvalidImage,
    InvalidCwd,
    InvalidModel,
    InvalidPermissionMode,
    RequestNotFound,
    AlreadyAnswered,
    NotAsShown,
    NoResumeId,
    Forbidden,
    /// The agent could not be started or did not answer.
    ConnectionFailed,
    /// The agent ended in the middle of a turn.
    ExecutionFailed,
    /// A tool failed. The agent knows, and continues.
    ToolError,
    Internal,
}

impl Code {
    /// A short title.
    fn title(self) -> &'static str {
        match self {
            Self::ParseError => "Invalid message format",
            Self::InvalidSession => "Wrong session",
            Self::RateLimited => "Too many messages",
            Self::EmptyMessage => "Empty message",
            Self::InvalidImage => "Image refused",
            Self::InvalidCwd => "Working directory refused",
            Self::InvalidModel => "Unknown model",
            Self::InvalidPermissionMode => "Unknown permission mode",
            Self::RequestNotFound => "No such request",
            Self::AlreadyAnswered => "Already answered",
            Self::NotAsShown => "Request has changed",
            Self::NoResumeId => "Session can't continue",
            Self::Forbidden => "Not allowed",
            Self::ConnectionFailed => "Connection failed",
            Self::ExecutionFailed => "Execution failed",
            Self::ToolError => "Tool execution failed",
            Self::Internal => "Internal error",
        }
    }
}

impl ServerMessage {
    pub(super) fn error(code: Code, message: impl Into<String>) -> Self {
        Self::Error {
            error: code.title().to_owned(),
            details: Details {
                code,
                message: message.into(),
                tool: None,
                tool_use_id: None,
            },
        }
    }

    pub(super) fn tool_error(tool: String, tool_use_id: String, message: String) -> Self {
        Self::Error {
            error: Code::ToolError.title().to_owned(),
            details: Details {
                code: Code::ToolError,
                message,
                tool: Some(tool),
                tool_use_id: Some(tool_use_id),
            },
        }
    }

    pub(super) fn system(subtype: &str, data: Value) -> Self {
        Self::System {
            subtype: subtype.to_owned(),
            data,
        }
    }
}

/// The id that a client gave a message. Direct answers to the message and errors that it caused carry the same.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct CommandId(pub(super) String);

/// One frame. `seq` is the number of the event that it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Frame {
    #[serde(flatten)]
    pub(super) message: ServerMessage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command_id: Option<CommandId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seq: Option<u64>,
}
