//! Accepted prompts, by their ids: a duplicate is acknowledged again and never runs twice.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::{CommandError, Sessions};
use crate::ids::{PromptId, SessionId};
use crate::session::Refusal;

/// The acknowledgement of a prompt: it is stored and will reach the agent once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Accepted {
    pub session: SessionId,
    pub prompt: PromptId,
    /// The prompt's event has a higher number than this one.
    pub after: u64,
    /// The prompt was accepted before; this call had no effect.
    pub duplicate: bool,
}

impl Sessions {
    /// Where this viewer's prompt with this id was accepted. `None` if it was not, or if there is no id.
    pub async fn accepted(&self, prompt: Option<PromptId>) -> Result<Option<Accepted>, CommandError> {
        let Some(prompt) = prompt else { return Ok(None) };
        self.find_accepted(self.viewer.key.clone(), prompt).await
    }

    /// Whether the prompt with this id was accepted in this session. An error if it was accepted in another session of
    /// the same owner.
    pub async fn accepted_in(
        &self,
        session: SessionId,
        prompt: PromptId,
    ) -> Result<Option<Accepted>, CommandError> {
        let (record, _) = self.find(session).await?;
        match self.find_accepted(record.owner, prompt).await? {
            Some(accepted) if accepted.session != session => Err(Refusal::PromptIdUsed.into()),
            accepted => Ok(accepted),
        }
    }

    async fn find_accepted(
        &self,
        owner: Option<String>,
        prompt: PromptId,
    ) -> Result<Option<Accepted>, CommandError> {
        let Some(found) = self.shared.store.accepted_prompt(owner.clone(), prompt).await? else {
            return Ok(None);
        };
        let session = found.session;
        let mut seq = found.seq;
        let mut last = 0;
        if seq.is_none() {
            // Read first: if the prompt still waits afterwards, its event will have a higher number.
            last = self.find(session).await.map_or(0, |(record, _)| record.last_seq);
            let again = self.shared.store.accepted_prompt(owner, prompt).await?;
            seq = again.and_then(|found| found.seq);
        }
        let after = seq.map_or(last, |seq| seq.saturating_sub(1));
        Ok(Some(Accepted {
            session,
            prompt,
            after,
            duplicate: true,
        }))
    }
}

/// The starts in progress whose prompts have ids that clients chose. Each id is started once at a time, so that a
/// duplicate finds the session that the first start created.
#[derive(Debug, Default)]
pub(super) struct Starting {
    /// A std mutex: held for look-ups only, never across an await.
    held: Mutex<HashSet<Key>>,
    released: Notify,
}

type Key = (Option<String>, PromptId);

/// Releases the id when dropped.
pub(super) struct Held<'a> {
    starting: &'a Starting,
    key: Key,
}

impl Starting {
    pub(super) async fn hold(&self, owner: Option<String>, prompt: PromptId) -> Held<'_> {
        let key = (owner, prompt);
        loop {
            // Subscribed before the check, so that a later release wakes this task.
            let released = self.released.notified();
            if self.lock().insert(key.clone()) {
                return Held { starting: self, key };
            }
            released.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<Key>> {
        // The set is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.starting.lock().remove(&self.key);
        self.starting.released.notify_waiters();
    }
}
