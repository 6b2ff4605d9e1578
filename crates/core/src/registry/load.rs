//! Which sessions are in memory. A session has an actor from its first use on, or from the server's start if an earlier
//! server left it unfinished, until it has been idle for a while. All other sessions are only in the store.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::{OnceCell, oneshot};

use super::{CommandError, Sessions};
use crate::event::{DecisionRequest, Event};
use crate::hub::FeedPosition;
use crate::ids::{SessionId, Timestamp};
use crate::rights::Provenance;
use crate::session::{
    ActorHandle, AgentStatus, Command, CommandFailed, Input, SessionRecord, SessionStatus, State,
    TitleSource, spawn, totals,
};
use crate::store::{
    DamagedSession, Epoch, ListFilter, ListedSession, Owners, SessionCursor, SessionQuery, StoreError,
    StoredSession,
};

/// What a session here says of its conversation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KnownConversation {
    pub session: SessionId,
    /// The title that a person gave the session.
    pub title: Option<String>,
}

/// How many of a session's latest events are compared with the output of an agent after a reconnect: a duplicate line
/// follows its original closely.
const RECENT: u32 = 512;

/// How many events are read at once to count the totals of a session from its log.
const COUNTED_AT_ONCE: u32 = 4096;

/// How many sessions are recovered at once when a server starts. Their commits share transactions.
const RECOVERED_AT_ONCE: usize = 64;

/// How many sessions are read at once where all are asked for.
const LIST_PAGE: u32 = 1000;

/// How long a session without an agent stays in memory after its last event.
const IDLE: Duration = Duration::from_mins(30);

/// The slot of a session's actor. Empty while one task loads or creates the session.
pub(super) type Slot = Arc<OnceCell<ActorHandle>>;

/// A page of sessions, the most recently changed first.
#[derive(Clone, Debug)]
pub struct SessionPage {
    pub sessions: Vec<ListedSession>,
    /// The start of the next page. `None`: this is the last page.
    pub next: Option<SessionCursor>,
}

/// How things stand with all sessions of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Census {
    /// Sessions in memory.
    pub loaded: usize,
    /// With a running turn.
    pub running: usize,
    /// With an agent process.
    pub agents: usize,
    /// Decisions that wait.
    pub waiting: usize,
    /// Prompts that wait for a turn to end.
    pub queued: usize,
    /// Events that were published since the server started.
    pub events: u64,
}

impl Sessions {
    /// Counts what is in memory, whoever may see it.
    pub fn census(&self) -> Census {
        let mut census = Census {
            events: self.shared.hub.published(),
            ..Census::default()
        };
        for (_, actor) in self.actors() {
            let view = actor.view.borrow();
            census.loaded += 1;
            census.running += usize::from(view.record.status == SessionStatus::Running);
            census.agents += usize::from(view.pid.is_some());
            census.waiting += view.pending.len();
            census.queued += view.record.queue.len();
        }
        census
    }

    /// Recovers the sessions that the last server left unfinished. The agent of a session that can't be read is ended,
    /// because nobody could steer it.
    pub(super) async fn recover(&self) -> Result<(), CommandError> {
        let (mut readable, mut runs) = (Vec::new(), HashSet::new());
        for session in self.shared.store.unfinished().await? {
            let Some(record) = self.recoverable(session.id).await? else {
                continue;
            };
            readable.push(session.id);
            // The run of a backend that this server does not have can't be continued.
            if self.shared.backends.find(record.backend.as_deref()).is_ok() {
                runs.extend(session.run);
            }
        }
        for backend in self.shared.backends.iter() {
            if let Some(leftovers) = backend.abilities().leftovers {
                leftovers.keep_only(runs.clone());
            }
        }
        let mut recovered = futures_util::stream::iter(readable)
            .map(|session| self.loaded_actor(session))
            .buffer_unordered(RECOVERED_AT_ONCE);
        while let Some(outcome) = recovered.next().await {
            outcome?;
        }
        Ok(())
    }

