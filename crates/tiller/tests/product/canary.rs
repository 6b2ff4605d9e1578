//! No credential shows where it does not belong: in a log, a file, a command line, an environment or an answer. Each one is a word
//! that is looked for everywhere while an agent runs, with the most talkative log.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::json;
use tiller_testkit::model::{Reply, Script};

use crate::access::{key, with_key};
use crate::client::EventClient;
use crate::http::{get, request};
use crate::server::{Server, World, until_nothing_is_left};

/// A credential, and where it may be.
struct Canary {
    name: &'static str,
    value: String,
    /// It is the agent's own: the agent and what it starts have it in their environment.
    of_agent: bool,
}

fn canary(name: &'static str, value: impl Into<String>, of_agent: bool) -> Canary {
    let value = value.into();
    assert!(
        value.len() >= 16,
        "{name} is too short to be told from chance: {value}"
    );
    Canary {
        name,
        value,
        of_agent,
    }
}

fn contains(bytes: &[u8], canary: &Canary) -> bool {
    bytes
        .windows(canary.value.len())
        .any(|window| window == canary.value.as_bytes())
}

/// All files beneath a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&path)),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    found
}

/// The server, and everything that it has started.
fn processes(server: &Server) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut found = vec![server.pid()];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(pid, _)| *pid),
        );
        at += 1;
    }
    found
}

/// Looks at the command lines and the environments of all processes. How many there were.
fn look_at_processes(server: &Server, canaries: &[Canary]) -> usize {
    let all = processes(server);
    for pid in &all {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let (command, environment) = (read("cmdline"), read("environ"));
        let shown = String::from_utf8_lossy(&command).replace('\0', " ");
        for canary in canaries {
            assert!(
                !contains(&command, canary),
                "{} is in a command line: {shown}",
                canary.name
            );
            let allowed = canary.of_agent;
            assert!(
                allowed || !contains(&environment, canary),
                "{} is in the environment of {shown}",
                canary.name
            );
        }
    }
    all.len()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn look_at_files(folder: &Path, canaries: &[Canary]) {
    for path in files(folder) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        for canary in canaries {
            assert!(
                !contains(&bytes, canary),
                "{} is in {}",
                canary.name,
                path.display()
            );
        }
    }
}

fn look_at_text(what: &str, text: &str, canaries: &[Canary]) {
    for canary in canaries {
        assert!(
            !text.contains(&canary.value),
            "{} is in {what}: {text}",
            canary.name
        );
    }
}

