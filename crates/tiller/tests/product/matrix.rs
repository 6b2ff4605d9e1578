//! All routes and events of the description, with each scope missing, for every owner, and from wrong hosts and
//! origins.

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::access::{demo_world, key, with_key};
use crate::client::EventClient;
use crate::http::get;
use crate::server::{Server, World};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// The environment's key, which has all rights.
const OWN_KEY: &str = "the-servers-own-key";

async fn served(world: &World, arguments: &[&str]) -> (Server, Value) {
    let server = world.serve_with(arguments, &[("TILLER_API_KEY", OWN_KEY)]).await;
    let description = get(&server.address, "/api/openapi.json", &[("x-api-key", OWN_KEY)]).await;
    let description = description.json();
    (server, description)
}

struct Route<'a> {
    method: String,
    path: String,
    scope: &'a str,
    takes_body: bool,
}

fn routes(description: &Value) -> Vec<Route<'_>> {
    let paths = description["paths"].as_object().unwrap();
    let routes = paths.iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap();
        operations.iter().filter_map(move |(method, operation)| {
            Some(Route {
                method: method.to_uppercase(),
                // Path parameters, replaced by an id of nothing.
                path: path
                    .split('/')
                    .map(|part| if part.starts_with('{') { NOBODY } else { part })
                    .collect::<Vec<_>>()
                    .join("/"),
                scope: operation["x-scope"].as_str()?,
                takes_body: operation["requestBody"].is_object(),
            })
        })
    });
    routes.collect()
}

/// The status alone: some responses never end.
async fn status(address: &str, route: &Route<'_>, headers: &[(&str, &str)]) -> u16 {
    let has_body = !matches!(route.method.as_str(), "GET" | "DELETE");
    let body = if has_body { "{}" } else { "" };
    let mut lines = vec![
        format!("{} {} HTTP/1.1", route.method, route.path),
        "Connection: close".to_owned(),
        format!("Content-Length: {}", body.len()),
    ];
    let has = |name: &str| headers.iter().any(|(given, _)| *given == name);
    if !has("host") {
        lines.push(format!("host: {address}"));
    }
    if has_body && !has("content-type") {
        lines.push("content-type: application/json".to_owned());
    }
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{}\r\n\r\n{body}", lines.join("\r\n"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

/// Whether a key with these scopes has what a route or an event needs.
fn suffices(scopes: &[&str], needed: &str) -> bool {
    let has = |scope: &str| scopes.contains(&scope);
    match needed {
        "any" => true,
        "read" | "run" | "approve" => has(needed),
        "read or approve" => has("read") || has("approve"),
        "read and run" => has("read") && has("run"),
        // These keys see their own sessions, and no created key is the person.
        "read all" | "person" => false,
        unknown => panic!("a scope that nobody knows: {unknown}"),
    }
}

const SCOPES: [&[&str]; 5] = [
    &["read"],
    &["run"],
    &["approve"],
    &["read", "run"],
    &["read", "run", "approve"],
];

async fn keys(world: &World) -> Vec<(&'static [&'static str], String)> {
    let mut keys = Vec::new();
    for scopes in SCOPES {
        let name = scopes.join("-");
        keys.push((scopes, key(world, &[&name, "--scope", &scopes.join(",")]).await));
    }
    keys
}

