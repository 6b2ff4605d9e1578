//! An agent that waits for a decision while no server is there.

use serde_json::json;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::server::{World, processes_in, until, until_nothing_is_left};

#[tokio::test]
async fn a_decision_that_nobody_can_make_ends_the_agent_and_is_asked_again_on_resume() {
    let make = json!({ "command": "echo made > made.txt", "description": "Make it" });
    let ask = || [Reply::tool("Bash", make.clone()), Reply::text("Done.")];
    let script = Script::new().on("go on", ask()).on("make it", ask());
    let world = World::new(script).await;
    world.configure("titles = \"prompt\"\ndecision_grace_s = 1\n");
    let server = world.serve().await;
    let sign_in = server.sign_in().await;
    let mut client = EventClient::connect(&server, &sign_in).await;
    let session = client.start(&world.project(), "make it").await;
    let asked = client.until_type("permission.request").await;
    server.kill().await;
    until("the agent waits for ever", || {
        processes_in(&world.project()).is_empty()
    })
    .await;

    let server = world.serve().await;
    let mut client = EventClient::connect_to(&server, "/ws/events?only=subscribed", &sign_in).await;
    client
        .send(
            "session.subscribe",
            json!({ "sessionId": session, "afterSeq": 0 }),
        )
        .await;
    let resolved = client.until_type("permission.resolved").await;
    assert_eq!(resolved["behavior"], "withdrawn", "{resolved}");
    let failed = client.until_status("error").await;
    let reason = failed["error"].as_str().unwrap();
    assert!(reason.contains("no Tiller was running"), "{failed}");

    let proceed = json!({ "sessionId": session, "prompt": "go on" });
    client.send("session.continue", proceed).await;
    let again = client
        .until("the decision is asked again", |event| {
            event["type"] == "permission.request" && event["payload"]["requestId"] != asked["requestId"]
        })
        .await;
    let again = again["payload"].clone();
    assert_eq!(again["input"]["command"], "echo made > made.txt");
    client.answer(&again, json!({ "behavior": "allow" })).await;
    client.until_status("completed").await;
    assert!(world.project().join("made.txt").exists());
    server.stop().await;
    until_nothing_is_left(&world).await;
}
