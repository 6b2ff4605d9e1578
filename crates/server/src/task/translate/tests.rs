//! Turns as the agent's lines, and the events that clients get.

use tiller_core::{Prompt, PromptId, RawJson, RequestId, SessionId};

use super::*;

fn translator(granularity: Granularity) -> Translator {
    Translator::new(About {
        session_id: "s".to_owned(),
        cwd: "/project".to_owned(),
        cost_before: 0.25,
        granularity,
        language: Language::English,
    })
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

fn prompt() -> EventBody {
    EventBody::UserPrompt {
        prompt: Box::new(Prompt::new(PromptId::random(), "do it".to_owned())),
    }
}

/// The events of clients: the type of each event and its data.
fn heard(
    translator: &mut Translator,
    bodies: impl IntoIterator<Item = EventBody>,
) -> (Vec<(&'static str, Value)>, Option<TaskResponse>) {
    let session = SessionId::random();
    let mut events = Vec::new();
    let mut response = None;
    for (seq, body) in (1u32..).zip(bodies) {
        let event = Event {
            session,
            seq: seq.into(),
            at: Timestamp(1000 * i64::from(seq)),
            body,
        };
        let translated = translator.push(&event, false);
        events.extend(
            translated
                .events
                .into_iter()
                .map(|event| (event.kind, event.data)),
        );
        response = translated.response.or(response);
    }
    (events, response)
}

fn stream(event: Value) -> EventBody {
    line(json!({ "type": "stream_event", "parent_tool_use_id": null, "event": event }))
}

fn said(message: &str, parent: Option<&str>, block: Value) -> EventBody {
    let message = json!({ "id": message, "content": [block] });
    line(json!({ "type": "assistant", "parent_tool_use_id": parent, "message": message }))
}

fn returned(call: &str, is_error: bool, structured: Value) -> EventBody {
    let result = json!({ "type": "tool_result", "tool_use_id": call, "content": "ok", "is_error": is_error });
    line(json!({ "type": "user", "message": { "content": [result] }, "tool_use_result": structured }))
}

fn call(id: &str, name: &str, input: Value) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": input })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn delta(index: u64, text: &str) -> EventBody {
    stream(
        json!({ "type": "content_block_delta", "index": index, "delta": { "type": "text_delta", "text": text } }),
    )
}

fn starts(message: &str) -> EventBody {
    stream(json!({ "type": "message_start", "message": { "id": message } }))
}

#[test]
fn a_streamed_block_is_not_sent_again_as_a_whole() {
    let turn = || {
        [
            prompt(),
            starts("m1"),
            delta(0, "Hel"),
            delta(0, "lo"),
            said("m1", None, text("Hello")),
            delta(1, "!"),
            said("m1", None, text("!")),
            starts("m2"),
            delta(0, "Bye"),
            said("m2", None, text("Bye")),
        ]
    };
    let piece = |words: &str, block: u64| ("text", json!({ "text": words, "block": block }));
    let (events, _) = heard(&mut translator(Granularity::Piece), turn());
    assert_eq!(
        events,
        [piece("Hel", 0), piece("lo", 0), piece("!", 1), piece("Bye", 2)]
    );
    let whole = [piece("Hello", 0), piece("!", 1), piece("Bye", 2)];
    let (events, _) = heard(&mut translator(Granularity::Block), turn());
    assert_eq!(events, whole);
    // Once fragments are compacted, the whole block is sent instead.
    let compacted = turn().into_iter().filter(|body| match body {
        EventBody::Message { raw, .. } => !raw.as_str().contains("stream_event"),
        _ => true,
    });
    let (events, _) = heard(&mut translator(Granularity::Piece), compacted);
    assert_eq!(events, whole);
}

#[test]
fn changed_files_tools_and_cost_are_added_up() {
    let edited = |path: &str| json!({ "filePath": path, "structuredPatch": [] });
    let result = json!({
        "type": "result", "result": "Done.", "total_cost_usd": 0.75, "duration_ms": 42, "num_turns": 3,
        "usage": { "output_tokens": 5 }, "permission_denials": [{ "tool_name": "Bash" }],
    });
    let (events, response) = heard(
        &mut translator(Granularity::Piece),
        [
            prompt(),
            said("m", None, call("t1", "Edit", json!({}))),
            returned("t1", false, edited("/project/src/a.rs")),
            said("m", None, call("t2", "Write", json!({}))),
            returned("t2", true, edited("/project/failed.rs")),
            said("m", None, call("t3", "Write", json!({}))),
            returned("t3", false, edited("/elsewhere/b.rs")),
            said("m", None, call("t4", "Edit", json!({}))),
            returned("t4", false, edited("/project/src/a.rs")),
            said("m", None, call("t5", "Read", json!({}))),
            returned("t5", false, edited("/project/only-read.rs")),
            line(result),
            status(SessionStatus::Completed, None),
        ],
    );
    let response = response.expect("an end");
    assert_eq!(response.files_changed, ["src/a.rs", "/elsewhere/b.rs"]);
    assert_eq!(response.tools_used, ["Edit", "Write", "Read"]);
    assert_eq!(response.cost_usd, Some(0.5), "what this turn cost");
    assert_eq!((response.duration_ms, response.num_turns), (Some(42), Some(3)));
    assert_eq!(response.permission_denials, [json!({ "tool_name": "Bash" })]);
    assert!(response.success);
    let (kind, data) = events.last().expect("events");
    assert_eq!(
        (*kind, data),
        ("complete", &serde_json::to_value(&response).unwrap())
    );
}

#[test]
fn a_process_that_counts_from_zero_is_detected() {
    let result = json!({ "type": "result", "total_cost_usd": 0.125 });
    let turn = [prompt(), line(result), status(SessionStatus::Completed, None)];
    let (_, response) = heard(&mut translator(Granularity::Piece), turn);
    assert_eq!(response.and_then(|response| response.cost_usd), Some(0.125));
}

#[test]
fn every_outcome_is_reported() {
    let kinds =
        |events: Vec<(&'static str, Value)>| -> Vec<_> { events.into_iter().map(|(kind, _)| kind).collect() };
    let died = [prompt(), status(SessionStatus::Error, Some("It crashed."))];
    let (events, response) = heard(&mut translator(Granularity::Piece), died);
    assert_eq!(
        events[0],
        ("error", json!({ "code": "internal", "message": "It crashed." }))
    );
    assert_eq!(kinds(events), ["error", "complete"]);
    let response = response.expect("an end");
    assert_eq!(
        (response.success, response.message.as_str()),
        (false, "It crashed.")
    );
    assert_eq!((response.duration_ms, response.cost_usd), (Some(1000), None));

    let stopped = [prompt(), status(SessionStatus::Idle, None)];
    let (events, response) = heard(&mut translator(Granularity::Piece), stopped);
    assert_eq!(kinds(events), ["complete"]);
    assert_eq!(
        response.map(|response| response.message),
        Some("The task was interrupted.".to_owned())
    );

    // A change of status before the task's prompt belongs to another turn.
    let earlier = [status(SessionStatus::Error, Some("before")), prompt()];
    assert_eq!(
        heard(&mut translator(Granularity::Piece), earlier),
        (Vec::new(), None)
    );

    let mut gone = translator(Granularity::Piece);
    heard(&mut gone, [prompt()]);
    let told = gone.abandon(ApiError::SessionNotFound).events;
    assert_eq!(
        told.iter().map(|event| event.kind).collect::<Vec<_>>(),
        ["error", "complete"]
    );
}

#[test]
fn to_dos_of_all_tools_are_reported() {
    let written = json!({ "todos": [
        { "content": "a", "status": "completed", "activeForm": "doing a" },
        { "content": "b", "status": "pending", "activeForm": "doing b" },
    ] });
    let (events, _) = heard(
        &mut translator(Granularity::Piece),
        [
            prompt(),
            said("m", None, call("t1", "TodoWrite", written.clone())),
        ],
    );
    assert_eq!(
        events[1],
        (
            "todos",
            json!({ "todos": written["todos"], "completed": 1, "total": 2 })
        )
    );

    let (events, _) = heard(
        &mut translator(Granularity::Piece),
        [
            prompt(),
            said(
                "m",
                None,
                call(
                    "t1",
                    "TaskCreate",
                    json!({ "subject": "a", "activeForm": "doing a" }),
                ),
            ),
            returned("t1", false, json!({ "task": { "id": "1", "subject": "a" } })),
            said(
                "m",
                None,
                call("t2", "TaskUpdate", json!({ "taskId": 1, "status": "completed" })),
            ),
            returned("t2", false, json!({})),
            said(
                "m",
                None,
                call("t3", "TaskUpdate", json!({ "taskId": "1", "status": "deleted" })),
            ),
            returned("t3", true, json!({})),
        ],
    );
    let lists: Vec<_> = events
        .iter()
        .filter(|(kind, _)| *kind == "todos")
        .map(|(_, data)| data)
        .collect();
    assert_eq!(lists.len(), 2, "a failed change is none");
    assert_eq!(
        (&lists[0]["completed"], &lists[0]["total"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(
        (&lists[1]["completed"], &lists[1]["total"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn a_subagents_text_is_marked() {
    let (events, _) = heard(
        &mut translator(Granularity::Piece),
        [
            prompt(),
            said("m", Some("task"), text("I looked.")),
            said("m", Some("task"), call("t", "Read", json!({}))),
        ],
    );
    for (kind, data) in events {
        assert_eq!(data["parent_tool_use_id"], "task", "{kind}");
    }
}

#[test]
fn questions_and_permissions_are_distinguished() {
    let session = SessionId::random();
    let asked = |tool: &str, input: Value| DecisionRequest {
        id: RequestId::of(session, 1),
        agent_request: "r".to_owned(),
        tool_use_id: "t".to_owned(),
        tool_name: tool.to_owned(),
        input: RawJson::of(&input).unwrap(),
        suggestions: None,
        blocked_path: None,
        description: None,
    };
    let id = RequestId::of(session, 1).to_string();
    let events = asks(&asked("Bash", json!({ "command": "ls" })));
    assert_eq!(events[0].kind, "permission_request");
    assert_eq!(events[0].data["request_id"], json!(id));
    assert_eq!(events[0].data["suggestions"], json!([]));

    let questions = json!({ "questions": [{ "question": "A?" }, { "question": "B?", "multiSelect": true }] });
    let events = asks(&asked("AskUserQuestion", questions));
    let ids: Vec<_> = events
        .iter()
        .map(|event| event.data["question_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [format!("{id}-0"), format!("{id}-1")]);
    assert_eq!(events[1].data["multi_select"], true);
}

#[test]
fn a_group_has_its_id_at_its_end() {
    let event = |text: &str| words_event("text", text, 0, None);
    assert_eq!(
        event("a\nb").render("s", Some(7)),
        "event: text\nid: 7\ndata: {\"block\":0,\"session_id\":\"s\",\"text\":\"a\\nb\",\"type\":\"text\"}\n\n"
    );
    assert!(!event("a").render("s", None).contains("id: "));
}
