//! One turn of a session, from the log and then live, each event once and in order.

use std::collections::VecDeque;
use std::sync::Arc;

use tiller_core::{
    CommandError, Event, EventBody, LiveFeed, Notice, Page, RawJson, SessionId, SessionStatus, Sessions,
};

/// How many events are read from the log at once.
const PAGE: u32 = 256;

/// How a stored prompt begins.
const PROMPT_START: &str = r#"{"type":"user_prompt","#;

pub(super) enum Step {
    Event(Arc<Event>),
    /// The session was deleted.
    Deleted,
    /// The server is going away, or can't read its log.
    Closed,
}

/// Reads a session from a place in its log on. Never falls behind for good: what memory has lost is in the log.
struct Follow {
    sessions: Sessions,
    feed: LiveFeed,
    session: SessionId,
    /// The last that was given out.
    last: u64,
    waiting: VecDeque<Event>,
    /// The log may have more than the feed will tell.
    behind: bool,
}

impl Follow {
    async fn next(&mut self) -> Step {
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
                        tracing::error!(%error, "a task's log can't be read");
                        return Step::Closed;
                    }
                }
                continue;
            }
            match self.feed.next().await {
                None => return Step::Closed,
                Some(Err(_lagged)) => self.behind = true,
                Some(Ok(notice)) if notice.session() != self.session => {}
                Some(Ok(Notice::Deleted(_))) => return Step::Deleted,
                Some(Ok(Notice::Queue { .. })) => {}
                Some(Ok(Notice::Event(event))) if event.seq == self.last + 1 => {
                    self.last = event.seq;
                    return Step::Event(event);
                }
                Some(Ok(Notice::Event(event))) => self.behind = event.seq > self.last,
            }
        }
    }
}

/// Reads one turn, its prompt first.
pub(super) struct Turn {
    follow: Follow,
    /// The prompt that begins it; `None`: the first there is.
    prompt: Option<String>,
    /// The prompt's `seq`, once it was met.
    pub(super) began: Option<u64>,
}

impl Turn {
    /// The turn that `prompt` begins, or will begin, after `after`. `feed` must be older than `after`.
    pub(super) fn new(
        sessions: Sessions,
        feed: LiveFeed,
        session: SessionId,
        after: u64,
        prompt: Option<String>,
    ) -> Self {
        let follow = Follow {
            sessions,
            feed,
            session,
            last: after,
            waiting: VecDeque::new(),
            behind: true,
        };
        Self {
            follow,
            prompt,
            began: None,
        }
    }

    pub(super) async fn next(&mut self) -> Step {
        loop {
            let step = self.follow.next().await;
            if let (Step::Event(event), None) = (&step, self.began) {
                let EventBody::UserPrompt { prompt } = &event.body else {
                    continue;
                };
                if self.prompt.as_ref().is_some_and(|wanted| wanted != prompt) {
                    continue;
                }
                self.began = Some(event.seq);
            }
            return step;
        }
    }

    pub(super) fn session(&self) -> SessionId {
        self.follow.session
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.follow.sessions
    }
}

/// Whether this event ends the turn that it belongs to.
pub(super) fn ends_turn(event: &Event) -> bool {
    matches!(&event.body, EventBody::Status(change) if change.status != SessionStatus::Running)
}

/// Prompts and messages before `before`, the newest first, until `found` finds what it looks for.
async fn search_back<T>(
    sessions: &Sessions,
    session: SessionId,
    before: Option<u64>,
    mut found: impl FnMut(u64, &RawJson) -> Option<T>,
) -> Result<Option<T>, CommandError> {
    let mut page = match before {
        Some(seq) => Page::Before { seq, limit: PAGE },
        None => Page::Last { limit: PAGE },
    };
    loop {
        let messages = sessions.history(session, page).await?.messages;
        let Some((first, _)) = messages.first() else {
            return Ok(None);
        };
        if let Some(found) = messages.iter().rev().find_map(|(seq, raw)| found(*seq, raw)) {
            return Ok(Some(found));
        }
        page = Page::Before {
            seq: *first,
            limit: PAGE,
        };
    }
}

/// What the conversation had cost when the event `before` came: the agent said so at the end of the turn before.
pub(super) async fn cost_before(
    sessions: &Sessions,
    session: SessionId,
    before: u64,
) -> Result<f64, CommandError> {
    let total = search_back(sessions, session, Some(before), |_, raw| {
        let message: serde_json::Value = raw
            .as_str()
            .contains("total_cost_usd")
            .then(|| serde_json::from_str(raw.as_str()).ok())??;
        (message["type"] == "result").then(|| message["total_cost_usd"].as_f64())?
    });
    Ok(total.await?.unwrap_or(0.0))
}

/// The prompt of the turn that a client is to be shown: the last one, or, for a client that has seen everything up to
/// `seen`, the first that goes on after that. `None`: it has seen all there is.
pub(super) async fn turn_to_show(
    sessions: &Sessions,
    session: SessionId,
    seen: Option<u64>,
) -> Result<Option<u64>, CommandError> {
    let Some(seen) = seen else {
        return search_back(sessions, session, None, |seq, raw| is_prompt(raw).then_some(seq)).await;
    };
    let mut later = None;
    let current = search_back(sessions, session, None, |seq, raw| {
        if !is_prompt(raw) {
            return None;
        }
        if seq > seen {
            later = Some(seq);
            return None;
        }
        Some(seq)
    })
    .await?;
    let Some(current) = current else {
        return Ok(later);
    };
    let mut last = current;
    loop {
        let page = sessions.replay(session, last, PAGE).await?;
        if let Some(end) = page.iter().find(|event| ends_turn(event)) {
            return Ok(if end.seq > seen { Some(current) } else { later });
        }
        match page.last() {
            Some(event) if page.len() == PAGE as usize => last = event.seq,
            // It runs.
            _ => return Ok(Some(current)),
        }
    }
}

fn is_prompt(raw: &RawJson) -> bool {
    raw.as_str().starts_with(PROMPT_START)
}
