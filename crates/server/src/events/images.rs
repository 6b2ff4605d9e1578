//! The images of prompts, for the page.

use axum::extract::{Extension, Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use super::commands::session_id;
use crate::app::App;
use crate::auth::Visitor;
use crate::error::ApiError;
use crate::openapi::{ErrorBody, Refusals};

// The media types were checked when the image arrived; none of them can carry a script.
/// An image that was sent with a prompt
#[utoipa::path(
    get, operation_id = "image", path = "/api/sessions/{session}/images/{image}", tag = "sessions", params(
    ("session" = String, Path), ("image" = String, Path),
),
    extensions(("x-summary-zh-CN" = json!("随消息发送的图片")), ("x-scope" = json!("read"))),
    responses(
    (status = 200, content_type = "image/png", body = Vec<u8>), (status = 404, body = ErrorBody), Refusals,
))]
pub(crate) async fn image(
    State(app): State<App>,
    Extension(visitor): Extension<Visitor>,
    Path((session, image)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    if !visitor.viewer.scopes.read {
        return Err(ApiError::Forbidden);
    }
    let sessions = app.sessions.for_viewer(visitor.viewer);
    let found = sessions.image(session_id(&session)?, &image).await?;
    let image = found.ok_or(ApiError::SessionNotFound)?;
    // An id derives from the bytes, so its content never changes.
    let headers = [
        (CONTENT_TYPE, image.media_type),
        (CACHE_CONTROL, "private, max-age=31536000, immutable".to_owned()),
    ];
    Ok((headers, image.bytes.to_vec()).into_response())
}
