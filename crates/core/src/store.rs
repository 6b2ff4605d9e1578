//! The storage that the domain needs. `crates/store-suite` tests the same contract.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tiller_message::Summary;

use crate::arrangement::{Arrange, Arranged, Arrangement};
use crate::audit::AuditLog;
use crate::event::{Behavior, DecisionRequest, Event};
use crate::ids::{PromptId, SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Image;
use crate::registry::Page;
use crate::session::{RewoundPart, SessionRecord};

pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Stores sessions and their events. Writes survive a crash once their future returned `Ok`.
///
/// A session has one owner at a time: the actor that acquired it last. Each acquisition raises the session's epoch, and
/// a commit with an older epoch is refused, so that a stale owner can't write.
pub trait Store: AuditLog {
    /// The sessions that an earlier owner left unfinished: with a running turn, a started agent or a pending decision.
    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedSession>>;

    /// Reads a session. `None` if there is no such session.
    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<StoredSession>>;

    /// Makes the caller the session's owner and reads the session. A damaged session can't be acquired, only read.
    fn acquire(&self, session: SessionId) -> StoreFuture<'_, Option<(Epoch, StoredSession)>>;

    /// Writes a new session, which the caller owns. [`StoreError::Stale`] if a session with this id exists.
    fn create(&self, record: SessionRecord) -> StoreFuture<'_, Epoch>;

    /// Writes a session's record and its new events, all or nothing. Commits of one session are executed in the order
    /// of the calls. [`StoreError::Stale`] if the caller no longer owns the session, or if the session's last event is
    /// not the expected one. [`StoreError::Duplicate`] if one of its `prompts` was accepted before.
    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()>;

    /// Stores the totals of a session that was stored without them. They were counted from its log up to `last_seq`:
    /// nothing is written if the session has more events by now, or already has totals. The rest of the session stays
    /// unchanged, including the time of its last change. Any node may do this, since all of them count the same.
    fn backfill_summary(
        &self,
        session: SessionId,
        last_seq: u64,
        summary: Arc<Summary>,
    ) -> StoreFuture<'_, ()>;

    /// A page of sessions, the most recently changed first; ties are ordered by id.
    fn list(&self, query: SessionQuery) -> StoreFuture<'_, Vec<ListedSession>>;

    /// The most recently used working directories of these owners' sessions, without duplicates.
    fn recent_cwds(&self, owners: Owners, limit: usize) -> StoreFuture<'_, Vec<String>>;

    /// The sessions with a scheduled deletion, the earliest first.
    fn deletions(&self) -> StoreFuture<'_, Vec<(SessionId, Timestamp)>>;

    /// At most `limit` sessions without activity since then and with nothing pending, ordered by id, beginning after
    /// that id.
    fn unused_since(
        &self,
        time: Timestamp,
        after: Option<SessionId>,
        limit: u32,
    ) -> StoreFuture<'_, Vec<SessionId>>;

    /// Deletes a session and everything that belongs to it. Not an error if the session does not exist.
    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()>;

    /// A page of prompts and messages, oldest first.
    fn history(&self, session: SessionId, page: Page) -> StoreFuture<'_, Vec<HistoryEntry>>;

    /// The changes of status from event `first` to event `last`, in order.
    fn statuses(&self, session: SessionId, first: u64, last: u64) -> StoreFuture<'_, Vec<Event>>;

    /// How the decisions of a session ended that were not simply allowed as they were asked for. A fork knows those of
    /// its source.
    fn decided(&self, session: SessionId) -> StoreFuture<'_, Vec<Decided>>;

    /// The first `limit` events after `after`, in order.
    fn replay(&self, session: SessionId, after: u64, limit: u32) -> StoreFuture<'_, Vec<Event>>;

    /// The inputs that were sent to the agent from event `since` on: the prompt with that number and the answers after
    /// it, in order.
    fn agent_input_since(&self, session: SessionId, since: u64) -> StoreFuture<'_, Vec<Event>>;

    /// Where the prompt with this id was accepted, in a session of `owner`. Known for the session's lifetime, whatever
    /// became of the prompt.
    fn accepted_prompt(
        &self,
        owner: Option<String>,
        prompt: PromptId,
    ) -> StoreFuture<'_, Option<AcceptedPrompt>>;

    /// The session that `owner` knows under `name`.
    fn named(&self, owner: Option<String>, name: String) -> StoreFuture<'_, Option<SessionId>>;

    /// Gives `session` the name `name`, unless another session of `owner` has it. Returns the session that has the
    /// name. A name is deleted with its session.
    fn claim_name(
        &self,
        owner: Option<String>,
        name: String,
        session: SessionId,
    ) -> StoreFuture<'_, SessionId>;

    /// Stores a note of a front door, replacing the note under this key. Deleted with the session; not stored if the
    /// session does not exist.
    fn note(&self, session: SessionId, key: String, value: RawJson) -> StoreFuture<'_, ()>;

    /// All notes whose keys begin with `prefix`, of all sessions.
    fn notes(&self, prefix: String) -> StoreFuture<'_, Vec<(SessionId, String, RawJson)>>;

    /// The note of this session under this key.
    fn note_of(&self, session: SessionId, key: String) -> StoreFuture<'_, Option<RawJson>>;

    /// Deletes the session's notes whose keys begin with `prefix`.
    fn erase_notes(&self, session: SessionId, prefix: String) -> StoreFuture<'_, ()>;

    /// How the viewer has arranged their sessions: a key by its id, or the person at the machine.
    fn arrangement(&self, viewer: Option<String>) -> StoreFuture<'_, Arrangement>;

    /// Changes a viewer's arrangement, and nobody else's; what has changed. `None`: there is no such session. A placement
    /// goes away with its session. A session that is put into a group that does not exist is in none.
    fn arrange(&self, viewer: Option<String>, change: Arrange) -> StoreFuture<'_, Option<Arranged>>;

    /// Writes a new session with a copy of that much of `source`, numbered from 1. Returns the number of its last event.
    fn fork(&self, source: SessionId, record: SessionRecord, extent: Extent) -> StoreFuture<'_, u64>;

    /// Removes the streamed fragments (`stream_event`) of messages from before that time, in sessions without a running
    /// turn. Whole messages stay, and so do the fragments of messages that were never finished. No number is reused.
    /// Returns free space to the system, and the number of removed fragments.
    fn compact(&self, before: Timestamp) -> StoreFuture<'_, u64>;

    /// An image that was committed with a prompt of this session.
    fn image(&self, session: SessionId, id: String) -> StoreFuture<'_, Option<Image>>;
}

/// How often a session was acquired. The highest epoch belongs to the current owner.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Epoch(pub u64);

/// One atomic write to a session.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The epoch of the owner who writes.
    pub epoch: Epoch,
    /// The number of the last event that the owner knows to be stored.
    pub expected_last_seq: u64,
    pub record: SessionRecord,
    pub events: Vec<Arc<Event>>,
    /// Images of the prompts among the events and in the queue. Images that are already stored may be repeated.
    pub images: Vec<Image>,
    /// The prompts that this step accepts for the first time.
    pub prompts: Vec<PromptId>,
}

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredSession {
    Readable {
        record: Box<SessionRecord>,
        /// The pending decisions, oldest first.
        pending: Vec<DecisionRequest>,
    },
    Damaged(DamagedSession),
}

