//! The history over HTTP, with transcripts that the real CLI wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};

use crate::access::key;
use crate::client::EventClient;
use crate::http::{Response, get};
use crate::server::{PATIENCE, Server, SignIn, World};

/// A caller of the history API.
struct Reader<'a> {
    server: &'a Server,
    headers: Vec<(&'static str, String)>,
}

impl<'a> Reader<'a> {
    fn person(server: &'a Server, sign_in: &SignIn) -> Self {
        Self {
            server,
            headers: vec![
                ("cookie", sign_in.cookie.clone()),
                ("x-tiller-page", sign_in.page.clone()),
                ("accept-language", "en".to_owned()),
            ],
        }
    }

    fn with_key(server: &'a Server, key: &str) -> Self {
        Self {
            server,
            headers: vec![
                ("x-api-key", key.to_owned()),
                ("accept-language", "en".to_owned()),
            ],
        }
    }

    async fn get(&self, path: &str) -> Response {
        let headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        get(&self.server.address, &format!("/api/history/{path}"), &headers).await
    }

    async fn json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response.json()
    }

    /// Searches until something is found: the index is a moment behind the transcripts.
    async fn find(&self, query: &str) -> Value {
        let search = async {
            loop {
                let found = self.json(&format!("search?{query}")).await;
                if found["total"] != 0 {
                    return found;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, search)
            .await
            .expect("found in time")
    }
}

/// All files below a folder, with their contents and modification times.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let written = path.metadata().unwrap().modified().unwrap();
                files.insert(path.clone(), (std::fs::read(&path).unwrap(), written));
            }
        }
    }
    files
}

