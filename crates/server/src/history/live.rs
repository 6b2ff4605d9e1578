//! Changes of the history as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use tiller_history::Change;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::access::{Seen, own_conversations};
use super::wire::HistoryChanges;
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::openapi::{Refusals, ServerSentEvent};
use crate::pulse::Pulse;

/// Changes come in bundles, a few a second at most; a reader that falls further behind is told that everything changed.
pub(super) const BEHIND: usize = 64;

/// Several changes that were noticed together.
pub(super) type Bundle = Arc<Vec<Change>>;

// The stream begins with an empty bundle, so that a client knows from when on nothing is missed.
/// Changes of the history, as server-sent events
#[utoipa::path(
    get, operation_id = "history_live", path = "/api/history/live", tag = "history",
    extensions(("x-summary-zh-CN" = json!("历史记录的实时变化（SSE）")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, content_type = "text/event-stream", body = ServerSentEvent), Refusals,
))]
pub(super) async fn live(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, ApiError> {
    if !visitor.viewer.scopes.read {
        return Err(ApiError::Forbidden);
    }
    let live = Live {
        changes: app.history.changes(),
        pulse: Pulse::new(&app, &visitor),
        app,
        visitor,
        begun: false,
    };
    let events = stream::unfold(live, |mut live| async move {
        let written = live.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(written)), live))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        // Without this header some proxies buffer events.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

struct Live {
    app: App,
    visitor: Visitor,
    changes: broadcast::Receiver<Bundle>,
    pulse: Pulse,
    begun: bool,
}

impl Live {
    async fn next(&mut self) -> Option<String> {
        if !self.begun {
            self.begun = true;
            return render(Vec::new());
        }
        loop {
            tokio::select! {
                biased;
                () = self.pulse.beat() => {
                    if !self.pulse.is_valid().await {
                        return None;
                    }
                    if let Some(sign) = self.pulse.keep_alive_comment() {
                        return Some(sign);
                    }
                }
                bundle = self.changes.recv() => {
                    let changes = match bundle {
                        Ok(bundle) => self.seen(&bundle).await,
                        Err(RecvError::Lagged(_)) => vec![Change::Everything],
                        Err(RecvError::Closed) => return None,
                    };
                    if !changes.is_empty() {
                        self.pulse.sent();
                        return render(changes);
                    }
                }
            }
        }
    }

    async fn seen(&self, bundle: &[Change]) -> Vec<Change> {
        let viewer = self.visitor.viewer.clone();
        let sees_all = viewer.sees_all();
        // Looked up for every bundle, because a key may have started sessions in the meantime.
        match own_conversations(&self.app.sessions.for_viewer(viewer), sees_all).await {
            Ok(own) => Seen::changes(own.as_ref(), bundle),
            Err(error) => {
                tracing::error!(%error, "can't tell whose transcripts have changed");
                // The client reconnects, and gets the error or the changes.
                vec![Change::Everything]
            }
        }
    }
}

fn render(changes: Vec<Change>) -> Option<String> {
    let json = serde_json::to_string(&HistoryChanges { changes }).ok()?;
    Some(format!("event: changed\ndata: {json}\n\n"))
}
