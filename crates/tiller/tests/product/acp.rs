//! A second kind of agent: one with the Agent Client Protocol, chosen per session.

use serde_json::{Value, json};
use tiller_testkit::installed::scripted_acp;
use tiller_testkit::model::Script;

use crate::client::EventClient;
use crate::http::get;
use crate::server::{Server, SignIn, World, until_nothing_is_left};

async fn world() -> World {
    let agent = scripted_acp().unwrap_or_else(|missing| panic!("{missing}"));
    let world = World::with_claude(Script::new(), None).await;
    world.configure(&format!(
        "titles = \"prompt\"\nacp_agents = [\"scripted={}\"]",
        agent.display()
    ));
    world
}

/// Starts a session with the scripted agent; its id.
async fn start(client: &mut EventClient, world: &World, prompt: &str) -> String {
    let payload = json!({ "title": "t", "prompt": prompt, "cwd": world.project(), "backend": "scripted" });
    client.send("session.start", payload).await;
    let running = client.until_status("running").await;
    running["sessionId"].as_str().unwrap().to_owned()
}

async fn serve(world: &World) -> (Server, SignIn, EventClient) {
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let client = EventClient::connect(&server, &cookie).await;
    (server, cookie, client)
}

fn messages(client: &EventClient, kind: &str) -> Vec<Value> {
    let all = client.heard.iter().map(|event| &event["payload"]["message"]);
    all.filter(|message| message["type"] == kind).cloned().collect()
}

