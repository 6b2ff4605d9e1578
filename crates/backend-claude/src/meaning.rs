//! What a message of the CLI means for the state of a session.

use tiller_agent::link::CONVERSATION_NOT_FOUND;
use tiller_agent::message::{Body, Kind, Message, PermissionMode, SystemMessage, TurnOutcome, TurnResult};

use crate::options::mode_change;
use tiller_core::backend::{Meaning, TurnEnd};

pub(crate) fn meaning(message: &Message) -> Meaning {
    match (message.kind(), message.subtype(), message.session_id()) {
        (Kind::System, Some("init"), Some(conversation)) => Meaning::Init {
            conversation: conversation.to_owned(),
        },
        (Kind::System, Some("status" | "background_tasks_changed"), _) => match message.body() {
            Body::System(SystemMessage::Status(status)) => {
                // A mode without a name here concerns only the user and the CLI.
                let mode = status.permission_mode.as_ref().map(PermissionMode::as_str);
                let mode = mode.and_then(mode_change);
                mode.map_or(Meaning::Nothing, Meaning::Option)
            }
            Body::System(SystemMessage::BackgroundTasksChanged(background)) => Meaning::Background {
                running: background.tasks.len(),
            },
            _ => Meaning::Nothing,
        },
        (Kind::Result, ..) => match message.result() {
            Some(result) if !result.is_background() => Meaning::TurnEnded(turn_end(result)),
            // A report about a background task; the user's turn continues.
            _ => Meaning::Nothing,
        },
        _ => Meaning::Nothing,
    }
}

fn turn_end(result: TurnResult) -> TurnEnd {
    if result.outcome() == TurnOutcome::Success {
        return TurnEnd::Success;
    }
    let errors = result.error_texts();
    if errors
        .iter()
        .any(|error| error.starts_with(CONVERSATION_NOT_FOUND))
    {
        return TurnEnd::Expired;
    }
    let message = match (errors.is_empty(), result.result.filter(|text| !text.is_empty())) {
        (false, _) => errors.join("\n"),
        (true, Some(text)) => text,
        (true, None) => in_words(&result.subtype),
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
