//! What happens in a session, in the order in which everyone sees it.

use std::sync::Arc;

use tiller_message::{Message, UnreadableReason};

use crate::backend::HookCall;
use crate::credentials::SecretHash;
use crate::ids::{Cause, RequestId, SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Prompt;
use crate::session::{DecisionAnswer, SessionStatus};

/// One entry of a session's log. `seq` is gapless from 1 and never changes once delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub session: SessionId,
    pub seq: u64,
    pub at: Timestamp,
    pub body: EventBody,
}

/// Small, because most events are messages and there are many of them: what is large is in a box.
#[derive(Clone, Debug, PartialEq)]
pub enum EventBody {
    Status(Box<StatusChange>),
    /// The agent gets the prompt under its id.
    UserPrompt {
        prompt: Box<Prompt>,
    },
    /// A message of the agent's, untouched. `uuid` is the agent's own id for it, where it has one.
    Message {
        raw: RawJson,
        uuid: Option<String>,
    },
    /// A line of the agent that is no message.
    Unreadable(Box<UnreadableLine>),
    DecisionRequested(Box<DecisionRequest>),
    DecisionResolved {
        request: RequestId,
        tool_use_id: String,
        behavior: Behavior,
        /// What the agent is answered, where it is: kept so that the answer can be given again if it did not arrive.
        reply: Option<Box<Reply>>,
    },
}

impl EventBody {
    /// What clients see where this event is a message of the agent's.
    pub fn message(&self) -> Option<RawJson> {
        match self {
            Self::Message { raw, .. } => Some(raw.clone()),
            Self::Unreadable(line) => Some(line.shown()),
            Self::Status(_)
            | Self::UserPrompt { .. }
            | Self::DecisionRequested(_)
            | Self::DecisionResolved { .. } => None,
        }
    }
}

/// A line of an agent that can't be read as a message. It is kept whole; clients see its beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct UnreadableLine {
    pub reason: UnreadableReason,
    /// What is not UTF-8 in it was replaced.
    pub line: String,
}

impl UnreadableLine {
    pub fn new(reason: UnreadableReason, line: &[u8]) -> Self {
        Self {
            reason,
            line: String::from_utf8_lossy(line).into_owned(),
        }
    }

    /// The message that replaces the line for clients.
    pub fn shown(&self) -> RawJson {
        let message = Message::unreadable(self.reason, self.line.as_bytes());
        RawJson::checked(Arc::clone(message.shared()))
    }
}

/// An answer on its way to the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The agent's own id of the request.
    pub agent_request: String,
    pub answer: DecisionAnswer,
    /// The key that was used to answer. `None`: the person at the machine answered, or there was no answer.
    pub by: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StatusChange {
    pub status: SessionStatus,
    pub title: Option<String>,
    pub cwd: Option<String>,
    pub error: Option<String>,
    /// The command that began the turn, if this process was sent it and its sender wants to know. Not part of the log.
    pub cause: Option<Cause>,
}

/// What was put to the user, exactly as it was shown.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRequest {
    pub id: RequestId,
    /// The agent's own id of the request; it never leaves the server.
    pub agent_request: String,
    /// The id of the `tool_use` block that asks.
    pub tool_use_id: String,
    pub tool_name: String,
    pub input: RawJson,
    pub suggestions: Option<RawJson>,
    pub description: Option<String>,
    /// The path outside the working directory that the tool wants, where that is why the agent asks.
    pub blocked_path: Option<String>,
}

impl DecisionRequest {
    /// The SHA-256, in hex, of the input's JSON. A client sends it back with the answer.
    pub fn input_hash(&self) -> String {
        SecretHash::of(self.input.as_str()).to_hex()
    }

    /// Whether this is the SHA-256, in hex, of the input: as it came, or as a client writes it again that has read it.
    pub fn was_shown_as(&self, shown: &str) -> bool {
        let is = |text: &str| SecretHash::of(text).to_hex().eq_ignore_ascii_case(shown);
        let written_again = || {
            let value: serde_json::Value = serde_json::from_str(self.input.as_str()).ok()?;
            serde_json::to_string(&value).ok()
        };
        is(self.input.as_str()) || written_again().is_some_and(|text| is(&text))
    }
}

/// How a decision ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Behavior {
    Allow,
    Deny,
    /// There was no answer: the turn was stopped, the agent withdrew the request, or the agent ended.
    Withdrawn,
}

impl Behavior {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Withdrawn => "withdrawn",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Allow, Self::Deny, Self::Withdrawn]
            .into_iter()
            .find(|behavior| behavior.as_str() == text)
    }
}

/// What subscribers get. Only [`Notice::Event`] is part of the log.
#[derive(Clone, Debug)]
pub enum Notice {
    Event(Arc<Event>),
    /// The prompts that wait for the running turn to end, oldest first.
    Queue {
        session: SessionId,
        prompts: Vec<Prompt>,
        /// The command that changed them, if its sender wants to know.
        cause: Option<Cause>,
    },
    /// Something about the session changed that no event tells: title, settings, its agent. Look it up.
    Updated(SessionId),
    /// What happens in the session can't be stored, for this reason: its agent waits, and so does everybody else.
    HeldUp {
        session: SessionId,
        reason: String,
    },
    /// An agent calls back and waits for [`Sessions::answer_hook`](crate::Sessions::answer_hook).
    Hook {
        session: SessionId,
        call: HookCall,
    },
    /// That call waits no longer: it was answered, or its agent went on without an answer.
    HookClosed {
        session: SessionId,
        agent_request: String,
    },
    Deleted(SessionId),
}

impl Notice {
    pub fn session(&self) -> SessionId {
        match self {
            Self::Event(event) => event.session,
            Self::HeldUp { session, .. }
            | Self::Queue { session, .. }
            | Self::Updated(session)
            | Self::Hook { session, .. }
            | Self::HookClosed { session, .. }
            | Self::Deleted(session) => *session,
        }
    }
}
