//! JSON-RPC 2.0.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

/// A message from an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// The answer to one of our requests.
    Response {
        id: String,
        outcome: Result<Value, RpcError>,
    },
    /// A request of the agent. The answer repeats its id unchanged.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

/// Why a request failed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
}

impl Default for RpcError {
    fn default() -> Self {
        Self {
            code: Self::INTERNAL,
            message: "The agent gave no reason.".to_owned(),
        }
    }
}

impl RpcError {
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The user must sign in first.
    pub const AUTHENTICATION_REQUIRED: i64 = -32000;
    const INTERNAL: i64 = -32603;
}

#[derive(Deserialize)]
struct Envelope {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    result: Option<Value>,
    error: Option<Value>,
}

impl Incoming {
    /// Parses a line. `None`: it is not a message of the protocol.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let envelope: Envelope = serde_json::from_slice(line).ok()?;
        let id = envelope.id.filter(|id| !id.is_null());
        match (envelope.method, id) {
            (Some(method), Some(id)) => Some(Self::Request {
                id,
                method,
                params: envelope.params,
            }),
            (Some(method), None) => Some(Self::Notification {
                method,
                params: envelope.params,
            }),
            (None, Some(id)) => {
                let outcome = match envelope.error.filter(|error| !error.is_null()) {
                    Some(error) => Err(serde_json::from_value(error).unwrap_or_default()),
                    None => Ok(envelope.result.unwrap_or_default()),
                };
                let id = match id {
                    Value::String(id) => id,
                    other => other.to_string(),
                };
                Some(Self::Response { id, outcome })
            }
            (None, None) => None,
        }
    }
}

/// A request. The caller chooses the id, so that the next owner of the connection can match the answer.
pub fn request(id: &str, method: &str, params: Value) -> Bytes {
    line(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub fn notification(method: &str, params: Value) -> Bytes {
    line(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// The answer to a request of the agent.
pub fn response(id: &Value, result: Value) -> Bytes {
    line(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

pub fn error(id: &Value, code: i64, message: &str) -> Bytes {
    line(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
}

fn line(message: Value) -> Bytes {
    message.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_distinguished() {
        let parse = |line: &str| Incoming::parse(line.as_bytes());
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","id":"a","result":{"x":1}}"#),
            Some(Incoming::Response {
                id: "a".to_owned(),
                outcome: Ok(json!({ "x": 1 }))
            })
        );
        assert_eq!(
            parse(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no","data":[]}}"#),
            Some(Incoming::Response {
                id: "7".to_owned(),
                outcome: Err(RpcError {
                    code: -1,
                    message: "no".to_owned()
                })
            })
        );
        assert!(matches!(
            parse(r#"{"id":0,"method":"m"}"#),
            Some(Incoming::Request { id, .. }) if id == json!(0)
        ));
        assert!(matches!(
            parse(r#"{"method":"m","params":[]}"#),
            Some(Incoming::Notification { .. })
        ));
        for nothing in ["", "no json", "[]", "{}", r#"{"id":null}"#, "7"] {
            assert_eq!(parse(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn an_error_without_words_is_an_error() {
        let line = br#"{"id":"a","error":"boom"}"#;
        assert!(matches!(
            Incoming::parse(line),
            Some(Incoming::Response { outcome: Err(_), .. })
        ));
    }
}
