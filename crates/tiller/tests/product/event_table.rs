//! The event API's table of errors and edge cases (seed 000 §12.7), and the acceptance cases (§12.8) that no other test
//! covers.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::http;
use crate::server::{World, until};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

async fn list(client: &mut EventClient) -> Value {
    client.send("session.list", Value::Null).await;
    // An update about an ending agent may arrive at any moment.
    client
        .until("an answer", |event| event["type"] != "session.updated")
        .await
}

#[tokio::test]
async fn unknown_sessions_dead_agents_and_repeated_deletions() {
    let script = Script::new()
        .on("take long", [Reply::text("Half of it").gate("never")])
        .on("go on", [Reply::text("Known: {{prompts}}.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let empty = json!({ "type": "session.list", "payload": { "sessions": [] } });
    assert_eq!(list(&mut client).await, empty);

    for kind in ["session.history", "session.continue", "session.subscribe"] {
        client
            .send(kind, json!({ "sessionId": NOBODY, "prompt": "hello" }))
            .await;
        let error = client.until_type("runner.error").await;
        assert_eq!(error["message"], "Unknown session", "{kind}");
    }
    client.send("session.stop", json!({ "sessionId": NOBODY })).await;
    assert_eq!(list(&mut client).await, empty, "a stop of nothing is silent");
    for _ in 0..2 {
        client
            .send("session.delete", json!({ "sessionId": NOBODY }))
            .await;
        assert_eq!(client.until_type("session.deleted").await["sessionId"], NOBODY);
    }

    // An agent that dies during a turn ends the turn with a readable error.
    let session = client.start(&world.project(), "take long").await;
    client.until_streamed("Half of it").await;
    // A conversation that the CLI has not stored yet could not be resumed.
    let is_said = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        line["type"] == "user" && line["message"].to_string().contains("take long")
    };
    until("the CLI writes nothing down", || {
        world.transcript(&session).lines().any(is_said)
    })
    .await;
    let agent = crate::server::agent_of(&session);
    rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
    let error = client.until_status("error").await;
    assert!(!error["error"].as_str().unwrap().is_empty());

    // Afterwards it continues, in the order of §12.2.3.
    client.heard.clear();
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "go on" }),
        )
        .await;
    client.until_status("completed").await;
    let story = client.story();
    assert_eq!(story[..2], ["session.status running", "stream.user_prompt go on"]);
    assert_eq!(story.last().unwrap(), "session.status completed");
    let middle = &story[2..story.len() - 1];
    assert!(
        !middle.is_empty() && middle.iter().all(|line| line.starts_with("stream.message")),
        "{story:?}"
    );
    assert!(client.streamed().contains("take long | go on"));

    client
        .send("session.delete", json!({ "sessionId": session }))
        .await;
    assert_eq!(client.until_type("session.deleted").await["sessionId"], session);
    client
        .send("session.delete", json!({ "sessionId": session }))
        .await;
    assert_eq!(client.until_type("session.deleted").await["sessionId"], session);
    assert_eq!(world.query("SELECT count(*) FROM sessions"), ["0"]);
    server.stop().await;
}

#[tokio::test]
async fn a_lost_conversation_is_reported_once_and_the_next_message_starts_afresh() {
    let world = World::new(Script::new().otherwise(Reply::text("Known: {{prompts}}."))).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "one").await;
    client.until_status("completed").await;
    server.stop().await;
    for project in std::fs::read_dir(world.home().join(".claude/projects")).unwrap() {
        std::fs::remove_dir_all(project.unwrap().path()).unwrap();
    }

    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let say = |prompt: &str| json!({ "sessionId": session, "prompt": prompt });
    client.send("session.continue", say("two")).await;
    let error = client.until_status("error").await["error"].clone();
    assert!(
        error.as_str().unwrap().contains("The next message starts afresh"),
        "{error}"
    );
    // At once: the agent that found nothing may still be ending.
    client.send("session.continue", say("three")).await;
    client.until_status("completed").await;
    assert!(
        client.streamed().ends_with("Known: three."),
        "{}",
        client.streamed()
    );
    server.stop().await;
}

#[tokio::test]
async fn a_folder_that_now_leads_elsewhere_gets_no_agent() {
    let world = World::with_claude(Script::new(), None).await;
    let folder = world.project().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&folder, "hello").await;
    let begun = |event: &Value| event["payload"]["message"]["subtype"] == "init";
    client.until("it has an id", begun).await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;
    server.stop().await;
    std::fs::remove_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/etc", &folder).unwrap();

    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let say = |session: &Value| json!({ "sessionId": session, "prompt": "read passwd" });
    client.send("session.continue", say(&json!(session))).await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "working_dir_invalid", "{refused}");
    client
        .send("session.history", json!({ "sessionId": session }))
        .await;
    let history = client.until_type("session.history").await["messages"].to_string();
    assert!(!history.contains("read passwd"), "it was given back");
    // A fork has no conversation of its own yet; it is checked when its agent is launched.
    client.send("session.fork", json!({ "sessionId": session })).await;
    let fork = client.until_type("session.forked").await["newSessionId"].clone();
    client.send("session.continue", say(&fork)).await;
    let failed = client.until_status("error").await;
    assert_eq!(failed["error"], refused["message"]);
    server.stop().await;
}

