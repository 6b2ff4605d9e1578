//! Keys as the page sees them, which is how the command line sees them; what keys see; what is announced.

use serde_json::{Value, json};

use crate::access::{demo_world, key, with_key};
use crate::client::EventClient;
use crate::http::{Response, get, request};
use crate::server::{Server, SignIn, World};

/// A request of the page.
async fn post(server: &Server, sign_in: &SignIn, path: &str, body: Value) -> Response {
    let origin = format!("http://{}", server.address);
    let [cookie, page] = sign_in.headers();
    let headers = [
        cookie,
        page,
        ("origin", origin.as_str()),
        ("content-type", "application/json"),
    ];
    request(&server.address, "POST", path, &headers, &body.to_string()).await
}

async fn keys(server: &Server, sign_in: &SignIn) -> Vec<Value> {
    let list = get(&server.address, "/api/keys", &sign_in.headers()).await.json();
    list["keys"].as_array().unwrap().clone()
}

async fn run(world: &World, arguments: &[&str]) -> String {
    let output = world.command().args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_page_and_the_command_line_agree_about_keys() {
    let world = demo_world().await;
    let server = world.serve_with(&["--backend", "demo"], &[]).await;
    let sign_in = server.sign_in().await;
    let project = world.project();
    let wanted = json!({
        "name": "ci", "scopes": ["read", "run"], "approval": "ask",
        "ceiling": {
            "modes": ["plan"], "tools": ["Read"], "roots": [project], "budgetUsd": 2.5,
            "shield": true, "sandbox": true, "sees": { "folders": [project] },
        },
    });
    let made = post(&server, &sign_in, "/api/keys", wanted.clone()).await;
    assert_eq!(made.status, 200, "{}", made.body);
    let made = made.json();
    let secret = made["secret"].as_str().unwrap();
    let listed = keys(&server, &sign_in).await;
    assert_eq!(listed, [made["key"].clone()]);
    for field in ["name", "scopes", "approval", "ceiling"] {
        assert_eq!(listed[0][field], wanted[field], "{field}");
    }
    assert_eq!(listed[0]["lastUsedAt"], Value::Null);
    assert!(!listed[0].to_string().contains(secret));
    let printed = run(&world, &["key", "list"]).await;
    for word in [
        "ci",
        "read,run",
        "plan",
        "Read",
        "$2.5",
        "shielded",
        "sandbox",
        "never used",
    ] {
        assert!(printed.contains(word), "{word}: {printed}");
    }

    // It works at once, and that is noted.
    assert!(with_key(&server, secret).await.is_ok());
    assert!(keys(&server, &sign_in).await[0]["lastUsedAt"].is_i64());

    // Made there, seen and revoked here.
    run(&world, &["key", "create", "other"]).await;
    let other = keys(&server, &sign_in).await.remove(1);
    assert_eq!(other["scopes"], json!(["read", "run", "approve"]));
    assert_eq!(other["ceiling"]["sees"], "own");
    let taken = post(&server, &sign_in, "/api/keys", json!({ "name": "other" })).await;
    assert_eq!(taken.refusal(), (409, "invalid_request".to_owned()));
    let revoked = post(
        &server,
        &sign_in,
        "/api/keys/revoke",
        json!({ "id": other["id"] }),
    )
    .await;
    assert_eq!(revoked.status, 200, "{}", revoked.body);
    let again = post(
        &server,
        &sign_in,
        "/api/keys/revoke",
        json!({ "id": other["id"] }),
    )
    .await;
    assert_eq!(again.status, 404);
    assert!(!run(&world, &["key", "list"]).await.contains("other"));

    for (wrong, status) in [
        (json!({ "name": " " }), 422),
        (json!({ "name": "x", "scopes": [] }), 422),
        (json!({ "name": "x", "scopes": ["admin"] }), 422),
        (
            json!({ "name": "x", "scopes": ["read"], "approval": "auto" }),
            422,
        ),
        (json!({ "name": "x", "ceiling": { "roots": ["/nowhere"] } }), 400),
        (json!({ "name": "x", "ceiling": { "budgetUsd": 0 } }), 422),
        (
            json!({ "name": "x", "ceiling": { "sees": { "sessions": ["no"] } } }),
            422,
        ),
        (
            json!({ "name": "x", "ceiling": { "sees": { "sessions": [] } } }),
            422,
        ),
        (json!({ "name": "x", "ceiling": { "tools": ["a\u{0}b"] } }), 422),
        (json!({ "name": "x".repeat(20_000) }), 422),
    ] {
        let refused = post(&server, &sign_in, "/api/keys", wrong.clone()).await;
        assert_eq!(refused.status, status, "{}", refused.body);
        assert!(refused.body.len() < 500, "{}", refused.body);
    }
    assert_eq!(keys(&server, &sign_in).await.len(), 1);
    server.stop().await;
}

async fn listed(client: &mut EventClient) -> Vec<String> {
    client.send("session.list", Value::Null).await;
    let list = client.until_type("session.list").await;
    let mut ids: Vec<String> = list["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_key_sees_listed_sessions_or_those_of_a_folder_and_no_others() {
    let world = demo_world().await;
    let (here, there) = (world.project().join("here"), world.project().join("here2"));
    let deep = here.join("deep");
    for folder in [&deep, &there] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "right")])
        .await;
    let mut person = with_key(&server, "right").await.unwrap();
    let inside = person.start(&deep, "hello").await;
    let outside = person.start(&there, "hello").await;
    let folder = key(
        &world,
        &[
            "folder",
            "--scope",
            "read,run",
            "--sees-folder",
            here.to_str().unwrap(),
        ],
    )
    .await;
    let chosen = key(&world, &["chosen", "--scope", "read", "--sees-session", &outside]).await;
    for (key, seen, hidden) in [(&folder, &inside, &outside), (&chosen, &outside, &inside)] {
        let mut client = with_key(&server, key).await.unwrap();
        assert_eq!(listed(&mut client).await, std::slice::from_ref(seen));
        client.send("session.history", json!({ "sessionId": seen })).await;
        assert_eq!(
            client.until_type("session.history").await["sessionId"],
            json!(seen)
        );
        for asked in ["session.history", "session.subscribe"] {
            let payload = json!({ "sessionId": hidden, "afterSeq": 0 });
            client.send(asked, payload).await;
            let error = client.until_type("runner.error").await;
            assert_eq!(error["code"], "session_not_found", "{asked}");
        }
        let path = format!("/api/history/sessions/{hidden}");
        let answer = get(&server.address, &path, &[("x-api-key", key)]).await;
        assert_eq!(answer.status, 404, "{}", answer.body);
    }

    // Live, too: what happens in the other session is not told.
    let mut client = with_key(&server, &folder).await.unwrap();
    // Heard only once the connection stands.
    listed(&mut client).await;
    for session in [&outside, &inside] {
        person
            .send(
                "session.rename",
                json!({ "sessionId": session, "title": "renamed" }),
            )
            .await;
    }
    let heard = client
        .until("the renamed session", |event| {
            event["payload"]["session"]["title"] == "renamed"
        })
        .await;
    assert_eq!(heard["payload"]["session"]["id"], json!(inside));
    let about_others = |event: &&Value| event.to_string().contains(outside.as_str());
    assert_eq!(client.heard.iter().find(about_others), None);
    server.stop().await;
}

