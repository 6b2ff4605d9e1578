//! A real agent of another vendor: opencode, over the Agent Client Protocol.

use serde_json::{Value, json};
use tiller_testkit::installed::opencode;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::server::{Server, SignIn, World, until_nothing_is_left};

/// Keeps opencode from using the network.
const OFFLINE: &[(&str, &str)] = &[
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
];

async fn world() -> World {
    let script = Script::new()
        .on(
            "edit the note",
            [
                Reply::text("I will edit it. ")
                    .and_tool("write", json!({ "filePath": "note.txt", "content": "after\n" })),
                Reply::text("The note is edited."),
            ],
        )
        .on(
            "run the command",
            [
                Reply::tool(
                    "bash",
                    json!({ "command": "touch made.txt", "description": "Make a file" }),
                ),
                Reply::text("It ran: {{tool_result}}"),
            ],
        )
        .on(
            "take your time",
            [Reply::text("It takes long. ").gate("never").and_text("Done.")],
        )
        .on("are you there", [Reply::text("I am here.")]);
    World::with_claude(script, None).await
}

async fn serve(world: &World) -> (Server, SignIn) {
    let server = world.serve_with(&[], OFFLINE).await;
    let sign_in = server.sign_in().await;
    (server, sign_in)
}

fn configure(world: &World) {
    let program = opencode().unwrap_or_else(|missing| panic!("{missing}"));
    world.configure(&format!(
        "titles = \"prompt\"\nacp_agents = [\"opencode={} acp\"]",
        program.display()
    ));
    let options = json!({ "baseURL": format!("{}/v1", world.model.base_url()), "apiKey": "none" });
    let local = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Local", "options": options, "models": { "m": { "name": "M" } },
    });
    let config = json!({
        "model": "local/m", "small_model": "local/m", "autoupdate": false, "share": "disabled",
        "permission": { "bash": "ask", "edit": "ask" }, "provider": { "local": local },
    });
    std::fs::write(world.project().join("opencode.json"), config.to_string()).unwrap();
}

/// One test for everything: opencode takes seconds to start.
#[tokio::test]
async fn opencode_streams_asks_edits_stops_and_survives_the_server() {
    let world = world().await;
    configure(&world);
    let note = world.project().join("note.txt");
    std::fs::write(&note, "before\n").unwrap();
    let (server, sign_in) = serve(&world).await;
    let mut client = EventClient::connect(&server, &sign_in).await;
    let start =
        json!({ "title": "t", "prompt": "edit the note", "cwd": world.project(), "backend": "opencode" });
    client.send("session.start", start).await;
    let session = client.until_status("running").await["sessionId"].clone();
    client.until_streamed("I will edit it. ").await;
    let asked = client.until_type("permission.request").await;
    assert_eq!(asked["toolName"], "Edit", "{asked}");
    assert_eq!(
        (&asked["input"]["old_string"], &asked["input"]["new_string"]),
        (&json!("before\n"), &json!("after\n"))
    );

    server.kill().await;
    let (server, _) = serve(&world).await;
    let mut client = EventClient::connect_to(&server, "/ws/events?only=subscribed", &sign_in).await;
    let subscribe = json!({ "sessionId": session, "afterSeq": 0 });
    client.send("session.subscribe", subscribe).await;
    let asked = client.until_type("permission.request").await;
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "after\n");
    assert_eq!(client.streamed(), "I will edit it. The note is edited.");
    let messages = client.heard.iter().map(|event| &event["payload"]["message"]);
    let patch = messages
        .clone()
        .find_map(|message| message["tool_use_result"]["structuredPatch"][0]["lines"].as_array());
    assert_eq!(patch.unwrap(), &[json!("-before"), json!("+after")]);

    let proceed = |prompt: &str| json!({ "sessionId": session, "prompt": prompt });
    client.send("session.continue", proceed("run the command")).await;
    let asked = client.until_type("permission.request").await;
    assert_eq!(
        (&asked["toolName"], &asked["input"]["command"]),
        (&json!("Bash"), &json!("touch made.txt"))
    );
    assert!(!world.project().join("made.txt").exists());
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    assert!(world.project().join("made.txt").exists());

    client.send("session.continue", proceed("take your time")).await;
    client.until_streamed("It takes long. ").await;
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;
    client.send("session.continue", proceed("are you there")).await;
    client.until_status("completed").await;
    assert!(client.streamed().ends_with("I am here."), "{}", client.streamed());
    let failed: Vec<&Value> = client
        .heard
        .iter()
        .filter(|event| event["type"] == "runner.error")
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    server.stop().await;
    until_nothing_is_left(&world).await;
}
