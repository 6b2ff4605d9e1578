//! Sessions, their events, and their notes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use tiller_core::audit::AuditEntry;
use tiller_core::{
    AcceptedPrompt, Arrange, Arranged, Arrangement, Commit, Decided, Epoch, Event, EventBody, Extent,
    HistoryEntry, HistoryKind, Image, ListFilter, ListedSession, Owners, Page, PromptId, RawJson, SessionId,
    SessionQuery, SessionRecord, SessionStatus, Store, StoreError, StoreFuture, StoredSession, Timestamp,
    UnfinishedSession,
};
use tiller_message::{PieceEntry, StreamedPieces, Summary};

use super::{DAMAGED, Data, Decision, MemorySession, MemoryStore, entry};

/// The epoch of a new session, which its creator owns.
const FIRST_EPOCH: u64 = 1;

impl Store for MemoryStore {
    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedSession>> {
        self.read(|data| {
            let unfinished = data.sessions.values().filter(|session| session.is_unfinished());
            Ok(unfinished
                .map(|session| UnfinishedSession {
                    id: session.record.id,
                    run: session.record.run.as_ref().map(|run| run.name.clone()),
                })
                .collect())
        })
    }

    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<StoredSession>> {
        self.read(move |data| Ok(data.find(session).map(MemorySession::stored)))
    }

