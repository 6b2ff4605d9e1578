//! Reading a session: pages of its log, what happened after an event, and how decisions ended.

use std::sync::Arc;

use super::{CommandError, HistoryPage, Page, Sessions, allowed};
use crate::event::Event;
use crate::ids::SessionId;
use crate::store::{Decided, HistoryEntry, HistoryKind};

impl Sessions {
    pub async fn history(&self, session: SessionId, page: Page) -> Result<HistoryPage, CommandError> {
        allowed(!self.viewer.only_decides())?;
        // Read first: later events come from the live feed.
        let (mut record, pending) = self.find(session).await?;
        self.complete_totals(&mut record).await?;
        let tail = self.tail(session);
        let entries = self.shared.store.history(session, page).await?;
        let entries = with_tail(entries, &tail, page);
        let statuses = match (entries.first(), entries.last()) {
            (Some(first), Some(last)) => {
                // A turn ends with the event after its result.
                self.shared
                    .store
                    .statuses(session, first.seq, last.seq + 1)
                    .await?
            }
            _ => Vec::new(),
        };
        let decided = self.shared.store.decided(session).await?;
        Ok(HistoryPage {
            record,
            pending,
            entries,
            statuses,
            decided,
        })
    }

    /// How the decisions of a session ended that were not simply allowed as they were asked for.
    pub async fn decided(&self, session: SessionId) -> Result<Vec<Decided>, CommandError> {
        allowed(!self.viewer.only_decides())?;
        self.find(session).await?;
        Ok(self.shared.store.decided(session).await?)
    }

    /// The first `limit` events after `after`.
    pub async fn replay(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, CommandError> {
        self.find(session).await?;
        let tail = self.tail(session);
        let mut events = self.shared.store.replay(session, after, limit).await?;
        let last = events.last().map_or(after, |event| event.seq);
        let room = usize::try_from(limit)
            .unwrap_or(usize::MAX)
            .saturating_sub(events.len());
        let newer = tail.iter().filter(|event| event.seq > last).take(room);
        events.extend(newer.map(|event| Event::clone(event)));
        events.retain(|event| self.viewer.may_hear(event));
        Ok(events)
    }

    /// The events of a session that were published but may not be stored yet. Must be read before the store is.
    fn tail(&self, session: SessionId) -> Vec<Arc<Event>> {
        self.actor(session)
            .map_or_else(Vec::new, |actor| actor.tail.events())
    }
}

/// A page of the log, including the events that are not stored yet.
fn with_tail(mut entries: Vec<HistoryEntry>, tail: &[Arc<Event>], page: Page) -> Vec<HistoryEntry> {
    let (after, before, limit) = match page {
        Page::All => (0, u64::MAX, u32::MAX),
        Page::After { seq, limit } => (seq, u64::MAX, limit),
        Page::Before { seq, limit } => (0, seq, limit),
        Page::Last { limit } => (0, u64::MAX, limit),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let last = entries.last().map_or(after, |entry| entry.seq);
    for event in tail.iter().filter(|event| event.seq > last && event.seq < before) {
        // A prompt is never published before it is stored.
        if let Some(json) = event.body.message() {
            entries.push(HistoryEntry {
                seq: event.seq,
                at: event.at,
                kind: HistoryKind::Message,
                json,
            });
        }
    }
    if matches!(page, Page::Before { .. } | Page::Last { .. }) {
        let extra = entries.len().saturating_sub(limit);
        entries.drain(..extra);
    } else {
        entries.truncate(limit);
    }
    entries
}
