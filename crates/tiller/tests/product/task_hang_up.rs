//! Clients of the task API that hang up while their task is being started.

use serde_json::json;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::server::World;
use crate::task_client::{TaskClient, serve};

#[tokio::test]
async fn a_task_whose_client_hangs_up_is_started_and_supervised() {
    let touch = json!({ "command": "touch made", "description": "a test" });
    let script = Script::new()
        .on(
            "make",
            [
                Reply::tool("Bash", touch),
                Reply::text("I was told: {{tool_result}}"),
            ],
        )
        .on("take long", [Reply::text("Beginning").gate("never")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let cookie = server.sign_in().await;
    let mut watcher = EventClient::connect(&server, &cookie).await;
    let client = TaskClient::new(&server);
    for (path, body, end) in [
        ("/api/task", json!({ "prompt": "make it" }), "completed"),
        (
            "/api/task/stream",
            json!({ "prompt": "take long", "timeout_s": 1 }),
            "idle",
        ),
    ] {
        // Another process locks the file for a moment: the start has to wait in the middle.
        let other = rusqlite::Connection::open(world.data().join("sessions.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let hangs_up = client.order(path, body.clone()).await;
        // The request has arrived long before the server has answered so many others; nothing is visible before it is
        // stored.
        for _ in 0..100 {
            assert!(
                watcher
                    .sessions()
                    .await
                    .iter()
                    .all(|entry| entry["title"] != body["prompt"])
            );
        }
        drop(hangs_up);
        watcher.sessions().await;
        other.execute_batch("ROLLBACK").unwrap();
        // Its requests are denied, and its time is limited.
        watcher.until_status(end).await;
    }
    assert!(watcher.streamed().contains("Nobody can be asked"));
    assert!(!world.project().join("made").exists());
    server.stop().await;
}
