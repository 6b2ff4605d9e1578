//! Concurrency on one connection: nothing waits for unrelated work.

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tiller_testkit::installed::scripted_claude;
use tiller_testkit::model::{Reply, Script};

use crate::chat::ChatClient;
use crate::client::EventClient;
use crate::server::{World, agent_of};
use crate::task_client::KEY;

fn say(session: &str, prompt: &str) -> Value {
    json!({ "sessionId": session, "prompt": prompt })
}

#[tokio::test]
async fn other_sessions_do_not_wait_for_a_hanging_agent() {
    let script = Script::new()
        .on("hold on", [Reply::text("Holding. ").gate("never")])
        .otherwise(Reply::text("Heard."));
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let hangs = client.start(&world.project(), "hello").await;
    client.until_status("completed").await;
    let works = client.start(&world.project(), "hello").await;
    client.until_status("completed").await;

    let agent = agent_of(&hangs);
    kill_process(agent, Signal::STOP).unwrap();
    let before = client.heard.len();
    // Like a user who types a file name.
    for number in 0..100 {
        let question =
            json!({ "sessionId": hangs, "requestId": format!("q{number}"), "subject": "mcpStatus" });
        client.send("session.inquire", question).await;
    }
    client.send("session.continue", say(&works, "and again")).await;
    client.until_status("completed").await;
    // Its own session is not blocked by the questions either.
    client.send("session.continue", say(&hangs, "hold on")).await;
    client.until_status("running").await;
    client
        .send("session.history", json!({ "sessionId": hangs }))
        .await;
    let history = client.until_type("session.history").await;
    assert_eq!(history["status"], "running");
    client.send("session.list", Value::Null).await;
    client.until_type("session.list").await;
    let answered = |event: &Value| event["type"] == "session.answer";
    let first = |event: &&Value| answered(event) && event["payload"]["requestId"] == "q0";
    let early = client.heard[before..].iter().find(first);
    assert!(early.is_none(), "the agent was waited for: {early:?}");
    client.send("session.stop", json!({ "sessionId": hangs })).await;
    // An agent that ignores a stop is ended.
    client.until_status("idle").await;
    // Each is answered eventually.
    for number in 0..100 {
        let request = json!(format!("q{number}"));
        let fits = |event: &Value| answered(event) && event["payload"]["requestId"] == request;
        client.until_all(before, &[&fits]).await;
    }
    server.kill().await;
    // It may have already ended.
    kill_process(agent, Signal::KILL).ok();
}

#[tokio::test]
async fn commands_of_a_session_run_in_order() {
    let script = Script::new()
        .on("first", [Reply::text("One. ").gate("end").and_text("End. ")])
        .otherwise(Reply::text("Heard: {{prompts}}."));
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "first").await;
    client.until_streamed("One.").await;
    let prompts: Vec<String> = (0..30).map(|number| format!("prompt {number}")).collect();
    for prompt in &prompts {
        client.send("session.continue", say(&session, prompt)).await;
    }
    // A read sees the earlier prompts.
    client
        .send("session.history", json!({ "sessionId": session }))
        .await;
    let history = client.until_type("session.history").await;
    assert_eq!(history["queue"], json!(prompts));
    // Nothing of it is sent after a stop, and a later prompt begins another turn.
    client
        .send("session.queue", json!({ "sessionId": session, "prompts": [] }))
        .await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    client
        .send("session.rename", json!({ "sessionId": session, "title": "a" }))
        .await;
    client
        .send("session.rename", json!({ "sessionId": session, "title": "b" }))
        .await;
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": session, "afterSeq": 0 }),
        )
        .await;
    client.until_status("idle").await;
    client.send("session.continue", say(&session, "second")).await;
    client.until_status("completed").await;
    assert!(
        client.streamed().contains("Heard: first | second."),
        "{}",
        client.streamed()
    );
    client.send("session.list", Value::Null).await;
    let listed = client.until_type("session.list").await;
    assert_eq!(listed["sessions"][0]["title"], "b");
    server.stop().await;
}

#[tokio::test]
async fn commands_run_to_their_end_if_the_client_disconnects_at_once() {
    const STARTS: usize = 10;
    let world = World::with_claude(Script::new(), Some("/bin/false".into())).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut watcher = EventClient::connect(&server, &cookie).await;
    for number in 0..STARTS {
        let mut client = EventClient::connect(&server, &cookie).await;
        let start = json!({ "title": format!("start {number}"), "prompt": "hello", "cwd": world.project() });
        client.send("session.start", start).await;
        client.leave().await;
    }
    // Each has begun, and its agent has ended as this one does.
    for _ in 0..STARTS {
        watcher.until_status("error").await;
    }
    assert_eq!(world.query("SELECT count(*) FROM messages"), [STARTS.to_string()]);
    server.stop().await;
}

#[tokio::test]
async fn session_started_comes_before_events_of_the_session() {
    let world = World::with_claude(Script::new(), Some("/bin/false".into())).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    for number in 0..10 {
        client.heard.clear();
        let start = json!({ "prompt": "hello", "cwd": world.project(), "requestId": format!("r{number}") });
        client.send("session.start", start).await;
        let session = client.until_status("error").await["sessionId"].clone();
        let is_ours = |event: &&Value| {
            event["payload"]["sessionId"] == session || event["payload"]["session"]["id"] == session
        };
        let first = client.heard.iter().find(is_ours).unwrap();
        assert_eq!(first["type"], "session.started", "{:?}", client.story());
        let last = client.seqs().len() as u64;
        assert_eq!(client.seqs(), (1..=last).collect::<Vec<_>>());
    }
    server.stop().await;
}

#[tokio::test]
async fn a_chat_connection_lives_while_its_session_is_stuck() {
    let claude = scripted_claude().unwrap_or_else(|missing| panic!("{missing}"));
    let world = World::with_claude(Script::new(), Some(claude)).await;
    let script = world.home().join("script.json");
    let turns = json!({ "turns": [[{ "do": "text", "text": "Done." }]] });
    std::fs::write(&script, turns.to_string()).unwrap();
    let environment = [
        ("TILLER_API_KEY", KEY),
        ("SCRIPTED_CLI", script.to_str().unwrap()),
    ];
    let server = world.serve_with(&[], &environment).await;
    let (mut client, _) = ChatClient::open(&server, "?session_id=demo").await;
    client.say("demo", "one").await;
    client.until("result").await;

    // Another process locks the file, which is waited for for five seconds; pings come every three.
    client.until_ping().await;
    let other = rusqlite::Connection::open(world.data().join("sessions.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let before = client.heard().len();
    client.say("demo", "two").await;
    client.until_ping().await;
    let heard = &client.heard()[before..];
    assert!(heard.is_empty(), "it is stuck: {heard:?}");
    other.execute_batch("ROLLBACK").unwrap();
    let result = client.until("result").await;
    assert_eq!(result["result"], "Done.", "{result}");
    server.stop().await;
}
