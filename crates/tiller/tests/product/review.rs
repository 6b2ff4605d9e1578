//! What a reviewer sees of an edit that waits: the file that it would change.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::http;
use crate::server::World;

fn path_of(asked: &Value) -> String {
    let part = |name: &str| asked[name].as_str().expect("an id").to_owned();
    format!(
        "/api/sessions/{}/decisions/{}/file",
        part("sessionId"),
        part("requestId")
    )
}

#[tokio::test]
async fn the_file_of_a_waiting_edit_is_shown_to_its_owner_and_nothing_else_is() {
    let edit = json!({ "file_path": "notes.txt", "old_string": "two", "new_string": "three" });
    let outside = json!({ "file_path": "/etc/tiller-test", "content": "x" });
    let script = Script::new().on(
        "edit",
        [
            Reply::tool("Read", json!({ "file_path": "notes.txt" })),
            Reply::tool("Edit", edit),
            Reply::tool("Write", json!({ "file_path": "new.txt", "content": "x" })),
            Reply::tool("Write", outside),
            Reply::tool("Bash", json!({ "command": "touch it" })),
            Reply::text("done"),
        ],
    );
    let world = World::new(script).await;
    std::fs::write(world.project().join("notes.txt"), "one\ntwo\n").unwrap();
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "our-key")]).await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client.start(&world.project(), "edit").await;
    let mut content = async |allow: bool| {
        let asked = client.until_type("permission.request").await;
        let path = path_of(&asked);
        let found = http::get(&server.address, &path, &cookie.headers()).await;
        let refused = http::get(&server.address, &path, &[]).await.status;
        let behavior = if allow { "allow" } else { "deny" };
        let answer = json!({ "behavior": behavior, "message": "no" });
        client.answer(&asked, answer).await;
        assert_eq!(refused, 401);
        let body: Value = serde_json::from_str(&found.body).unwrap_or_default();
        (found.status, body["content"].clone(), path)
    };

    let (status, text, path) = content(true).await;
    assert_eq!((status, text), (200, json!("one\ntwo\n")));
    // A new file has no content yet; a place outside the roots and a command show none.
    assert_eq!(content(true).await.1, Value::Null);
    assert_eq!(content(false).await.0, 404);
    assert_eq!(content(false).await.0, 404);
    client.until_status("completed").await;

    // It no longer waits.
    let later = http::get(&server.address, &path, &cookie.headers()).await;
    assert_eq!(later.refusal(), (404, "request_not_found".to_owned()));
    let odd = path.replace("/decisions/", "/decisions/x");
    assert_eq!(
        http::get(&server.address, &odd, &cookie.headers()).await.status,
        404
    );
    server.stop().await;
}