#[tokio::test]
async fn an_acp_agent_streams_plans_and_edits_like_any_other() {
    let world = world().await;
    std::fs::write(world.project().join("note.txt"), "before\n").unwrap();
    let (server, cookie, mut client) = serve(&world).await;
    let backends = get(&server.address, "/api/backends", &cookie.headers())
        .await
        .json();
    let names: Vec<_> = backends["backends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names, ["demo", "scripted"]);

    let session = start(&mut client, &world, "plan, think, edit").await;
    client.until_status("completed").await;
    assert_eq!(client.streamed(), "You said: plan, think, edit.");
    let tools: Vec<_> = messages(&client, "assistant")
        .iter()
        .filter_map(|message| {
            message["message"]["content"][0]["name"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(tools, ["TodoWrite", "Edit"]);
    let results = messages(&client, "user");
    let patch = results
        .iter()
        .find_map(|result| result["tool_use_result"]["structuredPatch"][0]["lines"].as_array());
    assert_eq!(patch.unwrap(), &[json!(" before"), json!("+edited")]);

    // The process is ended, and another one loads the conversation.
    server.stop().await;
    let (server, _, mut client) = serve(&world).await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "again" }),
        )
        .await;
    client.until_status("completed").await;
    assert_eq!(client.streamed(), "You said: again.");
    server.stop().await;
    until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn a_permission_of_an_acp_agent_survives_the_server() {
    let world = world().await;
    let (server, cookie, mut client) = serve(&world).await;
    let session = start(&mut client, &world, "ask").await;
    let asked = client.until_type("permission.request").await;
    assert_eq!(
        (&asked["toolName"], &asked["input"]["command"]),
        (&json!("Bash"), &json!("touch asked.txt"))
    );
    server.kill().await;

    let server = world.serve().await;
    let mut client = EventClient::connect_to(&server, "/ws/events?only=subscribed", &cookie).await;
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": session, "afterSeq": 0 }),
        )
        .await;
    let asked = client.until_type("permission.request").await;
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    assert_eq!(
        std::fs::read_to_string(world.project().join("asked.txt")).unwrap(),
        "once"
    );
    assert_eq!(client.streamed(), "You said: ask.");
    server.stop().await;
    until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn a_turn_of_an_acp_agent_can_be_stopped() {
    let world = world().await;
    let (server, _, mut client) = serve(&world).await;
    let session = start(&mut client, &world, "hang").await;
    client.until_streamed("Hanging").await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;
    let asking = json!({ "sessionId": session, "prompt": "ask" });
    client.send("session.continue", asking).await;
    client.until_type("permission.request").await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;
    assert!(!world.project().join("asked.txt").exists());
    server.stop().await;
    until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn missing_abilities_of_an_acp_agent_are_refused_with_its_name() {
    let world = world().await;
    let (server, cookie, mut client) = serve(&world).await;
    let session = start(&mut client, &world, "hello").await;
    client.until_status("completed").await;
    let mut prompts = client
        .heard
        .iter()
        .map(|event| event["payload"]["promptId"].clone());
    let prompt = prompts.find(Value::is_string).unwrap();
    for (event, payload, message) in [
        (
            "session.fork",
            json!({ "sessionId": session }),
            "scripted can't fork a conversation.",
        ),
        (
            "session.rewind",
            json!({ "sessionId": session, "userMessageId": prompt, "dryRun": true }),
            "scripted can't restore files.",
        ),
        (
            "session.hooks",
            json!({ "sessionId": session, "events": ["PreToolUse"] }),
            "scripted can't call hooks.",
        ),
    ] {
        client.send(event, payload).await;
        let refused = client.until_type("runner.error").await;
        assert_eq!(
            (&refused["code"], &refused["message"]),
            (&json!("unsupported"), &json!(message)),
            "{event}"
        );
    }
    let question = json!({ "sessionId": session, "requestId": "q", "subject": "contextUsage" });
    client.send("session.inquire", question).await;
    let answer = client.until_type("session.answer").await;
    assert_eq!(answer["error"], "scripted can't answer questions about itself.");

    // It opened a session, so it is signed in, and it has reported its modes.
    let backends = get(&server.address, "/api/backends", &cookie.headers())
        .await
        .json();
    let scripted = &backends["backends"][1];
    assert_eq!(
        (
            &scripted["signedIn"],
            &scripted["version"],
            &scripted["options"][0]["choices"]
        ),
        (&json!(true), &json!("1"), &json!(["yolo", "ask"]))
    );
    server.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_not_installed_is_refused_with_install_instructions() {
    let world = World::with_claude(Script::new(), None).await;
    let own = world.home().join("own-agent");
    world.configure(&format!(
        "titles = \"prompt\"\nacp_agents = [\"opencode=opencode acp\", \"own={}\"]",
        own.display()
    ));
    let (server, cookie, mut client) = serve(&world).await;
    let remedy = "Install it with `npm install -g opencode-ai`.";
    let backends = get(&server.address, "/api/backends", &cookie.headers())
        .await
        .json();
    let opencode = &backends["backends"][1];
    assert_eq!(
        (
            &opencode["installed"],
            &opencode["signedIn"],
            &opencode["howToInstall"]
        ),
        (&json!(false), &Value::Null, &json!(remedy))
    );
    let payload =
        |backend| json!({ "title": "t", "prompt": "hello", "cwd": world.project(), "backend": backend });
    client.send("session.start", payload("opencode")).await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (
            &json!("agent_not_installed"),
            &json!(format!("opencode is not installed. {remedy}"))
        )
    );
    assert!(world.query("SELECT id FROM sessions").is_empty());
    client.send("session.start", payload("own")).await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "agent_not_installed");

    // Installed while the server runs, it can be used at once; removed again, a prompt is refused and not lost.
    std::os::unix::fs::symlink(scripted_acp().unwrap(), &own).unwrap();
    client.send("session.start", payload("own")).await;
    let session = client.until_status("completed").await["sessionId"].clone();
    server.stop().await;
    std::fs::remove_file(&own).unwrap();
    let (server, _, mut client) = serve(&world).await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "more" }),
        )
        .await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(refused["code"], "agent_not_installed");
    server.stop().await;
}

#[tokio::test]
async fn a_mode_that_an_acp_agent_offers_can_be_chosen() {
    let world = world().await;
    let (server, _, mut client) = serve(&world).await;
    let session = start(&mut client, &world, "hello").await;
    client.until_status("completed").await;
    let configure = |mode: &str| json!({ "sessionId": session, "options": { "mode": mode } });
    client.send("session.configure", configure("yolo")).await;
    client
        .until("the mode", |event| {
            event["payload"]["session"]["settings"]["options"]["mode"] == "yolo"
        })
        .await;
    // The scripted agent refuses to work in this mode.
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "again" }),
        )
        .await;
    let failed = client.until_status("error").await;
    assert_eq!(failed["error"], "The agent refused to continue.");

    client.send("session.configure", configure("dreamy")).await;
    let notice = client
        .until("a notice", |event| {
            event["payload"]["message"]["subtype"] == "notice"
        })
        .await;
    assert_eq!(
        notice["payload"]["message"]["message"],
        "scripted did not change its mode: there is no mode 'dreamy'. Available: yolo, ask."
    );
    client
        .send(
            "session.configure",
            json!({ "sessionId": session, "options": { "temperature": 1 } }),
        )
        .await;
    let refused = client.until_type("runner.error").await;
    assert_eq!(
        refused["message"],
        "scripted does not have the option 'temperature'."
    );
    server.stop().await;
    until_nothing_is_left(&world).await;
}
