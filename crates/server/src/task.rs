//! The task API: a prompt goes in, the result comes back, at once as a whole or piece by piece as server-sent events.
//!
//! A task is one turn of a session. `wire` is what clients send, `translate` turns a turn's events into theirs, `follow`
//! reads a session's log and goes on live, `supervise` does what nobody may be there for: time limits and refusals.

mod decide;
mod follow;
mod handlers;
mod questions;
mod supervise;
mod translate;
mod wire;

use std::time::Duration;

use tiller_core::{CommandError, Sessions};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::limit::Tally;

pub(crate) use decide::{AnswerRequest, Done, PermissionAnswer, StopRequest};
pub(crate) use wire::{TOOLS, TaskRequest, TaskResponse};

/// What the task API remembers between requests.
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

    /// Goes on with what the last server was in the middle of.
    pub(crate) async fn resume(&self, sessions: &Sessions) -> Result<(), CommandError> {
        self.questions.resume(sessions).await?;
        supervise::resume(sessions).await
    }
}

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(handlers::run))
        .routes(routes!(handlers::run_streamed))
        .routes(routes!(handlers::watch))
        .routes(routes!(decide::answer))
        .routes(routes!(decide::permission))
        .routes(routes!(decide::stop))
}
