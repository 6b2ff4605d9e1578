//! All faults of the scripted CLI, seen from the other side of the pipe.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Cli, PROTOCOL_ARGUMENTS, Place};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_scripted-claude");

fn write(place: &Place, script: &Value) -> PathBuf {
    let path = place.home().join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    path
}

fn start(place: &Place, script: &Value) -> Cli {
    let path = write(place, script);
    let arguments = ["--script", path.to_str().unwrap()];
    Cli::spawn(Path::new(PROGRAM), place, Vec::new(), &arguments)
}

/// Sends one prompt, closes stdin, and collects all output.
async fn whole_run(script: Value) -> Output {
    let place = Place::new();
    let path = write(&place, &script);
    let mut child = Command::new(PROGRAM)
        .arg("--script")
        .arg(path)
        .args(PROTOCOL_ARGUMENTS)
        .env("HOME", place.home())
        .current_dir(place.cwd())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
    // A script that ends the process at once may do so before it has read the prompt.
    match stdin.write_all(format!("{prompt}\n").as_bytes()).await {
        Ok(()) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe),
    }
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

fn turn(steps: Value) -> Value {
    json!({"turns": [steps]})
}

fn parsed(output: &Output) -> Vec<Value> {
    output
        .stdout
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn results(output: &Output) -> usize {
    let lines = parsed(output);
    lines.iter().filter(|l| l["type"] == "result").count()
}

/// Whether a process that is not our child is alive.
fn is_alive(pid: u64) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = state.rsplit(") ").next().unwrap_or_default();
    !after_name.is_empty() && !after_name.starts_with('Z')
}

async fn kill(signal: &str, pid: u64) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .await
        .unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn a_flood_arrives_whole_and_in_order() {
    let output = whole_run(turn(json!([{"do": "flood", "events": 20_000, "bytes": 30}]))).await;
    let numbers: Vec<usize> = parsed(&output)
        .iter()
        .filter_map(|line| line["event"]["delta"]["text"].as_str())
        .map(|text| text.trim().parse().unwrap())
        .collect();
    assert!(numbers.iter().copied().eq(0..20_000), "{}", numbers.len());
    assert_eq!(results(&output), 1);
}

#[tokio::test]
async fn a_rate_is_kept() {
    let started = Instant::now();
    let steps = json!([{"do": "flood", "events": 100, "per_second": 500.0}]);
    let output = whole_run(turn(steps)).await;
    assert!(started.elapsed() >= Duration::from_millis(200));
    assert_eq!(results(&output), 1);
}

#[tokio::test]
async fn an_exit_in_mid_turn_leaves_the_turn_without_a_result() {
    let steps = json!([{"do": "text", "text": "about to di"}, {"do": "exit", "code": 3}]);
    let output = whole_run(turn(steps)).await;
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(results(&output), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("about to di"));
}

#[tokio::test]
async fn a_death_by_signal_comes_after_what_was_said() {
    let output = whole_run(turn(
        json!([{"do": "text", "text": "last words"}, {"do": "abort"}]),
    ))
    .await;
    assert_eq!(output.status.code(), None);
    assert_eq!(output.status.signal(), Some(6));
    assert!(String::from_utf8_lossy(&output.stdout).contains("last words"));
}

#[tokio::test]
async fn an_exit_on_start_comes_before_anything_else() {
    let script = json!({"on_start": [{"do": "stderr", "text": "no config\n"}, {"do": "exit", "code": 9}]});
    let output = whole_run(script).await;
    assert_eq!(output.status.code(), Some(9));
    assert!(output.stdout.is_empty());
    assert_eq!(output.stderr, b"no config\n");
}

#[tokio::test]
async fn an_oversize_line_is_one_valid_line() {
    const SIZE: usize = 17 * 1024 * 1024;
    let output = whole_run(turn(json!([{"do": "oversize", "bytes": SIZE}]))).await;
    let longest = output.stdout.split(|&byte| byte == b'\n').map(<[u8]>::len);
    assert!(longest.max().unwrap() > SIZE);
    let lines = parsed(&output);
    let big = lines.iter().find(|l| l["subtype"] == "oversize").unwrap();
    assert_eq!(big["text"].as_str().unwrap().len(), SIZE);
    assert_eq!(results(&output), 1, "the turn goes on");
}

