//! Whether the server can do its work, for those who decide whether to send it any.

use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::Mutex;
use ts_rs::TS;
use utoipa::ToSchema;

use crate::app::App;

/// Everyone may ask, and each look writes to the disk: one answer is good for so long.
const GOOD_FOR: Duration = Duration::from_secs(2);

/// A store that takes longer is no place for a prompt.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last answer.
#[derive(Default)]
pub(crate) struct Readiness {
    /// Held while the store is asked, so that many who ask at once cause one look.
    last: Mutex<Option<(Instant, ReadyState)>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, TS, ToSchema)]
#[serde(rename_all = "snake_case")]
#[ts(export_to = "http.ts")]
pub(crate) enum ReadyState {
    Ready,
    /// The server is stopping.
    Stopping,
    /// Nothing can be stored right now: the disk is full, or the database is locked or damaged.
    Storage,
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct Ready {
    status: ReadyState,
}

/// Whether the server can take work; needs no key
///
/// 200 if prompts can be stored, else 503. `/health` only tells that the server is there.
#[utoipa::path(
    get, operation_id = "ready", path = "/ready", tag = "machine", security(()),
    extensions(("x-summary-zh-CN" = json!("服务能否接受任务；无需密钥"))),
    responses(
    (status = 200, body = Ready), (status = 503, body = Ready, description = "Not now; `status` says why."),
))]
pub(crate) async fn ready(State(app): State<App>) -> Response {
    let status = app.readiness.look(&app).await;
    let code = match status {
        ReadyState::Ready => StatusCode::OK,
        ReadyState::Stopping | ReadyState::Storage => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(Ready { status })).into_response()
}

impl Readiness {
    async fn look(&self, app: &App) -> ReadyState {
        if app.sessions.is_stopping() {
            return ReadyState::Stopping;
        }
        let mut last = self.last.lock().await;
        if let Some((at, state)) = *last
            && at.elapsed() < GOOD_FOR
        {
            return state;
        }
        let writing = app.authenticator.credentials().check_writable();
        let state = match tokio::time::timeout(PATIENCE, writing).await {
            Ok(Ok(())) => ReadyState::Ready,
            Ok(Err(error)) => {
                tracing::warn!(%error, "not ready: nothing can be stored");
                ReadyState::Storage
            }
            Err(_) => {
                tracing::warn!("not ready: the database did not answer in time");
                ReadyState::Storage
            }
        };
        *last = Some((Instant::now(), state));
        state
    }
}