/// Runs a session with all its tools allowed. Returns its id.
async fn run(client: &mut EventClient, cwd: &Path, prompt: &str) -> String {
    let start = json!({ "prompt": prompt, "cwd": cwd, "approval": "auto" });
    client.send("session.start", start).await;
    let session = client.until_status("running").await["sessionId"].clone();
    client.until_status("completed").await;
    session.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_conversation_is_listed_read_found_and_exported() {
    // Not the world's own project: the model must know the path before there is a world.
    let folder = tempfile::tempdir().unwrap();
    let garden = folder.path().canonicalize().unwrap().join("garden");
    std::fs::create_dir(&garden).unwrap();
    let file = json!({ "file_path": garden.join("tree.txt"), "content": "green\n" });
    let script = Script::new().on(
        "plant a zebrawood tree",
        [
            Reply::tool("Write", file),
            Reply::text("The sapling 生长得很好 stands."),
        ],
    );
    let world = World::new(script).await;
    let server = world.serve_with(&["--root", garden.to_str().unwrap()], &[]).await;
    let cookie = server.sign_in().await;
    let mut client = EventClient::connect(&server, &cookie).await;
    let session = run(&mut client, &garden, "plant a zebrawood tree").await;
    // Its agent ends with it, and has written everything.
    server.stop().await;
    let claude_home = world.home().join(".claude");
    let before = snapshot(&claude_home);
    let server = world.serve().await;
    let person = Reader::person(&server, &cookie);

    let projects = person.json("projects").await;
    let project = &projects["projects"][0];
    assert_eq!(project["path"], json!(garden));
    assert_eq!(
        (&project["name"], &project["session_count"]),
        (&json!("garden"), &json!(1))
    );
    let id = project["id"].as_str().unwrap();
    assert!(
        claude_home.join("projects").join(id).is_dir(),
        "{id} is the folder's name"
    );
    assert!(project["last_active"].as_str().unwrap().ends_with('Z'));

    let sessions = person.json(&format!("projects/{id}/sessions")).await;
    assert_eq!(sessions["total"], 1);
    let listed = &sessions["sessions"][0];
    assert_eq!(listed["id"], json!(session));
    assert_eq!(listed["title"], "plant a zebrawood tree");
    assert_eq!(listed["project_path"], json!(garden));
    assert_eq!(listed["tools_used"], json!(["Write"]));
    assert_eq!(listed["files_changed"], json!(["tree.txt"]));
    assert!(listed["message_count"].as_u64().unwrap() >= 4, "{listed}");
    assert!(listed["timestamp"].as_str().unwrap().contains('T'));
    assert_eq!(
        person
            .json(&format!("projects/{id}/sessions?offset=1&limit=1"))
            .await["sessions"],
        json!([])
    );

    let read = person.json(&format!("sessions/{session}")).await;
    assert_eq!(read["session"], *listed);
    assert_eq!(
        read["resume_command"],
        json!(format!("cd '{}' && claude --resume {session}", garden.display()))
    );
    let messages = read["messages"].as_array().unwrap();
    assert_eq!(read["total"], json!(messages.len()));
    assert_eq!(messages[0]["role"], "user");
    assert_eq!(messages[0]["parentUuid"], Value::Null);
    assert_eq!(
        messages[0]["content"][0],
        json!({ "type": "text", "text": "plant a zebrawood tree" })
    );
    for pair in messages.windows(2) {
        assert!(pair[1]["parentUuid"].is_string() && pair[0]["uuid"] != pair[1]["uuid"]);
    }
    let result = messages
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap())
        .find(|block| block["type"] == "tool_result")
        .expect("a tool result");
    assert_eq!(result["tool_name"], "Write");
    let last = person.json(&format!("sessions/{session}?limit=1&from=end")).await;
    assert_eq!(last["messages"][0], messages[messages.len() - 1]);
    assert_eq!(
        last["messages"][0]["content"][0]["text"],
        "The sapling 生长得很好 stands."
    );
    let all = person.json(&format!("sessions/{session}?include=all")).await;
    assert!(all["total"].as_u64() >= read["total"].as_u64());

    for (words, role) in [("zebrawood", "user"), ("%E9%95%BF%E5%BE%97", "assistant")] {
        let found = person.find(&format!("q={words}")).await;
        let hit = &found["results"][0];
        assert_eq!(
            (&hit["session_id"], &hit["project"]),
            (&json!(session), &json!(id)),
            "{found}"
        );
        assert_eq!(hit["role"], role, "{found}");
        let uuid = &hit["uuid"];
        assert!(
            messages.iter().any(|message| message["uuid"] == *uuid),
            "opens at the message"
        );
        assert!(!hit["excerpt"].as_str().unwrap().is_empty());
    }
    assert_eq!(
        person.json("search?q=zebrawood&project=-elsewhere").await["total"],
        0
    );

    let exported = person.get(&format!("sessions/{session}/export")).await;
    assert_eq!(
        exported.header("content-type"),
        Some("text/markdown; charset=utf-8")
    );
    assert!(
        exported
            .header("content-disposition")
            .unwrap()
            .contains(&format!("{session}.md"))
    );
    assert!(
        exported.body.contains("The sapling 生长得很好 stands."),
        "{}",
        exported.body
    );
    let exported = person
        .get(&format!("sessions/{session}/export?format=html"))
        .await;
    assert_eq!(exported.header("content-type"), Some("text/html; charset=utf-8"));

    let usage = person.json("usage").await;
    assert!(usage["total"]["messages"].as_u64().unwrap() >= 2, "{usage}");
    assert_eq!(usage["sessions"][0]["key"], json!(session));

    assert_eq!(snapshot(&claude_home), before, "reading changes nothing");
    server.stop().await;
}

