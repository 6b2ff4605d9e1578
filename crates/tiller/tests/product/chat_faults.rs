//! The chat API with an agent that fails in ways that the real CLI can't be made to.

use serde_json::{Value, json};
use tiller_testkit::installed::scripted_claude;
use tiller_testkit::model::Script;

use crate::chat::ChatClient;
use crate::server::World;
use crate::task_client::KEY;

#[tokio::test]
async fn an_agent_that_dies_in_the_middle_of_a_turn_is_an_error_with_its_own_code() {
    let claude = scripted_claude().unwrap_or_else(|missing| panic!("{missing}"));
    let world = World::with_claude(Script::new(), Some(claude)).await;
    let script = world.home().join("script.json");
    let dies = json!([
        { "do": "text", "text": "Half of" },
        { "do": "stderr", "text": "out of paper\n" },
        { "do": "exit", "code": 3 },
    ]);
    std::fs::write(&script, json!({ "turns": [dies] }).to_string()).unwrap();
    let environment = [
        ("TILLER_API_KEY", KEY),
        ("SCRIPTED_CLI", script.to_str().unwrap()),
    ];
    let server = world.serve_with(&[], &environment).await;
    let (mut client, _) = ChatClient::open(&server, "?session_id=demo").await;
    client.say("demo", "write it down").await;
    let error = client.until("error").await;
    assert_eq!(error["details"]["code"], "EXECUTION_FAILED", "{error}");
    let reason = error["details"]["message"].as_str().unwrap();
    assert!(
        reason.contains("exit code 3") && reason.contains("out of paper"),
        "{reason}"
    );
    let result = client.until("result").await;
    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["detail"]),
        (&json!("error"), &json!(true), &json!("agent_ended"))
    );
    assert_eq!(
        result["result"], error["details"]["message"],
        "the turn says why it ended, too"
    );
    let said = client.heard().iter();
    let said: String = said
        .filter_map(|frame| frame["event"]["delta"]["text"].as_str())
        .collect();
    assert_eq!(said, "Half of", "what it said before is kept");

    // The connection stays open, and the next message starts another agent.
    std::fs::write(
        &script,
        json!({ "turns": [[{ "do": "text", "text": "All of it." }]] }).to_string(),
    )
    .unwrap();
    client.say("demo", "once more").await;
    let result: Value = client.until("result").await;
    assert_eq!(result["result"], "All of it.", "{result}");
    server.stop().await;
}
