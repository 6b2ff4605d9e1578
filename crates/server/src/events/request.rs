//! The input and output of handlers.

use tiller_core::{CommandError, SessionId, SessionPage, Sessions};

use super::parse::NotUnderstood;
use super::protocol::{ClientRow, CommandId};
use super::table::{ServerEvent, ServerKind};
use crate::app::App;
use crate::underway::Place;

/// What a handler beside the connection's loop works with.
pub(super) struct Context {
    pub(super) app: App,
    /// With the rights of this connection's client.
    pub(super) sessions: Sessions,
}

/// A client event that is being handled: its origin, and its share of the limit until it is answered.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) origin: Origin,
    pub(super) place: Place,
}

/// The frame that a reply belongs to.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// The id that the client gave the frame.
    pub(super) command: Option<CommandId>,
    /// The session that the frame names, as the client wrote it.
    pub(super) session: Option<String>,
    pub(super) row: &'static ClientRow,
}

impl Origin {
    /// Whether the table lists this event as an answer.
    pub(super) fn may_get(&self, kind: ServerKind) -> bool {
        kind == ServerKind::RunnerError || self.row.answers.contains(&kind)
    }
}

/// The reply to the connection that sent a command. The live feed reports most successes, to all connections.
pub(super) enum Reply {
    Nothing,
    Event(Box<ServerEvent>),
    /// The session's entry in the list, read when the reply is sent.
    Entry(SessionId),
    /// A duplicate prompt: the session's status, after the given event.
    Duplicate(Option<Box<ServerEvent>>, SessionId),
    /// A page of the list, with changes until the reply is sent.
    Sessions(SessionPage),
    /// The session was deleted. Omitted if the live feed reports it.
    Deleted(String),
}

impl<E: Into<ServerEvent>> From<E> for Reply {
    fn from(event: E) -> Self {
        Self::Event(Box::new(event.into()))
    }
}

/// The outcome of a client event in the connection's loop.
pub(super) enum Handled {
    /// It runs beside the loop and is answered later.
    Underway,
    Answered(Reply),
    Refused(Refused),
}

impl From<Result<Self, Refused>> for Handled {
    fn from(handled: Result<Self, Refused>) -> Self {
        handled.unwrap_or_else(Self::Refused)
    }
}

/// What a handler's success means for the connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Command,
    /// It starts this session, if it becomes a new one.
    Start(SessionId),
    /// It deletes this session.
    Delete(SessionId),
}

/// Why a client event was refused.
pub(super) enum Refused {
    /// The payload is invalid, with a message for the client.
    Invalid(String),
    Command(CommandError),
}

impl From<CommandError> for Refused {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

impl From<NotUnderstood> for Refused {
    fn from(wrong: NotUnderstood) -> Self {
        Self::Invalid(wrong.reason)
    }
}