/// A session whose rows can't be read. They are kept unchanged.
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

/// A session in a list.
#[derive(Clone, Debug, PartialEq)]
pub enum ListedSession {
    Readable {
        record: Box<SessionRecord>,
        /// The number of pending decisions.
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

    /// The position of this session in the list. A page after it begins with the next session.
    pub fn cursor(&self) -> SessionCursor {
        let (updated_at, id) = match self {
            Self::Readable { record, .. } => (record.updated_at, record.id),
            Self::Damaged(damaged) => (damaged.updated_at, damaged.id),
        };
        SessionCursor { updated_at, id }
    }
}

/// A session that an earlier owner left unfinished.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnfinishedSession {
    pub id: SessionId,
    /// The name of the agent's run, if it is stored and can be read.
    pub run: Option<String>,
}

/// Whose sessions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Owners {
    #[default]
    All,
    /// The sessions that were started with this key, those that are listed, and those in these folders or beneath them.
    Seen {
        key: String,
        sessions: Vec<SessionId>,
        folders: Vec<String>,
    },
}

impl Owners {
    /// Only the sessions that were started with this key.
    pub fn key(key: &str) -> Self {
        Self::Seen {
            key: key.to_owned(),
            sessions: Vec::new(),
            folders: Vec::new(),
        }
    }
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionQuery {
    pub owners: Owners,
    /// Only sessions in this folder.
    pub cwd: Option<String>,
    /// Only sessions with one of these ids, or whose conversation has one of them. Empty: all.
    pub conversations: Vec<String>,
    /// Only sessions that are stored without totals.
    pub without_summary: bool,
    /// Only these. `None`: all.
    pub only: Option<ListFilter>,
    /// Begins after this position.
    pub after: Option<SessionCursor>,
    /// `None`: all.
    pub limit: Option<u32>,
}

/// How much of a session a fork begins with.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Extent {
    /// The number of the last event. `None`: all there are.
    pub through: Option<u64>,
    /// What is left out of it.
    pub without: Vec<RewoundPart>,
}

