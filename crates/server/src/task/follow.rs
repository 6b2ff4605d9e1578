//! One turn of a session.

use tiller_core::{CommandError, EventBody, LiveFeed, SessionId, Sessions};

use crate::follow::{Follow, PAGE, Step, ends_turn, is_prompt, search_back};

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
        Self {
            follow: Follow::new(sessions, feed, session, after),
            prompt,
            began: None,
        }
    }

    pub(super) async fn next(&mut self) -> Step {
        loop {
            let step = self.follow.next().await;
            if let (Step::Event(event), None) = (&step, self.began) {
                let EventBody::UserPrompt { prompt, .. } = &event.body else {
                    continue;
                };
                if self.prompt.as_ref().is_some_and(|wanted| *wanted != prompt.text) {
                    continue;
                }
                self.began = Some(event.seq);
            }
            return step;
        }
    }

    pub(super) fn session(&self) -> SessionId {
        self.follow.session()
    }

    pub(super) fn sessions(&self) -> &Sessions {
        self.follow.sessions()
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
