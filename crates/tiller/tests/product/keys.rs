//! What API keys may do, and what happens when they are revoked.

use std::path::Path;

use serde_json::{Value, json};

use crate::access::{demo_world, key, with_key};
use crate::client::EventClient;
use crate::http::request;
use crate::server::World;

async fn forbidden(client: &mut EventClient, kind: &str, payload: Value) {
    client.send(kind, payload.clone()).await;
    let error = client.until_type("runner.error").await;
    assert_eq!(error["code"], "forbidden", "{kind} {payload}: {error}");
}

async fn revoke(world: &World, key: &str) {
    let output = world
        .command()
        .args(["key", "revoke", key])
        .output()
        .await
        .unwrap();
    assert!(output.status.success());
}

#[tokio::test]
async fn approval_needs_its_own_scope() {
    let world = demo_world().await;
    let server = world.serve_with(&["--backend", "demo"], &[]).await;
    let runs = key(&world, &["runs", "--scope", "read,run"]).await;
    let approves = key(&world, &["approves", "--scope", "approve", "--sees", "all"]).await;
    let mut client = with_key(&server, &runs).await.unwrap();
    let cwd = world.project();
    for granting in [
        json!({ "approval": "auto" }),
        json!({ "permissionMode": "bypassPermissions" }),
        json!({ "permissionMode": "acceptEdits" }),
        json!({ "allowedTools": "Bash" }),
    ] {
        let mut start = json!({ "prompt": "hello", "cwd": cwd });
        start
            .as_object_mut()
            .unwrap()
            .extend(granting.as_object().unwrap().clone());
        forbidden(&mut client, "session.start", start).await;
    }
    let headers = [("x-api-key", runs.as_str()), ("content-type", "application/json")];
    for granting in [
        json!({ "tools": ["Bash"] }),
        json!({ "permission_mode": "bypassPermissions" }),
    ] {
        let mut task = json!({ "prompt": "hello", "working_dir": cwd });
        task.as_object_mut()
            .unwrap()
            .extend(granting.as_object().unwrap().clone());
        let refused = request(&server.address, "POST", "/api/task", &headers, &task.to_string()).await;
        assert_eq!(refused.refusal(), (403, "forbidden".to_owned()), "{task}");
    }
    assert_eq!(world.query("SELECT count(*) FROM sessions"), ["0"]);

    // A key with only the scope approve sees pending decisions of all sessions it may see, and can answer them, but
    // nothing else.
    let mut decider = with_key(&server, &approves).await.unwrap();
    let session = client.start(&cwd, "hello").await;
    let asked = client.until_type("permission.request").await;
    for change in [
        json!({ "permissionMode": "acceptEdits" }),
        json!({ "allowedTools": "Bash" }),
        json!({ "approval": "auto" }),
    ] {
        let mut patch = json!({ "sessionId": session });
        patch
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        forbidden(&mut client, "session.configure", patch).await;
    }
    let hooks = json!({ "sessionId": session, "events": ["PreToolUse"] });
    forbidden(&mut client, "session.hooks", hooks).await;
    let answer =
        json!({ "sessionId": session, "requestId": asked["requestId"], "result": { "behavior": "allow" } });
    forbidden(&mut client, "permission.response", answer.clone()).await;

    let seen = decider.until_type("permission.request").await;
    assert_eq!(seen["requestId"], asked["requestId"]);
    assert!(
        decider
            .heard
            .iter()
            .all(|event| event["type"] != "stream.message"),
        "{:?}",
        decider.heard
    );
    forbidden(&mut decider, "session.history", json!({ "sessionId": session })).await;
    forbidden(
        &mut decider,
        "session.continue",
        json!({ "sessionId": session, "prompt": "x" }),
    )
    .await;

    // For the input that was shown, with rules that were offered, and only for the session.
    let mut other = answer.clone();
    other["shown"] = json!("00".repeat(32));
    decider.send("permission.response", other).await;
    assert_eq!(decider.until_type("runner.error").await["code"], "not_as_shown");
    let mut wider = answer.clone();
    wider["result"]["updatedPermissions"] = json!([{
        "type": "addRules", "rules": [{ "toolName": "Bash" }], "behavior": "allow", "destination": "userSettings",
    }]);
    forbidden(&mut decider, "permission.response", wider).await;
    decider.send("permission.response", answer).await;
    let resolved = decider.until_type("permission.resolved").await;
    assert_eq!(resolved["behavior"], "allow");
    server.stop().await;
}

#[tokio::test]
async fn a_key_never_exceeds_its_ceiling() {
    let world = demo_world().await;
    let inside = world.project().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let server = world.serve_with(&["--backend", "demo"], &[]).await;
    let root = inside.to_str().unwrap();
    let limited = key(
        &world,
        &[
            "limited",
            "--root",
            root,
            "--tool",
            "Read",
            "--mode",
            "default",
            "--budget-usd",
            "2",
        ],
    )
    .await;
    let mut client = with_key(&server, &limited).await.unwrap();
    let start = |cwd: &Path, more: Value| {
        let mut start = json!({ "prompt": "hello", "cwd": cwd });
        start
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        start
    };
    for refused in [
        start(&world.project(), json!({})),
        start(&inside, json!({ "permissionMode": "plan" })),
        start(&inside, json!({ "approval": "auto" })),
        start(&inside, json!({ "allowedTools": "Read,Bash(git *)" })),
        start(&inside, json!({ "maxBudgetUsd": 3 })),
    ] {
        forbidden(&mut client, "session.start", refused).await;
    }
    client
        .send(
            "session.start",
            start(&inside, json!({ "allowedTools": "Read(src/**)" })),
        )
        .await;
    let asked = client.until_type("permission.request").await;
    // It may not decide about other tools.
    assert_ne!(asked["toolName"], "Read");
    let answer = json!({ "sessionId": asked["sessionId"], "requestId": asked["requestId"], "result": { "behavior": "allow" } });
    forbidden(&mut client, "permission.response", answer).await;

    server.stop().await;
}

#[tokio::test]
async fn a_new_key_with_a_revoked_keys_name_inherits_nothing() {
    let world = demo_world().await;
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "right")])
        .await;
    let first = key(&world, &["ci"]).await;
    let mut watcher = with_key(&server, "right").await.unwrap();
    let mut client = with_key(&server, &first).await.unwrap();
    client.start(&world.project(), "hello").await;
    client.until_type("permission.request").await;
    revoke(&world, "ci").await;
    // Its work is stopped, and its connection ends.
    watcher.until_status("idle").await;
    while client.next().await.is_some() {}

    let second = key(&world, &["ci"]).await;
    let mut client = with_key(&server, &second).await.unwrap();
    client.send("session.list", Value::Null).await;
    assert_eq!(client.until_type("session.list").await["sessions"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_key_gets_no_result() {
    let world = demo_world().await;
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "right")])
        .await;
    let mut watcher = with_key(&server, "right").await.unwrap();
    let first = key(&world, &["ci"]).await;
    let task = json!({ "prompt": "hello", "working_dir": world.project() }).to_string();
    let headers = [
        ("x-api-key", first.as_str()),
        ("content-type", "application/json"),
    ];
    let asking = request(&server.address, "POST", "/api/task", &headers, &task);
    let revoking = async {
        watcher.until_status("running").await;
        revoke(&world, "ci").await;
    };
    let (answer, ()) = tokio::join!(asking, revoking);
    assert_eq!(answer.refusal(), (401, "unauthorized".to_owned()));
    server.stop().await;
}
