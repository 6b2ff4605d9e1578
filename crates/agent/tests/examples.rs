//! The examples, as a user would run them, against the real CLI.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails should say so"
)]

mod support;

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::json;
use support::{PATIENCE, Stage};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Child;

/// Cargo builds examples beside the tests.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples")
        .join(name);
    assert!(
        path.exists(),
        "build the examples first: cargo build -p tiller-agent --examples"
    );
    path
}

/// Runs an example whose `claude` on the search path is the real one.
async fn run(stage: &Stage, name: &str, input: &str) -> String {
    run_with(stage, name, &[], input).await
}

async fn run_with(stage: &Stage, name: &str, arguments: &[&str], input: &str) -> String {
    let mut child = spawn(stage, name, arguments);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .await
        .unwrap();
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .expect("it ends")
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn spawn(stage: &Stage, name: &str, arguments: &[&str]) -> Child {
    let bin = stage.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let link = bin.join("claude");
    if !link.exists() {
        std::os::unix::fs::symlink(stage.executable(), &link).unwrap();
    }
    let mut command = tokio::process::Command::new(example(name));
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy().into_owned();
        if name.starts_with("ANTHROPIC_") || name.starts_with("CLAUDE") {
            command.env_remove(variable);
        }
    }
    command
        .args(arguments)
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("HOME", stage.home())
        .envs(stage.model.env())
        .current_dir(stage.cwd())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[tokio::test]
async fn the_examples_do_what_they_say() {
    let bash = |command: &str| Reply::tool("Bash", json!({"command": command, "description": "Do it"}));
    let script = Script::new()
        .on("What does this project do", [Reply::text("It steers agents.")])
        .on(
            "List the files here",
            [bash("ls"), Reply::text("There are none.")],
        )
        .on(
            "Create a file",
            [bash("echo hello > hello.txt"), Reply::text("Created.")],
        )
        .on(
            "Which processes",
            [bash("sudo ps"), bash("touch looked.txt"), Reply::text("None do.")],
        )
        .on(
            "How is the weather",
            [
                Reply::tool("mcp__weather__now", json!({"name": "Oslo"})),
                Reply::text("I hear: {{tool_result}}"),
            ],
        )
        .on("Remember the number", [Reply::text("I will.")])
        .on(
            "Which number was it",
            [Reply::text("Earlier you said: {{prompts}}")],
        )
        .on("In one sentence", [Reply::text("Quite good.")]);
    let stage = Stage::new(Claude::V2_1_325, script).await;

    let hello = run(&stage, "hello", "").await;
    assert!(hello.starts_with("It steers agents.\nIt cost $0.0"), "{hello}");
    let streaming = run(&stage, "streaming", "").await;
    assert!(
        streaming.contains("[Bash {") && streaming.contains("There are none."),
        "{streaming}"
    );
    let refused = run(&stage, "permissions", "n\n").await;
    assert!(
        refused.contains("May I use Bash?") && refused.contains("✗ Bash"),
        "{refused}"
    );
    assert_eq!(stage.read("hello.txt"), "");
    let allowed = run(&stage, "permissions", "y\n").await;
    assert!(allowed.contains("✓ Bash"), "{allowed}");
    assert_eq!(stage.read("hello.txt"), "hello\n");
    let hooks = run(&stage, "hooks", "").await;
    assert!(
        hooks.contains("$ sudo ps\n$ touch looked.txt\nNone do."),
        "{hooks}"
    );
    assert!(stage.cwd().join("looked.txt").exists());
    let tool = run(&stage, "custom_tool", "").await;
    assert!(
        tool.contains("I hear: In Oslo it is 12 °C and raining."),
        "{tool}"
    );
    let resume = run(&stage, "resume", "").await;
    assert!(
        resume.contains("Remember the number 4711. | Which number was it?"),
        "{resume}"
    );
    let many = run(&stage, "many_at_once", "").await;
    assert_eq!(many.matches("Quite good.").count(), 3, "{many}");
}

#[tokio::test]
async fn the_examples_of_conversations_do_what_they_say() {
    let todos = |first: &str| {
        let todo = |content: &str, status: &str| json!({"content": content, "activeForm": content, "status": status});
        let list = [todo("Look", first), todo("Sort", "pending")];
        Reply::tool("TodoWrite", json!({ "todos": list }))
    };
    let script = Script::new()
        .on("Name a colour", [Reply::text("Green.")])
        .on("Name an animal", [Reply::text("An owl.")])
        .on("Count to a million", [Reply::text("1, 2").gate("never opened")])
        .on("How far did you get", [Reply::text("To two.")])
        .on(
            "Plan three steps",
            [todos("in_progress"), todos("completed"), Reply::text("Tidy.")],
        );
    let stage = Stage::new(Claude::V2_1_325, script).await;
    let turns = run(&stage, "turns", "").await;
    assert!(turns.contains("first: result\nGreen.\nAn owl."), "{turns}");
    // Whenever that is: before the turn begins, there is nothing to stop yet.
    let interrupt = run_with(&stage, "interrupt", &["3"], "").await;
    assert!(
        interrupt.contains("error_during_execution") && interrupt.contains("To two."),
        "{interrupt}"
    );
    let todos = run(&stage, "todos", "").await;
    assert!(
        todos.contains("0/2\n  🔧 Look\n  ⭕ Sort") && todos.contains("1/2\n  ✅ Look"),
        "{todos}"
    );
    let sessions = run(&stage, "sessions", "").await;
    assert!(
        sessions.contains("Plan three steps") && sessions.ends_with("Last: Tidy.\n"),
        "{sessions}"
    );
}

#[tokio::test]
async fn the_websocket_example_works_where_it_can() {
    let script = || Script::new().otherwise(Reply::text("Hello over a socket."));
    let old = Stage::new(Claude::V2_1_113, script()).await;
    let said = run(&old, "websocket", "").await;
    assert!(said.contains("Hello over a socket."), "{said}");
    let new = Stage::new(Claude::V2_1_325, script()).await;
    let said = run(&new, "websocket", "").await;
    assert!(said.contains("2.1.325 does not connect to a WebSocket"), "{said}");
}

#[tokio::test]
async fn the_web_server_example_gives_each_visitor_their_own_answer() {
    let script = Script::new().otherwise(Reply::text("You said {{prompt}}."));
    let stage = Stage::new(Claude::V2_1_325, script).await;
    let mut server = spawn(&stage, "web_server", &["0"]);
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = tokio::time::timeout(PATIENCE, lines.next_line())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let address = address.strip_prefix("http://").unwrap().to_owned();
    let post = async |prompt: &str| {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let length = prompt.len();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{prompt}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (one, two, three) = tokio::join!(post("one"), post("two"), post("three"));
    for (answer, name) in [(one, "one"), (two, "two"), (three, "three")] {
        assert!(answer.ends_with(&format!("You said {name}.")), "{answer}");
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = tokio::time::timeout(PATIENCE, server.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success(), "{status}");
}
