//! Parses a text frame into a [`ClientEvent`], or into an error that names the invalid field and what it should be.
//! Pure.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;
use tiller_core::repeated;

use super::protocol::{ClientRow, CommandId};
use super::table::ClientEvent;

/// A valid frame.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) command: Option<CommandId>,
    pub(super) event: ClientEvent,
}

/// An invalid frame, with an error message for the client.
#[derive(Debug, Default)]
pub(super) struct NotUnderstood {
    pub(super) reason: String,
    pub(super) command: Option<CommandId>,
    /// The session that the frame names, if it can be read.
    pub(super) session: Option<String>,
    /// The event that the frame names, if it is known.
    pub(super) row: Option<&'static ClientRow>,
}

impl From<String> for NotUnderstood {
    fn from(reason: String) -> Self {
        Self {
            reason,
            ..Self::default()
        }
    }
}

impl From<&str> for NotUnderstood {
    fn from(reason: &str) -> Self {
        Self::from(reason.to_owned())
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    name: Option<&'a RawValue>,
    #[serde(borrow, rename = "commandId")]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

pub(super) fn parse(frame: &str) -> Result<Incoming, NotUnderstood> {
    let not_json = |error: serde_json::Error| format!("The frame is not JSON: {error}.");
    // serde would accept a list for an object, in the order of its fields.
    if !frame.trim_start().starts_with('{') {
        serde_json::from_str::<IgnoredAny>(frame).map_err(not_json)?;
        return Err(r#"A frame must be a JSON object: {"type": "…", "payload": {…}}."#.into());
    }
    let envelope: Envelope = serde_json::from_str(frame).map_err(|error| {
        if error.is_data() {
            format!("Invalid frame: {error}.")
        } else {
            not_json(error)
        }
    })?;
    let command = envelope.command.map(command_id).transpose()?.flatten();
    let with_command = |reason: String, session: Option<String>| NotUnderstood {
        reason,
        command: command.clone(),
        session,
        row: None,
    };
    let name = match envelope
        .name
        .map(|name| serde_json::from_str::<String>(name.get()))
    {
        Some(Ok(name)) => name,
        Some(Err(_)) => {
            return Err(with_command(
                "The frame's 'type' must be a string.".to_owned(),
                None,
            ));
        }
        None => return Err(with_command("The frame has no 'type'.".to_owned(), None)),
    };
    match ClientEvent::read(&name, envelope.payload) {
        Some(Ok(event)) => Ok(Incoming { command, event }),
        Some(Err(wrong)) => Err(NotUnderstood {
            row: ClientEvent::ROWS.iter().find(|row| row.name == name),
            ..with_command(
                format!("Invalid '{}': {wrong}", repeated(&name)),
                named_session(envelope.payload),
            )
        }),
        None => Err(with_command(
            format!("Unknown event type '{}'.", repeated(&name)),
            named_session(envelope.payload),
        )),
    }
}

fn command_id(raw: &RawValue) -> Result<Option<CommandId>, NotUnderstood> {
    let wrong = || {
        let longest = CommandId::LONGEST;
        NotUnderstood::from(format!(
            "'commandId' must be a string of at most {longest} characters."
        ))
    };
    let text: Option<String> = serde_json::from_str(raw.get()).map_err(|_| wrong())?;
    text.map(|text| CommandId::new(text).ok_or_else(wrong))
        .transpose()
}

/// The session that an otherwise invalid payload names.
fn named_session(payload: Option<&RawValue>) -> Option<String> {
    let payload: Value = serde_json::from_str(payload?.get()).ok()?;
    payload["sessionId"].as_str().map(str::to_owned)
}

/// Parses a payload, or says what is wrong with it. If every field is optional, the payload may be absent.
pub(super) fn payload<T: DeserializeOwned>(raw: Option<&RawValue>) -> Result<T, String> {
    let Some(text) = raw.map(RawValue::get).filter(|text| *text != "null") else {
        return serde_json::from_str("{}").map_err(|_| "'payload' is missing.".to_owned());
    };
    if text.starts_with('[') {
        return Err("'payload': invalid type: list, expected an object.".to_owned());
    }
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = match error.path().to_string().as_str() {
            "." => "payload".to_owned(),
            path => format!("payload.{path}"),
        };
        wrong(&path, &error.inner().to_string())
    })
}

/// serde's message, with the field's name, and without the names of Rust types.
fn wrong(path: &str, reason: &str) -> String {
    let reason = reason.split(" at line ").next().unwrap_or(reason);
    if let Some(field) = reason
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'))
    {
        return format!("'{path}.{field}' is missing.");
    }
    let (found, expected) = match reason.split_once(", expected ") {
        Some((found, expected)) => (found, format!(", expected {}", plain(expected))),
        None => (reason, String::new()),
    };
    format!("'{path}': {found}{expected}.")
}

/// The expected type, for readers who know JSON and not our types.
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

