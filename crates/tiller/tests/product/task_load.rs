//! Many clients at once: each of them gets all events.

use std::time::Instant;

use serde_json::{Value, json};
use tiller_testkit::installed::scripted_claude;
use tiller_testkit::model::Script;

use crate::server::World;
use crate::task_client::{EventStream, KEY, TaskClient};

const SESSIONS: usize = 4;
const STREAMS: usize = 200;
const EVENTS: usize = 500;

/// The maximum memory of the server; the streams are a small part of it.
const MEMORY: u64 = 400 << 20;

/// The numbers that the agent has counted, as this client received them.
async fn numbers(mut stream: EventStream) -> Vec<usize> {
    stream.complete().await;
    let ids: Vec<u64> = stream.heard.iter().filter_map(|event| event.id).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "each event once, in order");
    let said = stream.joined("text");
    said.split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect()
}

#[tokio::test]
async fn two_hundred_streams_lose_nothing() {
    let claude = scripted_claude().unwrap_or_else(|missing| panic!("{missing}"));
    let world = World::with_claude(Script::new(), Some(claude)).await;
    let script = world.home().join("script.json");
    let wait = json!({ "do": "tool", "name": "Bash", "input": { "command": "go" }, "result": "gone" });
    let flood = json!({ "do": "flood", "events": EVENTS });
    std::fs::write(&script, json!({ "turns": [[wait, flood]] }).to_string()).unwrap();
    let environment = [
        ("TILLER_API_KEY", KEY),
        ("SCRIPTED_CLI", script.to_str().unwrap()),
    ];
    let server = world.serve_with(&[], &environment).await;
    let client = TaskClient::new(&server);

    let mut waiting: Vec<Value> = Vec::new();
    let mut streams = Vec::new();
    for _ in 0..SESSIONS {
        let mut stream = client.stream(json!({ "prompt": "count" })).await;
        waiting.push(stream.until("permission_request").await);
        streams.push(stream);
    }
    let session = |number: usize| waiting[number % SESSIONS]["session_id"].as_str().unwrap();
    for number in SESSIONS..STREAMS {
        streams.push(client.watch(session(number), None).await);
    }

    // All are connected; now it begins.
    let began = Instant::now();
    let reading: Vec<_> = streams
        .into_iter()
        .map(|stream| tokio::spawn(numbers(stream)))
        .collect();
    for asked in &waiting {
        let allow = json!({ "session_id": asked["session_id"], "request_id": asked["request_id"], "decision": "allow" });
        assert_eq!(client.post("/api/task/permission", allow).await.status, 200);
    }
    let all: Vec<usize> = (0..EVENTS).collect();
    for read in reading {
        assert_eq!(read.await.unwrap(), all);
    }
    let memory = server.peak_memory();
    println!(
        "{STREAMS} streams of {EVENTS} events in {:.1?}; the server used at most {} MiB",
        began.elapsed(),
        memory >> 20
    );
    assert!(memory < MEMORY, "{} MiB", memory >> 20);
    server.stop().await;
}