    fn acquire(&self, session: SessionId) -> StoreFuture<'_, Option<(Epoch, StoredSession)>> {
        self.write(move |data| {
            Ok(data.sessions.get_mut(&session).map(|session| {
                session.epoch += 1;
                (Epoch(session.epoch), session.stored())
            }))
        })
    }

    fn create(&self, record: SessionRecord) -> StoreFuture<'_, Epoch> {
        self.write(move |data| {
            if data.sessions.contains_key(&record.id) {
                return Err(StoreError::Stale);
            }
            data.sessions
                .insert(record.id, MemorySession::new(FIRST_EPOCH, record));
            Ok(Epoch(FIRST_EPOCH))
        })
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            check(data, &commit)?;
            apply(data, commit);
            Ok(())
        })
    }

    fn backfill_summary(
        &self,
        session: SessionId,
        last_seq: u64,
        summary: Arc<Summary>,
    ) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            if let Some(session) = data.sessions.get_mut(&session)
                && session.record.last_seq == last_seq
            {
                session.record.summary.get_or_insert(summary);
            }
            Ok(())
        })
    }

    fn list(&self, query: SessionQuery) -> StoreFuture<'_, Vec<ListedSession>> {
        self.read(move |data| {
            let mut found: Vec<_> = newest_first(data, &query.owners)
                .filter(|session| {
                    is_wanted(&session.record, &query) && is_among(data, session, query.only.as_ref())
                })
                .map(MemorySession::listed)
                .collect();
            if let Some(limit) = query.limit {
                found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            }
            Ok(found)
        })
    }

    fn recent_cwds(&self, owners: Owners, limit: usize) -> StoreFuture<'_, Vec<String>> {
        self.read(move |data| {
            let mut known = HashSet::new();
            let cwds = newest_first(data, &owners).map(|session| &session.record.cwd);
            Ok(cwds
                .filter(|cwd| known.insert(*cwd))
                .take(limit)
                .cloned()
                .collect())
        })
    }

    fn deletions(&self) -> StoreFuture<'_, Vec<(SessionId, Timestamp)>> {
        self.read(|data| {
            let sessions = data.sessions.values();
            let mut due: Vec<_> = sessions
                .filter_map(|session| Some((session.record.id, session.record.delete_at?)))
                .collect();
            due.sort_by_key(|(_, at)| *at);
            Ok(due)
        })
    }

    fn unused_since(
        &self,
        time: Timestamp,
        after: Option<SessionId>,
        limit: u32,
    ) -> StoreFuture<'_, Vec<SessionId>> {
        self.read(move |data| {
            let is_unused = |session: &&MemorySession| {
                let record = &session.record;
                after.is_none_or(|after| record.id > after)
                    && record.updated_at < time
                    && record.status != SessionStatus::Running
                    && record.queue.is_empty()
                    && !session.has_pending()
            };
            let unused = data.sessions.values().filter(is_unused);
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            Ok(unused.map(|session| session.record.id).take(limit).collect())
        })
    }

    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            data.sessions.remove(&session);
            data.arrangements.forget(session);
            data.names.retain(|_, named| *named != session);
            data.prompts.retain(|_, accepted| accepted.session != session);
            Ok(())
        })
    }

    fn history(&self, session: SessionId, page: Page) -> StoreFuture<'_, Vec<HistoryEntry>> {
        self.read(move |data| history(data, session, page))
    }

    fn statuses(&self, session: SessionId, first: u64, last: u64) -> StoreFuture<'_, Vec<Event>> {
        self.read(move |data| {
            let Some(session) = data.find(session) else {
                return Ok(Vec::new());
            };
            let events = session.events.range(first..=last).map(|(_, event)| event);
            let statuses = events.filter(|event| matches!(event.body, EventBody::Status(_)));
            Ok(statuses.cloned().collect())
        })
    }

    fn decided(&self, session: SessionId) -> StoreFuture<'_, Vec<Decided>> {
        self.read(move |data| {
            let found = data.find(session);
            Ok(found.map_or_else(Vec::new, |session| session.decided.clone()))
        })
    }

    fn replay(&self, session: SessionId, after: u64, limit: u32) -> StoreFuture<'_, Vec<Event>> {
        self.read(move |data| {
            let (Some(session), Some(first)) = (data.find(session), after.checked_add(1)) else {
                return Ok(Vec::new());
            };
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let events = session.events.range(first..).take(limit);
            Ok(events.map(|(_, event)| event.clone()).collect())
        })
    }

    fn agent_input_since(&self, session: SessionId, since: u64) -> StoreFuture<'_, Vec<Event>> {
        self.read(move |data| {
            let Some(session) = data.find(session) else {
                return Ok(Vec::new());
            };
            if session.damage.is_some() {
                return Err(StoreError::Damaged(DAMAGED.to_owned()));
            }
            let events = session.events.range(since..).filter(|(seq, event)| {
                let is_answer = matches!(event.body, EventBody::DecisionResolved { .. });
                is_answer && **seq > since || is_message(event) && **seq == since
            });
            Ok(events.map(|(_, event)| event.clone()).collect())
        })
    }

    fn accepted_prompt(
        &self,
        owner: Option<String>,
        prompt: PromptId,
    ) -> StoreFuture<'_, Option<AcceptedPrompt>> {
        self.read(move |data| Ok(data.prompts.get(&(owner, prompt)).copied()))
    }

    fn named(&self, owner: Option<String>, name: String) -> StoreFuture<'_, Option<SessionId>> {
        self.read(move |data| Ok(data.names.get(&(owner, name)).copied()))
    }

    fn claim_name(
        &self,
        owner: Option<String>,
        name: String,
        session: SessionId,
    ) -> StoreFuture<'_, SessionId> {
        self.write(move |data| Ok(*data.names.entry((owner, name)).or_insert(session)))
    }

    fn note(&self, session: SessionId, key: String, value: RawJson) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            if let Some(session) = data.sessions.get_mut(&session) {
                session.notes.insert(key, value);
            }
            Ok(())
        })
    }

    fn notes(&self, prefix: String) -> StoreFuture<'_, Vec<(SessionId, String, RawJson)>> {
        self.read(move |data| {
            let of_session = |session: &MemorySession| {
                let notes = session.notes.iter().filter(|(key, _)| key.starts_with(&prefix));
                notes
                    .map(|(key, value)| (session.record.id, key.clone(), value.clone()))
                    .collect::<Vec<_>>()
            };
            Ok(data.sessions.values().flat_map(of_session).collect())
        })
    }

    fn note_of(&self, session: SessionId, key: String) -> StoreFuture<'_, Option<RawJson>> {
        self.read(move |data| {
            Ok(data
                .find(session)
                .and_then(|session| session.notes.get(&key).cloned()))
        })
    }

    fn erase_notes(&self, session: SessionId, prefix: String) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            if let Some(session) = data.sessions.get_mut(&session) {
                session.notes.retain(|key, _| !key.starts_with(&prefix));
            }
            Ok(())
        })
    }

    fn arrangement(&self, viewer: Option<String>) -> StoreFuture<'_, Arrangement> {
        self.read(move |data| Ok(data.arrangements.of(viewer.as_deref())))
    }

    fn arrange(&self, viewer: Option<String>, change: Arrange) -> StoreFuture<'_, Option<Arranged>> {
        self.write(move |data| {
            if let Arrange::Session(session, _) = change
                && data.find(session).is_none()
            {
                return Ok(None);
            }
            Ok(Some(data.arrangements.change(viewer, change)))
        })
    }

    fn fork(&self, source: SessionId, mut record: SessionRecord, extent: Extent) -> StoreFuture<'_, u64> {
        self.write(move |data| {
            if data.sessions.contains_key(&record.id) {
                return Err(StoreError::Stale);
            }
            let id = record.id;
            let (events, images, decided): (BTreeMap<_, _>, _, _) = match data.find(source) {
                Some(source) => {
                    let is_copied = |event: &&Event| {
                        let seq = event.seq;
                        is_message(event)
                            && extent.through.is_none_or(|through| seq <= through)
                            && !extent.without.iter().any(|part| part.contains(seq))
                    };
                    let messages = source.events.values().filter(is_copied);
                    let copied = (1..).zip(messages).map(|(seq, event)| Event {
                        session: id,
                        seq,
                        ..event.clone()
                    });
                    let copied = copied.map(|event| (event.seq, event)).collect();
                    (copied, source.images.clone(), source.decided.clone())
                }
                None => Default::default(),
            };
            record.last_seq = events.len() as u64;
            let copy = MemorySession {
                events,
                decided,
                images,
                ..MemorySession::new(0, record)
            };
            let last_seq = copy.record.last_seq;
            data.sessions.insert(id, copy);
            Ok(last_seq)
        })
    }

    fn compact(&self, before: Timestamp) -> StoreFuture<'_, u64> {
        self.write(move |data| {
            let resting = data.sessions.values_mut();
            let resting = resting.filter(|session| session.record.status != SessionStatus::Running);
            Ok(resting.map(|session| compact(session, before)).sum())
        })
    }

    fn image(&self, session: SessionId, id: String) -> StoreFuture<'_, Option<Image>> {
        self.read(move |data| {
            Ok(data
                .find(session)
                .and_then(|session| session.images.get(&id).cloned()))
        })
    }
}

