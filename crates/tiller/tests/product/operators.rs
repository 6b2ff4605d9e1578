//! For those who run it: figures, readiness, logs, the audit log, an archive for support.

use std::io::Read as _;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::access::{demo_world, key, with_key};
use crate::http::{get, request};
use crate::server::{Server, World};

#[tokio::test]
async fn figures_are_for_those_who_see_all() {
    let world = demo_world().await;
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "right")])
        .await;
    let mut client = with_key(&server, "right").await.unwrap();
    client.start(&world.project(), "hello").await;
    client.until_type("permission.request").await;
    let scraper = key(&world, &["scraper", "--scope", "read", "--sees", "all"]).await;
    let figures = get(&server.address, "/metrics", &[("x-api-key", &scraper)]).await;
    assert_eq!(figures.status, 200, "{}", figures.body);
    let kind = figures.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    let value = |name: &str| {
        let mut lines = figures.body.lines();
        let line = lines.find(|line| line.split([' ', '{']).next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name} is missing: {}", figures.body));
        line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()
    };
    assert!((value("tiller_sessions_running") - 1.0).abs() < 0.1);
    assert!((value("tiller_agents") - 1.0).abs() < 0.1);
    assert!((value("tiller_decisions_waiting") - 1.0).abs() < 0.1);
    assert!(value("tiller_events_total") > 2.0);
    assert!(value("tiller_http_requests_total") > 0.0);
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_start_time_seconds") > 1.6e9);
    assert!(
        figures.body.contains("tiller_build_info{version="),
        "{}",
        figures.body
    );
    assert!(figures.body.contains(r#"route="/ws/events""#), "{}", figures.body);
    assert_eq!(figures.body.matches("# EOF").count(), 1);
    assert!(figures.body.ends_with("# EOF\n"));
    // Addresses that nobody serves are one series.
    for path in ["/a", "/b"] {
        get(&server.address, path, &[]).await;
    }
    let figures = get(&server.address, "/metrics", &[("x-api-key", &scraper)])
        .await
        .body;
    assert!(!figures.contains(r#"route="/a""#), "{figures}");

    let own = key(&world, &["own"]).await;
    let refused = get(&server.address, "/metrics", &[("x-api-key", &own)]).await;
    assert_eq!(refused.refusal(), (403, "forbidden".to_owned()));
    assert_eq!(get(&server.address, "/metrics", &[]).await.status, 401);
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_cannot_store_is_not_ready() {
    let world = demo_world().await;
    let server = world.serve().await;
    let ready = get(&server.address, "/ready", &[]).await;
    assert_eq!((ready.status, ready.json()), (200, json!({ "status": "ready" })));
    // As a full disk would do it, without one.
    let database = rusqlite::Connection::open(world.data().join("sessions.db")).unwrap();
    let full = "CREATE TRIGGER full BEFORE UPDATE ON instance BEGIN SELECT RAISE(ABORT, 'no room'); END";
    database.execute_batch(full).unwrap();
    let until = async |status: u16| loop {
        let answer = get(&server.address, "/ready", &[]).await;
        if answer.status == status {
            return answer.json();
        }
    };
    assert_eq!(until(503).await, json!({ "status": "storage" }));
    assert_eq!(get(&server.address, "/health", &[]).await.status, 200);
    database.execute_batch("DROP TRIGGER full").unwrap();
    until(200).await;
    server.stop().await;
}

#[tokio::test]
async fn a_log_for_programs_is_json_and_names_sessions() {
    let world = demo_world().await;
    let mut command = world.command();
    command
        .args(["serve", "--port", "0", "--no-open", "--backend", "demo"])
        .envs([
            ("TILLER_API_KEY", "right"),
            ("TILLER_LOG", "debug"),
            ("TILLER_LOG_FORMAT", "json"),
        ])
        .stderr(Stdio::piped());
    let (server, log) = Server::start_with_log(command).await;
    let mut client = with_key(&server, "right").await.unwrap();
    let session = client.start(&world.project(), "hello").await;
    client.until_type("permission.request").await;
    server.stop().await;
    let mut lines = BufReader::new(log).lines();
    let mut of_session = 0;
    while let Some(line) = lines.next_line().await.unwrap() {
        let entry: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(
            entry["timestamp"].is_string() && entry["level"].is_string(),
            "{line}"
        );
        assert!(!line.contains("right") && !line.contains("hello"), "{line}");
        let named = entry["session"].as_str().or(entry["span"]["session"].as_str());
        of_session += usize::from(named == Some(session.as_str()));
    }
    assert!(of_session > 0, "no line names the session");

    world.configure("log_format = \"xml\"\n");
    let output = world
        .command()
        .args(["serve", "--port", "0"])
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("log_format"), "{said}");
}

async fn audit(world: &World, arguments: &[&str]) -> (bool, String) {
    let output = world
        .command()
        .arg("audit")
        .args(arguments)
        .output()
        .await
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn decisions_sign_ins_keys_grants_and_refusals_are_kept_and_nobody_changes_them_unnoticed() {
    let world = demo_world().await;
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "right")])
        .await;
    let sign_in = server.sign_in().await;
    let runs = key(&world, &["runs", "--scope", "read,run"]).await;
    let mut client = with_key(&server, &runs).await.unwrap();
    let session = client.start(&world.project(), "a secret prompt").await;
    let asked = client.until_type("permission.request").await;
    // A key that may not answer, a route that is not for keys, and nobody at all.
    client.answer(&asked, json!({ "behavior": "allow" })).await;
    client.until_type("runner.error").await;
    assert_eq!(
        get(&server.address, "/api/keys", &[("x-api-key", &runs)])
            .await
            .status,
        403
    );
    assert_eq!(
        get(&server.address, "/api/keys", &[("x-api-key", "not-the-key")])
            .await
            .status,
        401
    );
    let mut person = with_key(&server, "right").await.unwrap();
    let configure = json!({ "sessionId": session, "permissionMode": "acceptEdits" });
    person.send("session.configure", configure).await;
    person.until_type("session.updated").await;
    person.answer(&asked, json!({ "behavior": "allow" })).await;
    person.until_type("permission.resolved").await;

    let page = get(&server.address, "/api/audit", &sign_in.headers())
        .await
        .json();
    let entries = page["entries"].as_array().unwrap();
    let id = entries[1]["detail"]["key"].as_str().unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry["actor"].as_str().unwrap(),
                entry["action"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("person", "sign_in"),
        ("command-line", "key_created"),
        (id, "refused"),
        (id, "refused"),
        ("nobody", "refused"),
        ("person", "grant"),
        ("person", "decision"),
    ];
    assert_eq!(told, expected);
    assert_eq!(entries[2]["detail"]["what"], "permission.response");
    assert_eq!(entries[2]["sessionId"], json!(session));
    assert_eq!(entries[3]["detail"]["what"], "GET /api/keys");
    assert_eq!(entries[5]["detail"], json!({ "mode": "acceptEdits" }));
    let decision = &entries[6]["detail"];
    assert_eq!(
        (&decision["behavior"], &decision["tool"]),
        (&json!("allow"), &asked["toolName"])
    );
    assert_eq!(decision["inputSha256"], asked["shown"]);
    // Nothing of a session's content, and no secret.
    for word in ["a secret prompt", &runs, "right", "not-the-key"] {
        assert!(!page.to_string().contains(word), "{word}");
    }
    // By page, and as lines.
    let path = "/api/audit?after=2&limit=2";
    let part = get(&server.address, path, &sign_in.headers()).await.json();
    assert_eq!((&part["entries"][0], &part["next"]), (&entries[2], &json!(4)));
    let (exported, lines) = audit(&world, &["export"]).await;
    assert!(exported);
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(&lines, entries);
    let (whole, said) = audit(&world, &["verify"]).await;
    assert!(whole && said.contains("7 entries"), "{said}");
    let head = said.lines().last().unwrap().to_owned();
    server.stop().await;

    let change = |sql: &str| {
        let database = rusqlite::Connection::open(world.data().join("sessions.db")).unwrap();
        assert_eq!(database.execute(sql, []).unwrap(), 1, "{sql}");
    };
    // The last entry is missed only by those who know that there was one.
    change("DELETE FROM audit WHERE seq = 7");
    assert!(audit(&world, &["verify"]).await.0);
    let (whole, said) = audit(&world, &["verify", "--head", &head]).await;
    assert!(!whole && said.contains("entry 7"), "{said}");
    change("UPDATE audit SET actor = 'person' WHERE seq = 4");
    let (whole, said) = audit(&world, &["verify"]).await;
    assert!(!whole && said.contains("entry 4"), "{said}");
    change("DELETE FROM audit WHERE seq = 4");
    let (whole, said) = audit(&world, &["verify"]).await;
    assert!(!whole && said.contains("entry 4 is missing"), "{said}");
}

#[tokio::test]
async fn an_archive_for_support_has_no_secret_and_nothing_that_was_said() {
    let world = demo_world().await;
    let canaries = [
        "canary-config",
        "canary-agent",
        "canary-environment",
        "canary-own-key",
        "canary-prompt",
        "canary-title",
        "canary-settings",
        "canary-proxy",
    ];
    let claude_home = world.home().join(".claude");
    std::fs::create_dir_all(&claude_home).unwrap();
    let settings = json!({ "env": { "ANTHROPIC_AUTH_TOKEN": "canary-settings" } });
    std::fs::write(claude_home.join("settings.json"), settings.to_string()).unwrap();
    let agents = "titles = \"prompt\"\nacp_agents = [\"other=agent --token canary-agent\"]\n";
    world.configure(agents);
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "canary-own-key")])
        .await;
    let mut client = with_key(&server, "canary-own-key").await.unwrap();
    let session = client.start(&world.project(), "canary-prompt").await;
    client
        .send(
            "session.rename",
            json!({ "sessionId": session, "title": "canary-title" }),
        )
        .await;
    client.until_type("session.updated").await;
    let made = key(&world, &["made"]).await;

    let pack = async |name: &str| {
        let file = world.home().join(name);
        let output = world
            .command()
            .args(["doctor", "--bundle", file.to_str().unwrap()])
            .envs([
                ("ANTHROPIC_API_KEY", "canary-environment"),
                ("TILLER_API_KEY", "canary-own-key"),
                ("HTTPS_PROXY", "http://me:canary-proxy@proxy.example"),
            ])
            .output()
            .await
            .unwrap();
        (
            file,
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (file, said) = pack("bundle.tar.gz").await;
    assert!(said.contains("Look through it"), "{said}");
    let (_, refused) = pack("bundle.tar.gz").await;
    assert!(
        refused.contains("can't write"),
        "what is there is not replaced: {refused}"
    );
    // A configuration with a mistake is quoted by the error about it, never by the archive.
    world.configure("api_key = \"canary-config\"\n");
    let (other, _) = pack("other.tar.gz").await;
    for archive in [&file, &other] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(archive.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let packed = std::fs::File::open(archive).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed)
            .read_to_string(&mut text)
            .unwrap();
        for part in [
            "findings.json",
            "machine.json",
            "config.json",
            "environment.json",
            "files.json",
            "database.json",
        ] {
            assert!(text.contains(part), "{part}");
        }
        for canary in canaries.iter().copied().chain([made.as_str()]) {
            assert!(!text.contains(canary), "{canary}");
        }
        // What helps is there.
        for word in [
            "\"whole\": true",
            "ANTHROPIC_API_KEY",
            "(set)",
            "sessions.db",
            env!("CARGO_PKG_VERSION"),
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn damage_that_is_found_later_names_the_file_and_what_to_do() {
    let world = demo_world().await;
    let server = world
        .serve_with(&["--backend", "demo"], &[("TILLER_API_KEY", "right")])
        .await;
    let mut client = with_key(&server, "right").await.unwrap();
    client.start(&world.project(), "hello").await;
    client.until_type("permission.request").await;
    // Everything is written to the file, and then overwritten beneath the running server.
    let file = world.data().join("sessions.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(database);
    let bytes = std::fs::read(&file).unwrap();
    let mut damaged = bytes.clone();
    damaged[4096..].fill(0x5a);
    std::fs::write(&file, &damaged).unwrap();
    let headers = [
        ("x-api-key", "right"),
        ("accept-language", "en"),
        ("content-type", "application/json"),
    ];
    let task = json!({ "prompt": "hello", "working_dir": world.project() }).to_string();
    let by_http = request(&server.address, "POST", "/api/task", &headers, &task).await;
    client
        .send(
            "session.start",
            json!({ "prompt": "hello", "cwd": world.project() }),
        )
        .await;
    let by_socket = client.until_type("runner.error").await["message"].to_string();
    for said in [by_http.body, by_socket] {
        assert!(
            said.contains("sessions.db") && said.contains("put back a copy"),
            "{said}"
        );
        assert!(!said.contains(world.data().to_str().unwrap()), "no path: {said}");
    }
    std::fs::write(&file, &bytes).unwrap();
    server.kill().await;
}
