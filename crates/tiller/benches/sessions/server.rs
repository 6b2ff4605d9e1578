//! The executable as a user starts it, and a client that requests its list.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

const KEY: &str = "a-key-for-the-benchmark";

pub(crate) struct Server {
    child: Child,
    address: String,
    /// From the start until the page arrived.
    pub(crate) first_page: Duration,
}

impl Server {
    pub(crate) async fn start(home: &Path, data: &Path) -> Self {
        std::fs::create_dir_all(data).expect("a folder");
        std::fs::write(data.join("config.toml"), "titles = \"prompt\"\n").expect("a file");
        let start = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tiller"))
            .args(["serve", "--port", "0", "--no-open"])
            .env("HOME", home)
            .env("TILLER_DATA_DIR", data)
            // Agents end at once: their work is not measured here.
            .env("TILLER_CLAUDE_BIN", "/bin/false")
            .env("TILLER_API_KEY", KEY)
            .env("TILLER_LOG", "off")
            .current_dir(home)
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
        let mut connection = TcpStream::connect(&address).await.expect("it listens");
        let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.expect("it reads");
        let mut page = Vec::new();
        connection.read_to_end(&mut page).await.expect("it answers");
        assert!(page.starts_with(b"HTTP/1.1 200"), "no page");
        Self {
            child,
            address,
            first_page: start.elapsed(),
        }
    }

    /// Requests the list of sessions. Returns the time and the size.
    pub(crate) async fn list(&self, limit: Option<u32>) -> (Duration, usize) {
        let mut request = format!("ws://{}/ws/events", self.address)
            .into_client_request()
            .expect("a request");
        let key = format!("Bearer {KEY}").parse().expect("a header");
        request.headers_mut().insert("authorization", key);
        let unlimited = WebSocketConfig::default()
            .max_message_size(None)
            .max_frame_size(None);
        let connected = tokio_tungstenite::connect_async_with_config(request, Some(unlimited), false).await;
        let (mut socket, _) = connected.expect("it answers");
        let ask = json!({ "type": "session.list", "payload": { "limit": limit } });
        let start = Instant::now();
        socket
            .send(Message::text(ask.to_string()))
            .await
            .expect("it listens");
        loop {
            let message = socket.next().await.expect("an answer").expect("an answer");
            if let Message::Text(text) = message
                && text.get(..40).unwrap_or(&text).contains("session.list")
            {
                return (start.elapsed(), text.len());
            }
        }
    }

    /// A line of the process's memory status, in bytes.
    pub(crate) fn memory(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id().expect("still running"));
        let status = std::fs::read_to_string(path).expect("memory can be measured on Linux only");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kilobytes
            .and_then(|text| text.parse::<u64>().ok())
            .expect("a figure")
            * 1024
    }

    /// As `kill -TERM`, so that agents end with it.
    pub(crate) async fn stop(mut self) {
        let id = self
            .child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .expect("still running");
        let process = rustix::process::Pid::from_raw(id).expect("a process");
        rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("it is ours");
        self.child.wait().await.expect("it ends");
    }
}
