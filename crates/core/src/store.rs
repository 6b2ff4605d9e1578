//! What the domain needs of a store. `crates/store-suite` has the same contracts as tests.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tiller_message::Summary;

use crate::event::{DecisionRequest, Event};
use crate::ids::{PromptId, SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Image;
use crate::registry::Page;
use crate::session::SessionRecord;

pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Keeps sessions and their events. What a future that came back `Ok` has written survives a crash.
///
/// A session has one owner at a time: the actor that acquired it last. Every acquisition raises the session's epoch, and
/// a commit with an older epoch is refused, so that an owner which lost its session without noticing writes nothing.
pub trait Store: Send + Sync + 'static {
    /// The sessions that an earlier owner was in the middle of: a turn runs, an agent was started, a decision waits.
    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedSession>>;

    /// Reads a session. `None` if there is no such session.
    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<StoredSession>>;

    /// Makes the caller the session's owner, and reads it. A damaged session can't be acquired, only read.
    fn acquire(&self, session: SessionId) -> StoreFuture<'_, Option<(Epoch, StoredSession)>>;

    /// Writes a new session, which the caller owns. [`StoreError::Stale`] if there is a session with this id.
    fn create(&self, record: SessionRecord) -> StoreFuture<'_, Epoch>;

    /// Writes a session's record and its new events, all or nothing. Commits of one session happen in the order in
    /// which they were handed in. [`StoreError::Stale`] if the caller does not own the session any more, or if the
    /// session does not end where the caller thinks. [`StoreError::Duplicate`] if one of its `prompts` was accepted
    /// before.
    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()>;

    /// Stores the totals of a session that was stored without them. They were counted from its log up to `last_seq`:
    /// nothing is written if the session has gone on since, or has totals already. Everything else of the session stays
    /// as it is, the time of its last change too. Any node may do this, since all of them count the same.
    fn backfill_summary(
        &self,
        session: SessionId,
        last_seq: u64,
        summary: Arc<Summary>,
    ) -> StoreFuture<'_, ()>;

    /// A page of sessions, the last changed first; of two that changed at the same time, the smaller id first.
    fn list(&self, query: SessionQuery) -> StoreFuture<'_, Vec<ListedSession>>;

    /// The last used working directories of these owners' sessions, each once.
    fn recent_cwds(&self, owners: Owners, limit: usize) -> StoreFuture<'_, Vec<String>>;

    /// The sessions that are to be deleted at some time, the first one first.
    fn deletions(&self) -> StoreFuture<'_, Vec<(SessionId, Timestamp)>>;

    /// Sessions in which nothing has happened since then and nothing waits: at most `limit`, after that id, by id.
    fn unused_since(
        &self,
        time: Timestamp,
        after: Option<SessionId>,
        limit: u32,
    ) -> StoreFuture<'_, Vec<SessionId>>;

    /// Removes a session and everything that belongs to it. Not an error if it does not exist.
    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()>;

    /// A page of prompts and messages, oldest first.
    fn history(&self, session: SessionId, page: Page) -> StoreFuture<'_, Vec<HistoryEntry>>;

    /// The first `limit` events after `after`, in order.
    fn replay(&self, session: SessionId, after: u64, limit: u32) -> StoreFuture<'_, Vec<Event>>;

    /// What was sent to the agent from event `since` on: the prompt with that number and the answers after it, in order.
    fn agent_input_since(&self, session: SessionId, since: u64) -> StoreFuture<'_, Vec<Event>>;

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

/// How often a session was acquired. The owner with the highest epoch is the owner.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Epoch(pub u64);

/// One step of a session.
#[derive(Clone, Debug)]
pub struct Commit {
    /// That of the owner who writes.
    pub epoch: Epoch,
    /// The number of the last event that the owner knows to be stored.
    pub expected_last_seq: u64,
    pub record: SessionRecord,
    pub events: Vec<Arc<Event>>,
    /// Images of the prompts among the events and in the queue; those that are kept already may come again.
    pub images: Vec<Image>,
    /// The prompts that are accepted with this step, each for the first time.
    pub prompts: Vec<PromptId>,
}

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredSession {
    Readable {
        record: Box<SessionRecord>,
        /// The decisions that wait, the oldest first.
        pending: Vec<DecisionRequest>,
    },
    Damaged(DamagedSession),
}

/// A session whose rows can't be read. They are kept as they are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DamagedSession {
    pub id: SessionId,
    pub owner: Option<String>,
    pub title: String,
    pub cwd: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// What can't be read.
    pub reason: String,
}

/// A session as a list has it.
#[derive(Clone, Debug, PartialEq)]
pub enum ListedSession {
    Readable {
        record: Box<SessionRecord>,
        /// How many decisions wait.
        pending: usize,
    },
    Damaged(DamagedSession),
}

impl ListedSession {
    pub fn id(&self) -> SessionId {
        match self {
            Self::Readable { record, .. } => record.id,
            Self::Damaged(damaged) => damaged.id,
        }
    }

    /// The place of this session in the list; a page after it begins with the next session.
    pub fn cursor(&self) -> SessionCursor {
        let (updated_at, id) = match self {
            Self::Readable { record, .. } => (record.updated_at, record.id),
            Self::Damaged(damaged) => (damaged.updated_at, damaged.id),
        };
        SessionCursor { updated_at, id }
    }
}

/// A session that an earlier owner was in the middle of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnfinishedSession {
    pub id: SessionId,
    /// The name of the agent's run, if one is recorded and can be read.
    pub run: Option<String>,
}

/// Whose sessions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Owners {
    #[default]
    All,
    /// Those that were started with this key.
    Key(String),
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionQuery {
    pub owners: Owners,
    /// Only those that work in this folder.
    pub cwd: Option<String>,
    /// Only those that have one of these ids, or whose conversation has. Empty: all.
    pub conversations: Vec<String>,
    /// Only those that are stored without totals.
    pub without_summary: bool,
    /// Begins after this place.
    pub after: Option<SessionCursor>,
    /// `None`: all.
    pub limit: Option<u32>,
}

/// An entry of a session's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    pub seq: u64,
    pub kind: HistoryKind,
    /// The prompt as clients read it, or the agent's message.
    pub json: RawJson,
}

/// What an entry of a history is. Its JSON does not tell: an agent may write anything, also what looks like a prompt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HistoryKind {
    Prompt,
    /// A message of the agent, or the notice that stands in place of one that can't be read.
    Message,
}

/// A place in the list of sessions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SessionCursor {
    pub updated_at: Timestamp,
    pub id: SessionId,
}

impl fmt::Display for SessionCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.updated_at.0, self.id)
    }
}

impl FromStr for SessionCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (updated_at, id) = text.split_once('.').ok_or(InvalidCursor)?;
        Ok(Self {
            updated_at: Timestamp(updated_at.parse().map_err(|_| InvalidCursor)?),
            id: id.parse().map_err(|_| InvalidCursor)?,
        })
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("The cursor is not one that a list was answered with.")]
pub struct InvalidCursor;

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
    /// Nothing was written: another owner has taken the session over since.
    #[error("Another server has taken over this session.")]
    Stale,
    /// What is on disk does not make sense.
    #[error("The database is damaged: {0}")]
    Damaged(String),
}
