//! The task API: runs a prompt and returns its result, as a whole or as server-sent events.
//!
//! A task is one turn of a session. `wire` has the requests and responses, `translate` turns a turn's events into those
//! of the API, `follow` reads a turn from the log and then live, `supervise` enforces time limits and denies requests
//! when nobody can answer.

mod decide;
mod follow;
mod handlers;
mod questions;
mod supervise;
mod translate;
mod wire;

use std::time::Duration;

use tiller_core::{CommandError, Sessions};

use crate::limit::Tally;
use crate::routes::{Routes, routes};

pub(crate) use decide::{AnswerRequest, Done, PermissionAnswer, StopRequest};
pub(crate) use wire::{TOOLS, TaskRequest, TaskResponse};

/// The state of the task API between requests.
pub(crate) struct Tasks {
    whole: Tally,
    streamed: Tally,
    questions: questions::PartialAnswers,
}

impl Tasks {
    /// `starts`: how many tasks one address may start in a minute, at each of the two endpoints.
    pub(crate) fn new(starts: u32) -> Self {
        let starts = || Tally::new(starts, Duration::from_mins(1));
        Self {
            whole: starts(),
            streamed: starts(),
            questions: questions::PartialAnswers::default(),
        }
    }

    /// Resumes what the last server left unfinished.
    pub(crate) async fn resume(&self, sessions: &Sessions) -> Result<(), CommandError> {
        self.questions.resume(sessions).await?;
        supervise::resume(sessions).await
    }
}

pub(crate) fn routes() -> Routes {
    Routes::new()
        .routes(routes!(handlers::run))
        .routes(routes!(handlers::run_streamed))
        .routes(routes!(handlers::watch))
        .routes(routes!(decide::answer))
        .routes(routes!(decide::permission))
        .routes(routes!(decide::stop))
}