/// Whether the event is part of the history.
fn is_message(event: &Event) -> bool {
    matches!(
        event.body,
        EventBody::UserPrompt { .. } | EventBody::Message { .. } | EventBody::Unreadable(_)
    )
}

/// Checks everything for which a commit can be refused. Changes nothing.
fn check(data: &Data, commit: &Commit) -> Result<(), StoreError> {
    let session = data.find(commit.record.id).ok_or(StoreError::Stale)?;
    if Epoch(session.epoch) != commit.epoch || session.record.last_seq != commit.expected_last_seq {
        return Err(StoreError::Stale);
    }
    let owner = &commit.record.owner;
    let mut accepted = HashSet::new();
    for prompt in &commit.prompts {
        let before = data.prompts.get(&(owner.clone(), *prompt));
        if let Some(before) = before {
            return Err(StoreError::Duplicate {
                session: before.session,
            });
        }
        if !accepted.insert(*prompt) {
            return Err(StoreError::Duplicate {
                session: commit.record.id,
            });
        }
    }
    let mut numbers = HashSet::new();
    for event in &commit.events {
        if session.events.contains_key(&event.seq) || !numbers.insert(event.seq) {
            let reason = format!("the session has an event {} already", event.seq);
            return Err(StoreError::Unavailable(reason));
        }
    }
    Ok(())
}

/// Writes a commit that was checked.
fn apply(data: &mut Data, commit: Commit) {
    let Commit {
        record,
        events,
        images,
        prompts,
        ..
    } = commit;
    let (id, owner) = (record.id, record.owner.clone());
    let Some(session) = data.sessions.get_mut(&id) else {
        return;
    };
    session.record = SessionRecord {
        owner: session.record.owner.clone(),
        created_at: session.record.created_at,
        ..record
    };
    for image in images {
        session.images.entry(image.id.clone()).or_insert(image);
    }
    for prompt in prompts {
        let accepted = AcceptedPrompt {
            session: id,
            seq: None,
        };
        data.prompts.insert((owner.clone(), prompt), accepted);
    }
    let mut decided = Vec::new();
    for event in events {
        if let EventBody::DecisionResolved { request, .. } = &event.body {
            let mut asked = session.decisions.iter().map(|decision| &decision.request);
            let asked = asked.find(|asked| asked.id == *request);
            let known = asked.map(|asked| (asked.tool_name.as_str(), asked.input.as_str()));
            decided.extend(AuditEntry::decided(&event, known));
        }
        let mut event = Arc::unwrap_or_clone(event);
        match &mut event.body {
            EventBody::UserPrompt { prompt } => {
                let accepted = data.prompts.entry((owner.clone(), prompt.id));
                // The id of a prompt that was copied with a fork stays with the session in which it was accepted.
                let accepted = accepted.or_insert(AcceptedPrompt {
                    session: id,
                    seq: None,
                });
                if accepted.session == id {
                    accepted.seq = Some(event.seq);
                }
            }
            EventBody::DecisionRequested(request) => session.decisions.push(Decision {
                request: (**request).clone(),
                asked_at: event.at,
                is_open: true,
            }),
            EventBody::DecisionResolved {
                request,
                tool_use_id,
                behavior,
                reply,
            } => {
                let asked = session.decisions.iter_mut();
                for decision in asked.filter(|decision| decision.request.id == *request) {
                    decision.is_open = false;
                }
                let edited = reply.as_deref().and_then(|reply| reply.edited_input().cloned());
                let decided = Decided {
                    tool_use_id: tool_use_id.clone(),
                    behavior: *behavior,
                    edited,
                };
                session
                    .decided
                    .extend(Some(decided).filter(Decided::is_worth_telling));
            }
            // Not part of the log.
            EventBody::Status(change) => change.cause = None,
            EventBody::Message { .. } | EventBody::Unreadable(_) => {}
        }
        session.events.insert(event.seq, event);
    }
    for entry in decided {
        data.append(&entry);
    }
}

