//! WebSocket messages that are too long or not text: the sender gets an error, and nobody else notices.

use serde_json::{Value, json};
use tiller_testkit::model::Script;

use crate::chat::ChatClient;
use crate::client::EventClient;
use crate::server::World;
use crate::task_client::{KEY, serve};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn a_too_long_message_gets_an_error_that_says_what_to_do() {
    let world = World::with_claude(Script::new(), None).await;
    let server = serve(&world).await;
    let mut events = EventClient::connect_with(&server, "/ws/events", &[("x-api-key", KEY)])
        .await
        .unwrap();
    let session = events.start(&world.project(), "hello").await;
    let long = "x".repeat(33 * MIB);
    let more = json!({ "type": "session.continue", "payload": { "sessionId": session, "prompt": long } });
    events.send_text(&more.to_string()).await;
    let refused = events.until_type("runner.error").await;
    assert_eq!(refused["code"], "invalid_request");
    assert!(
        refused["message"].as_str().unwrap().contains("at most 32 MiB"),
        "{refused}"
    );
    // The connection and its session stay alive.
    events.send("session.list", Value::Null).await;
    let listed = events.until_type("session.list").await;
    assert_eq!(listed["sessions"][0]["id"], json!(session));

    let (mut chat, _) = ChatClient::open(&server, "?session_id=long").await;
    chat.say("long", &long).await;
    assert_eq!(chat.error().await, "PARSE_ERROR");
    chat.send(json!({ "type": "interrupt" })).await;
    chat.until_system("interrupted").await;

    // A much longer message is not read at all.
    for mut client in [events, chat.into_client()] {
        client.announce(1 << 40).await;
        let (code, reason) = client.until_closed().await;
        assert_eq!(code, 1009);
        assert!(reason.contains("at most 32 MiB"), "{reason}");
    }
    let mut events = EventClient::connect_with(&server, "/ws/events", &[("x-api-key", KEY)])
        .await
        .unwrap();
    events.send("session.list", Value::Null).await;
    let listed = events.until_type("session.list").await;
    assert_eq!(listed["sessions"][0]["id"], json!(session));

    // Invalid text ends the connection, as the protocol requires.
    events.send_no_text().await;
    let (code, reason) = events.until_closed().await;
    assert_eq!(code, 1007);
    assert!(reason.contains("UTF-8"), "{reason}");
    server.stop().await;
}
