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
use tokio::io::AsyncWriteExt;

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
    let mut child = command
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("HOME", stage.home())
        .envs(stage.model.env())
        .current_dir(stage.cwd())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
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