#[tokio::test]
async fn bad_utf8_and_torn_json_are_lines_that_do_not_parse() {
    let steps = json!([
        {"do": "bad_utf8"},
        {"do": "raw", "text": "{\"type\":\"assis\n"},
        {"do": "raw", "text": "{\"type\":\"assistant\",\"mess"},
        {"do": "exit", "code": 0},
    ]);
    let output = whole_run(turn(steps)).await;
    let broken: Vec<&[u8]> = output
        .stdout
        .split(|&byte| byte == b'\n')
        .filter(|line| serde_json::from_slice::<Value>(line).is_err())
        .collect();
    assert_eq!(broken.len(), 3);
    assert!(std::str::from_utf8(broken[0]).is_err());
    assert!(output.stdout.ends_with(b"\"mess"));
}

#[tokio::test]
async fn unknown_types_and_doubled_lines_come_as_written() {
    let strange = json!({"type": "from_the_future", "payload": [1, 2]});
    let output = whole_run(turn(json!([{"do": "line", "json": strange, "times": 2}]))).await;
    let lines = parsed(&output);
    assert_eq!(lines.iter().filter(|line| **line == strange).count(), 2);
    assert_eq!(results(&output), 1);
}

#[tokio::test]
async fn stderr_can_be_flooded() {
    let text = "x".repeat(1023) + "\n";
    let output = whole_run(turn(json!([{"do": "stderr", "text": text, "times": 1024}]))).await;
    assert_eq!(output.stderr.len(), 1024 * 1024);
    assert_eq!(results(&output), 1);
}

#[tokio::test]
async fn a_turn_can_fail_or_have_no_result() {
    let place = Place::new();
    let script = json!({"turns": [
        [{"do": "result", "subtype": "error_max_turns", "errors": ["too many"]}],
        [{"do": "text", "text": "and then nothing"}, {"do": "no_result"}],
        [{"do": "text", "text": "here again, {{prompts}}"}],
    ]});
    let mut cli = start(&place, &script);
    cli.prompt("one").await;
    let result = cli.result().await;
    assert_eq!(result["subtype"], "error_max_turns");
    assert_eq!(result["is_error"], true);
    cli.prompt("two").await;
    cli.prompt("three").await;
    let result = cli.result().await;
    assert_eq!(result["result"], "here again, one | two | three");
    assert_eq!(cli.lines_of_type("result").len(), 2);
    // The last list of steps is used for all later prompts.
    cli.prompt("four").await;
    assert_eq!(
        cli.result().await["result"],
        "here again, one | two | three | four"
    );
}

#[tokio::test]
async fn a_hanging_turn_can_be_interrupted_unless_that_is_ignored_too() {
    let place = Place::new();
    let mut script = json!({"turns": [[{"do": "text", "text": "hm"}, {"do": "hang"}]]});
    let mut cli = start(&place, &script);
    cli.prompt("go").await;
    cli.until(|line| line["type"] == "assistant").await;
    cli.control("stop", json!({"subtype": "interrupt"})).await;
    assert_eq!(cli.result().await["subtype"], "error_during_execution");
    assert_eq!(cli.finish().await.code(), Some(1));

    script["ignore_control"] = json!(["interrupt"]);
    let mut cli = start(&place, &script);
    cli.prompt("go").await;
    cli.until(|line| line["type"] == "assistant").await;
    cli.send(json!({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}}))
        .await;
    // Requests are answered in order, so the interrupt was read and ignored when this one is answered.
    cli.control("later", json!({"subtype": "mcp_status"})).await;
    assert!(cli.lines_of_type("result").is_empty());
}

