//! The main path through the whole product, with the real CLI.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::server::{World, bash, processes_in, until, until_nothing_is_left};

#[tokio::test]
async fn text_streams_in_and_the_turn_ends_with_its_cost() {
    let script = Script::new().on(
        "say hello",
        [Reply::text("Hello, ").gate("rest").and_text("world.")],
    );
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;

    let session = client.start(&world.project(), "say hello").await;
    client.until_streamed("Hello, ").await;
    assert!(
        !client.streamed().contains("world"),
        "the model has not said it yet"
    );
    world.model.gate("rest").open();
    client.until_status("completed").await;

    // The order of seed 000 §12.2.3.
    let story = client.story();
    assert_eq!(
        story[..3],
        [
            "session.status running",
            "stream.user_prompt say hello",
            "stream.message system:init"
        ]
    );
    assert_eq!(
        story[story.len() - 2..],
        ["stream.message result:success", "session.status completed"]
    );
    assert_eq!(client.streamed(), "Hello, world.");
    let mut messages = client.heard.iter().map(|event| &event["payload"]["message"]);
    let result = messages.rfind(|message| message["type"] == "result").unwrap();
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0);
    assert!(result["duration_ms"].as_u64().is_some());
    let seqs = client.seqs();
    assert_eq!(
        seqs,
        (1..=seqs.len() as u64).collect::<Vec<_>>(),
        "gapless from 1"
    );

    // Seed 000 §5.2 and §12.3.2, as a user with sqlite3 sees it.
    assert_eq!(world.query("SELECT status FROM sessions"), ["completed"]);
    assert_eq!(
        world.query("SELECT claude_session_id FROM sessions"),
        std::slice::from_ref(&session)
    );
    let first = &world.query("SELECT data FROM messages ORDER BY created_at, seq LIMIT 1")[0];
    let start = r#"{"type":"user_prompt","prompt":"say hello","promptId":""#;
    assert!(first.starts_with(start), "{first}");
    let messages = story.iter().filter(|line| line.starts_with("stream.")).count();
    assert_eq!(
        world.query("SELECT count(*) FROM messages"),
        [messages.to_string()]
    );
    server.stop().await;
}

#[tokio::test]
async fn an_allowed_tool_runs_and_a_denial_reaches_the_model() {
    let script = Script::new()
        .on(
            "make a file",
            [
                bash("echo made > made.txt"),
                Reply::text("It says: {{tool_result}}."),
            ],
        )
        .on(
            "remove it",
            [bash("rm made.txt"), Reply::text("I was told: {{tool_result}}.")],
        );
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;

    let session = client.start(&world.project(), "make a file").await;
    let request = client.until_type("permission.request").await;
    assert_eq!(request["toolName"], "Bash");
    assert_eq!(request["input"]["command"], "echo made > made.txt");
    let card = client
        .heard
        .iter()
        .find(|event| event["payload"]["message"]["message"]["content"][0]["type"] == "tool_use");
    let card = &card.expect("a card")["payload"]["message"]["message"]["content"][0];
    assert_eq!(card["id"], request["toolUseId"], "the request and its card match");
    assert!(
        !world.project().join("made.txt").exists(),
        "nothing runs before the answer"
    );
    client.answer(&request, json!({ "behavior": "allow" })).await;
    let resolved = client.until_type("permission.resolved").await;
    assert_eq!(resolved["behavior"], "allow");
    client.until_status("completed").await;
    assert_eq!(
        std::fs::read_to_string(world.project().join("made.txt")).unwrap(),
        "made\n"
    );

    // A second answer changes nothing.
    client.answer(&request, json!({ "behavior": "deny" })).await;
    let error = client.until_type("runner.error").await;
    assert_eq!(error["message"], "This request was already answered.");

    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "remove it" }),
        )
        .await;
    let request = client.until_type("permission.request").await;
    client
        .answer(&request, json!({ "behavior": "deny", "message": "keep my file" }))
        .await;
    client.until_status("completed").await;
    assert!(
        client.streamed().contains("keep my file"),
        "{}",
        client.streamed()
    );
    assert!(world.project().join("made.txt").exists());
    assert_eq!(
        world.query(
            "SELECT behavior || ' by ' || answered_by || ifnull(': ' || answer, '') FROM decisions ORDER BY asked_at"
        ),
        ["allow by person", "deny by person: keep my file"]
    );
    server.stop().await;
    // A copy of a stopped server's database has everything.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::copy(world.data().join("sessions.db"), &copy).unwrap();
    let copy = rusqlite::Connection::open(copy).unwrap();
    let sql = "SELECT count(*) FROM messages WHERE data LIKE '%\"user_prompt\"%'";
    let prompts: u32 = copy.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(prompts, 2);
}

