//! Prompts and commands have ids: duplicates run once, and every answer names its command. Also: what a client needs
//! that knows only the first contract.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::access::key;
use crate::chat::ChatClient;
use crate::client::{EventClient, is_status};
use crate::server::{Server, SignIn, World};
use crate::task_client::{TaskClient, serve};

const P1: &str = "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a11";
const P2: &str = "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a12";
const P3: &str = "7b3f9d1c-52a5-4c3b-9d0a-1d6d1f0f3a13";

async fn send(client: &mut EventClient, kind: &str, command: &str, payload: Value) {
    let frame = json!({ "type": kind, "commandId": command, "payload": payload });
    client.send_text(&frame.to_string()).await;
}

/// The answer to the command.
async fn answer(client: &mut EventClient, command: &str) -> Value {
    client.until(command, |event| event["commandId"] == command).await
}

/// The prompts in the session's history, each with its id.
async fn prompts(client: &mut EventClient, session: &str) -> Vec<(String, String)> {
    send(
        client,
        "session.history",
        "history of prompts",
        json!({ "sessionId": session }),
    )
    .await;
    let is_history = |event: &Value| event["type"] == "session.history";
    let history = client.until("session.history", is_history).await;
    assert_eq!(history["commandId"], "history of prompts");
    let messages = history["payload"]["messages"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let prompts = messages.iter().filter(|message| message["type"] == "user_prompt");
    prompts
        .map(|message| (text(&message["promptId"]), text(&message["prompt"])))
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(id, prompt): &(&str, &str)| ((*id).to_owned(), (*prompt).to_owned());
    pairs.iter().map(owned).collect()
}

async fn connect(server: &Server, sign_in: &SignIn) -> EventClient {
    EventClient::connect(server, sign_in).await
}

#[tokio::test]
async fn duplicate_starts_and_prompts_run_once() {
    let script = Script::new()
        .on("hello", [Reply::text("Hi.")])
        .on("more", [Reply::text("More.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let sign_in = server.sign_in().await;
    let mut client = connect(&server, &sign_in).await;
    let start = json!({ "prompt": "hello", "cwd": world.project(), "promptId": P1 });
    send(&mut client, "session.start", "c1", start.clone()).await;
    let begun = answer(&mut client, "c1").await;
    assert!(is_status(&begun, "running"), "{begun}");
    let session = begun["payload"]["sessionId"].as_str().unwrap().to_owned();
    let told = client.until_type("stream.user_prompt").await;
    assert_eq!((&told["promptId"], &told["uuid"]), (&json!(P1), &json!(P1)));
    client.until_status("completed").await;

    // A duplicate: the same session, and nothing runs.
    send(&mut client, "session.start", "c2", start.clone()).await;
    let again = answer(&mut client, "c2").await;
    assert!(is_status(&again, "completed"), "{again}");
    assert_eq!(again["payload"]["sessionId"], session.as_str());
    let more = json!({ "sessionId": session, "prompt": "more", "promptId": P2 });
    send(&mut client, "session.continue", "c3", more.clone()).await;
    assert!(is_status(&answer(&mut client, "c3").await, "running"));
    client.until_status("completed").await;

    // Nor after a crash.
    server.kill().await;
    let server = world.serve().await;
    let mut client = connect(&server, &sign_in).await;
    send(&mut client, "session.start", "c4", start.clone()).await;
    assert_eq!(
        answer(&mut client, "c4").await["payload"]["sessionId"],
        session.as_str()
    );
    send(&mut client, "session.continue", "c5", more).await;
    assert!(is_status(&answer(&mut client, "c5").await, "completed"));
    assert_eq!(
        prompts(&mut client, &session).await,
        pairs(&[(P1, "hello"), (P2, "more")])
    );
    send(&mut client, "session.list", "c6", Value::Null).await;
    let list = answer(&mut client, "c6").await;
    assert_eq!(list["payload"]["sessions"].as_array().unwrap().len(), 1, "{list}");

    // In another session the id is refused, and that session is not created.
    let other = json!({ "prompt": "hello", "cwd": world.project() });
    send(&mut client, "session.start", "c7", other).await;
    let other = answer(&mut client, "c7").await["payload"]["sessionId"].clone();
    client.until_status("completed").await;
    let taken = json!({ "sessionId": other, "prompt": "more", "promptId": P1 });
    send(&mut client, "session.continue", "c8", taken).await;
    let refused = answer(&mut client, "c8").await;
    assert_eq!(
        (&refused["type"], &refused["payload"]["code"]),
        (&json!("runner.error"), &json!("invalid_request")),
    );
    let wrong = json!({ "sessionId": other, "prompt": "more", "promptId": "p-1" });
    send(&mut client, "session.continue", "c9", wrong).await;
    let refused = answer(&mut client, "c9").await["payload"].clone();
    assert!(
        refused["message"].as_str().unwrap().contains("promptId"),
        "{refused}"
    );
    server.stop().await;
}

#[tokio::test]
async fn of_two_simultaneous_duplicates_one_runs() {
    let script = Script::new()
        .on("hello", [Reply::text("Hi.")])
        .on("more", [Reply::text("More.").gate("end").and_text(" End.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let sign_in = server.sign_in().await;
    let (mut one, mut other) = (connect(&server, &sign_in).await, connect(&server, &sign_in).await);
    let start = json!({ "prompt": "hello", "cwd": world.project(), "promptId": P1 });
    tokio::join!(
        send(&mut one, "session.start", "one", start.clone()),
        send(&mut other, "session.start", "other", start),
    );
    let (first, second) = tokio::join!(answer(&mut one, "one"), answer(&mut other, "other"));
    let session = first["payload"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(second["payload"]["sessionId"], session.as_str());
    let is_end = |event: &Value| is_status(event, "completed");
    if !one.heard.iter().any(is_end) {
        one.until_status("completed").await;
    }
    let more = json!({ "sessionId": session, "prompt": "more", "promptId": P2 });
    tokio::join!(
        send(&mut one, "session.continue", "one more", more.clone()),
        send(&mut other, "session.continue", "other more", more),
    );
    tokio::join!(answer(&mut one, "one more"), answer(&mut other, "other more"));
    one.until_streamed("More.").await;
    send(
        &mut one,
        "session.queue",
        "empty",
        json!({ "sessionId": session, "prompts": [], "expected": [] }),
    )
    .await;
    assert_eq!(
        answer(&mut one, "empty").await["type"],
        "session.queue",
        "nothing waits"
    );
    world.model.gate("end").open();
    one.until_streamed(" End.").await;
    one.until_status("completed").await;
    assert_eq!(
        prompts(&mut one, &session).await,
        pairs(&[(P1, "hello"), (P2, "more")])
    );
    server.stop().await;
}

#[tokio::test]
async fn queued_prompts_with_the_same_text_are_edited_by_their_ids() {
    let script = Script::new()
        .on("first", [Reply::text("One.").gate("end").and_text(" End.")])
        .on("same", [Reply::text("Heard.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = connect(&server, &server.sign_in().await).await;
    let session = client.start(&world.project(), "first").await;
    client.until_streamed("One.").await;
    for id in [P1, P2, P3] {
        let prompt = json!({ "sessionId": session, "prompt": "same", "promptId": id });
        send(&mut client, "session.continue", id, prompt).await;
        assert_eq!(answer(&mut client, id).await["type"], "session.queue");
    }
    let item = |id: &str| json!({ "promptId": id, "prompt": "same" });
    let edit = json!({
        "sessionId": session,
        "prompts": [item(P3)],
        "expected": [item(P1), item(P2), item(P3)],
    });
    send(&mut client, "session.queue", "edit", edit).await;
    let queue = answer(&mut client, "edit").await["payload"].clone();
    assert_eq!(
        (&queue["prompts"], &queue["items"]),
        (&json!(["same"]), &json!([item(P3)]))
    );
    // A removed prompt does not come back: neither into the queue, nor as a prompt.
    let edit = json!({ "sessionId": session, "prompts": [item(P1), item(P3)] });
    send(&mut client, "session.queue", "back", edit).await;
    assert_eq!(
        answer(&mut client, "back").await["payload"]["code"],
        "queue_changed"
    );
    let again = json!({ "sessionId": session, "prompt": "same", "promptId": P1 });
    send(&mut client, "session.continue", "again", again).await;
    assert!(is_status(&answer(&mut client, "again").await, "running"));

    // A refusal names the command that was refused, whatever was accepted beside it.
    send(
        &mut client,
        "session.configure",
        "refused",
        json!({ "sessionId": session, "maxTurns": 0 }),
    )
    .await;
    let accepted = json!({ "sessionId": session, "prompt": "same" });
    send(&mut client, "session.continue", "accepted", accepted).await;
    let before = client.heard.len();
    let refused = |event: &Value| event["type"] == "runner.error" && event["commandId"] == "refused";
    let accepted = |event: &Value| event["type"] == "session.queue" && event["commandId"] == "accepted";
    client.until_all(before, &[&refused, &accepted]).await;
    world.model.gate("end").open();
    for _ in 0..3 {
        client.until_status("completed").await;
    }
    let found = prompts(&mut client, &session).await;
    assert_eq!(found.len(), 3);
    assert_eq!(found[1].0, P3);
    server.stop().await;
}

#[tokio::test]
async fn a_client_of_the_first_contract_gets_through() {
    let touch = json!({ "command": "touch done", "description": "d" });
    let script = Script::new()
        .on(
            "take long",
            [Reply::text("Half").gate("never").and_text(" of it.")],
        )
        .on(
            "do it",
            [Reply::tool("Bash", touch.clone()), Reply::text("Done.")],
        )
        .on("ask me", [Reply::tool("Bash", touch), Reply::text("Asked.")]);
    let world = World::new(script).await;
    world.configure("titles = \"prompt\"\napproval = \"auto\"");
    let server = world.serve().await;
    let sign_in = server.sign_in().await;
    let mut client = connect(&server, &sign_in).await;

    // A refused start ends with an error status; and nothing is stored.
    for refused in [
        json!({ "prompt": "x", "cwd": "/no/such/folder" }),
        json!({ "prompt": " ", "cwd": world.project() }),
    ] {
        client.send("session.start", refused).await;
        let status = client.until_status("error").await;
        assert!(!status["error"].as_str().unwrap().is_empty());
        let error = client.next().await.unwrap();
        assert_eq!(error["type"], "runner.error");
        let deleted = client.next().await.unwrap();
        assert_eq!(
            (&deleted["type"], &deleted["payload"]["sessionId"]),
            (&json!("session.deleted"), &status["sessionId"])
        );
    }
    client.send("session.list", Value::Null).await;
    assert_eq!(client.until_type("session.list").await["sessions"], json!([]));

    // Stopped is not failed, live and in the history.
    let session = client.start(&world.project(), "take long").await;
    client.until_streamed("Half").await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;
    let shown = |message: &Value| (message["type"].clone(), message["subtype"].clone());
    let live: Vec<_> = client
        .heard
        .iter()
        .map(|event| shown(&event["payload"]["message"]))
        .collect();
    let stopped = (json!("system"), json!("turn_stopped"));
    assert!(live.contains(&stopped), "{live:?}");
    assert!(!live.iter().any(|(kind, _)| kind == "result"), "{live:?}");
    client
        .send("session.history", json!({ "sessionId": session }))
        .await;
    let history = client.until_type("session.history").await;
    let messages = history["messages"].as_array().unwrap();
    let kept: Vec<_> = messages.iter().map(shown).collect();
    assert!(
        kept.contains(&stopped) && !kept.iter().any(|(kind, _)| kind == "result"),
        "{kept:?}"
    );

    // The client does not choose an approval mode, so the configuration does.
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "do it" }),
        )
        .await;
    client.until_status("completed").await;
    assert!(
        !client
            .heard
            .iter()
            .any(|event| event["type"] == "permission.request")
    );
    assert!(world.project().join("done").exists());

    // A pending decision is sent again to a reconnecting client, with the same ids.
    let ask = json!({ "prompt": "ask me", "cwd": world.project(), "approval": "ask" });
    client.send("session.start", ask).await;
    let asked = client.until_type("permission.request").await;
    let session = asked["sessionId"].clone();
    let mut back = connect(&server, &sign_in).await;
    back.send("session.history", json!({ "sessionId": session }))
        .await;
    let again = back.until_type("permission.request").await;
    for id in ["requestId", "toolUseId"] {
        assert_eq!(again[id], asked[id]);
    }
    let mut only = EventClient::connect_to(&server, "/ws/events?only=subscribed", &sign_in).await;
    only.send(
        "session.subscribe",
        json!({ "sessionId": session, "afterSeq": asked["seq"] }),
    )
    .await;
    assert_eq!(
        only.until_type("permission.request").await["requestId"],
        asked["requestId"]
    );
    back.answer(&again, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    server.stop().await;
}

#[tokio::test]
async fn only_a_key_with_the_scope_approve_can_approve_by_default() {
    let touch = json!({ "command": "touch done", "description": "d" });
    let script = Script::new().on("do it", [Reply::tool("Bash", touch), Reply::text("Done.")]);
    let world = World::new(script).await;
    let refused = world
        .command()
        .args([
            "key",
            "create",
            "weak",
            "--scope",
            "read,run",
            "--approval",
            "auto",
        ])
        .output()
        .await
        .unwrap();
    assert!(!refused.status.success());
    let auto = key(&world, &["auto", "--approval", "auto"]).await;
    let server = world.serve().await;
    let headers = [("x-api-key", auto.as_str())];
    let mut client = EventClient::connect_with(&server, "/ws/events", &headers)
        .await
        .unwrap();
    client.start(&world.project(), "do it").await;
    client.until_status("completed").await;
    assert!(
        !client
            .heard
            .iter()
            .any(|event| event["type"] == "permission.request")
    );
    server.stop().await;
}

#[tokio::test]
async fn duplicate_tasks_and_messages_run_once() {
    let script = Script::new()
        .on("work", [Reply::text("Worked: {{prompts}}.")])
        .on("hello", [Reply::text("Hi.")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let tasks = TaskClient::new(&server);
    let task = json!({ "prompt": "work", "working_dir": world.project(), "prompt_id": P1 });
    let first = tasks.run(task.clone()).await;
    let again = tasks.run(task.clone()).await;
    assert_eq!(
        (&again["session_id"], &again["message"], &again["success"]),
        (&first["session_id"], &first["message"], &json!(true))
    );
    let mut stream = tasks.stream(task).await;
    let complete = stream.complete().await;
    assert_eq!(complete["session_id"], first["session_id"]);

    let (mut chat, _) = ChatClient::open(&server, "?session_id=talk").await;
    let hello =
        json!({ "type": "user_message", "message": { "content": "hello" }, "uuid": P2, "command_id": "c1" });
    chat.send(hello.clone()).await;
    assert_eq!(chat.until("user_message").await["uuid"], P2);
    chat.until("result").await;
    assert!(
        chat.heard().iter().any(|frame| frame["command_id"] == "c1"),
        "{:?}",
        chat.heard()
    );
    let before = chat.heard().len();
    chat.send(hello).await;
    assert_eq!(chat.until("user_message").await["uuid"], P2, "acknowledged again");
    chat.send(json!({ "type": "set_model", "model": "no-such-model", "command_id": "c2" }))
        .await;
    let error = chat.until("error").await;
    assert_eq!(error["command_id"], "c2");
    let results = chat.heard()[before..]
        .iter()
        .filter(|frame| frame["type"] == "result");
    assert_eq!(results.count(), 0, "and nothing ran");
    server.stop().await;
}
