//! Turns as the agent's lines, and the frames that clients get.

use tiller_core::{Behavior, Prompt, RequestId, SessionId, Timestamp};

use super::super::parse::parse;
use super::super::wire::{ClientMessage, Code, CommandId};
use super::*;

fn session() -> SessionId {
    "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a10".parse().unwrap()
}

fn status(status: SessionStatus, error: Option<&str>) -> EventBody {
    EventBody::Status(Box::new(StatusChange {
        status,
        title: None,
        cwd: None,
        error: error.map(str::to_owned),
        turn: None,
        cause: None,
    }))
}

fn line(message: Value) -> EventBody {
    EventBody::Message {
        raw: RawJson::of(&message).unwrap(),
        uuid: None,
    }
}

fn prompt(prompt: &str) -> EventBody {
    EventBody::UserPrompt {
        prompt: Box::new(Prompt::new(
            "00000000-0000-4000-8000-000000000001".parse().unwrap(),
            prompt.to_owned(),
        )),
    }
}

fn init() -> EventBody {
    line(json!({
        "type": "system", "subtype": "init", "session_id": "c", "cwd": "/project", "model": "claude-x",
        "tools": ["Bash"], "permissionMode": "default", "slash_commands": ["compact", "review"], "mcp_servers": [],
        "agents": ["Plan"], "claude_code_version": "2.1.325",
    }))
}

fn piece(event: Value) -> EventBody {
    line(json!({ "type": "stream_event", "uuid": "u", "event": event, "parent_tool_use_id": null }))
}

fn stop() -> EventBody {
    piece(json!({ "type": "message_stop" }))
}

fn said(id: &str, block: Value) -> EventBody {
    line(json!({
        "type": "assistant", "message": { "id": id, "model": "claude-x", "content": [block] }, "parent_tool_use_id": null,
    }))
}

fn call(id: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": "Bash", "input": { "command": "ls" } })
}

fn returned(id: &str) -> EventBody {
    let block =
        json!({ "type": "tool_result", "tool_use_id": id, "content": [{ "type": "text", "text": "a.txt" }] });
    line(json!({ "type": "user", "message": { "content": [block] }, "parent_tool_use_id": null }))
}

fn result(subtype: &str, is_error: bool) -> EventBody {
    line(json!({
        "type": "result", "subtype": subtype, "is_error": is_error, "duration_ms": 20, "duration_api_ms": 10,
        "num_turns": 2, "total_cost_usd": 0.5, "result": "done", "usage": { "input_tokens": 1, "output_tokens": 2 },
        "permission_denials": [],
    }))
}

