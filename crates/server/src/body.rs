//! JSON bodies of requests. Errors name the invalid field.

use axum::body::HttpBody;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, Json, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, FieldProblem, WrongField};

/// A body of this type only: an unknown field is a mistake that its sender wants to know.
pub(crate) struct Body<T>(pub(crate) T);

/// Why a request was refused.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    Error(ApiError),
    Field(WrongField),
}

impl From<WrongField> for Refusal {
    fn from(field: WrongField) -> Self {
        Self::Field(field)
    }
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Error(error) => error.into_response(),
            Self::Field(field) => field.into_response(),
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let bytes = bytes_of(request, state).await?;
        read(&bytes).map(Self).map_err(IntoResponse::into_response)
    }
}

/// As [`Body`], but an empty body or `null` is the default.
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        let bytes = bytes_of(request, state).await?;
        if bytes.trim_ascii() == b"null" {
            return Ok(Self(T::default()));
        }
        read(&bytes).map(Self).map_err(IntoResponse::into_response)
    }
}

/// The bytes of a body whose content type is JSON.
async fn bytes_of<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Response> {
    // Only to check content type and size; the content is parsed below.
    let is_json = Json::<serde::de::IgnoredAny>::from_request(
        Request::from_parts(head_of(&request), axum::body::Body::empty()),
        state,
    );
    if let Err(JsonRejection::MissingJsonContentType(_)) = is_json.await {
        return Err(ApiError::NotJsonType.into_response());
    }
    Bytes::from_request(request, state)
        .await
        .map_err(IntoResponse::into_response)
}

fn head_of(request: &Request) -> axum::http::request::Parts {
    let mut head = Request::new(());
    *head.headers_mut() = request.headers().clone();
    head.into_parts().0
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    // serde would accept a list for an object, in the order of its fields.
    let is_object = bytes.trim_ascii_start().starts_with(b"{");
    if !is_object && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok() {
        return Err(wrong(".", "").into());
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.inner().to_string();
        // The text after an invalid field counts, too: truncated text is not JSON.
        let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
        if !error.inner().is_data() || !is_json() {
            return Refusal::Error(ApiError::NotJson);
        }
        Refusal::Field(wrong(&path, &reason))
    })?;
    json.end().map_err(|_| ApiError::NotJson)?;
    Ok(value)
}

/// serde names the field only in its message.
fn wrong(path: &str, reason: &str) -> WrongField {
    let quoted = || reason.split('`').nth(1).unwrap_or_default().to_owned();
    if reason.starts_with("unknown field") {
        return WrongField::new(quoted(), FieldProblem::Unknown);
    }
    if reason.starts_with("missing field") {
        return WrongField::new(quoted(), FieldProblem::Missing);
    }
    let path = if path == "." { "body" } else { path };
    WrongField::new(path, FieldProblem::WrongForm)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        name: String,
        #[serde(default)]
        list: Vec<u8>,
    }

    fn problem(body: &str) -> Refusal {
        read::<Sample>(body.as_bytes()).unwrap_err()
    }

    fn field(name: &str, problem: FieldProblem) -> Refusal {
        Refusal::Field(WrongField::new(name, problem))
    }

    #[test]
    fn the_field_is_named() {
        assert_eq!(problem(r#"{"nam":"x"}"#), field("nam", FieldProblem::Unknown));
        assert_eq!(problem("{}"), field("name", FieldProblem::Missing));
        assert_eq!(problem(r#"{"name":5}"#), field("name", FieldProblem::WrongForm));
        assert_eq!(
            problem(r#"{"name":"x","list":[1,"2"]}"#),
            field("list[1]", FieldProblem::WrongForm)
        );
        for other in ["5", "null", r#"["x"]"#, r#" ["x", []]"#] {
            assert_eq!(problem(other), field("body", FieldProblem::WrongForm), "{other}");
        }
        for torn in ["", "{", r#"{"name":"x"} y"#, r#"{"name":5,"li"#, r#"{"nam":"x""#] {
            assert_eq!(problem(torn), Refusal::Error(ApiError::NotJson), "{torn}");
        }
    }
}
