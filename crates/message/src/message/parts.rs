//! Parts of a message that a reader may want without decoding the whole.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{Kind, Message, ParseError, StreamEventKind, UserPrompt};

/// The few fields that hold ids. Each is read on its own, so that a value of an unexpected type hides no other.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

fn fields(json: &str) -> Option<Fields<'_>> {
    serde_json::from_str(json).ok()
}

impl Message {
    /// Writes a value of the caller's as a message.
    pub fn of(value: &impl Serialize) -> Result<Self, ParseError> {
        let json = serde_json::to_string(value).map_err(|error| ParseError::Json {
            reason: error.to_string(),
        })?;
        Self::parse_shared(json.into())
    }

    /// For a stream event: the JSON of its `event`.
    pub fn stream_event_json(&self) -> Option<&str> {
        if self.kind() != Kind::StreamEvent {
            return None;
        }
        Some(fields(self.json())?.event?.get())
    }

    /// The id of the model message that this message announces (`message_start`) or is a block of (`assistant`).
    pub fn model_message_id(&self) -> Option<String> {
        let message = match (self.kind(), self.stream_event_kind()) {
            (Kind::Assistant, _) => fields(self.json())?.message,
            (_, Some(StreamEventKind::MessageStart)) => fields(self.stream_event_json()?)?.message,
            _ => None,
        };
        serde_json::from_str(fields(message?.get())?.id?.get()).ok()
    }

    /// The message's fields without those that every message may have: `type`, `subtype`, `session_id` and `uuid`.
    pub fn details(&self) -> Map<String, Value> {
        let mut details: Map<String, Value> = self.decode().unwrap_or_default();
        for common in ["type", "subtype", "session_id", "uuid"] {
            details.remove(common);
        }
        details
    }

    /// The prompt, if this is an entry of a session's history that has the form of one.
    pub fn user_prompt(&self) -> Option<UserPrompt> {
        if self.type_name() != "user_prompt" {
            return None;
        }
        self.decode().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_anything_that_an_agent_writes() {
        let cases = [
            (
                r#"{"event":{"type":"message_start","index":0,"message":{"content":[],"id":"m1"}},"type":"stream_event"}"#,
                Some("m1"),
            ),
            (
                r#"{"type":"assistant","message":{"id":"m2","content":7}}"#,
                Some("m2"),
            ),
            (r#"{"type":"assistant","message":{"id":7}}"#, None),
            (r#"{"type":"assistant","message":"m"}"#, None),
            (r#"{"type":"user","message":{"id":"m3"}}"#, None),
            (
                r#"{"type":"stream_event","event":{"type":"message_stop","message":{"id":"m4"}}}"#,
                None,
            ),
        ];
        for (line, id) in cases {
            assert_eq!(
                Message::parse(line).unwrap().model_message_id().as_deref(),
                id,
                "{line}"
            );
        }
    }
}
