//! Going back in a session: to a message, with the files or without, and back again. And finding what was said.

use serde_json::{Value, json};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};

use crate::client::EventClient;
use crate::server::World;

fn script() -> Script {
    let write = |text: &str| Reply::tool("Write", json!({ "file_path": "notes.txt", "content": text }));
    let read = || Reply::tool("Read", json!({ "file_path": "notes.txt" }));
    Script::new()
        .on("write one", [write("one\n"), Reply::text("Wrote one.")])
        .on("write two", [read(), write("two\n"), Reply::text("Wrote two.")])
        .on("known now", [Reply::text("Known now: {{prompts}}.")])
        .on("known there", [Reply::text("Known there: {{prompts}}.")])
        .on("known again", [Reply::text("Known again: {{prompts}}.")])
}

async fn world_with(claude: Claude) -> World {
    let claude = claude.executable().unwrap_or_else(|missing| panic!("{missing}"));
    World::with_claude(script(), Some(claude)).await
}

async fn say(client: &mut EventClient, session: &str, prompt: &str) -> Value {
    let payload = json!({ "sessionId": session, "prompt": prompt });
    client.send("session.continue", payload).await;
    let prompt = client.until_type("stream.user_prompt").await;
    client.until_status("completed").await;
    prompt
}

/// A session that has written twice: its id, and its second prompt.
async fn written_twice(client: &mut EventClient, world: &World) -> (String, Value) {
    let start = json!({ "prompt": "write one", "cwd": world.project(), "permissionMode": "acceptEdits" });
    client.send("session.start", start).await;
    let session = client.until_status("running").await["sessionId"].clone();
    let session = session.as_str().unwrap().to_owned();
    client.until_status("completed").await;
    let second = say(client, &session, "write two").await;
    (session, second)
}

async fn rewind(client: &mut EventClient, session: &str, prompt: &Value, dry_run: bool) -> Value {
    let payload = json!({
        "sessionId": session, "userMessageId": prompt["promptId"], "dryRun": dry_run, "conversation": true,
    });
    client.send("session.rewind", payload).await;
    client.until_type("session.rewound").await
}

async fn goes_back(claude: Claude) {
    let world = world_with(claude).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let (session, second) = written_twice(&mut client, &world).await;
    let notes = || std::fs::read_to_string(world.project().join("notes.txt")).unwrap_or_default();

    let preview = rewind(&mut client, &session, &second, true).await;
    assert_eq!(preview["prompts"], 1, "{preview}");
    assert_eq!(preview["filesChanged"].as_array().unwrap().len(), 1, "{preview}");
    assert!(preview["notSaved"].is_null(), "{preview}");
    assert_eq!(notes(), "two\n", "a dry run changes nothing");

    // Back, and back again from that.
    rewind(&mut client, &session, &second, false).await;
    assert_eq!(notes(), "one\n");
    client.send("session.list", Value::Null).await;
    let entry = client.until_type("session.list").await["sessions"][0].clone();
    assert_eq!(entry["canUndoRewind"], true, "{entry}");
    assert_eq!(entry["lastPrompt"], "write one");
    assert!(entry["rewound"][0]["afterSeq"].as_u64().unwrap() < second["seq"].as_u64().unwrap());
    client
        .send("session.unrewind", json!({ "sessionId": session }))
        .await;
    let undone = client.until_type("session.unrewound").await;
    assert_eq!(undone["restored"], preview["filesChanged"], "{undone}");
    assert_eq!(notes(), "two\n");
    say(&mut client, &session, "known now").await;
    client
        .until_streamed("Known now: write one | write two | known now.")
        .await;

    // Back once more, and on from there, also with another server in between.
    rewind(&mut client, &session, &second, false).await;
    assert_eq!(notes(), "one\n");
    server.stop().await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    say(&mut client, &session, "known again").await;
    client
        .until_streamed("Known again: write one | known again.")
        .await;
    client
        .send("session.unrewind", json!({ "sessionId": session }))
        .await;
    let refused = client.until_type("runner.error").await;
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("something was said since"),
        "{refused}"
    );

    // What was left behind is not found, and not part of a fork.
    client
        .send("session.find", json!({ "sessionId": session, "query": "WROTE" }))
        .await;
    let found = client.until_type("session.found").await;
    assert_eq!(found["matches"].as_array().unwrap().len(), 1, "{found}");
    client.send("session.fork", json!({ "sessionId": session })).await;
    let fork = client.until_type("session.forked").await["newSessionId"].clone();
    let fork = fork.as_str().unwrap().to_owned();
    client.send("session.history", json!({ "sessionId": fork })).await;
    let history = client.until_type("session.history").await;
    let prompts: Vec<_> = history["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["prompt"].as_str())
        .collect();
    assert_eq!(prompts, ["write one", "known again"]);
    assert_eq!(
        history["times"].as_array().unwrap().len(),
        history["seqs"].as_array().unwrap().len()
    );
    server.stop().await;
}

#[tokio::test]
async fn a_session_goes_back_with_its_files_and_that_can_be_undone() {
    goes_back(Claude::V2_1_325).await;
}

#[tokio::test]
async fn a_session_goes_back_with_the_claude_code_before() {
    goes_back(Claude::V2_1_113).await;
}

#[tokio::test]
async fn a_session_goes_back_with_an_old_claude_code() {
    goes_back(Claude::V2_1_49).await;
}

#[tokio::test]
async fn a_fork_begins_at_the_message_that_was_chosen() {
    for claude in [Claude::V2_1_325, Claude::V2_1_113, Claude::V2_1_49] {
        let world = world_with(claude).await;
        let server = world.serve().await;
        let mut client = EventClient::connect(&server, &server.sign_in().await).await;
        let (session, second) = written_twice(&mut client, &world).await;
        let at = second["seq"].as_u64().unwrap() - 1;
        let fork = json!({ "sessionId": session, "atSeq": at });
        client.send("session.fork", fork).await;
        let fork = client.until_type("session.forked").await["newSessionId"].clone();
        let fork = fork.as_str().unwrap().to_owned();
        say(&mut client, &fork, "known there").await;
        client
            .until_streamed("Known there: write one | known there.")
            .await;
        // The other one has everything.
        say(&mut client, &session, "known now").await;
        client
            .until_streamed("Known now: write one | write two | known now.")
            .await;
        server.stop().await;
    }
}

#[tokio::test]
async fn files_that_were_changed_since_a_rewind_stay_when_it_is_undone() {
    let world = World::new(script()).await;
    let server = world.serve().await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let (session, second) = written_twice(&mut client, &world).await;
    rewind(&mut client, &session, &second, false).await;
    let notes = world.project().join("notes.txt");
    std::fs::write(&notes, "mine\n").unwrap();
    client
        .send("session.unrewind", json!({ "sessionId": session }))
        .await;
    let undone = client.until_type("session.unrewound").await;
    assert_eq!(
        (
            undone["restored"].as_array().unwrap().len(),
            undone["left"].as_array().unwrap().len()
        ),
        (0, 1)
    );
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "mine\n");
    // A prompt of another session, or none, is refused.
    rewind_refused(&mut client, &session).await;
    server.stop().await;
}

async fn rewind_refused(client: &mut EventClient, session: &str) {
    let payload = json!({
        "sessionId": session, "userMessageId": "00000000-0000-4000-8000-000000000000", "dryRun": false,
        "conversation": true, "files": false,
    });
    client.send("session.rewind", payload).await;
    assert_eq!(
        client.until_type("runner.error").await["code"],
        "request_not_found"
    );
}