#[tokio::test]
async fn always_allow_keeps_the_suggested_rule() {
    let script = Script::new()
        .on("first", [bash("touch one"), Reply::text("done")])
        .on("second", [bash("touch one"), Reply::text("done again")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "first").await;
    let request = client.until_type("permission.request").await;
    let suggestions = request["suggestions"].clone();
    assert!(!suggestions.as_array().expect("suggestions").is_empty());
    client
        .answer(
            &request,
            json!({ "behavior": "allow", "updatedPermissions": suggestions }),
        )
        .await;
    client.until_status("completed").await;
    let asked = |client: &EventClient| {
        client
            .story()
            .iter()
            .filter(|line| line.starts_with("permission.request"))
            .count()
    };
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "second" }),
        )
        .await;
    client.until_status("completed").await;
    assert_eq!(asked(&client), 1, "the rule spares the second question");
    server.stop().await;
}

#[tokio::test]
async fn a_stopped_turn_is_idle_and_the_next_message_continues() {
    let script = Script::new()
        .on("take long", [Reply::text("Beginning… ").gate("never")])
        .on("ask first", [bash("touch never")])
        .on("and now", [Reply::text("All prompts: {{prompts}}")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;

    let session = client.start(&world.project(), "take long").await;
    client.until_streamed("Beginning").await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;

    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "ask first" }),
        )
        .await;
    client.until_type("permission.request").await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    assert_eq!(
        client.until_type("permission.resolved").await["behavior"],
        "withdrawn"
    );
    client.until_status("idle").await;

    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "and now" }),
        )
        .await;
    client.until_status("completed").await;
    assert!(client.streamed().contains("take long"), "{}", client.streamed());
    assert!(
        !client.story().contains(&"session.status error".to_owned()),
        "{:?}",
        client.story()
    );
    assert!(!world.project().join("never").exists());
    server.stop().await;
}

#[tokio::test]
async fn a_question_is_answered_by_the_user() {
    let question = json!({ "questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "cool" }],
    }] });
    let script = Script::new().on(
        "ask me",
        [
            Reply::tool("AskUserQuestion", question.clone()),
            Reply::text("So: {{tool_result}}"),
        ],
    );
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    // Automatic approval does not answer questions.
    let start = json!({ "prompt": "ask me", "cwd": world.project(), "approval": "auto" });
    client.send("session.start", start).await;
    let request = client.until_type("permission.request").await;
    assert_eq!(request["toolName"], "AskUserQuestion");
    let mut input = request["input"].clone();
    input["answers"] = json!({ "Which colour?": "Blue" });
    client
        .answer(&request, json!({ "behavior": "allow", "updatedInput": input }))
        .await;
    client.until_status("completed").await;
    assert!(client.streamed().contains("Blue"), "{}", client.streamed());
    server.stop().await;
}

#[tokio::test]
async fn a_prompt_during_a_turn_is_queued_and_sent_once() {
    let script = Script::new()
        .on("first", [Reply::text("One. ").gate("end").and_text("End. ")])
        .on("second", [Reply::text("Heard: {{prompts}}.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "first").await;
    client.until_streamed("One.").await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "second" }),
        )
        .await;
    assert_eq!(
        client.until_type("session.queue").await["prompts"],
        json!(["second"])
    );
    world.model.gate("end").open();
    client.until_status("completed").await;
    client.until_status("completed").await;
    assert!(
        client.streamed().ends_with("Heard: first | second."),
        "{}",
        client.streamed()
    );
    server.stop().await;
}

