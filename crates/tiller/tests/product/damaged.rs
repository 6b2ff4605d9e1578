//! Unreadable rows in the database of a starting server: the session is shown as damaged and kept unchanged, and
//! neither the server nor another session is affected.

use rusqlite::Connection;
use serde_json::json;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::server::World;

/// The kind of damage, and the statement that causes it.
const DAMAGES: &[(&str, &str)] = &[
    ("queue", "UPDATE sessions SET queue = '[1' WHERE id = ?1"),
    ("turn", "UPDATE sessions SET turn = '{}' WHERE id = ?1"),
    ("run", "UPDATE sessions SET run = 'no JSON' WHERE id = ?1"),
    ("options", "UPDATE sessions SET options = '[]' WHERE id = ?1"),
    (
        "approval",
        "UPDATE sessions SET approval = 'whatever' WHERE id = ?1",
    ),
    (
        "title_source",
        "UPDATE sessions SET title_source = '' WHERE id = ?1",
    ),
    (
        "title",
        "UPDATE sessions SET title = CAST(x'ff41' AS TEXT) WHERE id = ?1",
    ),
    (
        "decision",
        "INSERT INTO decisions (id, session_id, agent_request_id, tool_use_id, tool_name, input, asked_at) \
         VALUES ('20000000-0000-4000-8000-000000000001', ?1, 'r', 't', 'Bash', '{', 1)",
    ),
    (
        // The next server would have to send the prompt again.
        "prompt",
        "UPDATE sessions SET status = 'running', turn = '{\"prompt_seq\":1,\"stopping\":false,\"undelivered\":true}' \
         WHERE id = ?1",
    ),
];

/// A session whose record can be read, with a row that can't be.
const WITH_A_BAD_ROW: &str = "00000000-0000-4000-8000-0000000000f1";

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{:012x}", number + 1)
}

/// A session with one prompt, which is invalid JSON for all but [`WITH_A_BAD_ROW`], whose second message has an invalid
/// kind.
fn add_session(database: &Connection, id: &str, number: usize) {
    let sql = "INSERT INTO sessions (id, title, status, cwd, created_at, updated_at, approval, last_seq, number) \
               VALUES (?1, ?2, 'idle', '/', 1, ?3, 'ask', 2, ?3)";
    let number = i64::try_from(number).unwrap() + 1000;
    database
        .execute(sql, rusqlite::params![id, format!("title {number}"), number])
        .unwrap();
    let sql = "INSERT INTO messages (kind, id, session_id, data, created_at, place) VALUES (?1, 'm', ?2, ?3, 1, ?4)";
    let rows = if id == WITH_A_BAD_ROW {
        [
            ("message", r#"{"type":"assistant"}"#),
            ("of no kind", r#"{"type":"assistant"}"#),
        ]
    } else {
        [("prompt", "{}"), ("message", r#"{"type":"assistant"}"#)]
    };
    for (seq, (kind, data)) in (1..).zip(rows) {
        let row = rusqlite::params![kind, id, data, (number << 32) + seq];
        database.execute(sql, row).unwrap();
    }
}

/// All rows of a session in the database.
fn rows(world: &World, session: &str) -> Vec<String> {
    let everything = |table: &str, key: &str, columns: &str| {
        world.query(&format!(
            "SELECT {columns} FROM {table} WHERE {key} = '{session}' ORDER BY rowid"
        ))
    };
    let record = "hex(id || title || status || queue || coalesce(turn, '') || coalesce(run, '') || options || approval \
                  || title_source || updated_at || last_seq)";
    let mut all = everything("sessions", "id", record);
    all.extend(everything("messages", "session_id", "kind || data || place"));
    all.extend(everything("decisions", "session_id", "id || input"));
    all
}

#[tokio::test]
async fn damaged_sessions_are_listed_kept_and_deleted_without_affecting_others() {
    let script = Script::new()
        .on("hello", [Reply::text("Hi.")])
        .on("more", [Reply::text("Still here.")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let sign_in = server.sign_in().await;
    let mut client = EventClient::connect(&server, &sign_in).await;
    let whole = client.start(&world.project(), "hello").await;
    client.until_status("completed").await;
    server.stop().await;

    let database = Connection::open(world.data().join("sessions.db")).unwrap();
    for (number, (what, damage)) in DAMAGES.iter().enumerate() {
        add_session(&database, &id(number), number);
        assert_eq!(database.execute(damage, [id(number)]).unwrap(), 1, "{what}");
    }
    add_session(&database, WITH_A_BAD_ROW, 900);
    // Nobody could ask for it, or delete it.
    add_session(&database, "not an id", 901);
    let kept: Vec<_> = (0..DAMAGES.len())
        .map(|number| rows(&world, &id(number)))
        .collect();
    drop(database);

    // Twice: the first server must leave it unchanged, even if it is killed.
    world.serve().await.kill().await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &sign_in).await;
    let listed = client.sessions().await;
    assert_eq!(listed.len(), DAMAGES.len() + 2, "{listed:?}");
    for (number, (what, _)) in DAMAGES.iter().enumerate() {
        let entry = listed.iter().find(|entry| entry["id"] == id(number)).unwrap();
        assert_eq!(
            (&entry["damaged"], &entry["status"]),
            (&json!(true), &json!("error")),
            "{what}"
        );
        let error = entry["error"].as_str().unwrap();
        assert!(!error.is_empty(), "{what}");
        for (kind, payload) in [
            ("session.history", json!({ "sessionId": id(number) })),
            (
                "session.continue",
                json!({ "sessionId": id(number), "prompt": "go on" }),
            ),
        ] {
            client.send(kind, payload).await;
            let refused = client.until_type("runner.error").await;
            assert_eq!(
                (&refused["sessionId"], &refused["code"]),
                (&json!(id(number)), &json!("session_damaged")),
                "{what}: {refused}"
            );
        }
        assert_eq!(rows(&world, &id(number)), kept[number], "{what} is kept as it is");
    }

    // An unreadable row is shown as such; the session can be used.
    client
        .send("session.history", json!({ "sessionId": WITH_A_BAD_ROW }))
        .await;
    let history = client.until_type("session.history").await;
    let messages = history["messages"].as_array().unwrap();
    assert_eq!(messages[0]["type"], "assistant", "{history}");
    assert_eq!(
        (&messages[1]["subtype"], &messages[1]["reason"]),
        (&json!("unreadable"), &json!("damaged"))
    );

    // Other sessions work.
    client
        .send(
            "session.continue",
            json!({ "sessionId": whole, "prompt": "more" }),
        )
        .await;
    let done = client.until_status("completed").await;
    assert_eq!(done["sessionId"], json!(whole));

    for number in 0..DAMAGES.len() {
        client
            .send("session.delete", json!({ "sessionId": id(number) }))
            .await;
        let deleted = client.until_type("session.deleted").await;
        assert_eq!(deleted["sessionId"], json!(id(number)));
        assert!(rows(&world, &id(number)).is_empty());
    }
    assert_eq!(client.sessions().await.len(), 2);
    assert_eq!(
        rows(&world, "not an id").len(),
        3,
        "what nobody can ask for is kept"
    );
    server.stop().await;
}
