//! The demo agent, as users without Claude Code see it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::{Cli, Place};

const PROGRAM: &str = env!("CARGO_BIN_EXE_scripted-claude");
const SESSION: &str = "0b6d5a34-57a5-4d5c-9c2c-1d8e1d0c7d11";

fn demo(place: &Place, more_arguments: &[&str]) -> Cli {
    let mut arguments = vec!["--demo-speed", "inf"];
    arguments.extend(more_arguments);
    Cli::spawn(Path::new(PROGRAM), place, Vec::new(), &arguments)
}

/// Answers the question of the tour with its option of that number.
fn choose(request: &Value, option: usize) -> Value {
    let mut input = request["request"]["input"].clone();
    let question = input["questions"][0].clone();
    let label = &question["options"][option]["label"];
    input["answers"] = json!({question["question"].as_str().unwrap(): label});
    json!({"behavior": "allow", "updatedInput": input})
}

/// Plays a whole turn and allows everything.
async fn allow_all(cli: &mut Cli) -> Value {
    loop {
        let line = cli
            .until(|line| line["type"] == "result" || line["type"] == "control_request")
            .await;
        if line["type"] == "result" {
            return line;
        }
        if line["request"]["tool_name"] == "AskUserQuestion" {
            cli.answer(&line, choose(&line, 2)).await;
        } else {
            cli.allow(&line).await;
        }
    }
}

fn tools_called(cli: &Cli) -> Vec<String> {
    cli.lines_of_type("assistant")
        .iter()
        .flat_map(|line| line["message"]["content"].as_array().unwrap())
        .filter(|block| block["type"] == "tool_use")
        .map(|block| block["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_tour_shows_everything_and_is_honest_about_itself() {
    let place = Place::new();
    std::fs::write(place.cwd().join("hello.txt"), "hi").unwrap();
    let mut cli = demo(&place, &[]);
    cli.prompt("Fix the login bug").await;

    let bash = cli.permission_request().await;
    assert_eq!(bash["request"]["tool_name"], "Bash");
    assert_eq!(bash["request"]["input"]["command"], "ls");
    cli.allow(&bash).await;
    let write = cli.permission_request().await;
    assert_eq!(write["request"]["tool_name"], "Write");
    let note = place.cwd().join("tiller-demo.md");
    assert!(!note.exists(), "nothing is written before it is allowed");
    cli.allow(&write).await;
    let question = cli.permission_request().await;
    assert_eq!(question["request"]["tool_name"], "AskUserQuestion");
    cli.answer(&question, choose(&question, 2)).await;
    let result = cli.result().await;

    let text = cli.streamed("text");
    assert!(text.contains("## Hello, I am the demo agent"));
    assert!(text.contains("No model is behind this conversation"));
    assert!(text.contains("\n- "), "a list");
    assert!(text.contains("| --- |"), "a table");
    assert!(text.contains("```sh"), "a code block");
    assert!(text.contains("npm install -g @anthropic-ai/claude-code"));
    assert!(!cli.streamed("thinking").is_empty());
    assert_eq!(
        tools_called(&cli),
        [
            "TodoWrite",
            "Bash",
            "TodoWrite",
            "Write",
            "TodoWrite",
            "AskUserQuestion",
            "TodoWrite"
        ]
    );
    let results: Vec<&Value> = cli
        .lines_of_type("user")
        .into_iter()
        .map(|line| &line["tool_use_result"])
        .collect();
    let listing = results.iter().find(|r| r["stdout"].is_string()).unwrap();
    assert_eq!(listing["stdout"], "hello.txt", "ls was really run");
    let patch = results.iter().find(|r| r["structuredPatch"].is_array()).unwrap();
    let written = std::fs::read_to_string(&note).unwrap();
    assert_eq!(patch["content"], written.as_str());
    assert!(written.contains("Fix the login bug"));
    assert_eq!(patch["structuredPatch"][0]["newLines"], written.lines().count());
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["total_cost_usd"], 0.0);
    assert_eq!(result["usage"]["output_tokens"], 0);
    assert!(cli.finish().await.success());
}

#[tokio::test]
async fn streamed_pieces_and_whole_messages_say_the_same() {
    let place = Place::new();
    let mut cli = demo(&place, &[]);
    cli.prompt("hello").await;
    allow_all(&mut cli).await;
    let whole: String = cli
        .lines_of_type("assistant")
        .iter()
        .filter_map(|line| line["message"]["content"][0]["text"].as_str())
        .collect();
    assert_eq!(cli.streamed("text"), whole);
    // Every message is started and stopped once, and has one line for each of its blocks.
    let events = |kind: &str| {
        let lines = cli.lines_of_type("stream_event");
        lines.iter().filter(|l| l["event"]["type"] == kind).count()
    };
    assert_eq!(events("message_start"), events("message_stop"));
    assert_eq!(events("content_block_stop"), cli.lines_of_type("assistant").len());
    assert!(events("content_block_delta") > 50);
}

#[tokio::test]
async fn it_speaks_chinese_to_a_chinese_prompt() {
    let place = Place::new();
    let mut cli = demo(&place, &[]);
    cli.prompt("修复登录问题").await;
    let result = allow_all(&mut cli).await;
    assert!(cli.streamed("text").contains("这个对话背后没有任何模型"));
    assert!(result["result"].as_str().unwrap().contains("演示到此结束"));
}

#[tokio::test]
async fn a_denial_is_respected_and_reported() {
    let place = Place::new();
    let mut cli = demo(&place, &[]);
    cli.prompt("hello").await;
    for _ in 0..3 {
        let request = cli.permission_request().await;
        cli.answer(&request, json!({"behavior": "deny", "message": "No."}))
            .await;
    }
    let result = cli.result().await;
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 3);
    assert!(!place.cwd().join("tiller-demo.md").exists());
    let text = cli.streamed("text");
    assert!(text.contains("You said no, so nothing was run."));
    assert!(text.contains("not allowed"));
}

