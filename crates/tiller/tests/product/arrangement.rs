//! How people arrange their sessions: on every device the same, after a restart too, and nobody else's affair.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::access::{key, with_key};
use crate::client::EventClient;
use crate::server::World;

const WORK: &str = "00000000-0000-4000-8000-0000000000a1";
const OWN: &str = "00000000-0000-4000-8000-0000000000b1";

async fn arrangement(client: &mut EventClient) -> Value {
    client.send("arrangement.get", Value::Null).await;
    client.until_type("arrangement").await
}

async fn arrange(client: &mut EventClient, kind: &str, payload: Value) -> Value {
    client.send(&format!("arrangement.{kind}"), payload).await;
    client.until_type("arrangement.changed").await
}

async fn refused(client: &mut EventClient, kind: &str, payload: Value) -> (Value, String) {
    client.send(&format!("arrangement.{kind}"), payload).await;
    let error = client.until_type("runner.error").await;
    let message = error["message"].as_str().unwrap().to_owned();
    (error["code"].clone(), message)
}

async fn listed(client: &mut EventClient, payload: Value) -> Vec<String> {
    client.send("session.list", payload).await;
    let list = client.until_type("session.list").await;
    let sessions = list["sessions"].as_array().unwrap().iter();
    sessions
        .map(|session| session["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn started(client: &mut EventClient, world: &World, prompt: &str) -> String {
    let session = client.start(&world.project(), prompt).await;
    client.until_status("completed").await;
    session
}

#[tokio::test]
async fn every_device_has_the_same_arrangement_and_a_key_has_its_own() {
    let script = Script::new()
        .on("ask me", [Reply::tool("Bash", json!({ "command": "touch x" }))])
        .otherwise(Reply::text("Hello."));
    let world = World::new(script).await;
    let server = world.serve().await;
    let person = server.sign_in().await;
    let mut desk = EventClient::connect(&server, &person).await;
    let mut phone = EventClient::connect(&server, &person).await;
    let empty = json!({ "sorting": "activity", "groups": [], "sessions": [] });
    assert_eq!(arrangement(&mut desk).await, empty);
    let first = started(&mut desk, &world, "first").await;
    let second = started(&mut desk, &world, "second").await;

    // What one does, the other hears, in order, also of several frames that are sent at once.
    let group = json!({ "id": WORK, "name": "  Work \n today ", "place": 1 });
    desk.send("arrangement.group", group).await;
    let change = json!({ "sessionId": first, "group": WORK, "pinned": 0.5, "tags": ["#bug", "Bug", "缺陷"] });
    desk.send("arrangement.session", change).await;
    desk.send("arrangement.sort", json!({ "sorting": "own" })).await;
    let group = json!({ "id": WORK, "name": "Work today", "place": 1.0 });
    let placed = json!({ "sessionId": first, "pinned": 0.5, "group": WORK, "tags": ["bug", "缺陷"] });
    for client in [&mut desk, &mut phone] {
        let mut told = Vec::new();
        for _ in 0..3 {
            told.push(client.until_type("arrangement.changed").await);
        }
        assert_eq!(
            told,
            [
                json!({ "group": group }),
                json!({ "session": placed }),
                json!({ "sorting": "own" })
            ]
        );
    }
    // Both change something else of the same session, and both changes stay.
    let placed = json!({ "sessionId": first, "group": WORK, "place": 12.5, "tags": ["bug", "缺陷"] });
    let unpin = json!({ "sessionId": first, "pinned": null });
    arrange(&mut phone, "session", unpin).await;
    desk.send(
        "arrangement.session",
        json!({ "sessionId": first, "place": 12.5 }),
    )
    .await;
    // Each of them hears of both.
    let both = |event: &Value| event["payload"]["session"] == placed;
    desk.until("both changes", both).await;
    phone.until("both changes", both).await;
    let persons = json!({ "sorting": "own", "groups": [group], "sessions": [placed] });
    assert_eq!(arrangement(&mut phone).await, persons);

    // A key sees its own arrangement only, of its own sessions only; the person hears nothing of it.
    let stranger = key(&world, &["stranger"]).await;
    let mut robot = with_key(&server, &stranger).await.unwrap();
    assert_eq!(arrangement(&mut robot).await, empty);
    let foreign = json!({ "sessionId": first, "pinned": 1 });
    let unknown = (json!("session_not_found"), "Unknown session".to_owned());
    assert_eq!(refused(&mut robot, "session", foreign).await, unknown);
    let own = started(&mut robot, &world, "of a key").await;
    let theirs = json!({ "sessionId": own, "group": WORK });
    let (code, message) = refused(&mut robot, "session", theirs).await;
    assert_eq!(
        (code, message.as_str()),
        (json!("invalid_request"), "There is no such group.")
    );
    arrange(
        &mut robot,
        "group",
        json!({ "id": OWN, "name": "Own", "place": 0 }),
    )
    .await;
    arrange(&mut robot, "session", json!({ "sessionId": own, "group": OWN })).await;
    arrange(&mut robot, "removeGroup", json!({ "id": WORK })).await;
    arrange(&mut robot, "sort", json!({ "sorting": "own" })).await;
    assert_eq!(listed(&mut robot, json!({ "only": "arranged" })).await, [own]);
    // A key that sees everything has an arrangement of its own as well.
    let overseer = key(&world, &["overseer", "--sees", "all"]).await;
    let mut overseer = with_key(&server, &overseer).await.unwrap();
    arrange(
        &mut overseer,
        "session",
        json!({ "sessionId": first, "pinned": 9 }),
    )
    .await;
    let before = phone.heard.len();
    assert_eq!(arrangement(&mut phone).await, persons);
    let told = phone.heard[before..]
        .iter()
        .filter(|event| event["type"] == "arrangement.changed");
    assert_eq!(told.count(), 0, "the person hears of the person's own changes");

    // What waits is found however old it is.
    let start = json!({ "title": "", "prompt": "ask me", "cwd": world.project() });
    desk.send("session.start", start).await;
    let asked = desk.until_type("permission.request").await;
    let waiting = asked["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(
        listed(&mut desk, json!({ "only": "waiting", "limit": 9 })).await,
        [waiting.as_str()]
    );
    assert_eq!(listed(&mut desk, json!({ "only": "running" })).await, [waiting]);
    assert_eq!(
        listed(&mut desk, json!({ "only": "arranged" })).await,
        [first.as_str()]
    );
    server.stop().await;

    let server = world.serve().await;
    let mut desk = EventClient::connect(&server, &person).await;
    assert_eq!(arrangement(&mut desk).await, persons, "after a restart");
    desk.send("session.delete", json!({ "sessionId": first })).await;
    desk.until_type("session.deleted").await;
    arrange(
        &mut desk,
        "session",
        json!({ "sessionId": second, "group": WORK }),
    )
    .await;
    let removed = arrange(&mut desk, "removeGroup", json!({ "id": WORK })).await;
    assert_eq!(removed, json!({ "removedGroup": WORK }));
    let left = json!({ "sorting": "own", "groups": [], "sessions": [] });
    assert_eq!(arrangement(&mut desk).await, left);
    server.stop().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let world = World::new(Script::new().otherwise(Reply::text("Hello."))).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let session = started(&mut client, &world, "first").await;
    let before = arrangement(&mut client).await;
    let cases = [
        (
            "group",
            json!({ "id": "work", "name": "Work", "place": 0 }),
            "UUID",
        ),
        (
            "group",
            json!({ "id": WORK, "name": " \n ", "place": 0 }),
            "between 1 and 80",
        ),
        (
            "group",
            json!({ "id": WORK, "name": "x".repeat(81), "place": 0 }),
            "between 1 and 80",
        ),
        (
            "session",
            json!({ "sessionId": session, "group": WORK }),
            "no such group",
        ),
        (
            "session",
            json!({ "sessionId": session, "tags": [""] }),
            "at most 20 tags",
        ),
        (
            "session",
            json!({ "sessionId": session, "tags": vec!["x".repeat(41)] }),
            "at most 20 tags",
        ),
        (
            "session",
            json!({ "sessionId": session, "pinned": "first" }),
            "pinned",
        ),
        ("sort", json!({ "sorting": "random" }), "sorting"),
    ];
    for (kind, payload, reason) in cases {
        let (code, message) = refused(&mut client, kind, payload.clone()).await;
        assert_eq!(code, "invalid_request", "{payload}");
        assert!(message.contains(reason), "{payload}: {message}");
    }
    assert_eq!(arrangement(&mut client).await, before);
    server.stop().await;
}
