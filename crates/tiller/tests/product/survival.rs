//! Agents outlive the server, and the next server continues.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::process::Signal;
use serde_json::{Value, json};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{Reply, Script};
use tokio::sync::watch;

use crate::client::{EventClient, is_status};
use crate::server::{Server, SignIn, World, agent_of, processes_in, until, until_nothing_is_left};

/// The agents that work in the world's project.
fn agents(world: &World) -> Vec<String> {
    let mut found = processes_in(&world.project());
    found.retain(|command| command.contains("--print"));
    found
}

async fn follow(server: &Server, cookie: &SignIn, session: &str, after: u64) -> EventClient {
    let mut client = EventClient::connect_to(server, "/ws/events?only=subscribed", cookie).await;
    let payload = json!({ "sessionId": session, "afterSeq": after });
    client.send("session.subscribe", payload).await;
    client
}

#[tokio::test]
async fn a_turn_continues_without_a_server() {
    let script = Script::new()
        .on(
            "take long",
            [Reply::text("Half of it").gate("rest").and_text(" and the rest.")],
        )
        .on("go on", [Reply::text("Known: {{prompts}}")]);
    let world = World::new(script).await;
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "take long").await;
    client.until_streamed("Half of it").await;
    let shown = client.logged();
    server.kill().await;

    world.model.gate("rest").open();
    let server = world.serve().await;
    let mut client = follow(&server, &cookie, &session, 0).await;
    client.until_status("completed").await;
    assert_eq!(client.streamed(), "Half of it and the rest.");
    assert_eq!(
        client.logged()[..shown.len()],
        shown[..],
        "what was shown is shown again, the same"
    );
    let running = agent_of(&session);
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "go on" }),
        )
        .await;
    client.until_streamed("Known: take long | go on").await;
    client.until_status("completed").await;
    assert_eq!(agent_of(&session), running, "the same agent goes on");

    // All of its output is recorded, so there is nothing to wait for.
    let payload = json!({ "sessionId": session, "afterSeq": 100_000 });
    client.send("session.subscribe", payload).await;
    let ahead = client.until_type("runner.error").await;
    assert!(
        ahead["message"]
            .as_str()
            .unwrap()
            .contains("last event is number"),
        "{ahead}"
    );
    server.stop().await;
    until_nothing_is_left(&world).await;
    let runs = || std::fs::read_dir(world.data().join("runs")).unwrap().count();
    until("a run's folder is left", || runs() == 0).await;
}

#[tokio::test]
async fn a_permission_waits_for_the_next_server_and_is_answered_once() {
    let make = json!({ "command": "echo made >> made.txt", "description": "Make it" });
    let script = Script::new().on("make it", [Reply::tool("Bash", make), Reply::text("Made.")]);
    let world = World::new(script).await;
    let mut server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "make it").await;
    let asked = client.until_type("permission.request").await;
    // More than once: each server passes on what it found.
    for _ in 0..2 {
        server.kill().await;
        server = world.serve().await;
    }
    client = follow(&server, &cookie, &session, 0).await;
    let again = client.until_type("permission.request").await;
    assert_eq!(again, asked);
    let answer = json!({
        "sessionId": session, "toolUseId": asked["toolUseId"], "result": { "behavior": "allow" },
    });
    client.send("permission.response", answer).await;
    let resolved = client.until_type("permission.resolved").await;
    assert_eq!(resolved["behavior"], "allow");
    // Acknowledged, so it counts, whatever happens next.
    server.kill().await;
    let server = world.serve().await;
    let mut client = follow(&server, &cookie, &session, 0).await;
    client.until_status("completed").await;
    assert_eq!(client.streamed(), "Made.");
    let made = std::fs::read_to_string(world.project().join("made.txt")).unwrap();
    assert_eq!(made, "made\n", "it ran once");
    server.stop().await;
}

