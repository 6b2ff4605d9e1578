//! Follows one turn of a session.

use std::sync::Arc;

use tiller_core::{CommandError, EventBody, LiveFeed, PromptId, RawJson, SessionId, Sessions};
use tiller_message::Message;

use crate::error::ApiError;
use crate::follow::{Follow, PAGE, Step, ends_turn, prompt_before, search_back};

/// The note with the cost of a conversation before it became a session.
const COST_AT_ADOPTION: &str = "task.cost";

/// The prompt that begins a turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// The first there is.
    First,
    Prompt(PromptId),
}

/// Follows one turn, beginning with its prompt.
pub(super) struct Turn {
    follow: Follow,
    prompt: Wanted,
    /// The prompt's `seq`, once its event was read.
    pub(super) began: Option<u64>,
}

impl Turn {
    /// The turn that `prompt` begins after event `after`. `feed` must have been subscribed before `after` was read.
    pub(super) fn new(
        sessions: Sessions,
        feed: LiveFeed,
        session: SessionId,
        after: u64,
        prompt: Wanted,
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
                let EventBody::UserPrompt { prompt } = &event.body else {
                    continue;
                };
                match self.prompt {
                    Wanted::Prompt(wanted) if wanted != prompt.id => continue,
                    Wanted::Prompt(_) | Wanted::First => {}
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

/// Stores the cost of a conversation before it became a session.
pub(super) async fn note_cost(sessions: &Sessions, session: SessionId, cost: f64) -> Result<(), ApiError> {
    let cost = RawJson::of(&cost).map_err(|error| ApiError::internal(&error))?;
    Ok(sessions.note(session, COST_AT_ADOPTION, cost).await?)
}

/// The cost of the conversation up to event `before`: from the result of the previous turn, or from the CLI's own
/// records if the conversation was taken over from elsewhere.
pub(super) async fn cost_before(
    sessions: &Sessions,
    session: SessionId,
    before: u64,
) -> Result<f64, CommandError> {
    let total = search_back(sessions, session, Some(before), |entry| {
        let message = Message::parse_shared(Arc::clone(entry.json.shared())).ok()?;
        message.turn_result().map(|result| result.total_cost_usd)
    });
    if let Some(total) = total.await? {
        return Ok(total);
    }
    let noted = sessions.note_of(session, COST_AT_ADOPTION).await?;
    let noted = noted.and_then(|cost| cost.as_str().parse().ok());
    Ok(noted.unwrap_or(0.0))
}

/// The prompt of the turn to show to a client: the last one, or, for a client that has seen everything up to `seen`,
/// the first that continues after it. `None`: the client has seen everything.
pub(super) async fn turn_to_show(
    sessions: &Sessions,
    session: SessionId,
    seen: Option<u64>,
) -> Result<Option<u64>, CommandError> {
    let Some(seen) = seen else {
        return prompt_before(sessions, session, None).await;
    };
    let mut later = None;
    let current = loop {
        match prompt_before(sessions, session, later).await? {
            Some(seq) if seq > seen => later = Some(seq),
            found => break found,
        }
    };
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
            // The turn is still running.
            _ => return Ok(Some(current)),
        }
    }
}
