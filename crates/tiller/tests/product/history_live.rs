//! The history while other programs write it, and after the CLI has deleted transcripts.

use std::path::PathBuf;

use serde_json::{Value, json};
use tiller_testkit::model::{Reply, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::access::key;
use crate::http::{Response, request};
use crate::server::{PATIENCE, Server, World};

const KEY: &str = "environment-key";

struct Reader<'a> {
    server: &'a Server,
    key: &'a str,
}

impl Reader<'_> {
    async fn ask(&self, method: &str, path: &str, body: &str) -> Response {
        let headers = [
            ("x-api-key", self.key),
            ("accept-language", "en"),
            ("content-type", "application/json"),
        ];
        let path = format!("/api/history/{path}");
        request(&self.server.address, method, &path, &headers, body).await
    }

    async fn json(&self, path: &str) -> Value {
        let response = self.ask("GET", path, "").await;
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response.json()
    }

    /// Asks until the answer is right: the vault is filled in the background.
    async fn until(&self, path: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let asking = async {
            loop {
                let answer = self.json(path).await;
                if is_right(&answer) {
                    return answer;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asking).await.expect("in time")
    }
}

/// `GET /api/history/live`, read as it comes.
struct Live {
    socket: TcpStream,
    text: String,
}

impl Live {
    async fn open(server: &Server, key: &str) -> Self {
        let mut socket = TcpStream::connect(&server.address).await.unwrap();
        let host = &server.address;
        let head = format!("GET /api/history/live HTTP/1.1\r\nHost: {host}\r\nX-Api-Key: {key}\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut live = Self {
            socket,
            text: String::new(),
        };
        // From its first event on nothing is missed.
        live.until("\"changes\":[]").await;
        assert!(live.text.contains("text/event-stream"), "{}", live.text);
        live.text.clear();
        live
    }

    /// Reads until one of the pieces has arrived. Keep-alive comments don't prolong the wait.
    async fn until_any(&mut self, pieces: &[&str]) {
        let reading = async {
            while !pieces.iter().any(|piece| self.text.contains(piece)) {
                let mut bytes = [0; 4096];
                let count = self.socket.read(&mut bytes).await.unwrap();
                assert!(count > 0, "the stream ended: {}", self.text);
                self.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        };
        let read = tokio::time::timeout(PATIENCE, reading).await;
        assert!(read.is_ok(), "{pieces:?} in {}", self.text);
    }

    async fn until(&mut self, piece: &str) {
        self.until_any(&[piece]).await;
    }
}

fn transcripts(world: &World) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(world.home().join(".claude/projects")).unwrap();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.unwrap().path()).unwrap());
    files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect()
}

