//! Claude Code that connects to the server, with the last release that supports it.

use serde_json::json;
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::http::get;
use crate::server::World;
use crate::task_client::KEY;

async fn old_world(script: Script) -> World {
    let claude = Claude::V2_1_113
        .executable()
        .unwrap_or_else(|missing| panic!("{missing}"));
    World::with_claude(script, Some(claude)).await
}

const SDK_URL: &[&str] = &["--transport", "sdk-url"];

#[tokio::test]
async fn permissions_and_resuming_work_over_a_connection() {
    let touch = json!({ "command": "touch made", "description": "a test" });
    let script = Script::new()
        .on("make", [Reply::tool("Bash", touch), Reply::text("Made.")])
        .on("what was", [Reply::text("It was: {{prompts}}")])
        .on("wait", [Reply::text("Waiting. ").gate("never")]);
    let world = old_world(script).await;
    let key = [("TILLER_API_KEY", KEY)];
    let server = world.serve_with(SDK_URL, &key).await;
    let system = get(&server.address, "/api/system", &[("x-api-key", KEY)])
        .await
        .json();
    let backend = &system["backend"];
    assert_eq!(backend["transport"], "sdk-url");
    assert_eq!(backend["why"], "connects");
    assert!(
        backend["reason"].as_str().unwrap().contains("version 2.1.113"),
        "{backend}"
    );

    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "make a file").await;
    let request = client.until_type("permission.request").await;
    assert_eq!(request["toolName"], "Bash");
    // The running process has the address, and only this run may connect.
    for wrong in ["", "?run=", "?run=guessed"] {
        let path = format!("/ws/cli/{session}{wrong}");
        let refused = EventClient::connect_with(&server, &path, &[("x-api-key", KEY)]).await;
        assert_eq!(refused.err(), Some(401), "{path}");
    }
    client.answer(&request, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    assert!(world.project().join("made").exists());
    assert!(
        client
            .heard
            .iter()
            .any(|event| event["payload"]["message"]["type"] == "stream_event")
    );

    // A stop and the next message, in the same run.
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "wait for me" }),
        )
        .await;
    client.until_streamed("Waiting.").await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;
    server.stop().await;

    // Another server resumes it; the conversation is known.
    let server = world.serve_with(SDK_URL, &key).await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "what was it" }),
        )
        .await;
    client.until_streamed("It was: make a file").await;
    client.until_status("completed").await;
    server.stop().await;

    // The CLI reports a lost conversation only on standard output, which is read all the same.
    let projects = world.home().join(".claude/projects");
    std::fs::remove_dir_all(projects).unwrap();
    let server = world.serve_with(SDK_URL, &key).await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "what was it" }),
        )
        .await;
    client.until_status("error").await;
    // The process that reported it has ended, and the id is cleared.
    loop {
        client.send("session.list", json!(null)).await;
        let list = client.until_type("session.list").await;
        if list["sessions"][0]["claudeSessionId"].is_null() {
            break;
        }
    }
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "what was it" }),
        )
        .await;
    client.until_streamed("It was: what was it").await;
    client.until_status("completed").await;
    server.stop().await;
}

#[tokio::test]
async fn a_version_that_does_not_connect_uses_stdio() {
    let world = World::new(Script::new().otherwise(Reply::text("Done."))).await;
    let server = world.serve_with(SDK_URL, &[("TILLER_API_KEY", KEY)]).await;
    let system = get(&server.address, "/api/system", &[("x-api-key", KEY)])
        .await
        .json();
    assert_eq!(system["backend"]["transport"], "stdio");
    assert_eq!(system["backend"]["why"], "cannotConnect");
    let reason = system["backend"]["reason"].as_str().unwrap();
    assert!(reason.contains("although --transport says sdk-url"), "{reason}");
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client.start(&world.project(), "hello").await;
    client.until_status("completed").await;
    server.stop().await;
}