#[tokio::test]
async fn invalid_events_get_a_clear_error_and_create_no_session() {
    let world = World::with_claude(Script::new(), Some("/bin/false".into())).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect_to(&server, "/ws/events?only=subscribed", &cookie).await;
    let image = json!([{ "mediaType": "text/plain", "data": "eA==" }]);
    for (field, value, code, named) in [
        (
            "permissionMode",
            json!("nope"),
            "invalid_request",
            "'payload.permissionMode'",
        ),
        ("maxTurns", json!(-1), "invalid_request", "'payload.maxTurns'"),
        ("maxTurns", json!(0), "invalid_request", "above zero"),
        ("effort", json!("--x"), "invalid_request", "effort"),
        (
            "backend",
            json!("other"),
            "invalid_request",
            "Available: claude, demo",
        ),
        ("prompt", json!("a\0b"), "invalid_request", "NUL"),
        ("attachments", image, "attachment_invalid", "'1'"),
    ] {
        let mut start = json!({ "title": "", "prompt": "hello", "cwd": world.project() });
        start[field] = value;
        client.send("session.start", start).await;
        let error = client.until_type("runner.error").await;
        assert_eq!(error["code"], code, "{field}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(named),
            "{field}: {error}"
        );
    }
    client
        .send("session.rename", json!({ "sessionId": NOBODY }))
        .await;
    assert_eq!(client.until_type("runner.error").await["sessionId"], NOBODY);
    // A list needs no payload, so nothing in it is invalid.
    client.send("session.list", json!({})).await;
    assert_eq!(client.until_type("session.list").await["sessions"], json!([]));

    // A title is one line of bounded length, whatever was sent; the server's own backend may be named.
    let title = format!("a\nb\u{1b}[31m\0{}", "c".repeat(10_000));
    client
        .send(
            "session.start",
            json!({ "title": title, "prompt": "hello", "cwd": world.project(), "backend": "claude",
                "requestId": "mine" }),
        )
        .await;
    let session = client.until_type("session.started").await["sessionId"].clone();
    client.send("session.list", Value::Null).await;
    let title = client.until_type("session.list").await["sessions"][0]["title"].clone();
    let title = title.as_str().unwrap();
    assert!(title.starts_with("a b [31m ccc"), "{title:?}");
    assert_eq!(title.chars().count(), 200);

    // A client that claims later events would wait forever.
    let mut from_elsewhere = EventClient::connect(&server, &cookie).await;
    from_elsewhere
        .send(
            "session.subscribe",
            json!({ "sessionId": session, "afterSeq": 0 }),
        )
        .await;
    let last = from_elsewhere.until_status("error").await["seq"].clone();
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": session, "afterSeq": 1000 }),
        )
        .await;
    let ahead = client.until_type("runner.error").await;
    assert_eq!(ahead["sessionId"], session);
    let said = format!("last event is number {last}, ");
    assert!(ahead["message"].as_str().unwrap().contains(&said), "{ahead}");

    // Input is not repeated completely.
    let kind = "x".repeat(1_000_000);
    client
        .send(&kind, json!({ "sessionId": "y".repeat(1_000_000) }))
        .await;
    let unknown = client.until_type("runner.error").await;
    assert!(
        unknown["message"]
            .as_str()
            .unwrap()
            .contains("Unknown event type"),
        "{unknown}"
    );
    assert!(unknown.to_string().len() < 3000, "{}", unknown.to_string().len());

    // A delay of zero deletes at once, and the client that deletes is told.
    client
        .send("session.delete", json!({ "sessionId": session, "afterMs": 0 }))
        .await;
    assert_eq!(client.until_type("session.deleted").await["sessionId"], session);
    server.stop().await;
}

#[tokio::test]
async fn a_session_without_an_id_does_not_go_on_and_recent_folders_are_few() {
    // An agent that never writes anything.
    let world = World::with_claude(Script::new(), Some("/bin/false".into())).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "hello").await;
    client.until_status("error").await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "again" }),
        )
        .await;
    let error = client.until_type("runner.error").await;
    assert_eq!(error["message"], "Session has no resume id yet.");
    assert_eq!(
        (&error["sessionId"], &error["code"]),
        (&json!(session), &json!("no_resume_id"))
    );
    let entry = list(&mut client).await["payload"]["sessions"][0].clone();
    assert_eq!(entry["status"], "error", "it did not begin to run");
    server.stop().await;

    let database = rusqlite::Connection::open(world.data().join("sessions.db")).unwrap();
    for number in 0..25 {
        let sql = "INSERT INTO sessions (id, title, status, cwd, created_at, updated_at, approval) \
                   VALUES (?1, '', 'idle', ?2, 0, ?3, 'ask')";
        let id = format!("00000000-0000-4000-8000-{number:012}");
        database
            .execute(sql, rusqlite::params![id, format!("/folder/{number}"), number])
            .unwrap();
    }
    drop(database);
    let server = world.serve().await;
    let recent = async |query: &str| {
        let path = format!("/api/recent-cwds{query}");
        let answer = http::get(&server.address, &path, &cookie.headers()).await;
        answer.json()["cwds"].as_array().unwrap().len()
    };
    assert_eq!(recent("").await, 8);
    assert_eq!(recent("?limit=0").await, 1);
    assert_eq!(recent("?limit=-3").await, 1);
    assert_eq!(recent("?limit=12").await, 12);
    assert_eq!(recent("?limit=1000").await, 20);
    server.stop().await;
}