#[tokio::test]
async fn it_runs_and_writes_nothing_else_even_if_the_answer_says_so() {
    let place = Place::new();
    let mut cli = demo(&place, &[]);
    cli.prompt("hello").await;
    let bash = cli.permission_request().await;
    let input = json!({"command": "touch gotcha"});
    cli.answer(&bash, json!({"behavior": "allow", "updatedInput": input}))
        .await;
    let write = cli.permission_request().await;
    let input = json!({"file_path": place.cwd().join("other.md"), "content": "x"});
    cli.answer(&write, json!({"behavior": "allow", "updatedInput": input}))
        .await;
    let question = cli.permission_request().await;
    cli.answer(&question, choose(&question, 0)).await;
    cli.result().await;
    let left: Vec<_> = std::fs::read_dir(place.cwd()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn in_plan_mode_nothing_is_done_before_the_plan_is_approved() {
    let place = Place::new();
    let mut cli = demo(&place, &["--permission-mode", "plan"]);
    cli.prompt("hello").await;
    let plan = cli.permission_request().await;
    assert_eq!(plan["request"]["tool_name"], "ExitPlanMode");
    assert!(
        plan["request"]["input"]["plan"]
            .as_str()
            .unwrap()
            .contains("`ls`")
    );
    cli.answer(&plan, json!({"behavior": "deny", "message": "Not yet."}))
        .await;
    assert_eq!(cli.result().await["subtype"], "success");
    assert_eq!(tools_called(&cli), ["ExitPlanMode"]);

    cli.prompt("the tour, please").await;
    let plan = cli.permission_request().await;
    cli.allow(&plan).await;
    let status = cli.until(|line| line["subtype"] == "status").await;
    assert_eq!(status["permissionMode"], "default");
    let bash = cli.permission_request().await;
    assert_eq!(bash["request"]["tool_name"], "Bash");
}

#[tokio::test]
async fn an_interrupt_withdraws_the_prompt_and_ends_the_turn() {
    let place = Place::new();
    let mut cli = demo(&place, &[]);
    cli.prompt("hello").await;
    let bash = cli.permission_request().await;
    let answer = cli.control("stop", json!({"subtype": "interrupt"})).await;
    assert_eq!(answer["subtype"], "success");
    let result = cli.result().await;
    assert_eq!(result["subtype"], "error_during_execution");
    let withdrawn = cli.lines_of_type("control_cancel_request");
    assert_eq!(withdrawn[0]["request_id"], bash["request_id"]);
    let closed = cli
        .lines_of_type("user")
        .into_iter()
        .find(|l| l["message"]["content"][0]["tool_use_id"] == bash["request"]["tool_use_id"]);
    assert_eq!(closed.unwrap()["message"]["content"][0]["is_error"], true);

    // The late answer to a withdrawn request does no harm, and the conversation continues.
    cli.allow(&bash).await;
    cli.prompt("and now?").await;
    let result = allow_all(&mut cli).await;
    assert_eq!(result["subtype"], "success");
    assert!(cli.streamed("text").contains("message 2"));
}

#[tokio::test]
async fn a_stop_that_comes_with_a_denial_ends_the_turn() {
    let place = Place::new();
    let mut cli = demo(&place, &[]);
    cli.prompt("hello").await;
    let bash = cli.permission_request().await;
    let denial = json!({"behavior": "deny", "message": "Stop.", "interrupt": true});
    cli.answer(&bash, denial).await;
    assert_eq!(cli.result().await["subtype"], "error_during_execution");
}

#[tokio::test]
async fn another_process_resumes_the_conversation_with_what_was_said() {
    let place = Place::new();
    let mut cli = demo(&place, &["--session-id", SESSION]);
    cli.prompt("My name is Ada").await;
    let result = allow_all(&mut cli).await;
    assert_eq!(result["session_id"], SESSION);
    assert!(cli.finish().await.success());

    let mut cli = demo(&place, &[&format!("--resume={SESSION}")]);
    cli.prompt("What did I say?").await;
    let result = allow_all(&mut cli).await;
    assert_eq!(result["session_id"], SESSION);
    assert!(cli.streamed("text").contains("“My name is Ada”"));
    assert_eq!(tools_called(&cli), ["Edit"]);
    let note = std::fs::read_to_string(place.cwd().join("tiller-demo.md")).unwrap();
    assert!(note.ends_with("- You wrote: My name is Ada\n- Then you wrote: What did I say?\n"));
    assert!(cli.finish().await.success());

    let mut cli = demo(&place, &["--resume", SESSION, "--fork-session"]);
    cli.prompt("And in a fork?").await;
    let result = allow_all(&mut cli).await;
    assert_ne!(result["session_id"], SESSION);
    assert!(cli.streamed("text").contains("message 3"));
    assert!(cli.finish().await.success());

    let mut cli = demo(&place, &["--continue"]);
    cli.prompt("And in the newest?").await;
    assert_eq!(allow_all(&mut cli).await["session_id"], result["session_id"]);
}

#[tokio::test]
async fn the_transcript_is_where_the_cli_keeps_its_own_and_chains_its_messages() {
    let place = Place::new();
    let mut cli = demo(&place, &["--session-id", SESSION]);
    cli.prompt("hello").await;
    allow_all(&mut cli).await;
    assert!(cli.finish().await.success());
    let folder: String = std::fs::canonicalize(place.cwd())
        .unwrap()
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let path = place
        .home()
        .join(format!(".claude/projects/{folder}/{SESSION}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["message"]["content"], "hello");
    assert_eq!(lines[0]["parentUuid"], Value::Null);
    for pair in lines.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
        assert_eq!(pair[1]["sessionId"], SESSION);
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn the_transcript_follows_the_configured_folder() {
    let place = Place::new();
    let folder = place.home().join("elsewhere");
    let environment = vec![(
        "CLAUDE_CONFIG_DIR".to_owned(),
        folder.to_str().unwrap().to_owned(),
    )];
    let mut cli = Cli::spawn(Path::new(PROGRAM), &place, environment, &["--demo-speed=inf"]);
    cli.prompt("hello").await;
    allow_all(&mut cli).await;
    assert!(folder.join("projects").is_dir());
    assert!(!place.home().join(".claude").exists());
}

#[tokio::test]
async fn an_unknown_session_and_a_session_id_that_is_taken_end_the_process() {
    let place = Place::new();
    let mut cli = demo(&place, &["--resume", SESSION]);
    let result = cli.result().await;
    let sentence = format!("No conversation found with session ID: {SESSION}");
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["errors"][0], sentence.as_str());
    assert!(cli.stderr().await.contains(&sentence));
    assert_eq!(cli.wait().await.code(), Some(1));

    let mut cli = demo(&place, &["--session-id", SESSION]);
    cli.prompt("hello").await;
    allow_all(&mut cli).await;
    assert!(cli.finish().await.success());
    let mut cli = demo(&place, &["--session-id", SESSION]);
    assert!(cli.stderr().await.contains("is already in use"));
    assert_eq!(cli.wait().await.code(), Some(1));
}

#[tokio::test]
async fn control_requests_are_answered_as_the_cli_does() {
    let place = Place::new();
    let mut cli = demo(&place, &[]);
    let answer = cli.control("1", json!({"subtype": "initialize"})).await;
    assert!(answer["response"]["models"].is_array());
    let answer = cli.control("2", json!({"subtype": "set_model", "model": "opus"}));
    assert_eq!(answer.await["subtype"], "success");
    let answer = cli
        .control(
            "3",
            json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
        )
        .await;
    assert_eq!(answer["subtype"], "error");
    let answer = cli.control("4", json!({"subtype": "from_the_future"})).await;
    assert_eq!(
        answer["error"],
        "Unsupported control request subtype: from_the_future"
    );
    let answer = cli
        .control(
            "5",
            json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}),
        )
        .await;
    assert_eq!(answer["subtype"], "success");

    cli.prompt("hello").await;
    let init = cli.until(|line| line["subtype"] == "init").await;
    assert_eq!(init["model"], "opus");
    assert_eq!(init["permissionMode"], "acceptEdits");
    allow_all(&mut cli).await;
    let asked: Vec<&Value> = cli
        .lines_of_type("control_request")
        .into_iter()
        .map(|line| &line["request"]["tool_name"])
        .collect();
    assert_eq!(asked, ["Bash", "AskUserQuestion"], "edits were accepted");
}

#[tokio::test]
async fn rules_that_come_with_an_answer_hold_for_the_session() {
    let place = Place::new();
    let mut cli = demo(&place, &[]);
    cli.prompt("hello").await;
    let bash = cli.permission_request().await;
    let suggestions = &bash["request"]["permission_suggestions"];
    let answer = json!({
        "behavior": "allow", "updatedInput": bash["request"]["input"], "updatedPermissions": suggestions,
    });
    cli.answer(&bash, answer).await;
    allow_all(&mut cli).await;
    let before = cli.lines_of_type("control_request").len();
    cli.prompt("tour").await;
    allow_all(&mut cli).await;
    let asked: Vec<&Value> = cli.lines_of_type("control_request")[before..]
        .iter()
        .map(|line| &line["request"]["tool_name"])
        .collect();
    assert_eq!(asked, ["Edit", "AskUserQuestion"]);
}

#[tokio::test]
async fn a_message_that_is_sent_twice_is_acknowledged_twice_and_done_once() {
    let place = Place::new();
    let mut cli = demo(&place, &["--replay-user-messages", "--session-id", SESSION]);
    let message = json!({
        "type": "user", "message": {"role": "user", "content": "hello"}, "parent_tool_use_id": null,
        "uuid": "5f0c9a2e-7a0f-4d2f-8a5b-0d9a6a3c1e77",
    });
    cli.send(message.clone()).await;
    let replay = cli.until(|line| line["isReplay"] == true).await;
    assert_eq!(replay["uuid"], message["uuid"]);
    allow_all(&mut cli).await;
    assert!(cli.finish().await.success());

    let mut cli = demo(&place, &["--replay-user-messages", "--resume", SESSION]);
    cli.send(message.clone()).await;
    let replay = cli.until(|line| line["isReplay"] == true).await;
    assert_eq!(replay["uuid"], message["uuid"]);
    cli.prompt("next").await;
    allow_all(&mut cli).await;
    assert!(cli.streamed("text").contains("message 2"));
}

#[tokio::test]
async fn prompts_in_advance_are_all_answered_when_stdin_ends() {
    let place = Place::new();
    let mut cli = demo(&place, &["--dangerously-skip-permissions"]);
    cli.prompt("one").await;
    cli.prompt("two").await;
    cli.close_stdin();
    // Nobody can answer the question of the tour any more, and the tour copes with that.
    assert_eq!(cli.result().await["subtype"], "success");
    assert_eq!(cli.result().await["subtype"], "success");
    assert!(cli.finish().await.success());
}

#[tokio::test]
async fn it_tells_its_version_and_refuses_to_talk_to_people() {
    let version = tokio::process::Command::new(PROGRAM)
        .arg("--version")
        .output()
        .await
        .unwrap();
    assert_eq!(version.stdout, b"2.1.325 (Tiller demo agent)\n");
    let bare = tokio::process::Command::new(PROGRAM).output().await.unwrap();
    assert_eq!(bare.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bare.stderr).contains("--input-format stream-json"));
}
