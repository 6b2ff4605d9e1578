//! What a review and earlier tests have found from the inside, each as a test. Others of the same list are in `insiders`, `keys`,
//! `shield`, `access` and `operators`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::access::{demo_world, key, with_key};
use crate::client::EventClient;
use crate::http::{get, request};
use crate::server::{Server, World, until};

fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_log_on_a_full_disk_stops_nothing() {
    let world = demo_world().await;
    let mut command = world.command();
    command
        .args(["serve", "--port", "0", "--no-open", "--backend", "demo"])
        .envs([("TILLER_API_KEY", "right"), ("TILLER_LOG", "debug")])
        .stderr(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let server = Server::start(command).await;
    assert_eq!(with_key(&server, "wrong").await.err(), Some(401));
    let mut client = with_key(&server, "right").await.unwrap();
    client.start(&world.project(), "hello").await;
    let asked = client.until_type("permission.request").await;
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    // It goes on to its next request.
    client.until_type("permission.request").await;
    server.stop().await;
    crate::server::until_nothing_is_left(&world).await;
}

#[tokio::test]
async fn nothing_that_asks_the_cli_about_itself_gives_it_a_credential() {
    let world = demo_world().await;
    let (claude, seen) = (world.home().join("bin/claude"), world.home().join("seen"));
    let text = format!(
        "#!/bin/sh\nenv >> {0}; echo \"asked $1\" >> {0}; echo '2.1.325 (Claude Code)'\n",
        seen.display()
    );
    script(&claude, &text);
    let key = [
        ("TILLER_API_KEY", "our-secret"),
        ("TILLER_CLAUDE_BIN", claude.to_str().unwrap()),
    ];
    let server = world.serve_with(&["--backend", "claude"], &key).await;
    // Whether someone is signed in to it is asked here, its version at the start.
    get(&server.address, "/api/backends", &[("x-api-key", "our-secret")]).await;
    let told = || std::fs::read_to_string(&seen).unwrap_or_default();
    until("the CLI was asked twice", || {
        told().contains("asked --version") && told().contains("asked auth")
    })
    .await;
    assert!(told().contains("HOME="), "{}", told());
    assert!(
        !told().contains("our-secret") && !told().contains("TILLER_"),
        "{}",
        told()
    );
    server.stop().await;
}

#[tokio::test]
async fn whoever_opens_the_browser_gets_no_code_on_a_command_line() {
    let world = demo_world().await;
    let (folder, seen) = (world.home().join("bin"), world.home().join("opened"));
    script(
        &folder.join("xdg-open"),
        &format!(
            "#!/bin/sh\necho \"$0 $*\" > {0}.new && mv {0}.new {0}\n",
            seen.display()
        ),
    );
    let mut command = world.command();
    command
        .args(["serve", "--port", "0", "--open", "--backend", "demo"])
        .env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let server = Server::start(command).await;
    until("the browser is opened", || seen.exists()).await;
    let opened = std::fs::read_to_string(&seen).unwrap();
    let code = server.link.rsplit_once("code=").unwrap().1;
    assert!(!opened.contains(code), "{opened}");
    let page = opened.split_whitespace().nth(1).unwrap();
    assert_eq!(
        std::fs::metadata(page).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(std::fs::read_to_string(page).unwrap().contains(code));
    server.stop().await;
}

#[tokio::test]
async fn an_error_repeats_a_short_piece_of_what_was_sent() {
    let world = demo_world().await;
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "right")])
        .await;
    let mut client = with_key(&server, "right").await.unwrap();
    let session = client.start(&world.project(), "hello").await;
    client.until_type("permission.request").await;
    let long = "m".repeat(20_000);
    let nul = "Read\0Bash";
    let start = |field: &str, value: &str| {
        let mut start = json!({ "prompt": "hello", "cwd": world.project() });
        start[field] = json!(value);
        ("session.start", start)
    };
    let configure =
        |field: &str, value: &str| ("session.configure", json!({ "sessionId": session, field: value }));
    let wrong = [
        start("model", &long),
        start("effort", &long),
        start("backend", &long),
        start("permissionMode", &long),
        start("allowedTools", nul),
        start("cwd", &format!("/{long}")),
        configure("model", &long),
        configure("effort", &long),
        configure("allowedTools", nul),
        ("session.hooks", json!({ "sessionId": session, "events": [long] })),
        (
            "session.start",
            json!({ "prompt": "hello", "options": { long.clone(): 1 } }),
        ),
        (
            "session.inquire",
            json!({ "sessionId": session, "subject": long }),
        ),
        (long.as_str(), json!({})),
    ];
    for (kind, payload) in wrong {
        client.send(kind, payload.clone()).await;
        let error = client.until_type("runner.error").await;
        let said = error["message"].as_str().unwrap();
        assert!(
            said.chars().count() <= 400,
            "{}: {said}",
            &kind[..kind.len().min(40)]
        );
    }
    client.send("session.list", Value::Null).await;
    let list = client.until_type("session.list").await;
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1, "nothing was made");

    // The other doors.
    let headers = [("x-api-key", "right"), ("content-type", "application/json")];
    for field in [
        "model",
        "agent",
        "permission_mode",
        "working_dir",
        "resume",
        "granularity",
        long.as_str(),
    ] {
        let mut task = json!({ "prompt": "hello", "working_dir": world.project() });
        task[field] = json!(long);
        let answer = request(&server.address, "POST", "/api/task", &headers, &task.to_string()).await;
        assert!((400..500).contains(&answer.status), "{field}: {}", answer.status);
        assert!(answer.body.chars().count() <= 400, "{}", answer.body);
    }
    let mut chat = EventClient::connect_with(&server, "/ws?session_id=x", &[("x-api-key", "right")])
        .await
        .unwrap();
    for frame in [
        json!({ "type": long }),
        json!({ "type": "set_model", "model": long }),
        json!({ "type": "set_permission_mode", "mode": long }),
        json!({ "type": "user_message", "message": { "content": [{ "type": long }] } }),
        json!({ "type": "register_hooks", "events": [long] }),
    ] {
        chat.send_text(&frame.to_string()).await;
        let error = chat.until("an error", |event| event["type"] == "error").await;
        assert!(error.to_string().chars().count() <= 600, "{error}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_key_reads_no_secret_of_the_persons_settings() {
    let world = World::new(Script::new().otherwise(Reply::text("Done."))).await;
    let home = world.home().join(".claude");
    std::fs::create_dir_all(&home).unwrap();
    let settings = json!({
        "env": { "MY_TOKEN": "hunter2-in-settings" },
        "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "true --password hunter2-in-settings" }] }] },
    });
    std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    let server = world.serve_with(&[], &[("TILLER_API_KEY", "right")]).await;
    let limited = key(&world, &["limited", "--scope", "read,run"]).await;
    let mut client = with_key(&server, &limited).await.unwrap();
    let session = client.start(&world.project(), "hello").await;
    client.until_status("completed").await;
    let mut person = with_key(&server, "right").await.unwrap();
    for subject in ["settings", "hooks"] {
        let question = json!({ "sessionId": session, "requestId": subject, "subject": subject });
        person.send("session.inquire", question.clone()).await;
        let whole = person.until_type("session.answer").await.to_string();
        client.send("session.inquire", question).await;
        let told = client.until_type("session.answer").await.to_string();
        assert!(whole.contains("hunter2-in-settings"), "{subject}: {whole}");
        assert!(!told.contains("hunter2-in-settings"), "{subject}: {told}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_key_does_not_learn_which_conversations_there_are() {
    let world = demo_world().await;
    let (foreign, unknown) = (
        "11111111-1111-4111-8111-111111111111",
        "22222222-2222-4222-8222-222222222222",
    );
    // A conversation of the person's, in a folder that is gone.
    let projects = world.home().join(".claude/projects/-gone");
    std::fs::create_dir_all(&projects).unwrap();
    let line = json!({
        "type": "user", "uuid": foreign, "parentUuid": null, "sessionId": foreign, "cwd": "/gone",
        "timestamp": "2026-01-01T00:00:00.000Z", "message": { "role": "user", "content": "hello" },
    });
    std::fs::write(projects.join(format!("{foreign}.jsonl")), format!("{line}\n")).unwrap();
    let server = world.serve_with(&["--backend", "demo"], &[]).await;
    let key = key(&world, &["ci"]).await;
    let headers = [("x-api-key", key.as_str()), ("content-type", "application/json")];
    let mut client = with_key(&server, &key).await.unwrap();
    let mut answers = Vec::new();
    for id in [foreign, unknown] {
        let task = json!({ "prompt": "hello", "resume": id }).to_string();
        let by_task = request(&server.address, "POST", "/api/task", &headers, &task).await;
        let by_history = get(&server.address, &format!("/api/history/sessions/{id}"), &headers).await;
        client
            .send("session.start", json!({ "prompt": "hello", "resume": id }))
            .await;
        let mut by_event = client.until_type("runner.error").await;
        by_event["sessionId"] = Value::Null;
        answers.push((
            by_task.status,
            by_task.body,
            by_history.status,
            by_history.body,
            by_event,
        ));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0, 404);
    server.stop().await;
}

#[tokio::test]
async fn nobody_fills_the_log_with_wrong_keys() {
    let world = demo_world().await;
    let mut command = world.command();
    command
        .args(["serve", "--port", "0", "--no-open"])
        .stderr(Stdio::piped());
    let (server, log) = Server::start_with_log(command).await;
    for _ in 0..60 {
        get(&server.address, "/api/system", &[("x-api-key", "wrong")]).await;
    }
    server.stop().await;
    let (mut lines, mut told) = (BufReader::new(log).lines(), 0);
    while let Some(line) = lines.next_line().await.unwrap() {
        told += usize::from(line.contains("wrong key"));
    }
    assert!((1..=20).contains(&told), "{told}");
    // Nor the audit log.
    assert_eq!(
        world.query("SELECT count(*) FROM audit WHERE action = 'refused'"),
        [told.to_string()]
    );
}

#[tokio::test]
async fn a_key_that_runs_and_approves_needs_not_read() {
    let world = demo_world().await;
    let server = world.serve_with(&["--backend", "demo"], &[]).await;
    let key = key(&world, &["ci", "--scope", "run,approve"]).await;
    let mut client = with_key(&server, &key).await.unwrap();
    let session = client.start(&world.project(), "hello").await;
    let asked = client.until_type("permission.request").await;
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    assert_eq!(
        client.until_type("permission.resolved").await["behavior"],
        "allow"
    );
    client.send("session.stop", json!({ "sessionId": session })).await;
    client.until_status("idle").await;
    server.stop().await;
}
