//! What front doors have to remember about sessions for longer than a server lives.

use super::{CommandError, Sessions};
use crate::ids::SessionId;
use crate::json::RawJson;

impl Sessions {
    /// Keeps `value` with the session, in place of what was kept under this key. It goes away with the session.
    pub async fn note(&self, session: SessionId, key: &str, value: RawJson) -> Result<(), CommandError> {
        self.find(session).await?;
        Ok(self.shared.store.note(session, key.to_owned(), value).await?)
    }

    /// What is kept under keys that begin with `prefix`, each with its session.
    pub async fn notes(&self, prefix: &str) -> Result<Vec<(SessionId, String, RawJson)>, CommandError> {
        let mut notes = Vec::new();
        for note in self.shared.store.notes(prefix.to_owned()).await? {
            match self.find(note.0).await {
                Ok(_) => notes.push(note),
                // Nothing can be done in a session that can't be read.
                Err(CommandError::UnknownSession | CommandError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(notes)
    }

    /// What is kept with this session under this key.
    pub async fn note_of(&self, session: SessionId, key: &str) -> Result<Option<RawJson>, CommandError> {
        self.find(session).await?;
        Ok(self.shared.store.note_of(session, key.to_owned()).await?)
    }

    /// Forgets what is kept with the session under keys that begin with `prefix`.
    pub async fn erase_notes(&self, session: SessionId, prefix: &str) -> Result<(), CommandError> {
        Ok(self.shared.store.erase_notes(session, prefix.to_owned()).await?)
    }
}
