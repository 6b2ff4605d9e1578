//! What stands in the log in place of the failed result of a turn that the user stopped.
//!
//! A user who stops a turn does not want to see a failure. The result itself is kept in the message, untouched, for
//! those who need more of it.

use serde::Deserialize;
use serde_json::value::RawValue;

/// How every such message begins.
const START: &str = r#"{"type":"system","subtype":"turn_stopped","#;

/// The message that stands for `result`, the JSON of a turn's result.
pub fn turn_stopped(result: &str) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Parts<'a> {
        #[serde(borrow)]
        duration_ms: Option<&'a RawValue>,
        #[serde(borrow)]
        usage: Option<&'a RawValue>,
        #[serde(borrow)]
        total_cost_usd: Option<&'a RawValue>,
    }
    let parts: Parts = serde_json::from_str(result).unwrap_or_default();
    let json = |part: Option<&RawValue>| part.map_or_else(|| "null".to_owned(), |part| part.get().to_owned());
    format!(
        r#"{START}"duration_ms":{},"usage":{},"total_cost_usd":{},"result":{result}}}"#,
        json(parts.duration_ms),
        json(parts.usage),
        json(parts.total_cost_usd),
    )
}

/// The result for which the message stands, if it is such a message.
pub fn stopped_result(json: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Stopped<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    if !json.starts_with(START) {
        return None;
    }
    let stopped: Stopped = serde_json::from_str(json).ok()?;
    Some(stopped.result.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Message, SystemMessage};

    #[test]
    fn a_stopped_turn_says_what_it_took_and_keeps_its_result() {
        let result = r#"{"type":"result", "subtype":"error_during_execution","is_error":true,"duration_ms":12,"usage":{"input_tokens":3},"total_cost_usd":0.50,"errors":["x"]}"#;
        let stopped = turn_stopped(result);
        assert_eq!(
            stopped,
            format!(
                r#"{{"type":"system","subtype":"turn_stopped","duration_ms":12,"usage":{{"input_tokens":3}},"total_cost_usd":0.50,"result":{result}}}"#
            )
        );
        assert_eq!(stopped_result(&stopped), Some(result));
        let message = Message::parse(&stopped).unwrap();
        let Body::System(SystemMessage::TurnStopped(stopped)) = message.body() else {
            panic!("{message:?}");
        };
        assert_eq!(
            (stopped.duration_ms, stopped.total_cost_usd),
            (Some(12), Some(0.5))
        );
    }

    #[test]
    fn whatever_a_result_has_is_kept() {
        let result = r#"{"type":"result","duration_ms":"long"}"#;
        assert_eq!(stopped_result(&turn_stopped(result)), Some(result));
        assert_eq!(stopped_result(result), None);
        assert_eq!(
            stopped_result(r#"{"type":"system","subtype":"turn_stopped","#),
            None
        );
        assert_eq!(
            stopped_result(r#"{"type":"system","subtype":"turn_stopped","x":1}"#),
            None
        );
    }
}
