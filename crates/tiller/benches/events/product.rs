//! The product as a user starts it, with an agent that only writes messages.

use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::agent::{EVENTS, PACE};
use crate::client::{Client, Socket};

const KEY: &str = "a-key-for-the-benchmark";

pub(crate) struct Product {
    child: Child,
    address: String,
    folder: TempDir,
}

pub(crate) async fn start(events: u64, pace: Option<u64>) -> Product {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("data")).expect("a folder");
    std::fs::write(folder.path().join("data/config.toml"), "titles = \"prompt\"\n").expect("a file");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tiller"))
        .args(["serve", "--port", "0", "--no-open"])
        .env("HOME", folder.path())
        .env("TILLER_DATA_DIR", folder.path().join("data"))
        .env(
            "TILLER_CLAUDE_BIN",
            std::env::current_exe().expect("this executable"),
        )
        .env("TILLER_API_KEY", KEY)
        .env("TILLER_LOG", "warn")
        .env(EVENTS, events.to_string())
        .env(PACE, pace.unwrap_or(0).to_string())
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let line = lines.next_line().await.expect("a line").expect("its link");
    let address = line
        .strip_prefix("tiller is ready: http://")
        .and_then(|rest| rest.split_once('/'))
        .expect("its address")
        .0
        .to_owned();
    Product {
        child,
        address,
        folder,
    }
}

impl Product {
    async fn connect(&self, path: &str) -> Socket {
        let mut request = format!("ws://{}{path}", self.address)
            .into_client_request()
            .expect("a request");
        let key = format!("Bearer {KEY}").parse().expect("a header");
        request.headers_mut().insert("authorization", key);
        tokio_tungstenite::connect_async(request)
            .await
            .expect("it answers")
            .0
    }

    /// Starts a session, and returns a client that receives its events.
    pub(crate) async fn session(&self) -> Client {
        let mut socket = self.connect("/ws/events").await;
        let start = json!({
            "type": "session.start",
            "payload": { "title": "bench", "prompt": "talk", "cwd": self.folder.path() },
        });
        socket
            .send(Message::text(start.to_string()))
            .await
            .expect("it listens");
        let session = loop {
            let event = next(&mut socket).await;
            if let Some(id) = event["payload"]["sessionId"].as_str() {
                break id.to_owned();
            }
        };
        Client {
            socket,
            session: Some(session),
        }
    }

    /// Waits until everything is stored, so that its cost counts.
    pub(crate) async fn settle(&self, client: &Client, events: u64) {
        let session = client.session.as_deref().unwrap_or_default();
        let connection =
            rusqlite::Connection::open(self.folder.path().join("data/sessions.db")).expect("the database");
        let deadline = Instant::now() + Duration::from_mins(2);
        loop {
            let count: u64 = connection
                .query_row(
                    "SELECT count(*) FROM messages WHERE session_id = ?1",
                    [session],
                    |row| row.get(0),
                )
                .unwrap_or(0);
            if count >= events {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "only {count} of {events} events are on disk"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How long it takes to open a session at its end.
    pub(crate) async fn last_page(&self, client: &Client) -> Duration {
        let mut socket = self.connect("/ws/events?only=subscribed").await;
        let ask =
            json!({ "type": "session.history", "payload": { "sessionId": client.session, "limit": 50 } });
        let start = Instant::now();
        socket
            .send(Message::text(ask.to_string()))
            .await
            .expect("it listens");
        while next(&mut socket).await["type"] != "session.history" {}
        start.elapsed()
    }

    /// Processor time of the server and its keepers.
    pub(crate) fn cpu(&self) -> Duration {
        let server = self.child.id().expect("still running");
        self.keepers().into_iter().map(cpu_of).sum::<Duration>() + cpu_of(server)
    }

    /// The peak memory of the server.
    pub(crate) fn peak_megabytes(&self) -> f64 {
        megabytes_of(self.child.id().expect("still running"), "VmHWM:")
    }

    pub(crate) fn keeper_megabytes(&self) -> f64 {
        let keepers = self.keepers().into_iter();
        keepers.map(|pid| megabytes_of(pid, "VmRSS:")).fold(0.0, f64::max)
    }

    fn keepers(&self) -> Vec<u32> {
        let runs = self.folder.path().join("data/runs");
        let entries = std::fs::read_dir("/proc").expect("processes").flatten();
        entries
            .filter(|entry| {
                let command = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
                command.starts_with("tiller-keeper") && command.contains(runs.to_string_lossy().as_ref())
            })
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }
}

async fn next(socket: &mut Socket) -> Value {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).expect("JSON"),
            Some(Ok(_)) => {}
            other => panic!("the connection ended: {other:?}"),
        }
    }
}

/// Processor time so far.
pub(crate) fn cpu_of(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_ascii_whitespace()
        .collect();
    let ticks = |index: usize| {
        fields
            .get(index)
            .and_then(|field| field.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let per_second = rustix::param::clock_ticks_per_second();
    Duration::from_secs_f64((ticks(11) + ticks(12)) as f64 / per_second as f64)
}

fn megabytes_of(pid: u32, which: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix(which));
    let kilobytes = resident.and_then(|text| text.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}
