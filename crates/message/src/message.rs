//! One line of an agent as a message: the raw JSON, and the fields that route it.
//!
//! Reading a message's head is one pass over the line. The pass checks the JSON and remembers where the few routing
//! fields are. The line is copied once and shared from then on. The typed body is decoded only on request.

mod body;
mod content;
mod depth;
mod head;
mod parts;
mod results;
mod stream;
mod system;
mod unreadable;

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use head::{BorrowedHead, Piece};

pub use body::*;
pub use content::*;
pub use depth::{MAX_DEPTH, decode_envelope};
pub use results::*;
pub use stream::*;
pub use system::*;
pub use unreadable::{RAW_BYTES, UnreadableReason};

/// What a message is about: the `type` of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// What the model said: one content block of a model message.
    Assistant,
    /// A user message: an echoed prompt, or the results of tools.
    User,
    /// The end of a turn.
    Result,
    /// Everything that has a `subtype`: `init`, `status`, `task_started` and many more.
    System,
    /// A piece of a model message while it is being written.
    StreamEvent,
    /// How long a tool has been running.
    ToolProgress,
    /// Progress of a login.
    AuthStatus,
    /// A summary of several tool calls.
    ToolUseSummary,
    /// The state of the account's rate limits.
    RateLimitEvent,
    /// A guess of what the user may want to say next.
    PromptSuggestion,
    /// The conversation was cleared.
    ConversationReset,
    /// A slash command was queued, started, finished.
    CommandLifecycle,
    /// The goal that the session works towards.
    ActiveGoal,
    /// The CLI asks us something.
    ControlRequest,
    /// The CLI answers us.
    ControlResponse,
    /// The CLI no longer wants an answer.
    ControlCancelRequest,
    /// A sign of life.
    KeepAlive,
    /// A type that this version of the crate does not know. The raw JSON has it all.
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "assistant" => Self::Assistant,
            "user" => Self::User,
            "result" => Self::Result,
            "system" => Self::System,
            "stream_event" => Self::StreamEvent,
            "tool_progress" => Self::ToolProgress,
            "auth_status" => Self::AuthStatus,
            "tool_use_summary" => Self::ToolUseSummary,
            "rate_limit_event" => Self::RateLimitEvent,
            "prompt_suggestion" => Self::PromptSuggestion,
            "conversation_reset" => Self::ConversationReset,
            "command_lifecycle" => Self::CommandLifecycle,
            "active_goal" => Self::ActiveGoal,
            "control_request" => Self::ControlRequest,
            "control_response" => Self::ControlResponse,
            "control_cancel_request" => Self::ControlCancelRequest,
            "keep_alive" => Self::KeepAlive,
            _ => Self::Other,
        }
    }
}

/// Why a line is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The line is not UTF-8.
    #[error("the line is not UTF-8 (first bad byte at {valid_up_to})")]
    Utf8 {
        /// How many bytes are fine.
        valid_up_to: usize,
    },
    /// The line is not JSON, or not what its `type` promises.
    #[error("the line is not a JSON object: {reason}")]
    Json {
        /// The parser's reason.
        reason: String,
    },
    /// The line is JSON, but not an object.
    #[error("the line is JSON, but not an object")]
    NotAnObject,
    /// The object is nested deeper than [`MAX_DEPTH`] levels.
    #[error("the line is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// One message of the CLI. Cheap to clone; the raw JSON is kept as it came.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    line: Arc<str>,
    head: Head,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Head {
    kind: Kind,
    name: Text,
    subtype: Text,
    uuid: Text,
    session_id: Text,
    parent_tool_use_id: Text,
    event: Option<StreamEventKind>,
    delta: Option<DeltaHead>,
}

/// Where a stream event's delta is. Most messages are deltas, so the head's pass reads them as well.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DeltaHead {
    index: u32,
    kind: DeltaKind,
    text: Text,
}

/// What a [`Delta`] adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeltaKind {
    /// The text of a text block.
    Text,
    /// The thoughts of a thinking block.
    Thinking,
    /// The input of a tool call, as JSON.
    InputJson,
    /// The signature of a thinking block.
    Signature,
}

/// A piece of a content block while the model writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delta<'a> {
    /// The block's place in the message.
    pub index: u32,
    /// What it adds to.
    pub kind: DeltaKind,
    /// The piece, to be put behind what came before.
    pub text: &'a str,
}

/// A string of the head: a place in the line, or a copy where the JSON had escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    Absent,
    At { start: u32, length: u32 },
    Unescaped(Box<str>),
}