#[tokio::test]
async fn sessions_of_a_revoked_key_go_on_by_choice() {
    let world = demo_world().await;
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "right")])
        .await;
    let first = key(&world, &["ci"]).await;
    let mut person = with_key(&server, "right").await.unwrap();
    let mut client = with_key(&server, &first).await.unwrap();
    let session = client.start(&world.project(), "hello").await;
    let asked = person.until_type("permission.request").await;
    run(&world, &["key", "revoke", "ci", "--keep-sessions"]).await;
    // Its connection ends, which is looked for less often than for what it started.
    while client.next().await.is_some() {}
    // The turn goes on, for the person to steer: what it asks next is answered, too.
    person.answer(&asked, json!({ "behavior": "allow" })).await;
    let next = person.until_type("permission.request").await;
    assert_eq!(next["sessionId"], json!(session));
    assert!(
        !person
            .heard
            .iter()
            .any(|event| event["payload"]["behavior"] == "withdrawn"),
        "nothing was stopped"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_new_key_or_browser_is_announced_to_the_person_alone() {
    let world = demo_world().await;
    let server = world.serve_with(&["--backend", "demo"], &[]).await;
    let sign_in = server.sign_in().await;
    let mut page = EventClient::connect(&server, &sign_in).await;
    let program = key(&world, &["program", "--sees", "all"]).await;
    let announced = page.until_type("credential.created").await;
    assert_eq!(
        (&announced["kind"], &announced["name"]),
        (&json!("key"), &json!("program"))
    );
    let mut program = with_key(&server, &program).await.unwrap();

    // Another browser, with a link from the terminal.
    let link = run(&world, &["link"]).await;
    let headers = [("user-agent", "Some Browser")];
    let second = get(&server.address, &server.path_of(link.trim()), &headers).await;
    let second = SignIn::from_response(&second);
    let mut other = EventClient::connect(&server, &second).await;
    let announced = page.until_type("credential.created").await;
    assert_eq!(
        (&announced["kind"], &announced["name"], &announced["address"]),
        (&json!("browser"), &json!("Some Browser"), &json!("127.0.0.1"))
    );

    // A key of the page's own making: everyone hears of it but the program. The new browser has heard nothing of itself.
    let made = post(&server, &sign_in, "/api/keys", json!({ "name": "made" }))
        .await
        .json();
    for client in [&mut page, &mut other] {
        let announced = client.until_type("credential.created").await;
        assert_eq!(announced["id"], made["key"]["id"]);
    }
    program.send("session.list", Value::Null).await;
    program.until_type("session.list").await;
    assert!(
        program
            .heard
            .iter()
            .all(|event| event["type"] != "credential.created")
    );
    // No announcement has a secret in it.
    let secret = made["secret"].as_str().unwrap();
    assert!(page.heard.iter().all(|event| !event.to_string().contains(secret)));
    server.stop().await;
}
