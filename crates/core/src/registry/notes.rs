//! Notes that front doors store with sessions, beyond the lifetime of a server.

use super::{CommandError, Sessions};
use crate::ids::SessionId;
use crate::json::RawJson;

impl Sessions {
    /// Stores `value` with the session under this key, replacing an earlier value. Deleted with the session.
    pub async fn note(&self, session: SessionId, key: &str, value: RawJson) -> Result<(), CommandError> {
        self.find(session).await?;
        Ok(self.shared.store.note(session, key.to_owned(), value).await?)
    }

    /// All notes whose keys begin with `prefix`, with their sessions.
    pub async fn notes(&self, prefix: &str) -> Result<Vec<(SessionId, String, RawJson)>, CommandError> {
        let mut notes = Vec::new();
        for note in self.shared.store.notes(prefix.to_owned()).await? {
            match self.find(note.0).await {
                Ok(_) => notes.push(note),
                // Notes of unreadable sessions are left out.
                Err(CommandError::UnknownSession | CommandError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(notes)
    }

    /// The note of this session under this key.
    pub async fn note_of(&self, session: SessionId, key: &str) -> Result<Option<RawJson>, CommandError> {
        self.find(session).await?;
        Ok(self.shared.store.note_of(session, key.to_owned()).await?)
    }

    /// Deletes the session's notes whose keys begin with `prefix`.
    pub async fn erase_notes(&self, session: SessionId, prefix: &str) -> Result<(), CommandError> {
        Ok(self.shared.store.erase_notes(session, prefix.to_owned()).await?)
    }
}
