//! The totals of a session: kept on the server, complete whichever page is read, and the same after a crash.

use serde_json::{Value, json};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::server::{Server, SignIn, World, until};

/// The totals as a new client gets them, in the list and with a page of one message.
async fn totals(server: &Server, cookie: &SignIn, session: &str) -> Value {
    let mut client = EventClient::connect(server, cookie).await;
    client.send("session.list", json!({})).await;
    let list = client.until_type("session.list").await;
    let listed = list["sessions"][0]["summary"].clone();
    let page = json!({ "sessionId": session, "limit": 1 });
    client.send("session.history", page).await;
    let history = client.until_type("session.history").await;
    assert_eq!(history["messages"].as_array().unwrap().len(), 1);
    assert_eq!(history["summary"], listed, "the totals do not depend on the page");
    listed
}

async fn go_on(client: &mut EventClient, session: &str, prompt: &str) {
    let payload = json!({ "sessionId": session, "prompt": prompt });
    client.send("session.continue", payload).await;
    client.until_status("completed").await;
}

#[tokio::test]
async fn totals_are_those_of_the_whole_session_and_survive_a_crash() {
    let write = |name: &str| Reply::tool("Write", json!({ "file_path": name, "content": "x\n" }));
    let todo =
        |content: &str, status: &str| json!({ "content": content, "activeForm": content, "status": status });
    let todos = |status: &str| {
        let list = [todo("Look", "completed"), todo("Write", status)];
        Reply::tool("TodoWrite", json!({ "todos": list }))
    };
    let done = || Reply::text("Done.");
    let script = Script::new()
        .on(
            "make two",
            [todos("in_progress"), write("one.txt"), write("two.txt"), done()],
        )
        .on("one more", [write("three.txt"), todos("completed"), done()])
        .on("after the crash", [write("four.txt"), done()]);
    // Newer releases offer to-do tools only on request, which Tiller makes.
    let claude = Claude::V2_1_325
        .executable()
        .unwrap_or_else(|missing| panic!("{missing}"));
    let world = World::with_claude(script, Some(claude)).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let start = json!({ "title": "", "prompt": "make two", "cwd": world.project(), "approval": "auto" });
    client.send("session.start", start).await;
    let first = client.until_status("completed").await;
    let session = first["sessionId"].as_str().unwrap().to_owned();
    // A watching client gets the totals without asking.
    client
        .until("the totals of the first turn", |event| {
            event["type"] == "session.updated" && event["payload"]["session"]["summary"]["turns"] == 1
        })
        .await;
    go_on(&mut client, &session, "one more").await;

    let before = totals(&server, &cookie, &session).await;
    assert_eq!(before["turns"], 2);
    assert_eq!(before["filesChanged"], json!(["one.txt", "two.txt", "three.txt"]));
    let statuses = |totals: &Value| -> Vec<Value> {
        let todos = totals["todos"].as_array().unwrap();
        todos.iter().map(|todo| todo["status"].clone()).collect()
    };
    assert_eq!(statuses(&before), ["completed", "completed"]);
    for name in ["workingMs", "tokensIn", "tokensOut", "contextTokens", "costUsd"] {
        assert!(before[name].as_f64().unwrap() > 0.0, "{name} of {before}");
    }

    server.kill().await;
    let server = world.serve().await;
    assert_eq!(
        totals(&server, &cookie, &session).await,
        before,
        "after the crash"
    );
    let mut client = EventClient::connect(&server, &cookie).await;
    go_on(&mut client, &session, "after the crash").await;
    let after = totals(&server, &cookie, &session).await;
    assert_eq!(after["turns"], 3);
    assert_eq!(
        after["filesChanged"],
        json!(["one.txt", "two.txt", "three.txt", "four.txt"])
    );
    for name in ["workingMs", "tokensIn", "tokensOut", "costUsd"] {
        assert!(
            after[name].as_f64() > before[name].as_f64(),
            "{name} of {after} after {before}"
        );
    }
    server.stop().await;

    // As an earlier version left it.
    let cleared = world.query("UPDATE sessions SET summary = NULL RETURNING id");
    assert_eq!(cleared, [session.as_str()]);
    let server = world.serve().await;
    let counted = || world.query("SELECT count(summary) FROM sessions") == ["1"];
    until("the totals are not counted again", counted).await;
    assert_eq!(
        totals(&server, &cookie, &session).await,
        after,
        "counted from the log"
    );
    server.stop().await;
}
