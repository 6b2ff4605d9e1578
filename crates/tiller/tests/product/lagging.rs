//! A client that reads more slowly than an agent writes: it is told what to ask for again, and misses nothing.

use serde_json::{Value, json};
use tiller_testkit::model::Script;

use crate::client::EventClient;
use crate::server::World;

/// Twelve megabytes, twice: as fragments and as the complete message. Two such turns exceed the backlog of a client
/// that does not read.
const PIECES: usize = 384;
const PIECE: usize = 32 * 1024;

fn entries(list: &Value) -> Vec<Value> {
    list["sessions"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_client_that_fell_behind_learns_of_changes_and_deletions() {
    let world = World::with_claude(Script::new(), None).await;
    let script = world.home().join("script.json");
    let flood = json!([{ "do": "flood", "events": PIECES, "bytes": PIECE }]);
    let words = json!([{ "do": "text", "text": "Hello." }]);
    std::fs::write(&script, json!({ "turns": [words, flood, flood] }).to_string()).unwrap();
    let environment = [("SCRIPTED_CLI", script.to_str().unwrap())];
    let server = world.serve_with(&["--backend", "demo"], &environment).await;
    let cookie = server.sign_in().await;
    let mut hears_all = EventClient::connect(&server, &cookie).await;
    let mut sessions = Vec::new();
    for name in ["busy", "renamed", "deleted"] {
        let start = json!({ "title": name, "prompt": "hello", "cwd": world.project() });
        hears_all.send("session.start", start).await;
        let session = hears_all.until_status("completed").await["sessionId"].clone();
        sessions.push(session);
    }
    let [busy, renamed, deleted] = &sessions[..] else {
        panic!("three sessions")
    };
    let mut subscribed = EventClient::connect_to(&server, "/ws/events?only=subscribed", &cookie).await;
    for session in &sessions {
        let all = json!({ "sessionId": session, "afterSeq": 0 });
        subscribed.send("session.subscribe", all).await;
        subscribed.until_status("completed").await;
    }
    hears_all.heard.clear();
    subscribed.heard.clear();

    // Both stop reading. The client that drives is not subscribed and does not fall behind.
    let mut driver = EventClient::connect_to(&server, "/ws/events?only=subscribed", &cookie).await;
    for turn in ["one", "two"] {
        let prompt = json!({ "sessionId": busy, "prompt": turn });
        driver.send("session.continue", prompt).await;
        let is_over = |entry: &Value| {
            entry["id"] == *busy && entry["lastPrompt"] == turn && entry["status"] == "completed"
        };
        while !driver.sessions().await.iter().any(is_over) {}
    }
    let rename = json!({ "sessionId": renamed, "title": "other" });
    driver.send("session.rename", rename).await;
    driver
        .send("session.delete", json!({ "sessionId": deleted }))
        .await;
    driver.until_type("session.deleted").await;
    let is_renamed = |entry: &Value| entry["title"] == "other";
    while !driver.sessions().await.iter().any(is_renamed) {}

    for (client, again) in [
        (&mut hears_all, vec![busy]),
        (&mut subscribed, vec![busy, renamed]),
    ] {
        let listed = entries(&client.until_type("session.list").await);
        let mut titles: Vec<_> = listed
            .iter()
            .filter_map(|entry| entry["title"].as_str())
            .collect();
        titles.sort_unstable();
        assert_eq!(titles, ["busy", "other"]);
        for session in again {
            let fits = |event: &&Value| {
                event["type"] == "session.reset" && event["payload"]["sessionId"] == *session
            };
            assert_eq!(client.heard.iter().filter(fits).count(), 1);
        }
    }
    let gone =
        |event: &&Value| event["type"] == "session.deleted" && event["payload"]["sessionId"] == *deleted;
    assert_eq!(subscribed.heard.iter().filter(gone).count(), 1);
    // It continues afterwards.
    let all = json!({ "sessionId": busy, "afterSeq": 0 });
    subscribed.send("session.subscribe", all).await;
    subscribed.until_status("completed").await;
    server.stop().await;
}
