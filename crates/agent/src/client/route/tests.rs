//! Sequences as the versions write them (recorded from 2.1.325, 2.1.113 and 2.1.49), cut to what routing looks at.

use super::*;

const INIT: &str = r#"{"type":"system","subtype":"init"}"#;
const NOTIFICATION: &str = r#"{"type":"system","subtype":"task_notification"}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success"}"#;
const OWN_RESULT: &str = r#"{"type":"result","subtype":"success","origin":{"kind":"task-notification"}}"#;
const ASSISTANT: &str = r#"{"type":"assistant","message":{"content":[]}}"#;
const ECHO: &str = r#"{"type":"user","uuid":"p","isReplay":true,"message":{"content":"hello"}}"#;
const TOOL_RESULT: &str =
    r#"{"type":"user","uuid":"t","message":{"content":[{"type":"tool_result","tool_use_id":"1"}]}}"#;

fn lifecycle(state: &str) -> String {
    format!(r#"{{"type":"command_lifecycle","command_uuid":"p","state":"{state}"}}"#)
}

/// Routes lines; `>` is where the prompt is sent.
fn routes(lines: &[&str]) -> String {
    let mut router = Router::new(false);
    let mut routes = String::new();
    for line in lines {
        if *line == ">" {
            router.sent("p".to_owned());
            continue;
        }
        routes.push(match router.route(&Message::parse(*line).unwrap()) {
            Route::Turn => 't',
            Route::TurnEnds => 'E',
            Route::Outside => '-',
            Route::Hidden => 'h',
        });
    }
    routes
}

#[test]
fn a_turn_is_what_comes_until_its_result() {
    assert_eq!(
        routes(&[">", INIT, ECHO, ASSISTANT, TOOL_RESULT, RESULT, NOTIFICATION]),
        "thttE-"
    );
    // A slash command, and a prompt that a hook blocked, do not come back in older versions.
    assert_eq!(routes(&[">", INIT, RESULT, ASSISTANT]), "tE-");
    let (queued, started, completed) = (lifecycle("queued"), lifecycle("started"), lifecycle("completed"));
    assert_eq!(
        routes(&[">", &queued, &started, INIT, ECHO, ASSISTANT, RESULT, &completed]),
        "-tthtE-"
    );
    assert_eq!(
        routes(&[">", &queued, &started, INIT, RESULT, &completed]),
        "-ttE-"
    );
}

#[test]
fn a_turn_of_the_clis_own_is_not_the_answer() {
    // Before the prompt, and while the prompt is on its way.
    for sent in [0, 1, 2, 3] {
        let mut lines = vec![
            NOTIFICATION,
            INIT,
            ASSISTANT,
            RESULT,
            INIT,
            ECHO,
            ASSISTANT,
            RESULT,
        ];
        lines.insert(sent, ">");
        let routes = routes(&lines);
        assert!(
            routes.ends_with("thtE") && !routes[..4].contains('E'),
            "{sent}: {routes}"
        );
    }
    let (queued, started) = (lifecycle("queued"), lifecycle("started"));
    for sent in [0, 1, 2, 3] {
        let mut lines = vec![NOTIFICATION, INIT, ASSISTANT];
        lines.insert(sent, ">");
        lines.extend([&*queued, OWN_RESULT, &*started, INIT, ECHO, RESULT]);
        let routes = routes(&lines);
        assert!(
            routes.ends_with("tthE") && !routes[..5].contains('E'),
            "{sent}: {routes}"
        );
    }
}

#[test]
fn a_prompt_that_joins_the_clis_own_turn_is_answered_by_it() {
    assert_eq!(
        routes(&[NOTIFICATION, INIT, ">", TOOL_RESULT, ECHO, ASSISTANT, RESULT]),
        "---htE"
    );
    let (queued, started) = (lifecycle("queued"), lifecycle("started"));
    assert_eq!(
        routes(&[
            NOTIFICATION,
            INIT,
            ">",
            &queued,
            ECHO,
            &started,
            ASSISTANT,
            OWN_RESULT
        ]),
        "---httE"
    );
}

#[test]
fn a_task_that_ends_during_a_turn_changes_nothing() {
    assert_eq!(routes(&[">", INIT, NOTIFICATION, ECHO, RESULT]), "tthE");
    assert_eq!(routes(&[">", INIT, NOTIFICATION, RESULT]), "ttE");
}

#[test]
fn prompts_come_back_to_those_who_want_them() {
    let mut router = Router::new(true);
    router.sent("p".to_owned());
    assert_eq!(router.route(&Message::parse(ECHO).unwrap()), Route::Turn);
}