#[tokio::test]
async fn agents_are_left_to_the_next_server_if_configured() {
    let script = Script::new().on(
        "take long",
        [Reply::text("Half").gate("rest").and_text(" and half.")],
    );
    let world = World::new(script).await;
    world.configure("titles = \"prompt\"\non_stop = \"keep\"\n");
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "take long").await;
    client.until_streamed("Half").await;
    let running = agent_of(&session);
    server.stop().await;
    assert_eq!(agent_of(&session), running);

    let server = world.serve().await;
    let restarted = world.command().arg("restart").output().await.unwrap();
    let link = String::from_utf8(restarted.stdout).unwrap();
    assert!(
        restarted.status.success(),
        "{}",
        String::from_utf8_lossy(&restarted.stderr)
    );
    let server = server.moved_to(link.trim());
    let mut client = follow(&server, &cookie, &session, 0).await;
    client.until_streamed("Half").await;
    assert_eq!(agent_of(&session), running);
    world.model.gate("rest").open();
    client.until_status("completed").await;
    assert_eq!(client.streamed(), "Half and half.");
    client
        .send("session.delete", json!({ "sessionId": session }))
        .await;
    client.until_type("session.deleted").await;
    until("a deleted session's agent lives on", || agents(&world).is_empty()).await;
    server.stop().await;
}

#[tokio::test]
async fn an_idle_agent_without_a_server_ends_by_itself() {
    let world = World::new(Script::new().otherwise(Reply::text("You said: {{prompts}}"))).await;
    let server = world.serve_with(&[], &[("TILLER_AGENT_GRACE", "1")]).await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "hello").await;
    client.until_status("completed").await;
    server.kill().await;
    until("the agent lives on", || agents(&world).is_empty()).await;
    let server = world.serve().await;
    let mut client = follow(&server, &cookie, &session, 0).await;
    client.until_status("completed").await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "again" }),
        )
        .await;
    client.until_status("completed").await;
    server.stop().await;
}

#[tokio::test]
async fn an_idle_agent_hibernates_and_the_next_message_starts_it() {
    let world = World::new(Script::new().otherwise(Reply::text("You said: {{prompts}}"))).await;
    world.configure("titles = \"prompt\"\nhibernate_after_s = 1\n");
    let server = world.serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "hello").await;
    client.until_status("completed").await;
    let asleep = |event: &Value| event["payload"]["session"]["agent"]["state"] == "hibernated";
    let sleeping = client.until("it sleeps", asleep).await["payload"]["session"]["agent"].clone();
    assert!(
        sleeping["memoryBytes"].is_null() && sleeping["cpu"].is_null(),
        "it uses nothing: {sleeping}"
    );
    until("it is awake", || agents(&world).is_empty()).await;
    client
        .send(
            "session.continue",
            json!({ "sessionId": session, "prompt": "again" }),
        )
        .await;
    client.until_streamed("You said: hello | again").await;
    client.until_status("completed").await;
    server.stop().await;
}

/// How many times the server is killed while an agent streams. `TILLER_LEDGER_KILLS` makes it hundreds.
fn kills() -> u64 {
    let kills = std::env::var("TILLER_LEDGER_KILLS").ok();
    kills.and_then(|kills| kills.parse().ok()).unwrap_or(12)
}

