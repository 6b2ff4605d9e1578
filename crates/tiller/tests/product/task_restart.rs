//! Tasks across the death of the server: the next server keeps the promises.

use serde_json::json;
use tiller_testkit::installed::scripted_claude;
use tiller_testkit::model::{Reply, Script};

use crate::server::World;
use crate::task_client::{KEY, TaskClient, question, serve};

#[tokio::test]
async fn a_time_limit_holds_under_the_next_server() {
    // An agent that answers at once, so that the first server gets it in time on every machine.
    let claude = scripted_claude().unwrap_or_else(|missing| panic!("{missing}"));
    let world = World::with_claude(Script::new(), Some(claude)).await;
    let script = world.home().join("script.json");
    let steps = json!([{ "do": "text", "text": "Beginning…" }, { "do": "hang" }]);
    std::fs::write(&script, json!({ "turns": [steps] }).to_string()).unwrap();
    let environment = [
        ("TILLER_API_KEY", KEY),
        ("SCRIPTED_CLI", script.to_str().unwrap()),
    ];
    let serve = || world.serve_with(&[], &environment);
    let server = serve().await;
    let task = json!({ "prompt": "take long", "timeout_s": 4 });
    let mut stream = TaskClient::new(&server).stream(task).await;
    stream.until("text").await;
    let session = stream.session.clone();
    drop(stream);
    server.kill().await;

    let server = serve().await;
    let mut stream = TaskClient::new(&server).watch(&session, None).await;
    let complete = stream.complete().await;
    assert_eq!(complete["success"], false);
    assert!(
        complete["message"].as_str().unwrap().contains("time limit"),
        "{complete}"
    );
    let heard = stream.heard.clone();
    assert_eq!(heard[heard.len() - 2].data["code"], "timeout");
    server.stop().await;

    // A third server still knows the reason.
    let server = serve().await;
    let mut stream = TaskClient::new(&server).watch(&session, None).await;
    stream.complete().await;
    assert_eq!(stream.heard, heard);
    server.stop().await;
}

#[tokio::test]
async fn some_of_several_answers_are_kept_for_the_next_server() {
    let ask = json!({ "questions": [question("Which colour?", false), question("Which ones?", true)] });
    let script = Script::new().on(
        "ask me",
        [
            Reply::tool("AskUserQuestion", ask),
            Reply::text("So: {{tool_result}}"),
        ],
    );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    let mut stream = client.stream(json!({ "prompt": "ask me" })).await;
    let one = stream.until("ask_user_question").await;
    let other = stream.until("ask_user_question").await;
    let answer = |question: &serde_json::Value, answer: serde_json::Value| json!({ "session_id": question["session_id"], "question_id": question["question_id"], "answer": answer });
    let answered = client.post("/api/task/answer", answer(&one, json!("Blue"))).await;
    assert_eq!(answered.status, 200);
    let (session, seen) = (stream.session.clone(), stream.last_id());
    drop(stream);
    server.kill().await;

    let server = serve(&world).await;
    let client = TaskClient::new(&server);
    let again = client.post("/api/task/answer", answer(&one, json!("Red"))).await;
    assert_eq!(again.refusal(), (404, "question_not_found".to_owned()));
    let answered = client
        .post("/api/task/answer", answer(&other, json!(["Red", "Blue"])))
        .await;
    assert_eq!(answered.status, 200, "{}", answered.body);
    let complete = client.watch(&session, Some(seen)).await.complete().await;
    let message = complete["message"].as_str().unwrap();
    assert!(
        message.contains(r#""Which colour?"="Blue""#) && message.contains(r#""Which ones?"="Red, Blue""#),
        "{message}"
    );
    assert_eq!(world.query("SELECT count(*) FROM session_notes"), ["0"]);
    server.stop().await;
}

#[tokio::test]
async fn the_next_server_also_denies_requests() {
    let touch = json!({ "command": "touch made", "description": "a test" });
    let script = Script::new().on(
        "make",
        [
            Reply::text("Soon. ").gate("go").and_tool("Bash", touch),
            Reply::text("I was told: {{tool_result}}"),
        ],
    );
    let world = World::new(script).await;
    let server = serve(&world).await;
    let body = json!({ "prompt": "make it" }).to_string();
    let address = server.address.clone();
    let waiting = tokio::spawn(async move {
        let headers = [("x-api-key", KEY), ("content-type", "application/json")];
        crate::http::request(&address, "POST", "/api/task", &headers, &body).await
    });
    world.model.gate("go").reached().await;
    server.kill().await;
    // Its connection is cut.
    waiting.abort();
    world.model.gate("go").open();

    let server = serve(&world).await;
    let session = world.query("SELECT id FROM sessions").remove(0);
    let complete = TaskClient::new(&server)
        .watch(&session, None)
        .await
        .complete()
        .await;
    assert!(
        complete["message"]
            .as_str()
            .unwrap()
            .contains("Nobody can be asked"),
        "{complete}"
    );
    assert!(!world.project().join("made").exists());
    server.stop().await;
}