fn asked(tool_use_id: &str) -> EventBody {
    EventBody::DecisionRequested(Box::new(DecisionRequest {
        id: RequestId::of(session(), 1),
        agent_request: "r".to_owned(),
        tool_use_id: tool_use_id.to_owned(),
        tool_name: "Bash".to_owned(),
        input: RawJson::parse(r#"{"command":"ls"}"#).unwrap(),
        suggestions: Some(RawJson::parse(r#"[{"type":"addRules"}]"#).unwrap()),
        blocked_path: Some("/etc/hosts".to_owned()),
        description: Some("List".to_owned()),
    }))
}

fn resolved(tool_use_id: &str, behavior: Behavior) -> EventBody {
    EventBody::DecisionResolved {
        reply: None,
        request: RequestId::of(session(), 1),
        tool_use_id: tool_use_id.to_owned(),
        behavior,
    }
}

/// All frames for a client that has seen events up to `seen`, with a pause at the end.
fn heard_after(seen: u64, bodies: &[EventBody]) -> Vec<Value> {
    let mut translator = Translator::new("demo", seen, &Introduction::default());
    let mut frames = Vec::new();
    for (seq, body) in (1u32..).zip(bodies) {
        let event = Event {
            session: session(),
            seq: seq.into(),
            at: Timestamp(0),
            body: body.clone(),
        };
        frames.extend(translator.push(&event));
    }
    if translator.holds() {
        frames.extend(translator.release());
    }
    assert!(!translator.holds());
    let new = frames.into_iter().filter(|frame| frame.seq > Some(seen));
    new.map(|frame| serde_json::to_value(frame).unwrap()).collect()
}

fn heard(bodies: &[EventBody]) -> Vec<Value> {
    heard_after(0, bodies)
}

/// Type, subtype or kinds of blocks, and `seq` of each frame.
fn in_short(frames: &[Value]) -> Vec<String> {
    let detail = |frame: &Value| match frame["content"].as_array() {
        Some(blocks) => blocks
            .iter()
            .map(|block| block["type"].as_str().unwrap())
            .collect::<Vec<_>>()
            .join("+"),
        None => frame["subtype"].as_str().unwrap_or_default().to_owned(),
    };
    frames
        .iter()
        .map(|frame| {
            format!(
                "{} {} {}",
                frame["seq"],
                frame["type"].as_str().unwrap(),
                detail(frame)
            )
            .trim_end()
            .to_owned()
        })
        .collect()
}

fn message_of(frame: &str) -> Result<ClientMessage, Refused> {
    parse(frame, "demo").1
}

#[test]
fn a_turn_with_a_tool() {
    let frames = heard(&[
        status(SessionStatus::Running, None),
        prompt("what is here?"),
        init(),
        piece(
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Let" } }),
        ),
        said("m1", json!({ "type": "text", "text": "Let me look." })),
        said("m1", call("t1")),
        stop(),
        returned("t1"),
        said("m2", json!({ "type": "text", "text": "One file." })),
        stop(),
        result("success", false),
        status(SessionStatus::Completed, None),
    ]);
    insta::assert_json_snapshot!(frames);
}

#[test]
fn a_question_comes_before_the_call_that_it_is_about() {
    let frames = heard(&[
        prompt("delete it"),
        said("m1", json!({ "type": "text", "text": "I will." })),
        said("m1", call("t1")),
        asked("t1"),
        stop(),
        resolved("t1", Behavior::Allow),
        returned("t1"),
        result("success", false),
        status(SessionStatus::Completed, None),
    ]);
    insta::assert_json_snapshot!(frames);
}

#[test]
fn a_permission_request_may_follow_the_end_of_its_message() {
    let turn = [
        prompt("delete it"),
        said("m1", call("t1")),
        stop(),
        asked("t1"),
        resolved("t1", Behavior::Deny),
        returned("t1"),
    ];
    let all = [
        "1 user_message",
        "3 stream",
        "4 permission_request",
        "5 system permission_resolved",
        "5 assistant tool_use",
        "6 assistant tool_result",
    ];
    assert_eq!(in_short(&heard(&turn)), all);
    // A reconnecting client gets the rest once.
    assert_eq!(in_short(&heard_after(4, &turn)), all[3..]);
    assert_eq!(in_short(&heard_after(5, &turn)), all[5..]);
    // A client that connected before the request got the call with the end of its message.
    assert_eq!(
        in_short(&heard(&turn[..3])),
        ["1 user_message", "3 stream", "3 assistant tool_use"]
    );
    assert_eq!(
        in_short(&heard_after(3, &turn)),
        [all[2], all[3], all[5]],
        "not again after the question"
    );
}

#[test]
fn a_stopped_turn_is_interrupted_and_no_error() {
    let turn = [
        prompt("wait"),
        init(),
        said("m1", call("t1")),
        stop(),
        result("error_during_execution", true),
        status(SessionStatus::Idle, None),
    ];
    let frames = heard(&turn);
    insta::assert_json_snapshot!(frames[frames.len() - 2..]);
    // A stop without a running turn.
    assert_eq!(
        in_short(&heard(&[status(SessionStatus::Idle, None)])),
        ["1 system interrupted"]
    );
    // Stopped before the agent sent anything.
    let frames = heard(&[prompt("wait"), status(SessionStatus::Idle, None)]);
    assert_eq!(
        in_short(&frames),
        ["1 user_message", "2 system interrupted", "2 result error"]
    );
}

#[test]
fn failures_say_why() {
    let failed = |introduced: bool| {
        let mut turn = vec![prompt("go")];
        turn.extend(introduced.then(init));
        turn.push(status(
            SessionStatus::Error,
            Some("The agent ended unexpectedly."),
        ));
        let frames = heard(&turn);
        let [error, result] = &frames[frames.len() - 2..] else {
            panic!("{frames:?}")
        };
        assert_eq!(
            (&result["subtype"], &result["is_error"], &result["result"]),
            (
                &json!("error"),
                &json!(true),
                &json!("The agent ended unexpectedly.")
            )
        );
        error["details"]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(failed(false), "CONNECTION_FAILED");
    assert_eq!(failed(true), "EXECUTION_FAILED");
    let frames = heard(&[
        prompt("go"),
        result("error_max_turns", true),
        status(SessionStatus::Error, Some("The limit of turns was reached.")),
    ]);
    let result = frames.last().unwrap();
    assert_eq!(
        (&result["subtype"], &result["detail"], &result["is_error"]),
        (&json!("error"), &json!("error_max_turns"), &json!(true))
    );
    assert_eq!(frames.len(), 2, "no error beside the result");
}

#[test]
fn a_failed_tool_is_an_error_once_the_agent_continues() {
    let failed = |id: &str| {
        let block =
            json!({ "type": "tool_result", "tool_use_id": id, "content": "Exit code 1", "is_error": true });
        line(json!({ "type": "user", "message": { "content": [block] }, "parent_tool_use_id": null }))
    };
    let mut turn = vec![
        prompt("try"),
        said("m1", call("t1")),
        stop(),
        failed("t1"),
        said("m2", json!({ "type": "text", "text": "It failed." })),
    ];
    let frames = heard(&turn);
    let error = frames.iter().find(|frame| frame["type"] == "error").unwrap();
    assert_eq!(
        *error,
        json!({ "type": "error", "error": "Tool execution failed", "seq": 5, "details": {
            "code": "TOOL_ERROR", "tool": "Bash", "tool_use_id": "t1", "message": "Exit code 1",
        } })
    );
    // A call that a person stopped or denied has not failed.
    turn[4] = status(SessionStatus::Idle, None);
    assert!(heard(&turn).iter().all(|frame| frame["type"] != "error"));
    let denied = [
        prompt("try"),
        said("m1", call("t1")),
        asked("t1"),
        stop(),
        resolved("t1", Behavior::Deny),
        failed("t1"),
        result("success", false),
        status(SessionStatus::Completed, None),
    ];
    assert!(heard(&denied).iter().all(|frame| frame["type"] != "error"));
}

#[test]
fn background_tasks_do_not_end_the_turn() {
    let mut notification = json!({ "type": "result", "subtype": "success", "is_error": false });
    notification["origin"] = json!({ "kind": "task-notification" });
    let subagents = line(json!({
        "type": "assistant", "message": { "id": "m9", "model": "claude-small", "content": [{ "type": "text", "text": "x" }] },
        "parent_tool_use_id": "t1",
    }));
    let frames = heard(&[
        prompt("go"),
        said("m1", json!({ "type": "text", "text": "a" })),
        subagents,
        said("m1", json!({ "type": "text", "text": "b" })),
        line(notification),
        line(json!({ "type": "something_new", "session_id": "c", "value": 1 })),
    ]);
    assert_eq!(
        in_short(&frames),
        [
            "1 user_message",
            "3 assistant text",
            "5 assistant text+text",
            "5 system background_result",
            "6 system something_new"
        ]
    );
    assert_eq!(
        (&frames[1]["parent_tool_use_id"], &frames[1]["model"]),
        (&json!("t1"), &json!("claude-small"))
    );
    assert_eq!(frames[4]["data"], json!({ "value": 1 }));
}

#[test]
fn frames_that_are_not_objects_are_refused() {
    for frame in [
        "",
        "5",
        r#"["user_message"]"#,
        r#"{"type":"user_message","message":["hi"]}"#,
        r#"{"type":"user_message","message":"hi"}"#,
    ] {
        let Err(Refused(code, reason)) = message_of(frame) else {
            panic!("{frame} was taken")
        };
        assert_eq!(code, super::super::wire::Code::ParseError);
        assert!(!reason.contains("struct"), "{reason}");
    }
}

#[test]
fn messages_of_the_contract_are_understood() {
    let frame = r#"{"type":"user_message","session_id":"demo","message":{"content":"hi","parent_tool_use_id":null},"uuid":"m"}"#;
    assert_eq!(
        message_of(frame),
        Ok(ClientMessage::UserMessage {
            message: UserContent {
                content: "hi".to_owned(),
                ..UserContent::default()
            },
            uuid: Some("m".to_owned())
        })
    );
    let frame = r#"{"type":"permission_response","request_id":"r","decision":"allow","updated_input":null,"updated_permissions":null}"#;
    let Ok(ClientMessage::PermissionResponse(response)) = message_of(frame) else {
        panic!("not understood")
    };
    let allowed = DecisionAnswer::Allow {
        input: None,
        permissions: None,
    };
    assert_eq!(answer(response), Ok(allowed));
    let frame = r#"{"type":"permission_response","request_id":"r","decision":"deny","message":"不","interrupt":true}"#;
    let Ok(ClientMessage::PermissionResponse(response)) = message_of(frame) else {
        panic!("not understood")
    };
    let denied = DecisionAnswer::Deny {
        message: Some("不".to_owned()),
        interrupt: true,
    };
    assert_eq!(answer(response), Ok(denied));
    assert_eq!(
        message_of(r#"{"type":"interrupt"}"#),
        Ok(ClientMessage::Interrupt)
    );
}

#[test]
fn everything_else_is_refused_with_a_reason() {
    let refusal = |frame: &str| message_of(frame).unwrap_err();
    for (frame, code, reason) in [
        ("hello", Code::ParseError, "not a JSON object"),
        ("[]", Code::ParseError, "not a JSON object"),
        ("{}", Code::ParseError, "Expected 'type' field in message"),
        (
            r#"{"type":7}"#,
            Code::ParseError,
            "Expected 'type' field in message",
        ),
        (
            r#"{"type":"explode"}"#,
            Code::ParseError,
            "Unknown message type 'explode'",
        ),
        (
            r#"{"type":"user_message"}"#,
            Code::ParseError,
            "missing field `message`",
        ),
        (
            r#"{"type":"permission_response","request_id":"r","decision":"maybe"}"#,
            Code::ParseError,
            "unknown variant `maybe`",
        ),
        (
            r#"{"type":"interrupt","session_id":"other"}"#,
            Code::InvalidSession,
            "for the session 'demo'",
        ),
    ] {
        let Refused(found, said) = refusal(frame);
        assert_eq!(found, code, "{frame}");
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn models_are_those_of_the_agent() {
    for name in [
        "opus",
        "sonnet[1m]",
        "claude-opus-4",
        "claude-sonnet-4-5-20250929",
    ] {
        assert_eq!(model(name, None), Ok(Some(name.to_owned())));
    }
    assert_eq!(model("default", None), Ok(None));
    for name in ["", "gpt-4", "claude-", "--model", "Opus"] {
        assert_eq!(model(name, None).unwrap_err().0, Code::InvalidModel, "{name}");
    }
    let offered = ["fable".to_owned()];
    assert!(model("fable", Some(&offered)).is_ok() && model("opus", Some(&offered)).is_err());
}

#[test]
fn commands_get_their_descriptions_from_the_agents_list() {
    let list = r#"[{"name":"review","description":"Look at it","argumentHint":"<number>"},{"name":"x","argumentHint":["a","b"]}]"#;
    let mut commands = ServerMessage::system(
        COMMANDS,
        json!({ "commands": [{ "name": "/review" }, { "name": "/x" }, { "name": "/other" }] }),
    );
    describe_commands(&mut commands, &RawJson::parse(list).unwrap());
    let ServerMessage::System { data, .. } = commands else {
        panic!("another message")
    };
    assert_eq!(
        data["commands"],
        json!([
            { "name": "/review", "description": "Look at it", "args": "<number>" },
            { "name": "/x", "description": "", "args": "a b" },
            { "name": "/other" },
        ])
    );
}

#[test]
fn a_hook_call_has_the_clients_name_for_the_session() {
    let call = HookCall {
        agent_request: "r1".to_owned(),
        event: "PreToolUse".to_owned(),
        input: RawJson::parse(r#"{"session_id":"c","tool_name":"Bash"}"#).unwrap(),
        tool_use_id: Some("t1".to_owned()),
    };
    assert_eq!(
        serde_json::to_value(hook_callback("demo", &call)).unwrap(),
        json!({
            "type": "hook_callback", "callback_id": "r1", "hook_event": "PreToolUse", "tool_use_id": "t1",
            "input": { "session_id": "demo", "tool_name": "Bash" },
        })
    );
    assert!(hook_events(vec!["PreToolUse".to_owned()]).is_ok());
    assert!(hook_events(vec!["Pre Tool".to_owned()]).is_err() && hook_events(vec![String::new()]).is_err());
}

#[test]
fn a_message_may_have_an_id() {
    let id_of = |frame: &str| parse(frame, "demo");
    let (id, message) = id_of(r#"{"type":"interrupt","command_id":"c-1"}"#);
    assert_eq!(id, Some(CommandId("c-1".to_owned())));
    assert!(message.is_ok());
    let (id, message) = id_of(r#"{"type":"nonsense","command_id":"c-2"}"#);
    assert_eq!(id, Some(CommandId("c-2".to_owned())));
    assert!(message.is_err(), "and the error has it");
    let (id, message) = id_of(r#"{"type":"interrupt","command_id":null}"#);
    assert!(id.is_none() && message.is_ok());
    let long = format!(r#"{{"type":"interrupt","command_id":"{}"}}"#, "字".repeat(65));
    for wrong in [r#"{"type":"interrupt","command_id":7}"#, &long] {
        let (id, message) = id_of(wrong);
        assert!(id.is_none());
        assert_eq!(message.unwrap_err().0, Code::ParseError);
    }
    let fits = format!(r#"{{"type":"interrupt","command_id":"{}"}}"#, "字".repeat(64));
    assert!(id_of(&fits).0.is_some());
}
