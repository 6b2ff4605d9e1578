//! The client examples, as users run them; and one session through all doors at once.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tiller_testkit::installed;
use tiller_testkit::model::{Reply, Script};

use crate::chat::ChatClient;
use crate::client::EventClient;
use crate::server::{PATIENCE, Server, World, bash};
use crate::task_client::{KEY, TaskClient, serve};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The output of an example, which must succeed.
async fn example(server: &Server, program: &Path, script: &str, argument: &str) -> String {
    let script = repository().join("examples/clients").join(script);
    run_example(server, program, &[script.to_str().unwrap(), argument]).await
}

async fn run_example(server: &Server, program: &Path, arguments: &[&str]) -> String {
    let script = arguments.join(" ");
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .env("TILLER_URL", format!("http://{}", server.address))
        .env("TILLER_KEY", KEY)
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, output)
        .await
        .unwrap_or_else(|_| panic!("{script} does not end"))
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {said}\n{complaint}");
    said
}

#[tokio::test]
async fn the_client_examples_work() {
    let script = Script::new()
        .on("plant", [bash("touch tree"), Reply::text("A tree grows.")])
        .on("say", [Reply::text("It grows.")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let python = installed::python().unwrap_or_else(|missing| panic!("{missing}"));
    let shell = Path::new("/bin/sh");
    let tree = world.project().join("tree");
    for name in ["python/task.py", "python/chat.py", "python/event.py"] {
        let said = example(&server, &python, name, "plant something").await;
        assert!(said.contains("A tree grows."), "{name}: {said}");
        assert!(tree.exists(), "{name} allows it");
        std::fs::remove_file(&tree).unwrap();
    }
    let said = example(&server, shell, "curl/task.sh", "say \"it\"").await;
    assert!(
        said.contains("event: complete") && said.contains(r#""success":true"#),
        "{said}"
    );
    for (name, prompted, told) in [
        ("curl/chat.sh", "user_message", "result"),
        ("curl/event.sh", "stream.user_prompt", "stream.message"),
    ] {
        let said = example(&server, shell, name, "say 它").await;
        let read = |line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{name}: {said}"));
        let messages: Vec<Value> = said.lines().map(read).collect();
        let has = |kind: &str, words: &str| {
            let is_it = |message: &Value| message["type"] == kind && message.to_string().contains(words);
            messages.iter().any(is_it)
        };
        assert!(
            has(prompted, "say 它") && has(told, "It grows."),
            "{name}: {said}"
        );
    }
    for (program, name) in [
        (python.as_path(), "python/history.py"),
        (shell, "curl/history.sh"),
    ] {
        let said = example(&server, program, name, "grows").await;
        assert!(said.contains(world.project().to_str().unwrap()), "{name}: {said}");
    }
    server.stop().await;
}

/// Compiles the TypeScript examples to JavaScript, checking their types. Returns their folder.
async fn compiled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let compiler = repository().join("web/node_modules/typescript/bin/tsc");
    assert!(
        compiler.exists(),
        "{} is missing: run `cargo xtask setup`",
        compiler.display()
    );
    let output = tokio::process::Command::new("node")
        .arg(compiler)
        .arg("--project")
        .arg(repository().join("examples/clients/typescript"))
        .arg("--outDir")
        .arg(folder.path())
        .output()
        .await
        .expect("Node.js, which the web UI needs as well");
    let complaint = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{complaint}");
    std::fs::write(folder.path().join("package.json"), r#"{ "type": "module" }"#).unwrap();
    folder
}

#[tokio::test]
async fn the_typescript_examples_work() {
    let script = Script::new().on("plant", [bash("touch tree"), Reply::text("A tree grows.")]);
    let world = World::new(script).await;
    let (server, folder) = tokio::join!(serve(&world), compiled());
    let tree = world.project().join("tree");
    for name in ["task", "chat", "event"] {
        let file = folder.path().join(format!("{name}.js"));
        let arguments = [
            "--experimental-websocket",
            file.to_str().unwrap(),
            "plant something",
        ];
        let said = run_example(&server, Path::new("node"), &arguments).await;
        assert!(said.contains("A tree grows."), "{name}: {said}");
        assert!(tree.exists(), "{name} allows it");
        std::fs::remove_file(&tree).unwrap();
    }
    let file = folder.path().join("history.js");
    let said = run_example(&server, Path::new("node"), &[file.to_str().unwrap(), "grows"]).await;
    assert!(said.contains(world.project().to_str().unwrap()), "{said}");
    server.stop().await;
}

#[tokio::test]
async fn every_door_shows_the_same_session() {
    let script = Script::new().on("plant", [bash("touch seed"), Reply::text("A tree grows slowly.")]);
    let world = World::new(script).await;
    let server = serve(&world).await;
    let mut events = EventClient::connect_with(&server, "/ws/events", &[("x-api-key", KEY)])
        .await
        .unwrap();
    let session = events.start(&world.project(), "plant a tree").await;
    let (mut chat, _) = ChatClient::open(&server, &format!("?session_id={session}&after_seq=0")).await;
    let client = TaskClient::new(&server);
    let mut stream = client.watch(&session, None).await;
    // Asked at every door, answered at one.
    let asked = events.until_type("permission.request").await;
    let in_chat = chat.until("permission_request").await;
    let in_stream = stream.until("permission_request").await;
    assert_eq!(in_chat["request_id"], asked["requestId"]);
    assert_eq!(in_stream["request_id"], asked["requestId"]);
    assert_eq!(
        (&in_chat["input"], &in_stream["input"]),
        (&asked["input"], &asked["input"])
    );
    chat.send(
        json!({ "type": "permission_response", "request_id": asked["requestId"], "decision": "allow" }),
    )
    .await;
    events.until_status("completed").await;
    let result = chat.until("result").await;
    let complete = stream.complete().await;

    // The same texts, the same calls, the same end.
    let in_pieces: String = chat
        .heard()
        .iter()
        .filter_map(|frame| frame["event"]["delta"]["text"].as_str())
        .collect();
    assert_eq!(events.streamed(), "A tree grows slowly.");
    assert_eq!(in_pieces, events.streamed());
    assert_eq!(stream.joined("text"), events.streamed());
    assert_eq!(
        (&result["result"], &complete["message"]),
        (&json!("A tree grows slowly."), &json!("A tree grows slowly."))
    );
    let blocks = |content: &Value, kind: &str| -> Vec<Value> {
        let blocks = content.as_array().into_iter().flatten();
        blocks
            .filter(|block| block["type"] == kind)
            .map(|block| block["id"].clone())
            .collect()
    };
    let called: Vec<Value> = events
        .heard
        .iter()
        .flat_map(|event| blocks(&event["payload"]["message"]["message"]["content"], "tool_use"))
        .collect();
    let called_in_chat: Vec<Value> = chat
        .heard()
        .iter()
        .flat_map(|frame| blocks(&frame["content"], "tool_use"))
        .collect();
    let calls = stream.heard.iter().filter(|event| event.kind == "tool_use");
    let called_in_stream: Vec<Value> = calls.map(|event| event.data["tool_use_id"].clone()).collect();
    assert_eq!(called.len(), 1);
    assert_eq!((&called_in_chat, &called_in_stream), (&called, &called));
    server.stop().await;
}
