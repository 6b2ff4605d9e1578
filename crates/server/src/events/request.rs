//! What a handler is given and what it gives back.

use tiller_core::{CommandError, SessionId, SessionPage, Sessions};

use super::parse::NotUnderstood;
use super::protocol::{ClientRow, CommandId};
use super::table::{ServerEvent, ServerKind};
use crate::app::App;
use crate::underway::Place;

/// What a handler works with that runs beside the connection's loop.
pub(super) struct Context {
    pub(super) app: App,
    /// As this connection's client may see and use them.
    pub(super) sessions: Sessions,
}

/// A client event that is being handled: what came with it, and the room that it takes until it is answered.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) origin: Origin,
    pub(super) place: Place,
}

/// Where a reply belongs.
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

/// What the asking connection is told. Success is mostly told by the live feed, to every connection.
pub(super) enum Reply {
    Nothing,
    Event(Box<ServerEvent>),
    /// The session's entry in the list, as it is when the reply is sent.
    Entry(SessionId),
    /// The prompt was accepted before: the session's status, after what is answered beside it.
    Again(Option<Box<ServerEvent>>, SessionId),
    /// A page of the list, with what has happened until the reply is sent.
    Sessions(SessionPage),
    /// The session was deleted just now. Left out where the live feed tells it.
    Deleted(String),
}

impl<E: Into<ServerEvent>> From<E> for Reply {
    fn from(event: E) -> Self {
        Self::Event(Box::new(event.into()))
    }
}

/// What became of a client event in the connection's loop.
pub(super) enum Handled {
    /// It is carried out beside the loop, and is answered later.
    Underway,
    Answered(Reply),
    Refused(Refused),
}

impl From<Result<Self, Refused>> for Handled {
    fn from(handled: Result<Self, Refused>) -> Self {
        handled.unwrap_or_else(Self::Refused)
    }
}

/// What a handler's work means for the connection, once it is done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Command,
    /// To start this session, if it becomes a new one.
    Start(SessionId),
    /// To delete this session.
    Delete(SessionId),
}

/// Why a client event was refused.
pub(super) enum Refused {
    /// The payload makes no sense, in words for the client.
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
