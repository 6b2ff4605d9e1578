//! One line of the CLI as a message: the raw JSON, and what is needed to route it.
//!
//! Reading a message's head is one pass over the line that checks the JSON and remembers where the few routing
//! fields are; nothing is copied. The typed body is decoded only when somebody asks for it.

use std::fmt;

use bytes::Bytes;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::frame::Frame;

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
    /// The line is not a JSON object, or too deeply nested.
    #[error("the line is not a JSON object: {reason}")]
    Json {
        /// What the JSON parser says.
        reason: String,
    },
    /// A JSON object without a `type`.
    #[error("the line has no type")]
    NoType,
}

/// One message of the CLI. Cheap to clone; the raw JSON is kept as it came.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    line: Bytes,
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
}

/// A string of the head: a place in the line, or a copy where the JSON had escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    Absent,
    At { start: u32, length: u32 },
    Unescaped(Box<str>),
}

impl Message {
    /// Reads the head of a line.
    ///
    /// ```
    /// use tiller_agent::{Kind, Message};
    ///
    /// let message = Message::parse(r#"{"subtype":"init","session_id":"5f0c","type":"system","new":1}"#)?;
    /// assert_eq!(message.kind(), Kind::System);
    /// assert_eq!(message.subtype(), Some("init"));
    /// assert_eq!(message.session_id(), Some("5f0c"));
    /// # Ok::<(), tiller_agent::ParseError>(())
    /// ```
    pub fn parse(line: impl Into<Bytes>) -> Result<Self, ParseError> {
        let line = line.into();
        let text = std::str::from_utf8(&line).map_err(|error| ParseError::Utf8 {
            valid_up_to: error.valid_up_to(),
        })?;
        let borrowed: BorrowedHead = serde_json::from_str(text).map_err(|error| ParseError::Json {
            reason: error.to_string(),
        })?;
        let Some(name) = borrowed.name else {
            return Err(ParseError::NoType);
        };
        let head = Head {
            kind: Kind::of(name.as_str()),
            name: name.keep(text),
            subtype: Piece::keep_option(borrowed.subtype, text),
            uuid: Piece::keep_option(borrowed.uuid, text),
            session_id: Piece::keep_option(borrowed.session_id, text),
            parent_tool_use_id: Piece::keep_option(borrowed.parent_tool_use_id, text),
        };
        Ok(Self { line, head })
    }

    /// What the message is about.
    pub fn kind(&self) -> Kind {
        self.head.kind
    }

    /// The `type` as the CLI wrote it.
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

    /// The JSON as the CLI wrote it.
    pub fn json(&self) -> &str {
        // Checked when the message was parsed; an empty string could only come from a broken invariant.
        std::str::from_utf8(&self.line).unwrap_or_default()
    }

    /// The JSON as the CLI wrote it, shared, not copied.
    pub fn bytes(&self) -> &Bytes {
        &self.line
    }

    /// Decodes the whole message as a type of the caller's.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.line)
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

impl TryFrom<Frame> for Message {
    type Error = ParseError;

    fn try_from(frame: Frame) -> Result<Self, ParseError> {
        match frame {
            Frame::Line(line) => Self::parse(line),
            Frame::Oversized { length } => Err(ParseError::Json {
                reason: format!("a line of {length} bytes was skipped"),
            }),
        }
    }
}

#[derive(Default)]
struct BorrowedHead<'a> {
    name: Option<Piece<'a>>,
    subtype: Option<Piece<'a>>,
    uuid: Option<Piece<'a>>,
    session_id: Option<Piece<'a>>,
    parent_tool_use_id: Option<Piece<'a>>,
}

/// A string of the line: borrowed, unless it had escapes.
enum Piece<'a> {
    Borrowed(&'a str),
    Owned(Box<str>),
}

impl Piece<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }

    fn keep(self, line: &str) -> Text {
        match self {
            Self::Borrowed(text) => {
                let start = text.as_ptr() as usize - line.as_ptr() as usize;
                match (u32::try_from(start), u32::try_from(text.len())) {
                    (Ok(start), Ok(length)) => Text::At { start, length },
                    _ => Text::Unescaped(text.into()),
                }
            }
            Self::Owned(text) => Text::Unescaped(text),
        }
    }

    fn keep_option(piece: Option<Self>, line: &str) -> Text {
        piece.map_or(Text::Absent, |piece| piece.keep(line))
    }
}

/// Reads a string as [`Piece`] and anything else as nothing: a field that changed its type must not cost the
/// message.
struct Lenient<'a>(Option<Piece<'a>>);

impl<'de> Deserialize<'de> for Lenient<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor)
    }
}

struct LenientVisitor;

impl<'de> Visitor<'de> for LenientVisitor {
    type Value = Lenient<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Lenient(Some(Piece::Borrowed(text))))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Lenient(Some(Piece::Owned(text.into()))))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Lenient(None))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Lenient(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Lenient(None))
    }
}

enum HeadKey {
    Type,
    Subtype,
    Uuid,
    SessionId,
    ParentToolUseId,
    Other,
}

impl<'de> Deserialize<'de> for HeadKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = HeadKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<HeadKey, E> {
                Ok(match key {
                    "type" => HeadKey::Type,
                    "subtype" => HeadKey::Subtype,
                    "uuid" => HeadKey::Uuid,
                    "session_id" => HeadKey::SessionId,
                    "parent_tool_use_id" => HeadKey::ParentToolUseId,
                    _ => HeadKey::Other,
                })
            }
        }
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

impl<'de> Deserialize<'de> for BorrowedHead<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeadVisitor;
        impl<'de> Visitor<'de> for HeadVisitor {
            type Value = BorrowedHead<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut head = BorrowedHead::default();
                while let Some(key) = map.next_key()? {
                    let field = match key {
                        HeadKey::Type => &mut head.name,
                        HeadKey::Subtype => &mut head.subtype,
                        HeadKey::Uuid => &mut head.uuid,
                        HeadKey::SessionId => &mut head.session_id,
                        HeadKey::ParentToolUseId => &mut head.parent_tool_use_id,
                        HeadKey::Other => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    *field = map.next_value::<Lenient>()?.0;
                }
                Ok(head)
            }
        }
        deserializer.deserialize_map(HeadVisitor)
    }
}
