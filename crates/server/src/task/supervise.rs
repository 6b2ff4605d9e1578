//! Supervises tasks whose clients may be gone: enforces time limits and denies requests. Stored with the session, so
//! that the next server continues: agents outlive servers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiller_core::{
    Accepted, CommandError, DecisionAnswer, DecisionRef, EventBody, PromptId, RawJson, SessionId, Sessions,
    Timestamp,
};
use tokio::time::Instant;

use super::follow::{Turn, Wanted};
use crate::app::App;
use crate::error::ApiError;
use crate::follow::{Step, ends_turn};

/// The key of notes about supervised tasks.
const ORDERS: &str = "task.order.";

/// The key of notes about tasks that were stopped at their time limit, by the prompt's `seq`.
const OVERDUE: &str = "task.overdue.";

/// Who can answer the agent's requests.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Attendance {
    /// A client may answer, now or later.
    Someone,
    /// The caller waits for the result and can't be asked.
    Nobody,
}

/// The supervision of one task.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Order {
    /// Absent in notes of older servers: then the first prompt after `after`.
    prompt_id: Option<String>,
    after: u64,
    timeout_ms: Option<u64>,
    attendance: Attendance,
}

impl Order {
    pub(super) fn new(accepted: Accepted, timeout: Option<Duration>, attendance: Attendance) -> Self {
        Self {
            prompt_id: Some(accepted.prompt.to_string()),
            after: accepted.after,
            timeout_ms: timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            attendance,
        }
    }

    /// When a task that began at that time must end.
    fn deadline(&self, began: Timestamp) -> Option<Instant> {
        let timeout = Duration::from_millis(self.timeout_ms?);
        let ran = u64::try_from(Timestamp::now().0.saturating_sub(began.0)).unwrap_or(0);
        Instant::now().checked_add(timeout.saturating_sub(Duration::from_millis(ran)))
    }
}

/// Supervises a task until it ends.
pub(super) async fn supervise(app: &App, session: SessionId, order: Order) -> Result<(), ApiError> {
    if order.timeout_ms.is_none() && order.attendance == Attendance::Someone {
        return Ok(());
    }
    let key = format!("{ORDERS}{}", SessionId::random());
    let note = RawJson::of(&order).map_err(|error| ApiError::internal(&error))?;
    let sessions = app.sessions.for_supervision();
    sessions.note(session, &key, note).await?;
    begin(sessions.clone(), session, key, order);
    Ok(())
}

/// Resumes the supervision of the last server's tasks.
pub(super) async fn resume(sessions: &Sessions) -> Result<(), CommandError> {
    for (session, key, order) in sessions.notes(ORDERS).await? {
        match serde_json::from_str(order.as_str()) {
            Ok(order) => begin(sessions.clone(), session, key, order),
            Err(error) => tracing::warn!(%error, "can't supervise a task any longer"),
        }
    }
    Ok(())
}

/// Whether the task with this prompt was stopped at its time limit.
pub(super) async fn was_overdue(
    sessions: &Sessions,
    session: SessionId,
    prompt: u64,
) -> Result<bool, CommandError> {
    let note = sessions.note_of(session, &format!("{OVERDUE}{prompt}")).await?;
    Ok(note.is_some())
}

fn begin(sessions: Sessions, session: SessionId, key: String, order: Order) {
    tokio::spawn(async move {
        let supervised = match run_supervision(&sessions, session, &order).await {
            Ok(End::Over) => sessions.erase_notes(session, &key).await,
            Ok(End::Interrupted) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = supervised {
            tracing::warn!(%error, "can't supervise a task any longer");
        }
    });
}

enum End {
    Over,
    /// The server is stopping; the next one continues.
    Interrupted,
}

async fn run_supervision(
    sessions: &Sessions,
    session: SessionId,
    order: &Order,
) -> Result<End, CommandError> {
    let prompt: Option<PromptId> = order.prompt_id.as_deref().and_then(|id| id.parse().ok());
    let wanted = prompt.map_or(Wanted::First, Wanted::Prompt);
    let mut turn = Turn::new(sessions.clone(), sessions.watch(), session, order.after, wanted);
    let mut deadline = None;
    loop {
        let overdue = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            step = turn.next() => match step {
                Step::Deleted => return Ok(End::Over),
                Step::Closed => return Ok(End::Interrupted),
                Step::Queue(_) | Step::Updated | Step::Hook(_) => {}
                Step::Event(event) => match &event.body {
                    // Counted from the start of the turn: a queued prompt has not begun.
                    EventBody::UserPrompt { .. } if turn.began == Some(event.seq) => {
                        deadline = order.deadline(event.at);
                    }
                    EventBody::DecisionRequested(asked) if order.attendance == Attendance::Nobody => {
                        deny(sessions, session, DecisionRef::Request(asked.id)).await?;
                    }
                    _ if ends_turn(&event) => return Ok(End::Over),
                    _ => {}
                },
            },
            () = overdue => {
                deadline = None;
                if let Some(began) = turn.began {
                    // Noted first: a reader of the end needs the reason.
                    let yes = RawJson::of(&true).map_err(|_| CommandError::UnknownSession)?;
                    if let Err(error) = sessions.note(session, &format!("{OVERDUE}{began}"), yes).await {
                        tracing::warn!(%error, "can't store that a task reached its time limit");
                    }
                    sessions.stop(session).await?;
                }
            }
        }
    }
}

async fn deny(sessions: &Sessions, session: SessionId, decision: DecisionRef) -> Result<(), CommandError> {
    let answer = DecisionAnswer::Deny {
        message: Some("Nobody can be asked in this task. Continue without it.".to_owned()),
        interrupt: false,
    };
    match sessions.answer(session, decision, answer).await {
        // A client of another door was first, or the turn is over.
        Err(CommandError::Refused(_)) => Ok(()),
        outcome => outcome,
    }
}
