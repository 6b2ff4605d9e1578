//! What every operation may answer beside its own answers, for its description.

use ts_rs::TS;
use utoipa::{IntoResponses, ToSchema};

use crate::error::ErrorCode;

/// Every refusal.
#[derive(TS, ToSchema)]
#[ts(export_to = "http.ts")]
#[expect(dead_code, reason = "only described: refusals are rendered in one place")]
#[schema(example = json!({ "error": { "code": "unauthorized", "message": "A valid API key or the link from `tiller link` is needed." } }))]
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

/// What every operation that needs a key may answer.
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
    /// Something went wrong in the server.
    #[response(status = 500)]
    Internal(#[to_schema] ErrorBody),
}

/// What every operation with a body may answer beside.
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
    /// A field is unknown, missing or of the wrong form; the message names it.
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
