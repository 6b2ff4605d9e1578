//! The errors that every operation may return beside its own, for its description.

use ts_rs::TS;
use utoipa::{IntoResponses, ToSchema};

use crate::error::ErrorCode;

/// The body of every error.
#[derive(TS, ToSchema)]
#[ts(export_to = "http.ts")]
#[expect(dead_code, reason = "only described: refusals are rendered in one place")]
#[schema(example = json!({ "error": { "code": "unauthorized", "message": "Sign in with the link from `tiller link`, or send a valid API key." } }))]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

#[derive(TS, ToSchema)]
#[ts(export_to = "http.ts")]
#[expect(dead_code, reason = "only described: refusals are rendered in one place")]
pub(crate) struct ErrorDetail {
    /// For programs.
    code: ErrorCode,
    /// For people, in the language of `Accept-Language`.
    message: String,
}

/// Errors of every operation that needs a credential.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described: refusals are rendered in one place")]
pub(crate) enum Refusals {
    /// The key is missing or wrong.
    #[response(status = 401)]
    Unauthorized(#[to_schema] ErrorBody),
    /// The key does not allow this, or the request came from another site.
    #[response(status = 403)]
    Forbidden(#[to_schema] ErrorBody),
    /// Too many wrong keys, or too many tasks. `Retry-After` says when to try again.
    #[response(status = 429)]
    RateLimited(#[to_schema] ErrorBody),
    /// An internal error of the server.
    #[response(status = 500)]
    Internal(#[to_schema] ErrorBody),
}

/// Further errors of every operation with a body.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only described: refusals are rendered in one place")]
pub(crate) enum BodyRefusals {
    /// The body is not JSON.
    #[response(status = 400)]
    NotJson(#[to_schema] ErrorBody),
    /// The body did not arrive in time.
    #[response(status = 408)]
    Timeout(#[to_schema] ErrorBody),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(#[to_schema] ErrorBody),
    /// The content type is not `application/json`.
    #[response(status = 415)]
    NotJsonType(#[to_schema] ErrorBody),
    /// A field is unknown, missing or invalid; the message names it.
    #[response(status = 422)]
    WrongForm(#[to_schema] ErrorBody),
}

/// One server-sent event. `data` is JSON.
#[derive(TS, ToSchema)]
#[ts(export_to = "http.ts")]
#[expect(dead_code, reason = "only described: refusals are rendered in one place")]
pub(crate) struct ServerSentEvent {
    event: Option<String>,
    id: Option<String>,
    data: String,
}