#[tokio::test]
async fn a_session_in_a_terminal_appears_grows_and_survives_in_the_vault() {
    let script = Script::new()
        .on("grow a mangrove", [Reply::text("It stands in the water.")])
        .on("and another", [Reply::text("There are two.")]);
    let world = World::new(script).await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", KEY)]).await;
    let reader = Reader {
        server: &server,
        key: KEY,
    };
    let stranger = key(&world, &["ci"]).await;
    assert_eq!(reader.json("sessions").await["total"], 0);
    let mut live = Live::open(&server, KEY).await;

    let session = world.claude_in_terminal(&[], "grow a mangrove").await;
    // A new folder of projects may contain anything: then the session need not be named.
    live.until_any(&[&session, "everything"]).await;
    let first = reader.json(&format!("sessions/{session}?limit=1&from=end")).await;
    assert_eq!(first["session"]["title"], "grow a mangrove");
    live.text.clear();
    world
        .claude_in_terminal(&["--resume", &session], "and another")
        .await;
    live.until(&session).await;
    let grown = reader
        .until(&format!("sessions/{session}?limit=1&from=end"), |page| {
            page["messages"][0]["content"][0]["text"] == "There are two."
        })
        .await;
    assert!(grown["total"].as_u64() > first["total"].as_u64());

    // Filtered, and opened at a message.
    let listed = reader.json("sessions?q=MANGROVE&model=claude&from=0").await;
    assert_eq!(
        (&listed["total"], &listed["sessions"][0]["id"]),
        (&json!(1), &json!(session))
    );
    assert!(!listed["facets"]["models"].as_array().unwrap().is_empty());
    for nothing in [
        "q=sequoia",
        "tool=Bash",
        "file=x.rs",
        "to=0",
        "project=-elsewhere",
        "model=gpt",
    ] {
        assert_eq!(
            reader.json(&format!("sessions?{nothing}")).await["total"],
            0,
            "{nothing}"
        );
    }
    let uuid = grown["messages"][0]["uuid"].as_str().unwrap();
    let around = reader
        .json(&format!("sessions/{session}?around={uuid}&limit=2&include=all"))
        .await;
    assert!(
        around["messages"]
            .as_array()
            .unwrap()
            .contains(&grown["messages"][0])
    );
    let unknown = reader
        .ask("GET", &format!("sessions/{session}?around=nothing"), "")
        .await;
    assert_eq!(unknown.refusal(), (404, "session_not_found".to_owned()));

    // The vault is off, and only the person may use it.
    let off = reader.json("vault").await;
    assert_eq!(off["enabled"], false);
    assert_eq!(
        (&off["stored_sessions"], &off["retention_days"]),
        (&json!(0), &json!(30))
    );
    assert!(!world.data().join("vault").exists());
    let program = Reader {
        server: &server,
        key: &stranger,
    };
    for (method, path) in [
        ("GET", "vault".to_owned()),
        ("PUT", "vault".to_owned()),
        ("POST", format!("vault/{session}/restore")),
    ] {
        let refused = program.ask(method, &path, r#"{"enabled":true}"#).await;
        assert_eq!(
            refused.refusal(),
            (403, "forbidden".to_owned()),
            "{method} {path}"
        );
    }
    assert_eq!(reader.ask("PUT", "vault", r#"{"on":true}"#).await.status, 422);

    let on = reader.ask("PUT", "vault", r#"{"enabled":true}"#).await;
    assert_eq!((on.status, &on.json()["enabled"]), (200, &json!(true)));
    let filled = reader.until("vault", |state| state["archiving"] == false).await;
    assert_eq!(filled["stored_sessions"], 1);
    let [transcript] = transcripts(&world).try_into().unwrap();
    let before = std::fs::read(&transcript).unwrap();
    live.text.clear();
    std::fs::remove_file(&transcript).unwrap();
    live.until("\"gone\"").await;
    assert_eq!(reader.json("sessions").await["total"], 0);
    let kept = reader.json("vault").await;
    assert_eq!(kept["sessions"][0]["id"], json!(session));
    assert_eq!(kept["sessions"][0]["archived"], true);
    let restored = reader.ask("POST", &format!("vault/{session}/restore"), "").await;
    assert_eq!((restored.status, &restored.json()["id"]), (200, &json!(session)));
    assert_eq!(std::fs::read(&transcript).unwrap(), before);
    assert_eq!(reader.json("sessions").await["total"], 1);
    assert_eq!(reader.json("vault").await["total"], 0);
    let off = reader.ask("PUT", "vault", r#"{"enabled":false}"#).await;
    assert_eq!(
        (&off.json()["enabled"], &off.json()["stored_sessions"]),
        (&json!(false), &json!(1))
    );
    server.stop().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_conversation_with_a_driver_is_marked_and_can_be_taken_over() {
    let script = Script::new().on("count the herons", [Reply::text("Seven.")]);
    let world = World::new(script).await;
    let session = world.claude_in_terminal(&[], "count the herons").await;
    let server = world.serve_with(&[], &[("TILLER_API_KEY", KEY)]).await;
    let reader = Reader {
        server: &server,
        key: KEY,
    };
    // Written a moment ago, but no process uses it.
    let page = format!("sessions/{session}?limit=1");
    assert_eq!(reader.json(&page).await["session"]["live"], Value::Null);

    let mut elsewhere = world.claude_elsewhere(&session);
    let listed = reader
        .until("sessions", |listed| listed["sessions"][0]["live"] == true)
        .await;
    let driver = &listed["sessions"][0]["driver"];
    assert_eq!(driver["pid"].as_u64(), elsewhere.id().map(u64::from));
    assert!(driver["command"].as_str().unwrap().contains(&session));
    assert_eq!(reader.json(&page).await["session"]["driver"], *driver);

    // A created key may not end other processes.
    let stranger = key(&world, &["ci"]).await;
    let over = format!("sessions/{session}/takeover");
    let stranger = Reader {
        server: &server,
        key: &stranger,
    };
    assert_eq!(stranger.ask("POST", &over, "").await.status, 403);
    assert!(elsewhere.try_wait().unwrap().is_none());

    let taken = reader.ask("POST", &over, "").await;
    assert_eq!(taken.status, 200, "{}", taken.body);
    assert_eq!(taken.json()["live"], Value::Null);
    elsewhere.wait().await.unwrap();
    server.stop().await;
}
