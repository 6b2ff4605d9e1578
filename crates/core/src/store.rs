//! What the domain needs of a place that keeps things. The conformance suite of the store crate says it in tests.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::event::{DecisionRequest, Event};
use crate::ids::{PromptId, SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Image;
use crate::registry::Page;
use crate::session::SessionRecord;

pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Keeps sessions and their events. What a future that came back `Ok` has written survives a crash.
pub trait Store: Send + Sync + 'static {
    /// All sessions, newest first, each with the decisions that are open.
    fn load(&self) -> StoreFuture<'_, Vec<(SessionRecord, Vec<DecisionRequest>)>>;

    /// Writes a session's record and its new events, all or nothing. Commits of one session happen in the order in
    /// which they were handed in. [`StoreError::Duplicate`] if one of its `prompts` was accepted before.
    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()>;

    /// Removes a session and everything that belongs to it. Fine if there is none.
    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()>;

    /// A page of prompts and messages, oldest first, each with its `seq`.
    fn history(&self, session: SessionId, page: Page) -> StoreFuture<'_, Vec<(u64, RawJson)>>;

    /// The first `limit` events after `after`, in order.
    fn replay(&self, session: SessionId, after: u64, limit: u32) -> StoreFuture<'_, Vec<Event>>;

    /// What was said to the agent from event `since` on: the prompt with that number and the answers after it, in order.
    fn said_since(&self, session: SessionId, since: u64) -> StoreFuture<'_, Vec<Event>>;

    /// Where the prompt with this id was accepted, in a session of `owner`. Known for as long as that session is kept,
    /// whatever became of the prompt.
    fn accepted_prompt(
        &self,
        owner: Option<String>,
        prompt: PromptId,
    ) -> StoreFuture<'_, Option<AcceptedPrompt>>;

    /// The session that `owner` calls by `name`.
    fn named(&self, owner: Option<String>, name: String) -> StoreFuture<'_, Option<SessionId>>;

    /// Calls `session` by `name`, unless `owner` calls another one so already; the one that has the name then. A name
    /// goes away with its session.
    fn claim_name(
        &self,
        owner: Option<String>,
        name: String,
        session: SessionId,
    ) -> StoreFuture<'_, SessionId>;

    /// Keeps something for a front door, in place of what it kept under this key. Goes away with the session, and is not
    /// kept where there is none.
    fn note(&self, session: SessionId, key: String, value: RawJson) -> StoreFuture<'_, ()>;

    /// What is kept under keys that begin so, of all sessions.
    fn notes(&self, prefix: String) -> StoreFuture<'_, Vec<(SessionId, String, RawJson)>>;

    /// What is kept of this session under this key.
    fn note_of(&self, session: SessionId, key: String) -> StoreFuture<'_, Option<RawJson>>;

    /// Forgets what is kept of a session under keys that begin so.
    fn erase_notes(&self, session: SessionId, prefix: String) -> StoreFuture<'_, ()>;

    /// Writes a new session that begins with what was said in `source`, numbered from 1; the number of its last event.
    fn fork(&self, source: SessionId, record: SessionRecord) -> StoreFuture<'_, u64>;

    /// Removes the pieces in which messages were streamed (`stream_event`) before that time, where no turn runs: the
    /// whole messages stay, and so do the pieces of those that were never finished. No number is used again. Gives the
    /// space back to the system. How many were removed.
    fn compact(&self, before: Timestamp) -> StoreFuture<'_, u64>;

    /// An image that was committed with a prompt of this session.
    fn image(&self, session: SessionId, id: String) -> StoreFuture<'_, Option<Image>>;
}

/// One step of a session.
#[derive(Clone, Debug)]
pub struct Commit {
    pub record: SessionRecord,
    pub events: Vec<Arc<Event>>,
    /// Images of the prompts among the events and in the queue; those that are kept already may come again.
    pub images: Vec<Image>,
    /// The prompts that are accepted with this step, each for the first time.
    pub prompts: Vec<PromptId>,
}

/// What is remembered of a prompt that was accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AcceptedPrompt {
    pub session: SessionId,
    /// The number of its event. `None`: its turn has not begun, or never will because it was taken out of the queue.
    pub seq: Option<u64>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written. It may work once there is room.
    #[error("The disk is full: free some space, then try again.")]
    Full,
    /// Nothing was written. It may work later.
    #[error("The database can't be used right now: {0}")]
    Unavailable(String),
    /// Nothing was written: a prompt of the commit was accepted before, in this session of the same owner.
    #[error("The prompt was accepted before.")]
    Duplicate { session: SessionId },
    /// What is on disk does not make sense.
    #[error("The database is damaged: {0}")]
    Damaged(String),
}
