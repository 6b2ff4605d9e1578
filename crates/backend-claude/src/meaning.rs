//! What a message of the CLI's means for the life of a session.

use serde::Deserialize;
use tiller_agent::{CONVERSATION_NOT_FOUND, Kind, Message};

use crate::options::mode_change;
use tiller_core::backend::{Meaning, TurnEnd};

pub(crate) fn meaning(message: &Message) -> Meaning {
    match (message.kind(), message.subtype(), message.session_id()) {
        (Kind::System, Some("init"), Some(conversation)) => Meaning::Init {
            conversation: conversation.to_owned(),
        },
        (Kind::System, Some("status"), _) => {
            let status: Status = serde_json::from_str(message.json()).unwrap_or_default();
            // A mode that has no name here is between the user and the CLI.
            let mode = status.permission_mode.as_deref().and_then(mode_change);
            mode.map_or(Meaning::Nothing, Meaning::Option)
        }
        (Kind::System, Some("background_tasks_changed"), _) => {
            let background: Background = serde_json::from_str(message.json()).unwrap_or_default();
            Meaning::Background {
                running: background.tasks.len(),
            }
        }
        (Kind::Result, subtype, _) => {
            let result: TurnResult = serde_json::from_str(message.json()).unwrap_or_default();
            // The CLI's own word on something in the background; the user's turn goes on.
            if result
                .origin
                .as_ref()
                .is_some_and(|origin| origin.kind == "task-notification")
            {
                return Meaning::Nothing;
            }
            Meaning::TurnEnded(turn_end(result, subtype.unwrap_or_default()))
        }
        _ => Meaning::Nothing,
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    permission_mode: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Background {
    tasks: Vec<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TurnResult {
    is_error: bool,
    result: Option<String>,
    errors: Vec<serde_json::Value>,
    origin: Option<Origin>,
}

/// What made the CLI work, where it was not the user.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Origin {
    kind: String,
}

fn turn_end(parsed: TurnResult, subtype: &str) -> TurnEnd {
    // The CLI says `success` also where the model could not be reached; `is_error` is the truth then.
    if subtype == "success" && !parsed.is_error {
        return TurnEnd::Success;
    }
    let errors = parsed.errors.iter().map(|error| match error {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let errors: Vec<_> = errors.filter(|error| !error.is_empty()).collect();
    if errors
        .iter()
        .any(|error| error.starts_with(CONVERSATION_NOT_FOUND))
    {
        return TurnEnd::Expired;
    }
    let message = match (errors.is_empty(), parsed.result.filter(|text| !text.is_empty())) {
        (false, _) => errors.join("\n"),
        (true, Some(text)) => text,
        (true, None) => in_words(subtype),
    };
    TurnEnd::Failure { message }
}

fn in_words(subtype: &str) -> String {
    match subtype {
        "error_max_turns" => "The limit of turns was reached.".to_owned(),
        "error_max_budget_usd" => "The budget was used up.".to_owned(),
        other => format!("The turn ended with {other}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(json: &str) -> Meaning {
        meaning(&Message::parse(json).unwrap())
    }

    fn failure(message: &str) -> Meaning {
        Meaning::TurnEnded(TurnEnd::Failure {
            message: message.to_owned(),
        })
    }

    #[test]
    fn the_end_of_a_turn_is_read_from_is_error_first() {
        let cases = [
            (
                r#"{"duration_api_ms":1,"type":"result","subtype":"success","is_error":false}"#,
                Meaning::TurnEnded(TurnEnd::Success),
            ),
            (
                r#"{"type":"result","subtype":"success","is_error":true,"result":"API Error: 500"}"#,
                failure("API Error: 500"),
            ),
            (
                r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}"#,
                Meaning::TurnEnded(TurnEnd::Expired),
            ),
            (
                r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["one","two"]}"#,
                failure("one\ntwo"),
            ),
            (
                r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#,
                failure("The limit of turns was reached."),
            ),
            (
                r#"{"type":"result","subtype":"error_new","is_error":false}"#,
                failure("The turn ended with error_new."),
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(end(json), expected, "{json}");
        }
    }

    #[test]
    fn a_word_on_the_background_does_not_end_the_turn() {
        let json =
            r#"{"type":"result","subtype":"success","is_error":false,"origin":{"kind":"task-notification"}}"#;
        assert_eq!(end(json), Meaning::Nothing);
        let json = r#"{"type":"result","subtype":"success","is_error":false,"origin":{"kind":"human"}}"#;
        assert_eq!(end(json), Meaning::TurnEnded(TurnEnd::Success));
    }

    #[test]
    fn a_status_tells_the_permission_mode() {
        let json = r#"{"type":"system","subtype":"status","status":null,"permissionMode":"plan"}"#;
        assert_eq!(end(json), Meaning::Option(mode_change("plan").unwrap()));
        let json = r#"{"type":"system","subtype":"status","permissionMode":"dontAsk"}"#;
        assert_eq!(end(json), Meaning::Nothing);
    }

    #[test]
    fn init_tells_the_conversation() {
        let init = end(r#"{"type":"system","subtype":"init","session_id":"abc"}"#);
        assert_eq!(
            init,
            Meaning::Init {
                conversation: "abc".to_owned()
            }
        );
        assert_eq!(
            end(r#"{"type":"system","subtype":"status","session_id":"abc"}"#),
            Meaning::Nothing
        );
        assert_eq!(
            end(r#"{"type":"assistant","session_id":"abc"}"#),
            Meaning::Nothing
        );
    }
}