/// Every event that a client ever received, from all servers: once, in order, and the same when read again.
#[tokio::test]
async fn killing_the_server_never_loses_duplicates_or_reorders_events() {
    const EVENTS: u64 = 200;
    let world = World::with_claude(Script::new(), None).await;
    let script = world.home().join("script.json");
    let flood = json!({ "do": "flood", "events": EVENTS, "per_second": 400 });
    std::fs::write(&script, json!({ "turns": [[flood]] }).to_string()).unwrap();
    let environment = [("SCRIPTED_CLI", script.to_str().unwrap())];
    let serve = || world.serve_with(&["--backend", "demo"], &environment);

    let mut server = serve().await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = client.start(&world.project(), "go").await;
    let mut ledger: Vec<Value> = client.logged();
    // Moments that vary without being random: a failure can be reproduced.
    let mut moment = 7u64;
    for kill in 0..kills() {
        moment = moment
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let patience = (moment >> 33) % EVENTS;
        for _ in 0..patience {
            let Some(event) = client.next().await else { break };
            // A queued turn keeps the events coming.
            if event["type"] == "session.status" && event["payload"]["status"] == "completed" {
                break;
            }
        }
        ledger.extend(client.logged_since(ledger.len() as u64));
        server.kill().await;
        server = serve().await;
        client = follow(&server, &cookie, &session, ledger.len() as u64).await;
        client
            .send(
                "session.continue",
                json!({ "sessionId": session, "prompt": format!("more {kill}") }),
            )
            .await;
    }
    // Prompts that were not acknowledged by then may or may not have been accepted; each accepted one is there once.
    loop {
        client.until_status("completed").await;
        ledger.extend(client.logged_since(ledger.len() as u64));
        client.send("session.list", Value::Null).await;
        let list = client.until_type("session.list").await;
        if list["sessions"][0]["status"] == "completed" && list["sessions"][0]["queue"] == json!([]) {
            break;
        }
    }
    for (index, event) in ledger.iter().enumerate() {
        assert_eq!(event["payload"]["seq"], index as u64 + 1, "{event}");
    }
    let mut all = follow(&server, &cookie, &session, 0).await;
    let last = ledger.len() as u64;
    all.until("the end", |event| event["payload"]["seq"] == last)
        .await;
    assert_eq!(all.logged(), ledger, "read again, it is the same");
    let ids: Vec<_> = ledger
        .iter()
        .filter_map(|event| event["payload"]["message"]["uuid"].as_str())
        .collect();
    assert_eq!(
        ids.iter().collect::<HashSet<_>>().len(),
        ids.len(),
        "no message twice"
    );
    let count = |kind: &str, what: &dyn Fn(&Value) -> bool| {
        ledger
            .iter()
            .filter(|event| event["type"] == kind && what(&event["payload"]))
            .count() as u64
    };
    let prompts = count("stream.user_prompt", &|_| true);
    let deltas = count("stream.message", &|payload| {
        payload["message"]["event"]["delta"]["type"] == "text_delta"
    });
    assert_eq!(deltas, prompts * EVENTS, "every turn said everything");
    assert_eq!(
        count("session.status", &|payload| payload["status"] == "completed"),
        prompts
    );
    server.signal(Signal::TERM);
    assert!(server.ended().await.success());
}

