//! What stands in the log in place of the failed result of a turn that the user stopped.
//!
//! A user who stops a turn does not want to see a failure. The result itself is kept in the message, untouched, for
//! those who need more of it.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::message::{Kind, Message, TurnResult};

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
        r#"{{"type":"system","subtype":"turn_stopped","duration_ms":{},"usage":{},"total_cost_usd":{},"result":{result}}}"#,
        json(parts.duration_ms),
        json(parts.usage),
        json(parts.total_cost_usd),
    )
}

impl Message {
    /// The result for which this message stands, if the turn was stopped.
    pub fn stopped_result(&self) -> Option<Self> {
        #[derive(Deserialize)]
        struct Stopped<'a> {
            #[serde(borrow)]
            result: &'a RawValue,
        }
        if self.kind() != Kind::System || self.subtype() != Some("turn_stopped") {
            return None;
        }
        let stopped: Stopped = serde_json::from_str(self.json()).ok()?;
        Self::parse(stopped.result.get()).ok()
    }

    /// The result of a turn, also if the turn was stopped.
    pub fn turn_result(&self) -> Option<TurnResult> {
        match self.stopped_result() {
            Some(result) => result.result(),
            None => self.result(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, SystemMessage};

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
        let message = Message::parse(&stopped).unwrap();
        assert_eq!(message.stopped_result(), Message::parse(result).ok());
        assert_eq!(message.turn_result(), Message::parse(result).unwrap().result());
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
        let stopped = |json: &str| {
            let result = Message::parse(json).unwrap().stopped_result();
            result.map(|result| result.json().to_owned())
        };
        let result = r#"{"type":"result","duration_ms":"long"}"#;
        assert_eq!(stopped(&turn_stopped(result)).as_deref(), Some(result));
        assert_eq!(stopped(result), None);
        assert_eq!(
            stopped(r#"{"type":"system","subtype":"turn_stopped","x":1}"#),
            None
        );
    }
}