#[tokio::test]
async fn no_credential_shows_where_it_does_not_belong() {
    let make = json!({ "command": "echo made > made.txt", "description": "Make it" });
    let script = Script::new().on("go", [Reply::tool("Bash", make), Reply::text("Done.")]);
    let world = World::new(script).await;
    let (environment_key, model_key) = ("canary-of-the-environment-key", "canary-of-the-model-key");
    let created = key(&world, &["canary", "--scope", "read,run,approve"]).await;
    // What a person's own configuration holds.
    let settings = json!({
        "env": { "PERSONAL_TOKEN": "canary-of-the-settings" },
        "mcpServers": {},
    });
    std::fs::create_dir_all(world.home().join(".claude")).unwrap();
    std::fs::write(world.home().join(".claude/settings.json"), settings.to_string()).unwrap();
    let servers = json!({ "mcpServers": {
        "args": { "command": "true", "args": ["--token", "canary-of-mcp-arguments", "--key=canary-of-mcp-options"] },
        "env": { "command": "true", "env": { "SECRET": "canary-of-mcp-environment" } },
        "url": { "type": "http", "url": "https://someone:canary-of-mcp-user@mcp.test/x?token=canary-of-mcp-query",
            "headers": { "Authorization": "Bearer canary-of-mcp-headers" } },
    } });
    std::fs::write(world.project().join(".mcp.json"), servers.to_string()).unwrap();

    let log_path = world.home().join("server.log");
    let mut command = world.command();
    command
        .args(["serve", "--port", "0", "--no-open"])
        .env("TILLER_API_KEY", environment_key)
        .env("ANTHROPIC_API_KEY", model_key)
        .env("TILLER_LOG", "trace")
        .stderr(File::create(&log_path).unwrap());
    let server = Server::start(command).await;
    let code = server.link.split("code=").nth(1).unwrap().to_owned();
    let sign_in = server.sign_in().await;
    let cookie = sign_in.cookie.split_once('=').unwrap().1.to_owned();
    let mut canaries = vec![
        canary("the key of the environment", environment_key, false),
        canary("a created key", created.clone(), false),
        canary("the code of the link", code, false),
        canary("the cookie", cookie, false),
        canary("the page's secret", sign_in.page.clone(), false),
        canary("the key of the model", model_key, true),
        canary("a value of settings.json", "canary-of-the-settings", true),
    ];
    for name in [
        "canary-of-mcp-arguments",
        "canary-of-mcp-options",
        "canary-of-mcp-environment",
        "canary-of-mcp-user",
        "canary-of-mcp-query",
        "canary-of-mcp-headers",
    ] {
        canaries.push(canary("a secret of an MCP server", name, true));
    }

    // An agent that runs and asks, for the person and for a key.
    let mut person = EventClient::connect(&server, &sign_in).await;
    person.start(&world.project(), "go").await;
    let asked = person.until_type("permission.request").await;
    let mut program = with_key(&server, &created).await.unwrap();
    program.start(&world.project(), "go").await;
    program.until_type("permission.request").await;
    let secrets = files(&world.data().join("runs"))
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name == "secret"));
    let secrets: Vec<Vec<u8>> = secrets.map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(secrets.len(), 2, "a secret for each run");
    // The servers of the project were not approved, so nothing runs with their secrets.
    let count = look_at_processes(&server, &canaries[..6]);
    assert!(count >= 7, "server, keepers, launchers and agents: {count}");
    for pid in processes(&server) {
        for name in ["cmdline", "environ"] {
            let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            for secret in &secrets {
                let hex = hex(secret);
                let shows = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
                assert!(
                    !shows(secret) && !shows(hex.as_bytes()),
                    "a run's secret is in {name} of {pid}"
                );
            }
        }
    }

    // Answers, good ones and bad ones.
    let headers = [("x-api-key", environment_key), ("accept-language", "en")];
    for path in [
        "/api/inventory",
        "/api/system",
        "/api/backends",
        "/api/sign-ins",
        "/api/openapi.json",
    ] {
        let path = if path == "/api/inventory" {
            format!("{path}?cwd={}", world.project().display())
        } else {
            path.to_owned()
        };
        let answer = get(&server.address, &path, &headers).await;
        look_at_text(&path, &format!("{}{}", answer.head, answer.body), &canaries);
    }
    for (name, value) in [
        ("x-api-key", format!("{created}x")),
        ("authorization", format!("Bearer {environment_key}x")),
        ("cookie", format!("{}x", sign_in.cookie)),
    ] {
        let answer = get(&server.address, "/api/system", &[(name, &value)]).await;
        assert_eq!(answer.status, 401, "{name}");
        look_at_text("a refusal", &format!("{}{}", answer.head, answer.body), &canaries);
    }
    let bad = [
        ("x-api-key", created.as_str()),
        ("content-type", "application/json"),
    ];
    for body in [
        "{",
        "{\"prompt\":1}",
        "{\"prompt\":\"x\",\"working_dir\":\"/nowhere\"}",
    ] {
        let answer = request(&server.address, "POST", "/api/task", &bad, body).await;
        assert!(answer.status >= 400, "{body}");
        look_at_text("an error", &answer.body, &canaries);
    }
    program
        .send(
            "session.inquire",
            json!({ "sessionId": asked["sessionId"], "subject": "settings" }),
        )
        .await;
    look_at_text(
        "an answer to a key",
        &program.until_type("runner.error").await.to_string(),
        &canaries,
    );

    person.answer(&asked, json!({ "behavior": "allow" })).await;
    person.until_status("completed").await;
    let heard: String = person
        .heard
        .iter()
        .chain(&program.heard)
        .map(ToString::to_string)
        .collect();
    look_at_text("an event", &heard, &canaries);
    for arguments in [vec!["doctor"], vec!["key", "list"], vec!["sessions", "--json"]] {
        let mut command = world.command();
        let output = command
            .args(&arguments)
            .env("ANTHROPIC_API_KEY", model_key)
            .output()
            .await
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        look_at_text(arguments[0], &String::from_utf8_lossy(&text), &canaries);
    }
    look_at_files(&world.data(), &canaries);
    server.stop().await;
    look_at_files(&world.data(), &canaries);
    let log = std::fs::read_to_string(&log_path).unwrap();
    assert!(
        log.contains("TRACE") && log.contains("DEBUG"),
        "the log is talkative"
    );
    look_at_text("the log", &log, &canaries);
    for secret in &secrets {
        let hex = hex(secret);
        assert!(!log.contains(&hex), "a run's secret is in the log");
    }
    until_nothing_is_left(&world).await;
}
