//! A machine without Claude Code.

use serde_json::json;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::http::get;
use crate::server::World;

#[tokio::test]
async fn the_demo_agent_gives_its_tour_and_says_what_it_is() {
    let world = World::with_claude(Script::new(), None).await;
    let server = world.serve_with(&[], &[("DEMO_AGENT_SPEED", "inf")]).await;
    let cookie = server.sign_in().await;
    let backend = get(&server.address, "/api/system", &cookie.headers())
        .await
        .json()["backend"]
        .clone();
    assert_eq!(backend["name"], "demo");
    assert_eq!(backend["why"], "notInstalled");
    assert!(
        backend["reason"]
            .as_str()
            .unwrap()
            .contains("npm install -g @anthropic-ai/claude-code"),
        "{backend}"
    );

    let mut client = EventClient::connect(&server, &cookie).await;
    client.start(&world.project(), "show me").await;
    let mut asked = Vec::new();
    while client
        .heard
        .last()
        .is_none_or(|event| event["payload"]["status"] != "completed")
    {
        let event = client.next().await.expect("the tour goes on");
        if event["type"] == "permission.request" {
            let request = event["payload"].clone();
            asked.push(request["toolName"].as_str().unwrap().to_owned());
            let mut input = request["input"].clone();
            if let Some(question) = input["questions"][0]["question"].as_str().map(str::to_owned) {
                let choice = input["questions"][0]["options"][0]["label"].clone();
                input["answers"] = json!({ question: choice });
            }
            client
                .answer(&request, json!({ "behavior": "allow", "updatedInput": input }))
                .await;
        }
        assert_ne!(event["payload"]["status"], "error", "{event}");
    }
    assert!(asked.iter().any(|tool| tool == "AskUserQuestion"), "{asked:?}");
    assert!(asked.len() >= 3, "a command, an edit and a question: {asked:?}");
    assert!(
        client.streamed().to_lowercase().contains("demo"),
        "{}",
        client.streamed()
    );
    assert!(world.project().join("tiller-demo.md").exists());
    server.stop().await;
}

#[tokio::test]
async fn a_session_chooses_its_agent() {
    let world = World::new(Script::new().on("hello", [Reply::text("From the real one.")])).await;
    let server = world.serve_with(&[], &[("DEMO_AGENT_SPEED", "inf")]).await;
    let cookie = server.sign_in().await;
    let answer = get(&server.address, "/api/backends", &cookie.headers())
        .await
        .json();
    let backends = answer["backends"].as_array().unwrap();
    let names: Vec<_> = backends
        .iter()
        .map(|backend| backend["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["claude", "demo"], "the default one first");
    let options = backends[0]["options"].as_array().unwrap();
    let mode = options
        .iter()
        .find(|option| option["name"] == "permissionMode")
        .unwrap();
    assert_eq!(
        (&mode["kind"], &mode["grants"], &mode["live"]),
        (&json!("choice"), &json!(true), &json!(true))
    );

    let mut client = EventClient::connect(&server, &cookie).await;
    let demo = json!({ "title": "t", "prompt": "help", "cwd": world.project(), "backend": "demo" });
    client.send("session.start", demo).await;
    client.until_type("permission.request").await;
    let session = client.start(&world.project(), "hello").await;
    client
        .until("the real one's end", |event| {
            event["payload"]["sessionId"] == session.as_str() && event["payload"]["status"] == "completed"
        })
        .await;
    let kept = world.query("SELECT backend FROM sessions ORDER BY backend");
    assert_eq!(kept, ["claude", "demo"]);
    server.stop().await;
}

#[tokio::test]
async fn subscribers_get_the_machines_load_once_a_second() {
    let world = World::with_claude(Script::new(), None).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    client.send("statistics.subscribe", serde_json::Value::Null).await;
    for _ in 0..2 {
        let load = client.until_type("statistics").await;
        for share in ["cpuUsage", "ramUsage", "storageUsage"] {
            let value = load[share].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&value), "{load}");
        }
        assert!(load["ramUsage"].as_f64().unwrap() > 0.0, "{load}");
    }
    server.stop().await;
}