/// Clients connect and disconnect while turns begin and end: each event arrives once, in order, wherever a client
/// continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconnecting_clients_miss_nothing() {
    const TURNS: usize = 40;
    const READERS: u64 = 6;
    let world = World::with_claude(Script::new(), None).await;
    let script = world.home().join("script.json");
    let flood = json!({ "do": "flood", "events": 50, "per_second": 2000 });
    std::fs::write(&script, json!({ "turns": [[flood]] }).to_string()).unwrap();
    let environment = [("SCRIPTED_CLI", script.to_str().unwrap())];
    let server = Arc::new(world.serve_with(&["--backend", "demo"], &environment).await);
    let cookie = server.sign_in().await;
    let mut driver = EventClient::connect(&server, &cookie).await;
    let session = driver.start(&world.project(), "go").await;
    driver.until_status("completed").await;

    let (tell_end, end) = watch::channel(None::<u64>);
    let readers = (0..READERS).map(|reader| {
        let (server, cookie, session) = (Arc::clone(&server), cookie.clone(), session.clone());
        let mut end = end.clone();
        tokio::spawn(async move {
            let (mut last, mut visits) = (0, reader);
            while *end.borrow() != Some(last) {
                let mut client = follow(&server, &cookie, &session, last).await;
                // For as long as it takes to receive a few, another number each time.
                visits += 1;
                let patience = 1 + visits * 7 % 61;
                while (client.seqs().len() as u64) < patience && *end.borrow() != Some(last) {
                    let event = tokio::select! {
                        event = client.next() => event.expect("the server is there"),
                        _ = end.changed() => continue,
                    };
                    if let Some(seq) = event["payload"]["seq"].as_u64() {
                        assert_eq!(seq, last + 1, "{event}");
                        last = seq;
                    }
                }
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    let mut last = 0;
    for turn in 1..TURNS {
        let payload = json!({ "sessionId": session, "prompt": format!("turn {turn}") });
        driver.send("session.continue", payload).await;
        last = driver.until_status("completed").await["seq"].as_u64().unwrap();
    }
    tell_end.send(Some(last)).unwrap();
    for reader in readers {
        reader.await.unwrap();
    }
    server.signal(Signal::TERM);
}

/// An executable that runs this shell script instead of Claude Code, which is `$cli`, when it is started as an agent.
fn wrapped(folder: &Path, script: &str) -> PathBuf {
    let claude = Claude::V2_1_325
        .executable()
        .unwrap_or_else(|missing| panic!("{missing}"));
    let wrapper = folder.join("claude");
    let agent = r#"case "$*" in *--print*) ;; *) exec "$cli" "$@";; esac"#;
    let script = format!("#!/bin/sh\ncli='{}'\n{agent}\n{script}\n", claude.display());
    // By another process: a file that is open for writing can't be executed.
    let written = std::process::Command::new("/bin/sh")
        .args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""])
        .arg(&wrapper)
        .arg(script)
        .status();
    assert!(written.unwrap().success());
    wrapper
}

#[tokio::test]
async fn a_prompt_during_the_end_of_an_agent_goes_to_the_next_one() {
    for gone in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let lingers = r#"trap '' TERM; "$cli" "$@"; until [ -e "$HOME/go" ]; do sleep 0.02; done"#;
        let script = Script::new()
            .on("first", [Reply::text("One.")])
            .on("second", [Reply::text("Two.")]);
        let world = World::with_claude(script, Some(wrapped(folder.path(), lingers))).await;
        let server = world.serve().await;
        let cookie = server.sign_in().await;
        let mut client = EventClient::connect(&server, &cookie).await;
        let session = client.start(&world.project(), "first").await;
        client.until_status("completed").await;
        let agent = agent_of(&session);
        // The process was not started for it: another one continues when this one has ended.
        let change = json!({ "sessionId": session, "permissionMode": "bypassPermissions" });
        client.send("session.configure", change).await;
        let payload = json!({ "sessionId": session, "prompt": "second" });
        client.send("session.continue", payload).await;
        let is_second = |event: &Value| event["payload"]["prompt"] == "second";
        client.until("the prompt", is_second).await;
        server.kill().await;

        let go = || std::fs::write(world.home().join("go"), "").unwrap();
        if gone {
            go();
            // Whether or not it has been told to end by then.
            rustix::process::kill_process(agent, Signal::KILL).ok();
            until_nothing_is_left(&world).await;
        }
        let server = world.serve().await;
        go();
        let mut client = follow(&server, &cookie, &session, 0).await;
        // The log also has the end of the first turn.
        for _ in 0..2 {
            client
                .until("an end", |event| {
                    is_status(event, "completed") || is_status(event, "error")
                })
                .await;
        }
        assert_eq!(client.streamed(), "One.Two.", "{:?}", client.story());
        server.stop().await;
    }
}

#[tokio::test]
async fn the_server_raises_its_limit_of_open_files_and_agents_keep_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let wrapper = wrapped(folder.path(), r#"ulimit -Sn >> "$HOME/limits"; exec "$cli" "$@""#);
    let script = Script::new()
        .on("first", [Reply::text("One.")])
        .on("second", [Reply::text("Two.")]);
    let world = World::with_claude(script, Some(wrapper)).await;
    let limits = || std::fs::read_to_string(world.home().join("limits")).unwrap();

    let server = world.serve_limited(200).await;
    let (current, most) = server.open_files();
    assert_eq!(current, most);
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    client.start(&world.project(), "first").await;
    client.until_status("completed").await;
    assert_eq!(limits(), "200\n");

    // The same process becomes another program, and still knows the limit.
    let restarted = world.command().arg("restart").output().await.unwrap();
    let link = String::from_utf8(restarted.stdout).unwrap();
    let server = server.moved_to(link.trim());
    assert_eq!(server.open_files(), (current, most));
    let mut client = EventClient::connect(&server, &cookie).await;
    client.start(&world.project(), "second").await;
    client.until_status("completed").await;
    assert_eq!(limits(), "200\n200\n");
    server.stop().await;
}