/// Which sessions a list is limited to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ListFilter {
    /// Those in which a decision waits.
    Waiting,
    /// Those in which a turn runs.
    Running,
    /// Those for which this viewer has chosen something: a key by its id, or the person at the machine.
    ArrangedBy(Option<String>),
}

/// An entry of a session's history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    pub seq: u64,
    pub at: Timestamp,
    pub kind: HistoryKind,
    /// The prompt as clients read it, or the agent's message.
    pub json: RawJson,
}

/// The kind of a history entry. Its JSON does not tell: an agent may write anything, including JSON that looks like a
/// prompt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HistoryKind {
    Prompt,
    /// A message of the agent, or the notice that replaces an unreadable one.
    Message,
}

/// How a decision ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    pub tool_use_id: String,
    pub behavior: Behavior,
    /// What ran, where a person changed what was asked for.
    pub edited: Option<RawJson>,
}

impl Decided {
    /// Not one that was simply allowed as it was asked for.
    pub fn is_worth_telling(&self) -> bool {
        self.behavior != Behavior::Allow || self.edited.is_some()
    }
}

/// A position in the list of sessions.
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
#[error("The cursor is invalid. Use one that an earlier list returned.")]
pub struct InvalidCursor;

/// Where and when a prompt was accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AcceptedPrompt {
    pub session: SessionId,
    /// The number of its event. `None`: its turn has not begun, or never will because the prompt was removed from the
    /// queue.
    pub seq: Option<u64>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was written. A retry may succeed once there is space.
    #[error("The disk is full. Free some space, then try again.")]
    Full,
    /// Nothing was written. A retry may succeed later.
    #[error("The database can't be used right now: {0}")]
    Unavailable(String),
    /// Nothing was written: a prompt of the commit was already accepted, in this session of the same owner.
    #[error("The prompt was accepted before.")]
    Duplicate { session: SessionId },
    /// Nothing was written: another owner has acquired the session in the meantime.
    #[error("Another server has taken over this session.")]
    Stale,
    /// The stored data can't be interpreted.
    #[error(
        "The database sessions.db is damaged: {0}. Stop Tiller, then put back a copy of the file, or move it and \
         sessions.db-wal away to begin without sessions. `tiller doctor` names the folder."
    )]
    Damaged(String),
}
