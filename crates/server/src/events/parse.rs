//! From a text frame to a [`ClientEvent`], or to words for the one who sent it: which field is wrong, and what belongs
//! there. Pure.

use serde_json::Value;

use super::wire::ClientEvent;

/// A frame that is not understood, in words for the one who sent it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NotUnderstood {
    pub(super) reason: String,
    /// The session that it names, if that can be told.
    pub(super) session: Option<String>,
}

impl From<String> for NotUnderstood {
    fn from(reason: String) -> Self {
        Self {
            reason,
            session: None,
        }
    }
}

impl From<&str> for NotUnderstood {
    fn from(reason: &str) -> Self {
        Self::from(reason.to_owned())
    }
}

pub(super) fn parse(frame: &str) -> Result<ClientEvent, NotUnderstood> {
    // The library would take a list for an object whose fields have no names.
    if frame.trim_start().starts_with('{')
        && let Ok(event) = serde_json::from_str(frame)
    {
        return Ok(event);
    }
    look_again(frame)
}

/// Finds out what is wrong with a frame.
fn look_again(frame: &str) -> Result<ClientEvent, NotUnderstood> {
    let value: Value =
        serde_json::from_str(frame).map_err(|error| format!("The frame is not JSON: {error}."))?;
    let Value::Object(mut fields) = value else {
        return Err(r#"A frame is a JSON object: {"type": "…", "payload": {…}}."#.into());
    };
    let kind = match fields.remove("type") {
        Some(Value::String(kind)) => kind,
        Some(_) => return Err("The frame's 'type' must be a string.".into()),
        None => return Err("The frame has no 'type'.".into()),
    };
    let payload = fields.remove("payload");
    let session = payload
        .as_ref()
        .and_then(|payload| payload["sessionId"].as_str())
        .map(str::to_owned);
    event_of(&kind, payload).map_err(|reason| NotUnderstood { reason, session })
}

/// The event, or what is wrong with it. The type goes first, so that the library knows what it reads and where it is.
fn event_of(kind: &str, payload: Option<Value>) -> Result<ClientEvent, String> {
    let kind_alone = format!(r#"{{"type":{}"#, Value::from(kind));
    let frame = match payload {
        Some(payload) => format!(r#"{kind_alone},"payload":{payload}}}"#),
        None => format!("{kind_alone}}}"),
    };
    let mut json = serde_json::Deserializer::from_str(&frame);
    serde_path_to_error::deserialize(&mut json).or_else(|error| {
        let path = error.path().to_string();
        let reason = error.inner().to_string();
        // Where nothing belongs in the payload, nothing in it can be wrong.
        if reason.contains("expected unit variant") {
            return serde_json::from_str(&format!("{kind_alone}}}")).map_err(|error| error.to_string());
        }
        if path == "type" && reason.starts_with("unknown variant") {
            return Err(format!("Unknown event type '{kind}'."));
        }
        Err(format!(
            "The event '{kind}' is not understood: {}",
            wrong(&path, &reason)
        ))
    })
}

/// The library's words, with the field's name, and without names that only we know.
fn wrong(path: &str, reason: &str) -> String {
    let reason = reason.split(" at line ").next().unwrap_or(reason);
    if let Some(field) = reason
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'))
    {
        return match path {
            "." | "" => format!("'{field}' is missing."),
            _ => format!("'{path}.{field}' is missing."),
        };
    }
    let (found, expected) = match reason.split_once(", expected ") {
        Some((found, expected)) => (found, format!(", expected {}", plain(expected))),
        None => (reason, String::new()),
    };
    format!("'{path}': {found}{expected}.")
}

/// What the library expects, for someone who knows JSON and not our types.
fn plain(expected: &str) -> &str {
    match expected {
        "u32" | "u64" => "a whole number that is not negative",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        ours if ours.starts_with("struct ") || ours.contains("tagged enum ") => "an object",
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(frame: &str) -> String {
        parse(frame).unwrap_err().reason
    }

    #[test]
    fn frames_of_the_contract_are_understood() {
        for list in [
            r#"{"type":"session.list"}"#,
            r#"{"type":"session.list","payload":null}"#,
            r#"{"type":"session.list","payload":{}}"#,
            r#" {"payload":{"page":1},"type":"session.list"}"#,
        ] {
            assert!(matches!(parse(list), Ok(ClientEvent::SessionList)), "{list}");
        }
        let frame = r#"{"payload":{"prompt":"hi","unknown":1,"title":"t"},"type":"session.start"}"#;
        let Ok(ClientEvent::SessionStart(start)) = parse(frame) else {
            panic!("not understood")
        };
        assert_eq!(start.prompt, "hi");
    }

    #[test]
    fn what_is_no_event_is_said_so() {
        assert!(reason("hello").starts_with("The frame is not JSON: expected value"));
        assert!(reason("").starts_with("The frame is not JSON"));
        for other in ["[]", "5", "null", r#"["session.list"]"#] {
            assert!(
                reason(other).starts_with("A frame is a JSON object"),
                "{other}: {}",
                reason(other)
            );
        }
        assert_eq!(reason("{}"), "The frame has no 'type'.");
        assert_eq!(reason(r#"{"type":5}"#), "The frame's 'type' must be a string.");
        assert_eq!(
            reason(r#"{"type":"session.explode","payload":{}}"#),
            "Unknown event type 'session.explode'."
        );
    }

    #[test]
    fn the_wrong_field_is_named_with_what_belongs_there() {
        let cases = [
            (r#"{"type":"session.stop"}"#, "'payload' is missing."),
            (
                r#"{"type":"session.start","payload":{}}"#,
                "'payload.prompt' is missing.",
            ),
            (
                r#"{"type":"session.start","payload":"x"}"#,
                "'payload': invalid type: string \"x\", expected an object.",
            ),
            (
                r#"{"payload":{"prompt":5},"type":"session.start"}"#,
                "'payload.prompt': invalid type: integer `5`, expected a string.",
            ),
            (
                r#"{"type":"session.start","payload":{"prompt":"x","maxTurns":-1}}"#,
                "'payload.maxTurns': invalid value: integer `-1`, expected a whole number that is not negative.",
            ),
            (
                r#"{"type":"session.start","payload":{"prompt":"x","permissionMode":"nope"}}"#,
                "'payload.permissionMode': unknown variant `nope`, expected one of `default`, `acceptEdits`, `plan`, `bypassPermissions`.",
            ),
            (
                r#"{"type":"permission.response","payload":{"sessionId":"s","result":{"behavior":"maybe"}}}"#,
                "'payload.result.behavior': unknown variant `maybe`, expected `allow` or `deny`.",
            ),
        ];
        for (frame, expected) in cases {
            let reason = reason(frame);
            let said = reason.split_once(" is not understood: ").map(|(_, said)| said);
            assert_eq!(said, Some(expected), "{reason}");
        }
    }

    #[test]
    fn the_session_is_named_where_it_can_be_told() {
        let frame = r#"{"type":"session.rename","payload":{"sessionId":"s"}}"#;
        assert_eq!(parse(frame).unwrap_err().session.as_deref(), Some("s"));
    }
}