    /// The session's record, if everything that recovery needs can be read.
    async fn recoverable(&self, session: SessionId) -> Result<Option<SessionRecord>, CommandError> {
        let damage = match self.shared.store.load(session).await? {
            None => return Ok(None),
            Some(StoredSession::Damaged(damaged)) => damaged.reason,
            Some(StoredSession::Readable { record, .. }) => match self.recovery_events(&record).await {
                Ok(_) => return Ok(Some(*record)),
                Err(StoreError::Damaged(reason)) => reason,
                Err(error) => return Err(error.into()),
            },
        };
        // Listing a session does not read everything that recovery needs.
        self.damaged().insert(session, damage.clone());
        tracing::error!(%session, reason = damage, "a session can't be read; its data is kept unchanged");
        Ok(None)
    }

    /// A page of sessions, the most recently changed first, each with the number of pending decisions.
    pub async fn list(
        &self,
        only: Option<ListFilter>,
        after: Option<SessionCursor>,
        limit: Option<u32>,
    ) -> Result<SessionPage, CommandError> {
        let query = SessionQuery {
            owners: self.owners(),
            only,
            after,
            // One more than requested, to know whether there is another page.
            limit: limit.map(|limit| limit.saturating_add(1)),
            ..SessionQuery::default()
        };
        let mut sessions = self.shared.store.list(query).await?;
        let wanted = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut next = None;
        if sessions.len() > wanted {
            sessions.truncate(wanted);
            next = sessions.last().map(ListedSession::cursor);
        }
        self.add_live_state(&mut sessions);
        Ok(SessionPage { sessions, next })
    }