/// Everything that a later client is shown.
async fn reload(client: &mut EventClient, session: &str) -> Value {
    client
        .send("session.history", json!({ "sessionId": session }))
        .await;
    client.until_type("session.history").await
}

#[tokio::test]
async fn everything_is_restored_after_a_reload_and_a_restart() {
    let script = Script::new()
        .on("remember 42", [Reply::text("I will.")])
        .on("ask", [bash("touch asked"), Reply::text("Done.")])
        .on("what was it", [Reply::text("You said: {{prompts}}")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "remember 42").await;
    client.until_status("completed").await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "ask" }),
        )
        .await;
    let request = client.until_type("permission.request").await;

    // A reload while a decision is pending.
    drop(client);
    let mut client = EventClient::connect_to(&server, "/ws/events?only=subscribed", &cookie).await;
    client.send("session.list", Value::Null).await;
    let listed = client.until_type("session.list").await["sessions"][0].clone();
    assert_eq!(
        (&listed["id"], &listed["status"], &listed["pending"]),
        (&json!(session), &json!("running"), &json!(1))
    );
    let before = reload(&mut client, &session).await;
    assert_eq!(before["pending"][0]["toolUseId"], request["toolUseId"]);
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": session, "afterSeq": before["lastSeq"] }),
        )
        .await;
    client.answer(&request, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    let last_seq = before["lastSeq"].as_u64().unwrap();
    let seqs = client.seqs();
    assert_eq!(
        seqs,
        (last_seq + 1..=last_seq + seqs.len() as u64).collect::<Vec<_>>(),
        "each once, in order"
    );
    let before = reload(&mut client, &session).await;
    server.stop().await;

    let server = world.serve().await;
    // The cookie is still valid: only the server was restarted.
    let mut client = EventClient::connect(&server, &cookie).await;
    assert_eq!(reload(&mut client, &session).await, before);
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "what was it" }),
        )
        .await;
    client.until_status("completed").await;
    assert_eq!(client.streamed(), "You said: remember 42 | ask | what was it");
    server.stop().await;
}

#[tokio::test]
async fn a_deleted_session_leaves_nothing() {
    let script = Script::new().on("take long", [Reply::text("Beginning").gate("never")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "take long").await;
    client.until_streamed("Beginning").await;
    assert!(
        processes_in(&world.project()).len() > 1,
        "the server and its agent"
    );
    client
        .send("session.delete", json!({ "sessionId": session }))
        .await;
    assert_eq!(client.until_type("session.deleted").await["sessionId"], session);
    for table in ["sessions", "messages", "events", "decisions"] {
        assert_eq!(
            world.query(&format!("SELECT count(*) FROM {table}")),
            ["0"],
            "{table}"
        );
    }
    // The agent ends in the background; the promise is ten seconds.
    until("the agent lives on", || processes_in(&world.project()).len() == 1).await;
    server.stop().await;
}

#[tokio::test]
async fn a_stopped_server_leaves_no_agent() {
    let script = Script::new().on("take long", [Reply::text("Beginning").gate("never")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client.start(&world.project(), "take long").await;
    client.until_streamed("Beginning").await;
    server.stop().await;
    until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn a_stopped_server_decides_nothing_for_the_user() {
    let script = Script::new().on("ask first", [bash("touch asked"), Reply::text("Done.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client.start(&world.project(), "ask first").await;
    let asked = client.until_type("permission.request").await;
    server.stop().await;
    let calls = world.model.conversation_requests().len();
    assert_eq!(
        calls, 1,
        "the agent went on, and told the model something that nobody said"
    );

    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": asked["sessionId"], "afterSeq": 0 }),
        )
        .await;
    let stopped = client.until_status("error").await;
    assert_eq!(
        stopped["error"],
        "Tiller was stopped while this turn was running."
    );
    client.send("session.list", Value::Null).await;
    let listed = client.until_type("session.list").await["sessions"][0].clone();
    assert_eq!(listed["lastSeq"], stopped["seq"], "nothing comes after");
    server.stop().await;
}