#[tokio::test]
async fn a_deaf_process_answers_nothing_and_has_to_be_killed() {
    let place = Place::new();
    let mut cli = start(
        &place,
        &turn(json!([{"do": "deaf"}, {"do": "text", "text": "la la la"}, {"do": "hang"}])),
    );
    cli.prompt("go").await;
    cli.until(|line| line["type"] == "assistant").await;
    cli.send(json!({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}}))
        .await;
    cli.close_stdin();
    assert!(cli.lives_for(Duration::from_millis(200)).await);
    kill("-TERM", cli.pid().into()).await;
    assert_eq!(cli.wait().await.signal(), Some(15));
    assert!(cli.lines_of_type("control_response").is_empty());
}

#[tokio::test]
async fn the_usual_ways_to_end_a_process_can_be_ignored() {
    let place = Place::new();
    let script = json!({
        "ignore_stdin_close": true, "ignore_sigterm": true,
        "turns": [[{"do": "text", "text": "still here"}]],
    });
    let mut cli = start(&place, &script);
    cli.control("1", json!({"subtype": "initialize"})).await;
    kill("-TERM", cli.pid().into()).await;
    cli.prompt("go").await;
    assert_eq!(cli.result().await["result"], "still here");
    cli.close_stdin();
    assert!(cli.lives_for(Duration::from_millis(200)).await);
    kill("-KILL", cli.pid().into()).await;
    assert_eq!(cli.wait().await.signal(), Some(9));
}

#[tokio::test]
async fn a_grandchild_outlives_the_process() {
    let output = whole_run(turn(json!([{"do": "grandchild", "seconds": 300}]))).await;
    assert!(output.status.success());
    let lines = parsed(&output);
    let line = lines.iter().find(|l| l["subtype"] == "grandchild").unwrap();
    let pid = line["pid"].as_u64().unwrap();
    assert!(is_alive(pid));
    kill("-KILL", pid).await;
}

#[tokio::test]
async fn a_grandchild_can_hold_the_pipe_open() {
    let place = Place::new();
    let steps = json!([{"do": "grandchild", "seconds": 300, "holds_stdout": true}]);
    let mut cli = start(&place, &turn(steps));
    cli.prompt("go").await;
    let line = cli.until(|line| line["subtype"] == "grandchild").await;
    cli.result().await;
    cli.close_stdin();
    assert!(cli.ended().await.success());
    let pid = line["pid"].as_u64().unwrap();
    assert!(is_alive(pid));
    kill("-KILL", pid).await;
    // The output ends only now.
    assert!(cli.next().await.is_none());
}

#[tokio::test]
async fn tools_of_a_script_ask_and_tell_the_answer() {
    let place = Place::new();
    let question = json!({"questions": [{"question": "Which?", "header": "W", "multiSelect": false, "options": [
        {"label": "A", "description": ""}, {"label": "B", "description": ""},
    ]}]});
    let script = turn(json!([
        {"do": "tool", "name": "AskUserQuestion", "input": question},
        {"do": "tool", "name": "Read", "input": {"file_path": "x"}, "ask": false, "result": "the file"},
        {"do": "usage", "input_tokens": 7, "output_tokens": 3, "cost_usd": 0.25},
    ]));
    let mut cli = start(&place, &script);
    cli.prompt("go").await;
    let request = cli.permission_request().await;
    let mut input = question.clone();
    input["answers"] = json!({"Which?": "B"});
    cli.answer(&request, json!({"behavior": "allow", "updatedInput": input}))
        .await;
    let result = cli.result().await;
    let contents: Vec<&Value> = cli
        .lines_of_type("user")
        .into_iter()
        .map(|line| &line["message"]["content"][0]["content"])
        .collect();
    assert_eq!(contents, [&json!("{\"Which?\":\"B\"}"), &json!("the file")]);
    assert_eq!(result["usage"]["input_tokens"], 7);
    assert_eq!(result["total_cost_usd"], 0.25);
}

#[tokio::test]
async fn an_invalid_script_is_refused_with_a_reason() {
    for (script, reason) in [
        (json!({"turns": [[{"do": "dance"}]]}), "unknown variant `dance`"),
        (json!({"turn": []}), "unknown field `turn`"),
        (json!({"on_start": [{"do": "hang"}]}), "needs a turn"),
    ] {
        let output = whole_run(script).await;
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(reason), "{said}");
    }
}