    fn event(frame: &str) -> ClientEvent {
        parse(frame).unwrap().event
    }

    #[test]
    fn frames_of_the_contract_are_understood() {
        for list in [
            r#"{"type":"session.list"}"#,
            r#"{"type":"session.list","payload":null}"#,
            r#"{"type":"session.list","payload":{}}"#,
            r#" {"payload":{"page":1},"type":"session.list"}"#,
        ] {
            assert!(matches!(event(list), ClientEvent::SessionList(_)), "{list}");
        }
        let frame = r#"{"payload":{"prompt":"hi","unknown":1,"title":"t"},"type":"session.start"}"#;
        let ClientEvent::SessionStart(start) = event(frame) else {
            panic!("another event")
        };
        assert_eq!(start.prompt, "hi");
    }

    #[test]
    fn invalid_frames_are_reported() {
        assert!(reason("hello").starts_with("The frame is not JSON: expected value"));
        assert!(reason("").starts_with("The frame is not JSON"));
        for other in ["[]", "5", "null", r#"["session.list"]"#] {
            assert!(
                reason(other).starts_with("A frame must be a JSON object"),
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
    fn an_error_names_the_field_and_the_expected_type() {
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
                r#"{"type":"session.stop","payload":["x"]}"#,
                "'payload': invalid type: list, expected an object.",
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
                "'payload.permissionMode': unknown variant `nope`, expected one of `default`, `acceptEdits`, `plan`, `auto`, `bypassPermissions`.",
            ),
            (
                r#"{"type":"permission.response","payload":{"sessionId":"s","result":{"behavior":"maybe"}}}"#,
                "'payload.result.behavior': unknown variant `maybe`, expected `allow` or `deny`.",
            ),
        ];
        for (frame, expected) in cases {
            let reason = reason(frame);
            let said = reason.split_once("': ").map(|(_, said)| said);
            assert_eq!(said, Some(expected), "{reason}");
        }
    }

    #[test]
    fn an_invalid_frame_keeps_its_command_id() {
        let id = |text: &str| CommandId::new(text.to_owned());
        let taken = parse(r#"{"type":"session.list","commandId":"c-1"}"#).unwrap();
        assert_eq!(taken.command, id("c-1"));
        let frame = r#"{"commandId":"c-2","type":"session.stop","payload":{}}"#;
        assert_eq!(parse(frame).unwrap_err().command, id("c-2"));
        assert_eq!(
            parse(r#"{"type":"session.list","commandId":null}"#)
                .unwrap()
                .command,
            None
        );
        let longest = "é".repeat(64);
        for (text, taken) in [(longest.clone(), true), (format!("{longest}x"), false)] {
            let frame = format!(r#"{{"type":"session.list","commandId":"{text}"}}"#);
            assert_eq!(parse(&frame).is_ok(), taken);
        }
        assert_eq!(
            reason(r#"{"type":"session.list","commandId":7}"#),
            "'commandId' must be a string of at most 64 characters."
        );
        assert!(
            reason(r#"{"type":"session.list","type":"session.stop"}"#).contains("duplicate field `type`")
        );
    }

    #[test]
    fn an_invalid_frame_names_its_session_if_it_can_be_read() {
        let frame = r#"{"type":"session.rename","payload":{"sessionId":"s"}}"#;
        assert_eq!(parse(frame).unwrap_err().session.as_deref(), Some("s"));
    }
}