#[tokio::test]
async fn every_route_checks_scope_host_and_origin() {
    let world = demo_world().await;
    let (server, description) = served(&world, &["--backend", "demo"]).await;
    let keys = keys(&world).await;
    let routes = routes(&description);
    assert!(routes.len() > 25, "{}", routes.len());
    let address = server.address.as_str();
    for route in &routes {
        let name = format!("{} {}", route.method, route.path);
        assert_eq!(
            status(address, route, &[]).await,
            401,
            "{name} without a credential"
        );
        for (scopes, key) in &keys {
            let status = status(address, route, &[("x-api-key", key)]).await;
            if suffices(scopes, route.scope) {
                assert!(
                    !matches!(status, 401 | 403 | 405 | 500..),
                    "{name} with {scopes:?}: {status}"
                );
            } else {
                assert_eq!(status, 403, "{name} with {scopes:?}");
            }
        }
        let own = ("x-api-key", OWN_KEY);
        for wrong in [
            ("host", "evil.example"),
            ("host", "127.0.0.1.evil.example"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
        ] {
            assert_eq!(
                status(address, route, &[own, wrong]).await,
                403,
                "{name} with {wrong:?}"
            );
        }
        if route.path.starts_with("/api") {
            let foreign = ("sec-fetch-site", "cross-site");
            assert_eq!(
                status(address, route, &[own, foreign]).await,
                403,
                "{name} {foreign:?}"
            );
        }
        if route.takes_body {
            for kind in [
                "text/plain",
                "application/x-www-form-urlencoded",
                "multipart/form-data",
            ] {
                let status = status(address, route, &[own, ("content-type", kind)]).await;
                assert_eq!(status, 415, "{name} as {kind}");
            }
        }
        let other = Route {
            method: "PATCH".to_owned(),
            path: route.path.clone(),
            scope: route.scope,
            takes_body: true,
        };
        assert_eq!(status(address, &other, &[own]).await, 405, "PATCH {}", route.path);
    }
    server.stop().await;
}

/// Sends an event and an invalid frame after it, and returns the answers to the event before the error about that
/// frame.
async fn refusals(client: &mut EventClient, kind: &str, payload: Value) -> Vec<Value> {
    let before = client.heard.len();
    let event = json!({ "type": kind, "commandId": "tried", "payload": payload });
    client.send_text(&event.to_string()).await;
    client
        .send_text(&json!({ "type": "no.such.event", "commandId": "fence" }).to_string())
        .await;
    client
        .until("the fence", |event| event["commandId"] == "fence")
        .await;
    let since = client.heard[before..].iter();
    since
        .filter(|event| event["commandId"] == "tried" && event["type"] == "runner.error")
        .map(|event| event["payload"]["code"].clone())
        .collect()
}

#[tokio::test]
async fn every_event_checks_its_scope() {
    let world = demo_world().await;
    let (server, description) = served(&world, &["--backend", "demo"]).await;
    let events = description["x-events"].as_array().unwrap();
    assert!(events.len() > 15, "{}", events.len());
    for (scopes, key) in keys(&world).await {
        let mut client = match with_key(&server, &key).await {
            Ok(client) => client,
            Err(status) => {
                assert!(
                    status == 403 && !suffices(scopes, "read or approve"),
                    "{scopes:?}: {status}"
                );
                continue;
            }
        };
        for event in events {
            let kind = event["type"].as_str().unwrap();
            let refused = refusals(&mut client, kind, json!({ "sessionId": NOBODY })).await;
            let is_forbidden = refused.contains(&json!("forbidden"));
            let expected = !suffices(scopes, event["scope"].as_str().unwrap());
            assert_eq!(is_forbidden, expected, "{kind} with {scopes:?}: {refused:?}");
        }
    }
    server.stop().await;
}

/// A payload that fits every event: fields that an event does not have are ignored.
fn suitable(session: &str) -> Value {
    json!({
        "sessionId": session, "prompt": "hello", "promptId": NOBODY, "requestId": NOBODY, "toolUseId": "toolu_1",
        "callbackId": NOBODY, "userMessageId": NOBODY, "result": { "behavior": "deny" }, "title": "taken", "archived": true,
        "prompts": [], "events": [], "output": {}, "subtype": "get_context_usage", "afterSeq": 0, "dryRun": true, "model": "opus",
    })
}

#[tokio::test]
async fn a_foreign_session_is_treated_as_unknown() {
    let world = World::new(Script::new().otherwise(Reply::text("Hello."))).await;
    let (server, description) = served(&world, &[]).await;
    let mut person = EventClient::connect(&server, &server.sign_in().await).await;
    let session = person.start(&world.project(), "hello").await;
    person.until_status("completed").await;
    person
        .send("session.history", json!({ "sessionId": session }))
        .await;
    let before = person.until_type("session.history").await;

    let stranger = key(&world, &["stranger"]).await;
    let mut client = with_key(&server, &stranger).await.unwrap();
    let mut tried = 0;
    for event in description["x-events"].as_array().unwrap() {
        let kind = event["type"].as_str().unwrap();
        // A start creates a session, a list has the caller's own, a stop of nothing is silent, statistics concern no
        // session, and an arrangement is the viewer's own except for the session in it.
        if matches!(
            kind,
            "session.start" | "session.list" | "session.stop" | "statistics.subscribe"
        ) || kind.starts_with("arrangement.") && kind != "arrangement.session"
        {
            continue;
        }
        let mut answers = Vec::new();
        for id in [session.as_str(), NOBODY] {
            let sent = json!({ "type": kind, "commandId": id, "payload": suitable(id) });
            client.send_text(&sent.to_string()).await;
            let answer = client.until(kind, |event| event["commandId"] == id).await;
            answers.push(answer.to_string().replace(id, "ID"));
        }
        assert_eq!(answers[0], answers[1], "{kind}");
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.send("session.list", Value::Null).await;
    let own = client.until_type("session.list").await;
    assert_eq!(own["sessions"], json!([]));

    person
        .send("session.history", json!({ "sessionId": session }))
        .await;
    let after = person.until_type("session.history").await;
    assert_eq!(after, before, "nothing of it has changed");
    server.stop().await;
}
