//! The commands of the event API: each file has the payloads and handlers of a group of events.
//!
//! `table` names them. A handler returns the reply for the connection that sent the command.

pub(super) mod arrange;
pub(super) mod credentials;
pub(super) mod decisions;
pub(super) mod delete;
pub(super) mod find;
pub(super) mod fork;
pub(super) mod history;
pub(super) mod hooks;
pub(super) mod inquire;
pub(super) mod list;
pub(super) mod prompts;
pub(super) mod start;
pub(super) mod statistics;
pub(super) mod steer;

use tiller_core::{CommandError, SessionId};

/// A text that is not a session id counts as an unknown session.
pub(super) fn session_id(text: &str) -> Result<SessionId, CommandError> {
    text.parse().map_err(|_| CommandError::UnknownSession)
}
