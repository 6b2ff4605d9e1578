//! The official Python SDK drives the scripted CLI, and the real one with a scripted model, through the same checks.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;

use serde_json::json;
use support::Place;
use tiller_testkit::installed::{self, Claude};
use tiller_testkit::model::{ModelServer, Part, Reply, Script};
use tokio::process::Command;

const TOOL_COMMAND: &str = "touch made && echo made-by-tool";

/// What the scripted CLI does for the prompts of the checks.
fn agent_script() -> serde_json::Value {
    json!({"rules": [
        {"contains": "say hello", "steps": [
            {"do": "thinking", "thinking": "A greeting, then."},
            {"do": "text", "text": "Hello from the script.", "chunk": 6},
            {"do": "usage", "input_tokens": 100, "output_tokens": 20, "cost_usd": 0.001},
        ]},
        {"contains": "run the tool", "steps": [
            {"do": "tool", "name": "Bash", "input": {"command": TOOL_COMMAND}, "result": "made-by-tool"},
            {"do": "text", "text": "That was the tool."},
        ]},
        {"contains": "wait forever", "steps": [{"do": "text", "text": "Waiting…"}, {"do": "hang"}]},
        {"contains": "what did I say", "steps": [{"do": "text", "text": "You said: {{prompts}}"}]},
    ]})
}

/// What the model of the real CLI answers to the same prompts.
fn model_script() -> Script {
    Script::new()
        .on(
            "say hello",
            [Reply::thinking("A greeting, then.").and_text("Hello from the script.")],
        )
        .on(
            "run the tool",
            [
                Reply::tool("Bash", json!({"command": TOOL_COMMAND})),
                Reply::text("That was the tool."),
            ],
        )
        .on(
            "wait forever",
            [Reply::text("Waiting…").and(Part::Gate {
                name: "never".to_owned(),
            })],
        )
        .on("what did I say", [Reply::text("You said: {{prompts}}")])
}

async fn passes_all_checks(cli: &Path, place: &Place, environment: Vec<(String, String)>) {
    let checks = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/sdk_checks.py");
    let python = installed::python().unwrap_or_else(|error| panic!("{error}"));
    let output = Command::new(python)
        // No bytecode beside the sources, and nothing from the developer's own folder.
        .args(["-B", "-I", checks])
        .arg(cli)
        .arg(place.cwd())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", place.home())
        .envs(environment)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    let source = std::fs::read_to_string(checks).unwrap();
    let passed: Vec<&str> = said.lines().collect();
    let expected: Vec<String> = source
        .lines()
        .filter_map(|line| line.strip_prefix("async def check_"))
        .map(|rest| format!("passed {}", rest.split('(').next().unwrap()))
        .collect();
    assert!(expected.len() > 8, "{expected:?}");
    assert_eq!(passed, expected);
}

#[tokio::test]
async fn the_scripted_cli_passes() {
    let place = Place::new();
    let script = place.home().join("script.json");
    std::fs::write(&script, agent_script().to_string()).unwrap();
    let environment = vec![("SCRIPTED_CLI".to_owned(), script.to_str().unwrap().to_owned())];
    let cli = Path::new(env!("CARGO_BIN_EXE_scripted-claude"));
    passes_all_checks(cli, &place, environment).await;
}

#[tokio::test]
async fn the_real_cli_passes_the_same_checks() {
    let place = Place::new();
    let model = ModelServer::start(model_script()).await.unwrap();
    let cli = Claude::V2_1_325
        .executable()
        .unwrap_or_else(|error| panic!("{error}"));
    passes_all_checks(&cli, &place, model.env()).await;
    assert!(place.cwd().join("made").exists(), "the real tool was run");
}
