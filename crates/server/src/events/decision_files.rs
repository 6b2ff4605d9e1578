//! The files that waiting decisions would change, for the page to show an edit in its place.

use axum::Json;
use axum::extract::{Extension, Path, State};
use serde::Serialize;
use tiller_core::{CommandError, FileText, Refusal, RequestId};
use ts_rs::TS;
use utoipa::ToSchema;

use super::commands::session_id;
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::openapi::{ErrorBody, Refusals};

/// The file that a waiting decision would change
#[utoipa::path(
    get, operation_id = "decision_file", path = "/api/sessions/{session}/decisions/{request}/file", tag = "sessions", params(
    ("session" = String, Path), ("request" = String, Path, description = "The decision's `requestId`."),
),
    extensions(("x-summary-zh-CN" = json!("等待批准的改动所涉及的文件")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, body = DecisionFile),
    (status = 404, body = ErrorBody, description = "It no longer waits, changes no text file, or one that may not be shown."),
    Refusals,
))]
pub(crate) async fn file(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path((session, request)): Path<(String, String)>,
) -> Result<Json<DecisionFile>, ApiError> {
    let sessions = app.sessions.for_viewer(visitor.viewer);
    let unknown = CommandError::Refused(Refusal::RequestNotFound);
    let request: RequestId = request.parse().map_err(|_| ApiError::RequestNotFound)?;
    let file = sessions
        .file_to_change(session_id(&session)?, request)
        .await?
        .ok_or(unknown)?;
    Ok(Json(DecisionFile {
        content: match file {
            FileText::Text(text) => Some(text),
            FileText::Absent => None,
        },
    }))
}

#[derive(Serialize, TS, ToSchema)]
#[ts(export_to = "http.ts")]
pub(crate) struct DecisionFile {
    /// As it is now; `null` if there is no such file yet.
    content: Option<String>,
}
