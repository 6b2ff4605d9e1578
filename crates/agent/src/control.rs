//! The control protocol: what we ask of the CLI, and what the CLI asks of us, on the same stream as the messages.

mod inbound;
mod outbound;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use inbound::*;
pub use outbound::*;

/// The id of a control request, chosen by its sender.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(String);

impl RequestId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for RequestId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<&str> for RequestId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

/// Why a request to the CLI has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// This version of the CLI does not know the operation. Hide it; nothing is broken.
    #[error("this version of Claude Code does not support `{subtype}`")]
    Unsupported {
        /// The operation.
        subtype: &'static str,
    },
    /// The CLI knows the operation and says no.
    #[error("Claude Code refused `{subtype}`: {message}")]
    Refused {
        /// The operation.
        subtype: &'static str,
        /// The CLI's words.
        message: String,
    },
    /// No answer came in time.
    #[error("Claude Code did not answer `{subtype}` in time")]
    TimedOut {
        /// The operation.
        subtype: &'static str,
    },
    /// The agent has ended, or is ending.
    #[error("the agent has ended")]
    Closed,
    /// The answer is not what this operation answers.
    #[error("the answer to `{subtype}` was not understood: {source}")]
    Unexpected {
        /// The operation.
        subtype: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// The answer to a request of the CLI's.
#[derive(Debug, Clone)]
pub enum Reply {
    /// An answer.
    Success(Box<RawValue>),
    /// No answer, and why.
    Error(String),
}

impl Reply {
    /// An answer from anything that serialises.
    pub fn success<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::Success)
    }
}

/// The line that asks the CLI something.
pub(crate) fn request_line<T: Serialize>(
    id: &RequestId,
    subtype: &str,
    request: &T,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        r#type: &'static str,
        request_id: &'a RequestId,
        request: Inner<'a, T>,
    }
    #[derive(Serialize)]
    struct Inner<'a, T> {
        subtype: &'a str,
        #[serde(flatten)]
        request: &'a T,
    }
    serde_json::to_vec(&Line {
        r#type: "control_request",
        request_id: id,
        request: Inner { subtype, request },
    })
}

/// The line that answers the CLI.
pub(crate) fn reply_line(id: &RequestId, reply: &Reply) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Line<'a> {
        r#type: &'static str,
        response: Response<'a>,
    }
    #[derive(Serialize)]
    struct Response<'a> {
        subtype: &'static str,
        request_id: &'a RequestId,
        #[serde(rename = "response", skip_serializing_if = "Option::is_none")]
        answer: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
    let response = match reply {
        Reply::Success(response) => Response {
            subtype: "success",
            request_id: id,
            answer: Some(response),
            error: None,
        },
        Reply::Error(error) => Response {
            subtype: "error",
            request_id: id,
            answer: None,
            error: Some(error),
        },
    };
    serde_json::to_vec(&Line {
        r#type: "control_response",
        response,
    })
}

/// The line that tells the CLI that we no longer want an answer.
pub(crate) fn cancel_line(id: &RequestId) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&serde_json::json!({ "type": "control_cancel_request", "request_id": id }))
}

/// The CLI's answer to one of our requests.
#[derive(Debug, Deserialize)]
pub(crate) struct ResponseLine {
    pub(crate) response: Response,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    pub(crate) subtype: String,
    pub(crate) request_id: RequestId,
    #[serde(default, rename = "response")]
    pub(crate) answer: Option<Box<RawValue>>,
    #[serde(default)]
    pub(crate) error: Option<String>,
}

/// The CLI no longer wants an answer.
#[derive(Debug, Deserialize)]
pub(crate) struct CancelLine {
    pub(crate) request_id: RequestId,
}