    /// Calls `each` with every session of this viewer, the most recently changed first, without holding all of them in
    /// memory.
    pub async fn for_each(&self, mut each: impl FnMut(ListedSession)) -> Result<(), CommandError> {
        let mut after = None;
        loop {
            let page = self.list(None, after, Some(LIST_PAGE)).await?;
            page.sessions.into_iter().for_each(&mut each);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The session with this id, or else the most recently changed session whose conversation has this id.
    pub async fn of_conversation(&self, id: &str) -> Result<Option<SessionRecord>, CommandError> {
        if let Ok(id) = id.parse() {
            match self.find(id).await {
                Ok((record, _)) => return Ok(Some(record)),
                Err(CommandError::UnknownSession) => {}
                Err(error) => return Err(error),
            }
        }
        let query = SessionQuery {
            owners: self.owners(),
            conversations: vec![id.to_owned()],
            ..SessionQuery::default()
        };
        self.first(query, |_| true).await
    }

    /// Which of these ids belong to sessions or to conversations of sessions, and to which.
    pub async fn known_conversations(
        &self,
        ids: Vec<String>,
    ) -> Result<HashMap<String, KnownConversation>, CommandError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let query = SessionQuery {
            owners: self.owners(),
            conversations: ids,
            ..SessionQuery::default()
        };
        let mut sessions = self.shared.store.list(query).await?;
        self.add_live_state(&mut sessions);
        let known = sessions.into_iter().flat_map(|session| {
            let (id, conversation, title) = match session {
                ListedSession::Readable { record, .. } => {
                    let is_users = record.title_source == TitleSource::User;
                    let title = is_users.then_some(record.title);
                    (record.id, record.conversation, title)
                }
                ListedSession::Damaged(damaged) => (damaged.id, None, None),
            };
            let known = KnownConversation { session: id, title };
            [Some(id.to_string()), conversation].map(|name| name.map(|name| (name, known.clone())))
        });
        Ok(known.flatten().collect())
    }

    /// The most recently changed session in this folder that `wanted` accepts.
    pub async fn newest_in(
        &self,
        cwd: &str,
        wanted: impl Fn(&SessionRecord) -> bool,
    ) -> Result<Option<SessionRecord>, CommandError> {
        let query = SessionQuery {
            owners: self.owners(),
            cwd: Some(cwd.to_owned()),
            ..SessionQuery::default()
        };
        self.first(query, wanted).await
    }

    async fn first(
        &self,
        mut query: SessionQuery,
        wanted: impl Fn(&SessionRecord) -> bool,
    ) -> Result<Option<SessionRecord>, CommandError> {
        query.limit = Some(LIST_PAGE);
        loop {
            let mut sessions = self.shared.store.list(query.clone()).await?;
            let Some(last) = sessions.last().map(ListedSession::cursor) else {
                return Ok(None);
            };
            self.add_live_state(&mut sessions);
            let found = sessions.into_iter().find_map(|session| match session {
                ListedSession::Readable { record, .. } if wanted(&record) => Some(*record),
                ListedSession::Readable { .. } | ListedSession::Damaged(_) => None,
            });
            if found.is_some() {
                return Ok(found);
            }
            query.after = Some(last);
        }
    }

    /// Working directories without duplicates, the most recently used first.
    pub async fn recent_cwds(&self, limit: usize) -> Result<Vec<String>, CommandError> {
        Ok(self.shared.store.recent_cwds(self.owners(), limit).await?)
    }

    /// A session and its pending decisions.
    pub async fn find(
        &self,
        session: SessionId,
    ) -> Result<(SessionRecord, Vec<DecisionRequest>), CommandError> {
        if let Some(actor) = self.actor(session) {
            let view = actor.view.borrow().clone();
            if !view.deleted && !self.viewer.may_see(&Provenance::of(&view.record)) {
                return Err(CommandError::UnknownSession);
            }
            // After an actor has ended, the store has its final state.
            if !actor.commands.is_closed() {
                return Ok((view.record.clone(), view.pending.clone()));
            }
        }
        let stored = self.shared.store.load(session).await?;
        self.readable(stored.ok_or(CommandError::UnknownSession)?)
    }

    /// Whether a session with this id exists and this viewer may see it, damaged or not.
    pub async fn exists(&self, session: SessionId) -> Result<bool, CommandError> {
        match self.find(session).await {
            Ok(_) | Err(CommandError::Damaged { .. }) => Ok(true),
            Err(CommandError::UnknownSession) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a turn runs in any session of this server.
    pub fn any_running(&self) -> bool {
        let actors = self.actors();
        let mut views = actors.iter().map(|(_, actor)| actor.view.borrow());
        views.any(|view| view.record.status == SessionStatus::Running)
    }

    /// The current position of the live feed. Later notices come after it.
    pub fn feed_position(&self) -> FeedPosition {
        self.shared.hub.feed_position()
    }

    /// The sessions with notices since that position.
    pub fn changed_since(&self, mark: FeedPosition) -> Vec<SessionId> {
        self.shared.hub.changed_since(mark, &self.viewer)
    }

    pub(super) fn owners(&self) -> Owners {
        self.viewer.owners()
    }

    /// A stored session, if this viewer may see it and it can be read. A session of another owner counts as unknown.
    fn readable(&self, stored: StoredSession) -> Result<(SessionRecord, Vec<DecisionRequest>), CommandError> {
        match stored {
            StoredSession::Readable { record, pending } if self.viewer.may_see(&Provenance::of(&record)) => {
                match self.damaged().get(&record.id) {
                    Some(reason) => Err(CommandError::Damaged {
                        reason: reason.clone(),
                    }),
                    None => Ok((*record, pending)),
                }
            }
            StoredSession::Damaged(damaged) if self.viewer.may_see(&Provenance::of_damaged(&damaged)) => {
                Err(CommandError::Damaged {
                    reason: damaged.reason,
                })
            }
            StoredSession::Readable { .. } | StoredSession::Damaged(_) => Err(CommandError::UnknownSession),
        }
    }

    /// Adds the current state of actors to a list that was read from the store.
    pub fn add_live_state(&self, sessions: &mut [ListedSession]) {
        let entries = self.entries();
        let damage = self.damaged();
        for session in sessions {
            let ListedSession::Readable { record, pending } = session else {
                continue;
            };
            if let Some(actor) = entries.get(&record.id).and_then(|slot| slot.get())
                && !actor.commands.is_closed()
            {
                let view = actor.view.borrow();
                **record = view.record.clone();
                *pending = view.pending.len();
            }
            if let Some(reason) = damage.get(&record.id) {
                *session = ListedSession::Damaged(damaged_record(record, reason.clone()));
            }
        }
    }

    /// The actor of a session, if the session is in memory.
    pub(super) fn actor(&self, session: SessionId) -> Option<ActorHandle> {
        self.entries().get(&session)?.get().cloned()
    }

    /// The actor of a session that this viewer may see. Loads the session if it is not in memory.
    pub(super) async fn loaded_actor(&self, session: SessionId) -> Result<ActorHandle, CommandError> {
        loop {
            if let Some(actor) = self.actor(session) {
                if !self.viewer.may_see(&Provenance::of(&actor.view.borrow().record)) {
                    return Err(CommandError::UnknownSession);
                }
                if !actor.commands.is_closed() {
                    return Ok(actor);
                }
                self.forget_ended(session);
            }
            // The owner is checked first: a viewer must not cause other owners' sessions to be loaded.
            let stored = self.shared.store.load(session).await?;
            self.readable(stored.ok_or(CommandError::UnknownSession)?)?;
            if self.is_stopping() {
                return Err(CommandError::Stopping);
            }
            let slot = Arc::clone(self.entries().entry(session).or_default());
            let loaded = slot.get_or_try_init(|| self.load_actor(session)).await.cloned();
            match loaded {
                Ok(actor) if actor.commands.is_closed() => self.forget_ended(session),
                Ok(actor) => return Ok(actor),
                Err(error) => {
                    self.forget_empty(session, &slot);
                    return Err(error);
                }
            }
        }
    }

    /// Acquires a session and recovers what an earlier owner left unfinished.
    async fn load_actor(&self, session: SessionId) -> Result<ActorHandle, CommandError> {
        let store = &self.shared.store;
        let acquired = store.acquire(session).await?;
        let (epoch, stored) = acquired.ok_or(CommandError::UnknownSession)?;
        let (record, pending) = match stored {
            StoredSession::Readable { record, pending } => (*record, pending),
            StoredSession::Damaged(DamagedSession { reason, .. }) => {
                return Err(CommandError::Damaged { reason });
            }
        };
        let mut record = record;
        self.complete_totals(&mut record).await?;
        let is_unfinished =
            record.status == SessionStatus::Running || record.run.is_some() || !pending.is_empty();
        if !is_unfinished {
            return Ok(self.spawn(epoch, record, pending));
        }
        let recovered = match self.recovery_events(&record).await {
            Ok((unconfirmed, recent)) => Input::Recovered { unconfirmed, recent },
            Err(StoreError::Damaged(reason)) => {
                self.damaged().insert(session, reason.clone());
                return Err(CommandError::Damaged { reason });
            }
            Err(error) => return Err(error.into()),
        };
        let actor = self.spawn(epoch, record, pending);
        let (reply, outcome) = oneshot::channel();
        let input = Command::Input {
            input: Box::new(recovered),
            images: Vec::new(),
            cause: None,
            reply,
        };
        let sent = actor.commands.send(input).await;
        sent.map_err(|_| CommandError::UnknownSession)?;
        match outcome.await {
            Ok(Ok(_)) => Ok(actor),
            Ok(Err(CommandFailed::Refused(refusal))) => Err(refusal.into()),
            Ok(Err(CommandFailed::Store(error))) => Err(error.into()),
            Err(_) => Err(CommandError::UnknownSession),
        }
    }

    /// Counts and stores the totals of a session that was stored without them.
    pub(super) async fn complete_totals(&self, record: &mut SessionRecord) -> Result<(), StoreError> {
        if record.summary.is_some() {
            return Ok(());
        }
        let mut summary = Arc::default();
        let mut after = 0;
        loop {
            let events = self
                .shared
                .store
                .replay(record.id, after, COUNTED_AT_ONCE)
                .await?;
            for event in events.iter().filter(|event| event.seq <= record.last_seq) {
                totals::add(&mut summary, event);
            }
            match events.last() {
                Some(last) if last.seq < record.last_seq => after = last.seq,
                _ => break,
            }
        }
        if record.run.is_none() {
            Arc::make_mut(&mut summary).agent_ended();
        }
        let (session, last_seq) = (record.id, record.last_seq);
        let stored = self
            .shared
            .store
            .backfill_summary(session, last_seq, Arc::clone(&summary));
        if let Err(error) = stored.await {
            tracing::warn!(%error, %session, "can't store the totals of a session; they are counted again when needed");
        }
        record.summary = Some(summary);
        Ok(())
    }

    /// The inputs that the agent of an unfinished session may have missed, and the session's latest events.
    async fn recovery_events(&self, record: &SessionRecord) -> Result<(Vec<Event>, Vec<Event>), StoreError> {
        let store = &self.shared.store;
        let unconfirmed = match record.turn {
            Some(turn) => store.agent_input_since(record.id, turn.prompt_seq).await?,
            None => Vec::new(),
        };
        let recent = if record.run.is_some() {
            let since = record.last_seq.saturating_sub(u64::from(RECENT));
            store.replay(record.id, since, RECENT).await?
        } else {
            Vec::new()
        };
        Ok((unconfirmed, recent))
    }

    pub(super) fn spawn(
        &self,
        epoch: Epoch,
        record: SessionRecord,
        pending: Vec<DecisionRequest>,
    ) -> ActorHandle {
        let shared = &self.shared;
        let backend = shared.backends.of(record.backend.as_deref());
        spawn(
            State::new(record, pending, backend.options()),
            epoch,
            Arc::clone(&shared.store),
            backend,
            Arc::clone(&shared.paths),
            shared.hub.clone(),
        )
    }

    /// Releases unused sessions from memory. The next use loads them again.
    pub(super) fn release_idle(&self, now: Timestamp) {
        let idle = i64::try_from(IDLE.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp(now.0.saturating_sub(idle));
        self.release_unused_since(before);
    }

    pub(super) fn release_unused_since(&self, time: Timestamp) {
        let mut released = Vec::new();
        self.entries().retain(|id, slot| {
            let keeps = slot.get().is_none_or(|actor| {
                let view = actor.view.borrow();
                // A caller that holds the slot or the actor is about to use it. Both are handed out under this lock.
                let is_used = Arc::strong_count(slot) > 1 || actor.commands.strong_count() > 1;
                let has_agent = !matches!(view.agent, AgentStatus::Absent | AgentStatus::Hibernated);
                let is_unfinished = view.record.run.is_some() || view.record.turn.is_some();
                is_used
                    || has_agent
                    || is_unfinished
                    || view.has_hooks
                    || !view.record.is_unused_since(time, &view.pending)
                    || !actor.tail.is_empty()
            });
            if !keeps {
                released.push(*id);
            }
            keeps
        });
        for session in released {
            tracing::debug!(%session, "released a session from memory");
        }
    }

    /// Removes an actor that has ended because its session was deleted or acquired by another owner.
    fn forget_ended(&self, session: SessionId) {
        let mut entries = self.entries();
        let ended = entries.get(&session).and_then(|slot| slot.get());
        if ended.is_some_and(|actor| actor.commands.is_closed()) {
            entries.remove(&session);
        }
    }

    /// Removes a slot that could not be filled, unless another task is about to fill it.
    pub(super) fn forget_empty(&self, session: SessionId, slot: &Slot) {
        let mut entries = self.entries();
        let is_last = entries
            .get(&session)
            .is_some_and(|found| Arc::ptr_eq(found, slot) && found.get().is_none())
            && Arc::strong_count(slot) == 2;
        if is_last {
            entries.remove(&session);
        }
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, HashMap<SessionId, Slot>> {
        // The map is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.shared.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sessions that turned out to be damaged when they were loaded, and why. A list from the store does not read
    /// enough to notice.
    pub(super) fn damaged(&self) -> MutexGuard<'_, HashMap<SessionId, String>> {
        self.shared.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The actors of all sessions that have one.
    pub(super) fn actors(&self) -> Vec<(SessionId, ActorHandle)> {
        let entries = self.entries();
        let actors = entries.iter();
        actors
            .filter_map(|(id, slot)| Some((*id, slot.get()?.clone())))
            .collect()
    }
}

/// A session whose record can be read, but not everything else.
fn damaged_record(record: &SessionRecord, reason: String) -> DamagedSession {
    DamagedSession {
        id: record.id,
        owner: record.owner.clone(),
        title: record.title.clone(),
        cwd: record.cwd.clone(),
        created_at: record.created_at,
        updated_at: record.updated_at,
        reason,
    }
}