#[tokio::test]
async fn a_key_sees_the_transcripts_of_its_own_sessions_only() {
    let script = Script::new()
        .on("the persons pomegranate", [Reply::text("Yours alone.")])
        .on("the programs pomegranate", [Reply::text("Done.")]);
    let world = World::new(script).await;
    let server = world
        .serve_with(&[], &[("TILLER_API_KEY", "environment-key")])
        .await;
    let own = key(&world, &["ci"]).await;
    let other = key(&world, &["other"]).await;
    let blind = key(&world, &["blind", "--scope", "run"]).await;
    let mut client = EventClient::connect(&server, &server.sign_in().await).await;
    let persons = run(&mut client, &world.project(), "the persons pomegranate").await;
    let mut client = EventClient::connect_with(&server, "/ws/events", &[("x-api-key", &own)])
        .await
        .unwrap();
    let programs = run(&mut client, &world.project(), "the programs pomegranate").await;

    let all = Reader::with_key(&server, "environment-key");
    // When both are found, the CLI has stored both.
    all.find("q=persons%20pomegranate").await;
    all.find("q=programs%20pomegranate").await;
    let project = all.json("projects").await["projects"][0].clone();
    assert_eq!(project["session_count"], 2);
    let id = project["id"].as_str().unwrap();

    let program = Reader::with_key(&server, &own);
    let projects = program.json("projects").await;
    assert_eq!(projects["projects"][0]["session_count"], 1);
    assert_eq!(projects["projects"][0]["path"], project["path"]);
    let sessions = program.json(&format!("projects/{id}/sessions")).await;
    assert_eq!(
        (&sessions["total"], &sessions["sessions"][0]["id"]),
        (&json!(1), &json!(programs))
    );
    assert_eq!(
        program.json(&format!("sessions/{programs}")).await["session"]["id"],
        json!(programs)
    );
    let found = program.json("search?q=pomegranate").await;
    assert_eq!(found["total"], 1, "{found}");
    assert_eq!(found["results"][0]["session_id"], json!(programs));
    assert_eq!(
        program.get("usage").await.refusal(),
        (403, "forbidden".to_owned())
    );

    // A foreign session gets exactly the answer of an unknown one.
    let unknown = "00000000-0000-4000-8000-000000000000";
    let stranger = Reader::with_key(&server, &other);
    for path in ["", "/export", "/tool-results/x.txt"] {
        let expected = stranger.get(&format!("sessions/{unknown}{path}")).await;
        assert_eq!(expected.refusal(), (404, "session_not_found".to_owned()));
        for session in [&persons, &programs] {
            let refused = stranger.get(&format!("sessions/{session}{path}")).await;
            assert_eq!(
                (refused.status, refused.body),
                (404, expected.body.clone()),
                "{path}"
            );
        }
    }
    assert_eq!(
        stranger.json("projects").await,
        json!({ "projects": [], "retention_days": 30 })
    );
    assert_eq!(stranger.json("search?q=pomegranate").await["total"], 0);
    let refused = stranger.get(&format!("projects/{id}/sessions")).await;
    let unknown = stranger.get("projects/-nowhere/sessions").await;
    assert_eq!((refused.status, refused.body), (unknown.status, unknown.body));
    let blind = Reader::with_key(&server, &blind);
    assert_eq!(
        blind.get("projects").await.refusal(),
        (403, "forbidden".to_owned())
    );
    server.stop().await;
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let world = World::with_claude(Script::new(), None).await;
    let server = world.serve().await;
    let person = Reader::person(&server, &server.sign_in().await);
    assert_eq!(
        person.json("projects").await,
        json!({ "projects": [], "retention_days": 30 })
    );
    let session = "sessions/00000000-0000-4000-8000-000000000000";
    for path in [
        "projects/-x/sessions?offset=-1",
        "projects/-x/sessions?limit=0",
        "projects/-x/sessions?limit=many",
        &format!("{session}?offset=1.5"),
        &format!("{session}?include=some"),
        &format!("{session}?offset=1&offset=2"),
        &format!("{session}/export?format=pdf"),
        "search",
        "search?q=",
        "search?q=%00",
        "search?q=a&limit=-5",
        "search?q=a&project=..%2F..",
        "usage?from=yesterday",
    ] {
        assert_eq!(
            person.get(path).await.refusal(),
            (422, "invalid_request".to_owned()),
            "{path}"
        );
    }
    for path in [
        session,
        "sessions/..%2F..%2Fsettings",
        "sessions/%00",
        "sessions/.hidden",
    ] {
        assert_eq!(
            person.get(path).await.refusal(),
            (404, "session_not_found".to_owned()),
            "{path}"
        );
    }
    for path in ["projects/-nowhere/sessions", "projects/..%2F/sessions"] {
        assert_eq!(person.get(path).await.status, 404, "{path}");
    }
    let anyone = get(&server.address, "/api/history/projects", &[]).await;
    assert_eq!(anyone.refusal(), (401, "unauthorized".to_owned()));
    server.stop().await;
}