/// The sessions of these owners, the most recently changed first; ties are ordered by id.
fn newest_first<'a>(data: &'a Data, owners: &Owners) -> impl Iterator<Item = &'a MemorySession> {
    let is_theirs = |session: &&MemorySession| match owners {
        Owners::All => true,
        Owners::Seen {
            key,
            sessions,
            folders,
        } => {
            let record = &session.record;
            let is_beneath = |folder: &String| Path::new(&record.cwd).starts_with(folder);
            record.owner.as_ref() == Some(key)
                || sessions.contains(&record.id)
                || folders.iter().any(is_beneath)
        }
    };
    let mut sessions: Vec<_> = data.sessions.values().filter(is_theirs).collect();
    sessions.sort_by_key(|session| Reverse(session.record.updated_at));
    sessions.into_iter()
}

fn is_among(data: &Data, session: &MemorySession, only: Option<&ListFilter>) -> bool {
    match only {
        None => true,
        Some(ListFilter::Waiting) => session.has_pending(),
        Some(ListFilter::Running) => session.record.status == SessionStatus::Running,
        Some(ListFilter::ArrangedBy(viewer)) => data.arrangements.has(viewer.as_deref(), session.record.id),
    }
}

fn is_wanted(record: &SessionRecord, query: &SessionQuery) -> bool {
    let is_conversation =
        |id: &String| record.id.to_string() == *id || record.conversation.as_ref() == Some(id);
    query.cwd.as_ref().is_none_or(|cwd| record.cwd == *cwd)
        && (!query.without_summary || record.summary.is_none())
        && (query.conversations.is_empty() || query.conversations.iter().any(is_conversation))
        && query.after.is_none_or(|after| {
            record.updated_at < after.updated_at
                || record.updated_at == after.updated_at && record.id > after.id
        })
}

fn history(data: &Data, session: SessionId, page: Page) -> Result<Vec<HistoryEntry>, StoreError> {
    let Some(session) = data.find(session) else {
        return Ok(Vec::new());
    };
    let mut entries = Vec::new();
    for (seq, event) in &session.events {
        let kind = match event.body {
            EventBody::UserPrompt { .. } => HistoryKind::Prompt,
            _ => HistoryKind::Message,
        };
        if let Some(json) = entry(&event.body)? {
            let seq = *seq;
            let at = event.at;
            entries.push(HistoryEntry { seq, at, kind, json });
        }
    }
    let count = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
    match page {
        Page::All => {}
        Page::After { seq, limit } => {
            entries.retain(|entry| entry.seq > seq);
            entries.truncate(count(limit));
        }
        Page::Before { limit, .. } | Page::Last { limit } => {
            if let Page::Before { seq, .. } = page {
                entries.retain(|entry| entry.seq < seq);
            }
            entries.drain(..entries.len().saturating_sub(count(limit)));
        }
    }
    Ok(entries)
}

/// Removes the fragments of finished messages that are older than that. Returns their number.
fn compact(session: &mut MemorySession, before: Timestamp) -> u64 {
    let new = session.events.range(session.compacted + 1..);
    let messages: Vec<_> = new.filter(|(_, event)| is_message(event)).collect();
    let is_old = |(_, event): &&(&u64, &Event)| event.at < before;
    let Some(to) = messages.iter().rev().find(is_old).map(|(seq, _)| **seq) else {
        return 0;
    };
    let mut pieces = StreamedPieces::default();
    for (seq, event) in messages {
        if *seq > to && pieces.first_undecided().is_none() {
            break;
        }
        // Prompts and unreadable lines don't matter here.
        if let EventBody::Message { raw, .. } = &event.body {
            pieces.push(PieceEntry::read(*seq, raw.as_str().as_bytes()), *seq <= to);
        }
    }
    pieces.finish();
    let removable = pieces.take_removable();
    for seq in &removable {
        session.events.remove(seq);
    }
    session.compacted = to;
    removable.len() as u64
}