impl Message {
    /// Reads the head of a line. Any JSON object is a message, also one without a `type`, as long as it is not nested
    /// deeper than [`MAX_DEPTH`] levels.
    ///
    /// ```
    /// use tiller_message::{Kind, Message};
    ///
    /// let message = Message::parse(r#"{"subtype":"init","session_id":"5f0c","type":"system","new":1}"#)?;
    /// assert_eq!(message.kind(), Kind::System);
    /// assert_eq!(message.subtype(), Some("init"));
    /// assert_eq!(message.session_id(), Some("5f0c"));
    /// # Ok::<(), tiller_message::ParseError>(())
    /// ```
    pub fn parse(line: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        let text = std::str::from_utf8(line.as_ref()).map_err(|error| ParseError::Utf8 {
            valid_up_to: error.valid_up_to(),
        })?;
        let head = Head::read(text)?;
        Ok(Self {
            line: text.into(),
            head,
        })
    }

    /// Reads the head of a line that is shared already, without copying it.
    pub fn parse_shared(line: Arc<str>) -> Result<Self, ParseError> {
        let head = Head::read(&line)?;
        Ok(Self { line, head })
    }

    /// What the message is about.
    pub fn kind(&self) -> Kind {
        self.head.kind
    }

    /// The `type` as the agent wrote it; empty if it is missing or not a string.
    pub fn type_name(&self) -> &str {
        self.text(&self.head.name).unwrap_or_default()
    }

    /// The `subtype`, which `system` and `result` messages have.
    pub fn subtype(&self) -> Option<&str> {
        self.text(&self.head.subtype)
    }

    /// The message's own id.
    pub fn uuid(&self) -> Option<&str> {
        self.text(&self.head.uuid)
    }

    /// The session that the message belongs to.
    pub fn session_id(&self) -> Option<&str> {
        self.text(&self.head.session_id)
    }

    /// Set on what a subagent says: the id of the tool call that started it.
    pub fn parent_tool_use_id(&self) -> Option<&str> {
        self.text(&self.head.parent_tool_use_id)
    }

    /// For a stream event: its `event.type`.
    pub fn stream_event_kind(&self) -> Option<StreamEventKind> {
        self.head.event.filter(|_| self.head.kind == Kind::StreamEvent)
    }

    /// For a stream event that adds a piece to a content block: that piece.
    pub fn delta(&self) -> Option<Delta<'_>> {
        let head = self
            .head
            .delta
            .as_ref()
            .filter(|_| self.head.kind == Kind::StreamEvent)?;
        Some(Delta {
            index: head.index,
            kind: head.kind,
            text: self.text(&head.text)?,
        })
    }

    /// The JSON as the CLI wrote it.
    pub fn json(&self) -> &str {
        &self.line
    }

    /// The JSON as the CLI wrote it, shared, not copied.
    pub fn shared(&self) -> &Arc<str> {
        &self.line
    }

    /// Decodes the whole message as a type of the caller's choice.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        depth::decode(&self.line)
    }

    fn text<'a>(&'a self, text: &'a Text) -> Option<&'a str> {
        match text {
            Text::Absent => None,
            Text::At { start, length } => self
                .json()
                .get(*start as usize..*start as usize + *length as usize),
            Text::Unescaped(text) => Some(text),
        }
    }
}

impl Head {
    fn read(text: &str) -> Result<Self, ParseError> {
        let borrowed: BorrowedHead =
            serde_json::from_str(text).map_err(|error| not_an_object(text, &error))?;
        if depth::is_too_deep(text.as_bytes()) {
            return Err(ParseError::TooDeep);
        }
        Ok(Self {
            kind: borrowed
                .name
                .as_ref()
                .map_or(Kind::Other, |name| Kind::of(name.as_str())),
            name: Piece::keep_option(borrowed.name, text),
            subtype: Piece::keep_option(borrowed.subtype, text),
            uuid: Piece::keep_option(borrowed.uuid, text),
            session_id: Piece::keep_option(borrowed.session_id, text),
            parent_tool_use_id: Piece::keep_option(borrowed.parent_tool_use_id, text),
            event: borrowed.event.kind,
            delta: borrowed.event.keep(text),
        })
    }
}

/// The head's pass stops at the first byte of a value that is not an object; the rest of the line decides whether it
/// is JSON at all.
fn not_an_object(text: &str, error: &serde_json::Error) -> ParseError {
    if error.is_data() && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        return ParseError::NotAnObject;
    }
    ParseError::Json {
        reason: error.to_string(),
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(&self.json()).finish()
    }
}

/// A message serialises as exactly what the CLI wrote.
impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.json()).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}
