//! The events of a session's log, and the notices that subscribers get.

use std::sync::Arc;

use tiller_message::{Message, TurnFigures, UnreadableReason};

use crate::arrangement::Arranged;
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

/// Small, because most events are messages and there are many of them: large bodies are boxed.
#[derive(Clone, Debug, PartialEq)]
pub enum EventBody {
    Status(Box<StatusChange>),
    /// A prompt, sent to the agent under its id.
    UserPrompt {
        prompt: Box<Prompt>,
    },
    /// A message of the agent, unchanged. `uuid` is the agent's own id for it, if it has one.
    Message {
        raw: RawJson,
        uuid: Option<String>,
    },
    /// A line of the agent that can't be read as a message.
    Unreadable(Box<UnreadableLine>),
    DecisionRequested(Box<DecisionRequest>),
    DecisionResolved {
        request: RequestId,
        tool_use_id: String,
        behavior: Behavior,
        /// The answer that the agent gets, if any. It is stored so that it can be sent again if it did not arrive.
        reply: Option<Box<Reply>>,
    },
}

impl EventBody {
    /// The message that clients see for this event, if the event is a message of the agent.
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
    /// The line's text, in which invalid UTF-8 was replaced.
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

impl Reply {
    /// What runs in place of what was asked for.
    pub fn edited_input(&self) -> Option<&RawJson> {
        match &self.answer {
            DecisionAnswer::Allow { input, .. } if self.edited => input.as_ref(),
            _ => None,
        }
    }
}

/// An answer on its way to the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The agent's own id of the request.
    pub agent_request: String,
    pub answer: DecisionAnswer,
    /// A person changed what was asked for, and allowed that.
    pub edited: bool,
    /// The key that answered. `None`: the person at the machine answered, or there was no answer.
    pub by: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StatusChange {
    pub status: SessionStatus,
    pub title: Option<String>,
    pub cwd: Option<String>,
    pub error: Option<String>,
    /// What the turn took that ends with this change.
    pub turn: Option<TurnFigures>,
    /// The command that began the turn, if a client of this process sent it and wants to be told. Not part of the log.
    pub cause: Option<Cause>,
}

/// A request that waits for a decision, exactly as it was shown to the user.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRequest {
    pub id: RequestId,
    /// The agent's own id of the request; it never leaves the server.
    pub agent_request: String,
    /// The id of the `tool_use` block that needs the decision.
    pub tool_use_id: String,
    pub tool_name: String,
    pub input: RawJson,
    pub suggestions: Option<RawJson>,
    pub description: Option<String>,
    /// The path outside the working directory that the tool wants to use, if that is why the agent asks.
    pub blocked_path: Option<String>,
}

impl DecisionRequest {
    /// The SHA-256, in hex, of the input's JSON. A client sends it back with the answer.
    pub fn input_hash(&self) -> String {
        SecretHash::of(self.input.as_str()).to_hex()
    }

    /// Whether `shown` is the SHA-256, in hex, of the input: of its original text, or of its text after a client parsed
    /// and serialized it.
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

/// What subscribers of the live feed get. Only [`Notice::Event`] is part of the log.
#[derive(Clone, Debug)]
pub enum Notice {
    Event(Arc<Event>),
    /// The session's queue: the prompts that wait for the running turn to end, oldest first.
    Queue {
        session: SessionId,
        prompts: Vec<Prompt>,
        /// The command that changed the queue, if its sender wants to be told.
        cause: Option<Cause>,
    },
    /// The session's record changed without an event: title, settings, agent. Subscribers read the record again.
    Updated(SessionId),
    /// The session's events can't be stored, for this reason. Its agent waits, and commands fail.
    HeldUp {
        session: SessionId,
        reason: String,
    },
    /// An agent called a hook and waits for [`Sessions::answer_hook`](crate::Sessions::answer_hook).
    Hook {
        session: SessionId,
        call: HookCall,
    },
    /// The hook call no longer waits: it was answered, or the agent continued without an answer.
    HookClosed {
        session: SessionId,
        agent_request: String,
    },
    Deleted(SessionId),
    /// The viewer has arranged their sessions in another way. No one else gets this.
    Arranged(Arc<Arranged>),
}

impl Notice {
    /// The session that it is about. `None`: it is about the viewer's list.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Self::Arranged(_) => None,
            Self::Event(event) => Some(event.session),
            Self::HeldUp { session, .. }
            | Self::Queue { session, .. }
            | Self::Updated(session)
            | Self::Hook { session, .. }
            | Self::HookClosed { session, .. }
            | Self::Deleted(session) => Some(*session),
        }
    }
}
