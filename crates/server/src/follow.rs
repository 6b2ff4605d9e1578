//! Follows a session's events, from its log and then live, each once and in order.

use std::collections::VecDeque;
use std::sync::Arc;

use tiller_core::backend::HookCall;
use tiller_core::{
    CommandError, Event, EventBody, HistoryEntry, HistoryKind, LiveFeed, Notice, Page, SessionId,
    SessionStatus, Sessions,
};

/// How many events are read from the log at once.
pub(crate) const PAGE: u32 = 256;

pub(crate) enum Step {
    Event(Arc<Event>),
    /// The queue, after each change.
    Queue(Vec<String>),
    /// The session's settings, title or agent changed.
    Updated,
    /// The agent called a hook and waits.
    Hook(HookCall),
    /// The session was deleted.
    Deleted,
    /// The server is stopping, or the log can't be read.
    Closed,
}

/// Follows a session from a position in its log on. It can always catch up: events that the live feed dropped are in
/// the log.
pub(crate) struct Follow {
    sessions: Sessions,
    feed: LiveFeed,
    session: SessionId,
    /// The number of the last event that was returned.
    last: u64,
    waiting: VecDeque<Event>,
    /// The log may have events that the feed will not deliver.
    behind: bool,
}

impl Follow {
    /// Everything after `after`. Subscribe `feed` before reading the session's log.
    pub(crate) fn new(sessions: Sessions, feed: LiveFeed, session: SessionId, after: u64) -> Self {
        Self {
            sessions,
            feed,
            session,
            last: after,
            waiting: VecDeque::new(),
            behind: true,
        }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                self.last = event.seq;
                return Step::Event(Arc::new(event));
            }
            if self.behind {
                match self.sessions.replay(self.session, self.last, PAGE).await {
                    Ok(page) => {
                        self.behind = page.len() == PAGE as usize;
                        self.waiting = page.into();
                    }
                    Err(CommandError::UnknownSession) => return Step::Deleted,
                    Err(error) => {
                        tracing::error!(%error, "a session's log can't be read");
                        return Step::Closed;
                    }
                }
                continue;
            }
            match self.feed.next().await {
                None => return Step::Closed,
                Some(Err(_lagged)) => self.behind = true,
                Some(Ok(notice)) if notice.session() != Some(self.session) => {}
                Some(Ok(Notice::Deleted(_))) => return Step::Deleted,
                Some(Ok(Notice::Queue { prompts, .. })) => {
                    return Step::Queue(prompts.into_iter().map(|prompt| prompt.text).collect());
                }
                Some(Ok(Notice::Updated(_))) => return Step::Updated,
                Some(Ok(Notice::Hook { call, .. })) => return Step::Hook(call),
                Some(Ok(Notice::HookClosed { .. } | Notice::HeldUp { .. } | Notice::Arranged(_))) => {}
                Some(Ok(Notice::Event(event))) if event.seq == self.last + 1 => {
                    self.last = event.seq;
                    return Step::Event(event);
                }
                Some(Ok(Notice::Event(event))) => self.behind = event.seq > self.last,
            }
        }
    }
}

/// Whether this event ends the turn that it belongs to.
pub(crate) fn ends_turn(event: &Event) -> bool {
    matches!(&event.body, EventBody::Status(change) if change.status != SessionStatus::Running)
}

/// Searches prompts and messages before `before`, the newest first, until `found` returns a value.
pub(crate) async fn search_back<T>(
    sessions: &Sessions,
    session: SessionId,
    before: Option<u64>,
    mut found: impl FnMut(&HistoryEntry) -> Option<T>,
) -> Result<Option<T>, CommandError> {
    let mut page = match before {
        Some(seq) => Page::Before { seq, limit: PAGE },
        None => Page::Last { limit: PAGE },
    };
    loop {
        let entries = sessions.history(session, page).await?.entries;
        let Some(first) = entries.first() else {
            return Ok(None);
        };
        if let Some(found) = entries.iter().rev().find_map(&mut found) {
            return Ok(Some(found));
        }
        page = Page::Before {
            seq: first.seq,
            limit: PAGE,
        };
    }
}

/// The number of the newest prompt before `before`.
pub(crate) async fn prompt_before(
    sessions: &Sessions,
    session: SessionId,
    before: Option<u64>,
) -> Result<Option<u64>, CommandError> {
    let is_prompt = |entry: &HistoryEntry| (entry.kind == HistoryKind::Prompt).then_some(entry.seq);
    search_back(sessions, session, before, is_prompt).await
}
