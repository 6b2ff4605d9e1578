//! What a task needs while nobody may be watching: its time limit, and someone who says no.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tiller_core::{Answer, CommandError, DecisionRef, EventBody, SessionId, Sessions};
use tokio::time::Instant;

use super::follow::Turn;
use crate::app::App;
use crate::follow::{Step, ends_turn};

/// Who is there to be asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Attendance {
    /// Someone may answer, now or later.
    Someone,
    /// The caller waits for the result and can't be asked.
    Nobody,
}

/// Tasks that were stopped because their time was over, by session and the prompt's `seq`.
#[derive(Default)]
pub(super) struct Overdue {
    tasks: Mutex<VecDeque<(SessionId, u64)>>,
}

/// How many are remembered; those who wait for a result hear of it within moments.
const REMEMBERED: usize = 1024;

impl Overdue {
    fn note(&self, task: (SessionId, u64)) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() == REMEMBERED {
            tasks.pop_front();
        }
        tasks.push_back(task);
    }

    pub(super) fn contains(&self, task: (SessionId, u64)) -> bool {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.contains(&task)
    }
}

/// Looks after a turn until it ends.
pub(super) fn supervise(app: App, turn: Turn, timeout: Option<Duration>, attendance: Attendance) {
    if timeout.is_none() && attendance == Attendance::Someone {
        return;
    }
    tokio::spawn(async move {
        if let Err(error) = look_after(&app, turn, timeout, attendance).await {
            tracing::warn!(%error, "a task can't be looked after any more");
        }
    });
}

async fn look_after(
    app: &App,
    mut turn: Turn,
    timeout: Option<Duration>,
    attendance: Attendance,
) -> Result<(), CommandError> {
    let session = turn.session();
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
                Step::Deleted | Step::Closed => return Ok(()),
                Step::Queue(_) | Step::Updated | Step::Hook(_) => {}
                Step::Event(event) => match &event.body {
                    // Counted from when it runs: a queued prompt's turn has not begun.
                    EventBody::UserPrompt { .. } => {
                        deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
                    }
                    EventBody::DecisionRequested(asked) if attendance == Attendance::Nobody => {
                        deny(&app.sessions, session, DecisionRef::Request(asked.id)).await?;
                    }
                    _ if ends_turn(&event) => return Ok(()),
                    _ => {}
                },
            },
            () = overdue => {
                deadline = None;
                if let Some(began) = turn.began {
                    // Noted first: whoever hears of the end asks for the reason.
                    app.tasks.overdue.note((session, began));
                    app.sessions.stop(session).await?;
                }
            }
        }
    }
}

async fn deny(sessions: &Sessions, session: SessionId, decision: DecisionRef) -> Result<(), CommandError> {
    let answer = Answer::Deny {
        message: Some("Nobody can be asked in this task. Go on without it.".to_owned()),
        interrupt: false,
    };
    match sessions.answer(session, decision, answer).await {
        // Someone at another door was faster, or the turn is over.
        Err(CommandError::Refused(_)) => Ok(()),
        outcome => outcome,
    }
}
