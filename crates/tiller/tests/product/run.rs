//! The commands for terminals and scripts: the real executable with the real CLI.

use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin};

use crate::server::{PATIENCE, World, bash, until_nothing_is_left};

async fn run(world: &World, arguments: &[&str]) -> Output {
    let output = world.command().args(arguments).output();
    tokio::time::timeout(PATIENCE, output)
        .await
        .expect("ends in time")
        .unwrap()
}

fn said(output: &Output) -> (Option<i32>, String) {
    (
        output.status.code(),
        String::from_utf8(output.stdout.clone()).unwrap(),
    )
}

async fn sessions(world: &World) -> Vec<Value> {
    let listed = run(world, &["sessions", "--json"]).await;
    assert!(listed.status.success());
    serde_json::from_slice(&listed.stdout).unwrap()
}

#[tokio::test]
async fn a_task_runs_without_a_server_and_is_found_later() {
    let script = Script::new()
        .on("plain", [Reply::text("First line.\nSecond line.")])
        .on("what was", [Reply::text("It was: {{prompts}}")])
        .on(
            "make",
            [bash("touch made"), Reply::text("I was told: {{tool_result}}")],
        );
    let world = World::new(script).await;
    let plain = run(&world, &["run", "plain words"]).await;
    assert_eq!(
        said(&plain),
        (Some(0), "First line.\nSecond line.\n".to_owned()),
        "{plain:?}"
    );
    until_nothing_is_left(&world).await;

    // Nobody can be asked, unless everything is allowed in advance.
    let denied = run(&world, &["run", "--output", "json", "make it"]).await;
    assert_eq!(denied.status.code(), Some(0));
    let summary: Value = serde_json::from_slice(&denied.stdout).unwrap();
    assert_eq!(summary["permission_denials"][0]["tool_name"], "Bash");
    assert!(!world.project().join("made").exists());
    let allowed = run(
        &world,
        &["run", "--output", "json", "--allowed-tools", "Bash", "make it"],
    )
    .await;
    let summary: Value = serde_json::from_slice(&allowed.stdout).unwrap();
    assert_eq!(
        (&summary["success"], &summary["status"], &summary["num_turns"]),
        (&json!(true), &json!("completed"), &json!(2))
    );
    assert!(summary["cost_usd"].as_f64().unwrap() > 0.0);
    assert!(world.project().join("made").exists());

    // A limit of model calls or of the cost ends it early, as a failure.
    let limits: [(&str, &str, &str); 2] = [
        ("--max-turns", "1", "limit of turns"),
        ("--max-budget-usd", "0.000001", "budget"),
    ];
    for (flag, value, reason) in limits {
        let arguments = [
            "run",
            "--output",
            "json",
            "--allowed-tools",
            "Bash",
            flag,
            value,
            "make it",
        ];
        let limited = run(&world, &arguments).await;
        assert_eq!(limited.status.code(), Some(1), "{flag}: {limited:?}");
        let summary: Value = serde_json::from_slice(&limited.stdout).unwrap();
        assert_eq!(
            (&summary["success"], &summary["status"]),
            (&json!(false), &json!("error"))
        );
        let error = summary["error"].as_str().unwrap().to_lowercase();
        assert!(
            error.contains(reason) || error.contains("maximum"),
            "{flag}: {error}"
        );
    }
    for wrong in [
        ["--max-turns", "0"],
        ["--max-turns", "many"],
        ["--max-budget-usd", "-1"],
        ["--timeout", "0"],
    ] {
        let refused = run(&world, &["run", wrong[0], wrong[1], "make it"]).await;
        assert_ne!(refused.status.code(), Some(0), "{wrong:?}");
        let complaint = String::from_utf8_lossy(&refused.stderr);
        assert!(complaint.contains(wrong[0]), "{wrong:?}: {complaint}");
    }

    let all = sessions(&world).await;
    assert_eq!(all.len(), 5);
    let first = all
        .iter()
        .find(|session| session["lastPrompt"] == "plain words")
        .unwrap();
    let id = first["id"].as_str().unwrap();
    let table = said(&run(&world, &["sessions"]).await).1;
    assert!(table.contains(id) && table.contains("completed"), "{table}");

    // A server that starts later has all of them, and serves the same commands.
    let server = world.serve().await;
    assert_eq!(sessions(&world).await.len(), 5);
    let more = run(&world, &["run", "--session", &id[..8], "what was it"]).await;
    assert_eq!(
        said(&more),
        (Some(0), "It was: plain words | what was it\n".to_owned()),
        "{more:?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn the_exit_code_reports_the_outcome() {
    let script = Script::new()
        .on("fail", [400; 40].map(Reply::error))
        .on("endless", [Reply::text("Let me think. ").gate("never")]);
    let world = World::new(script).await;
    let server = world.serve().await;

    let failed = run(&world, &["run", "fail now"]).await;
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let refused = run(&world, &["run", "--cwd", "/etc", "hello"]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(!refused.stderr.is_empty());
    let empty = run(&world, &["run", "  "]).await;
    assert!(String::from_utf8_lossy(&empty.stderr).contains("the prompt is empty"));
    assert_eq!(run(&world, &["run"]).await.status.code(), Some(2));

    let late = run(
        &world,
        &["run", "--timeout", "0.5", "--output", "json", "endless"],
    )
    .await;
    assert_eq!(late.status.code(), Some(124), "{late:?}");
    let summary: Value = serde_json::from_slice(&late.stdout).unwrap();
    assert_eq!(
        (&summary["success"], &summary["status"]),
        (&json!(false), &json!("idle"))
    );

    // Ctrl-C stops the turn; every event is a line.
    let mut command = world.command();
    command
        .args(["run", "--output", "stream-json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"endless please").await.unwrap();
    drop(stdin);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut kinds = Vec::new();
    let mut stopped = false;
    while let Some(line) = lines.next_line().await.unwrap() {
        let event: Value = serde_json::from_str(&line).unwrap();
        kinds.push(event["type"].as_str().unwrap().to_owned());
        // Once: a second Ctrl-C exits at once.
        if event["payload"]["message"]["event"]["type"] == "content_block_delta" && !stopped {
            stopped = true;
            let pid = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        }
    }
    assert_eq!(child.wait().await.unwrap().code(), Some(130));

    // As in `… | head -1`: nobody reads any more, so it stops silently.
    let mut command = world.command();
    command
        .args(["run", "--output", "stream-json", "endless again"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = BufReader::new(child.stdout.take().unwrap()).lines();
    first.next_line().await.unwrap().expect("a line");
    drop(first);
    let ended = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let ended = ended.expect("ends by itself").unwrap();
    assert_eq!((ended.status.code(), ended.stderr), (Some(141), Vec::new()));
    assert_eq!(kinds[..2], ["session.status", "stream.user_prompt"]);
    assert_eq!(kinds.last().unwrap(), "session.status");
    server.stop().await;
}

#[tokio::test]
async fn tasks_run_side_by_side_without_a_server() {
    let script = Script::new().otherwise(Reply::text("Done."));
    let world = World::new(script).await;
    let (one, two) = tokio::join!(run(&world, &["run", "one"]), run(&world, &["run", "two"]));
    assert_eq!(said(&one), (Some(0), "Done.\n".to_owned()), "{one:?}");
    assert_eq!(said(&two), (Some(0), "Done.\n".to_owned()), "{two:?}");
    assert_eq!(sessions(&world).await.len(), 2);
}

/// `tiller attach` with its output, on both channels.
struct Attached {
    child: Child,
    input: Option<ChildStdin>,
    heard: tokio::sync::mpsc::Receiver<Vec<u8>>,
    screen: String,
}

impl Attached {
    fn start(world: &World, session: &str) -> Self {
        let mut command = world.command();
        command
            .args(["attach", session])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, heard) = tokio::sync::mpsc::channel(64);
        let mut stdout = child.stdout.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let also = sender.clone();
        tokio::spawn(async move {
            let mut bytes = vec![0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut bytes).await {
                sender.send(bytes[..count].to_vec()).await.ok();
            }
        });
        tokio::spawn(async move {
            let mut bytes = vec![0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes).await {
                also.send(bytes[..count].to_vec()).await.ok();
            }
        });
        let input = child.stdin.take();
        Self {
            child,
            input,
            heard,
            screen: String::new(),
        }
    }

    /// Reads until this is on the screen, and clears the screen up to there.
    async fn sees(&mut self, text: &str) {
        while !self.screen.contains(text) {
            let more = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
            let more = more.unwrap_or_else(|_| panic!("no {text:?} in {:?}", self.screen));
            let more = more.unwrap_or_else(|| panic!("ended without {text:?}: {:?}", self.screen));
            self.screen.push_str(&String::from_utf8_lossy(&more));
        }
        let end = self.screen.find(text).map_or(0, |start| start + text.len());
        self.screen.drain(..end);
    }

    async fn types(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Ctrl-D.
    async fn leaves(mut self) {
        drop(self.input.take());
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        assert!(ended.expect("ends in time").unwrap().success());
    }
}

#[tokio::test]
async fn a_session_is_followed_and_steered_from_the_terminal() {
    let ask = json!({ "questions": [crate::task_client::question("Which colour?", false)] });
    let script = Script::new()
        .on("hello", [Reply::text("Hello to you.")])
        .on("make", [bash("touch made"), Reply::text("Made it.")])
        .on(
            "forbid",
            [bash("touch other"), Reply::text("I was told: {{tool_result}}")],
        )
        .on(
            "ask me",
            [
                Reply::tool("AskUserQuestion", ask),
                Reply::text("So: {{tool_result}}"),
            ],
        )
        .on("endless", [Reply::text("Let me think. ").gate("never")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    run(&world, &["run", "hello there"]).await;
    let id = sessions(&world).await[0]["id"].as_str().unwrap().to_owned();

    let mut attached = Attached::start(&world, &id[..6]);
    attached.sees("Hello to you.").await;
    attached.types("make a file").await;
    attached.sees("? Bash\n  command: touch made\n").await;
    attached.sees("Allow? [y]es").await;
    attached.types("y").await;
    attached.sees("Made it.").await;
    assert!(world.project().join("made").exists());
    attached.types("forbid that").await;
    attached.sees("Allow? [y]es").await;
    attached.types("rather not").await;
    attached.sees("rather not").await;
    attached.types("ask me").await;
    attached.sees("or your own answer:").await;
    attached.types("2").await;
    attached.sees("Blue").await;
    attached.types("endless work").await;
    attached.sees("Let me think.").await;
    let pid = rustix::process::Pid::from_raw(attached.child.id().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    attached.sees("stopped").await;
    attached.types("hello once more").await;
    attached.sees("Hello to you.").await;
    attached.leaves().await;
    // The text comes before the end of the turn.
    while sessions(&world).await[0]["status"] == "running" {}
    assert_eq!(sessions(&world).await[0]["status"], "completed", "it lives on");
    let unknown = run(&world, &["attach", "ffffffff-no"]).await;
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no session"));
    server.stop().await;
}

#[tokio::test]
async fn the_doctor_finds_what_is_there_and_what_is_missing() {
    let world = World::new(Script::new()).await;
    let healthy = run(&world, &["doctor", "--json"]).await;
    let report: Value = serde_json::from_slice(&healthy.stdout).unwrap();
    assert_eq!(
        (healthy.status.code(), &report["ok"]),
        (Some(0), &json!(true)),
        "{report:#}"
    );
    let state = |report: &Value, name: &str| {
        let findings = report["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["name"] == name);
        let found = found.unwrap_or_else(|| panic!("{name} in {report:#}"));
        (
            found["state"].as_str().unwrap().to_owned(),
            found["detail"].as_str().unwrap().to_owned(),
        )
    };
    assert!(state(&report, "claude").1.starts_with("2.1.325"));
    assert_eq!(state(&report, "login").0, "ok");

    // Not logged in, a root that does not exist, an invalid database.
    std::fs::write(
        world.data().join("sessions.db"),
        "no database at all, not even a bit",
    )
    .unwrap();
    let mut command = world.command();
    command
        .args(["doctor", "--json", "--root", "/does/not/exist"])
        .env_remove("ANTHROPIC_API_KEY");
    let ill = command.output().await.unwrap();
    let report: Value = serde_json::from_slice(&ill.stdout).unwrap();
    assert_eq!((ill.status.code(), &report["ok"]), (Some(1), &json!(false)));
    for name in ["login", "roots", "database"] {
        assert_eq!(state(&report, name).0, "broken", "{name}");
    }
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .all(|finding| finding["state"] == "ok" || finding["advice"].is_string())
    );
    let in_words = said(&run(&world, &["doctor"]).await).1;
    assert!(in_words.contains("BROKEN   database"), "{in_words}");

    let bare = World::with_claude(Script::new(), None).await;
    let report = said(&run(&bare, &["doctor"]).await);
    assert_eq!(report.0, Some(0), "the demo agent runs: {}", report.1);
    assert!(
        report.1.contains("npm install -g @anthropic-ai/claude-code"),
        "{}",
        report.1
    );
}
