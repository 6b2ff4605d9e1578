//! A store in memory, for tests: it fulfils every contract except that data survives the process.
//!
//! Clones share their data. A test can delay writes, refuse them, and damage sessions, which with a store on disk takes
//! a full disk or a second process.

mod arrangement;
mod audit;
mod credentials;
mod sessions;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tiller_core::audit::AuditRecord;
use tiller_core::{
    AcceptedPrompt, DamagedSession, Decided, DecisionRequest, Event, EventBody, Image, ListedSession,
    PromptId, RawJson, SessionId, SessionRecord, SessionStatus, StoreError, StoreFuture, StoredSession,
    Timestamp,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::arrangement::Arrangements;
use self::credentials::Credentials;
use crate::Harness;

#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

struct Shared {
    /// Held for one operation, never across an await.
    data: Mutex<Data>,
    /// One write at a time, in the order of the calls.
    writing: Arc<Semaphore>,
    /// Why writes are refused, if they are.
    refusal: Mutex<Option<StoreError>>,
}

/// Writes wait while this exists.
#[must_use]
#[derive(Debug)]
pub struct HeldWrites {
    _turn: OwnedSemaphorePermit,
}

/// What can't be read of a damaged session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Damage {
    /// The record: the session can't be loaded.
    Record,
    /// The log: the record can be read, but not the agent's inputs.
    Log,
}

#[derive(Clone)]
struct Data {
    sessions: BTreeMap<SessionId, MemorySession>,
    /// By owner and name.
    names: HashMap<(Option<String>, String), SessionId>,
    /// By owner and id.
    prompts: HashMap<(Option<String>, PromptId), AcceptedPrompt>,
    arrangements: Arrangements,
    credentials: Credentials,
    audit: Vec<AuditRecord>,
}

#[derive(Clone)]
struct MemorySession {
    epoch: u64,
    record: SessionRecord,
    events: BTreeMap<u64, Event>,
    decisions: Vec<Decision>,
    /// How decisions ended that were not simply allowed.
    decided: Vec<Decided>,
    images: BTreeMap<String, Image>,
    notes: BTreeMap<String, RawJson>,
    /// The event up to which streamed fragments were removed.
    compacted: u64,
    damage: Option<Damage>,
}

#[derive(Clone)]
struct Decision {
    request: DecisionRequest,
    asked_at: Timestamp,
    is_open: bool,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::with(Data {
            sessions: BTreeMap::new(),
            names: HashMap::new(),
            prompts: HashMap::new(),
            arrangements: Arrangements::default(),
            credentials: Credentials::new(),
            audit: Vec::new(),
        })
    }
}

impl MemoryStore {
    fn with(data: Data) -> Self {
        Self {
            shared: Arc::new(Shared {
                data: Mutex::new(data),
                writing: Arc::new(Semaphore::new(1)),
                refusal: Mutex::default(),
            }),
        }
    }

    /// Makes all writes wait until the returned value is dropped. Waits for a write in progress.
    pub async fn hold_writes(&self) -> Result<HeldWrites, StoreError> {
        let turn = Arc::clone(&self.shared.writing).acquire_owned().await;
        turn.map(|turn| HeldWrites { _turn: turn })
            .map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// Refuses all writes from now on with this error, as a full disk does. `None`: accepts them again.
    pub fn refuse_writes(&self, error: Option<StoreError>) {
        *self.refusal() = error;
    }

    /// Makes a session unreadable.
    pub fn damage(&self, session: SessionId, damage: Damage) {
        if let Some(session) = self.data().sessions.get_mut(&session) {
            session.damage = Some(damage);
        }
    }

    fn data(&self) -> MutexGuard<'_, Data> {
        // Every operation checks before it changes anything, so a panic leaves the data consistent.
        self.shared.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self) -> MutexGuard<'_, Option<StoreError>> {
        self.shared.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<'a, T: Send + 'a>(
        &'a self,
        query: impl FnOnce(&Data) -> Result<T, StoreError> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move { query(&self.data()) })
    }

    /// All or nothing: `work` changes nothing if it fails.
    fn write<'a, T: Send + 'a>(
        &'a self,
        work: impl FnOnce(&mut Data) -> Result<T, StoreError> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let _turn = self.shared.writing.acquire().await;
            if let Some(error) = self.refusal().clone() {
                return Err(error);
            }
            work(&mut self.data())
        })
    }
}

impl Data {
    fn find(&self, session: SessionId) -> Option<&MemorySession> {
        self.sessions.get(&session)
    }
}

impl MemorySession {
    fn new(epoch: u64, record: SessionRecord) -> Self {
        Self {
            epoch,
            record,
            events: BTreeMap::new(),
            decisions: Vec::new(),
            decided: Vec::new(),
            images: BTreeMap::new(),
            notes: BTreeMap::new(),
            compacted: 0,
            damage: None,
        }
    }

    /// The pending decisions, oldest first.
    fn pending(&self) -> Vec<DecisionRequest> {
        let mut open: Vec<_> = self
            .decisions
            .iter()
            .filter(|decision| decision.is_open)
            .collect();
        open.sort_by_key(|decision| decision.asked_at);
        open.into_iter()
            .map(|decision| decision.request.clone())
            .collect()
    }

    fn is_unfinished(&self) -> bool {
        self.record.status == SessionStatus::Running
            || self.record.run.is_some()
            || self.record.turn.is_some()
            || self.has_pending()
    }

    fn has_pending(&self) -> bool {
        self.decisions.iter().any(|decision| decision.is_open)
    }

    fn stored(&self) -> StoredSession {
        match self.damage {
            Some(Damage::Record) => StoredSession::Damaged(self.damaged()),
            Some(Damage::Log) | None => StoredSession::Readable {
                record: Box::new(self.record.clone()),
                pending: self.pending(),
            },
        }
    }

    fn listed(&self) -> ListedSession {
        match self.damage {
            Some(Damage::Record) => ListedSession::Damaged(self.damaged()),
            Some(Damage::Log) | None => ListedSession::Readable {
                record: Box::new(self.record.clone()),
                pending: self.pending().len(),
            },
        }
    }

    fn damaged(&self) -> DamagedSession {
        let record = &self.record;
        DamagedSession {
            id: record.id,
            owner: record.owner.clone(),
            title: record.title.clone(),
            cwd: record.cwd.clone(),
            created_at: record.created_at,
            updated_at: record.updated_at,
            reason: DAMAGED.to_owned(),
        }
    }
}

const DAMAGED: &str = "a test has damaged it";

/// The kind of an event in a session's history, if it is a prompt or a message.
fn entry(body: &EventBody) -> Result<Option<RawJson>, StoreError> {
    match body {
        EventBody::UserPrompt { prompt } => {
            let entry = prompt.to_entry();
            entry
                .map(Some)
                .map_err(|error| StoreError::Unavailable(error.to_string()))
        }
        EventBody::Message { .. }
        | EventBody::Unreadable(_)
        | EventBody::Status(_)
        | EventBody::DecisionRequested(_)
        | EventBody::DecisionResolved { .. } => Ok(body.message()),
    }
}

impl Harness for MemoryStore {
    type Store = Self;

    const COPIES_IN_STEPS: bool = false;

    fn new() -> Self {
        Self::default()
    }

    fn open(&self) -> Self {
        self.clone()
    }

    fn after_crash(&self) -> Self {
        Self::with(self.data().clone())
    }
}
