//! A client of the task API that knows only its contract: JSON over HTTP, and server-sent events.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::{Response, get, request};
use crate::server::{PATIENCE, Server, World};

pub(crate) const KEY: &str = "environment-key";

/// The server with a key that sees all sessions.
pub(crate) async fn serve(world: &World) -> Server {
    world.serve_with(&[], &[("TILLER_API_KEY", KEY)]).await
}

/// A program with a key.
pub(crate) struct TaskClient<'a> {
    server: &'a Server,
    key: String,
    language: &'static str,
}

impl<'a> TaskClient<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        Self::with_key(server, KEY)
    }

    pub(crate) fn with_key(server: &'a Server, key: &str) -> Self {
        Self {
            server,
            key: key.to_owned(),
            language: "en",
        }
    }

    pub(crate) fn in_language(mut self, language: &'static str) -> Self {
        self.language = language;
        self
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        let headers = [
            ("x-api-key", self.key.as_str()),
            ("content-type", "application/json"),
            ("accept-language", self.language),
        ];
        request(&self.server.address, "POST", path, &headers, &body.to_string()).await
    }

    /// Runs a task to its end.
    pub(crate) async fn run(&self, body: Value) -> Value {
        let response = self.post("/api/task", body).await;
        assert_eq!(response.status, 200, "{}", response.body);
        let json = response.json();
        assert_eq!(response.header("x-session-id"), json["session_id"].as_str());
        json
    }

    /// Starts a task; dropping the returned stream hangs up.
    pub(crate) async fn order(&self, path: &str, body: Value) -> TcpStream {
        let (address, key, body) = (&self.server.address, &self.key, body.to_string());
        let mut socket = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        let request = format!("{head}Host: {address}\r\nX-Api-Key: {key}\r\n\r\n{body}");
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    pub(crate) async fn stream(&self, body: Value) -> EventStream {
        let body = body.to_string();
        let head = format!(
            "POST /api/task/stream HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        self.open(&head, &body).await
    }

    pub(crate) async fn watch(&self, session: &str, last_event_id: Option<u64>) -> EventStream {
        let mut head = format!("GET /api/task/{session}/stream HTTP/1.1\r\n");
        if let Some(id) = last_event_id {
            head += &["Last-Event-ID: ", &id.to_string(), "\r\n"].concat();
        }
        self.open(&head, "").await
    }

    /// As [`Self::watch`], if no stream is expected.
    pub(crate) async fn watch_refused(&self, session: &str, last_event_id: &str) -> Response {
        let headers = [("x-api-key", self.key.as_str()), ("last-event-id", last_event_id)];
        get(
            &self.server.address,
            &format!("/api/task/{session}/stream"),
            &headers,
        )
        .await
    }

    async fn open(&self, head: &str, body: &str) -> EventStream {
        let address = &self.server.address;
        let mut socket = TcpStream::connect(address).await.unwrap();
        let (key, language) = (&self.key, self.language);
        let request =
            format!("{head}Host: {address}\r\nX-Api-Key: {key}\r\nAccept-Language: {language}\r\n\r\n{body}");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut stream = EventStream {
            socket,
            raw: Vec::new(),
            text: String::new(),
            session: String::new(),
            heard: Vec::new(),
        };
        stream.read_head().await;
        stream
    }
}

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SseEvent {
    pub(crate) id: Option<u64>,
    pub(crate) kind: String,
    pub(crate) data: Value,
}

pub(crate) struct EventStream {
    socket: TcpStream,
    /// Received data that was not parsed yet: first chunks, then lines.
    raw: Vec<u8>,
    text: String,
    pub(crate) session: String,
    pub(crate) heard: Vec<SseEvent>,
}

impl EventStream {
    async fn read(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.socket.read_buf(&mut self.raw)).await;
        let read = read.unwrap_or_else(|_| panic!("nothing more came; heard so far: {:?}", self.kinds()));
        read.unwrap() > 0
    }

    async fn read_head(&mut self) {
        let end = loop {
            if let Some(end) = self.raw.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            assert!(self.read().await, "{}", String::from_utf8_lossy(&self.raw));
        };
        let head = String::from_utf8(self.raw.drain(..end + 4).collect()).unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let mut values = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
            values.next().map(|(_, value)| value.to_owned())
        };
        assert_eq!(header("content-type").as_deref(), Some("text/event-stream"));
        assert_eq!(header("transfer-encoding").as_deref(), Some("chunked"));
        self.session = header("x-session-id").expect("the session's id");
    }

    /// Moves a whole chunk of the body to `text`. `None` if there is none yet, false if it was the last one.
    fn take_chunk(&mut self) -> Option<bool> {
        let line = self.raw.windows(2).position(|window| window == b"\r\n")?;
        let length = std::str::from_utf8(&self.raw[..line]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        let end = line + 2 + length + 2;
        if self.raw.len() < end {
            return None;
        }
        let chunk: Vec<u8> = self.raw.drain(..end).collect();
        self.text
            .push_str(std::str::from_utf8(&chunk[line + 2..line + 2 + length]).unwrap());
        Some(length > 0)
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(event) = parse(&event) {
                    assert_eq!(event.data["type"], event.kind.as_str());
                    assert_eq!(event.data["session_id"], self.session.as_str());
                    self.heard.push(event.clone());
                    return Some(event);
                }
                continue;
            }
            match self.take_chunk() {
                Some(true) => {}
                Some(false) => return None,
                None => assert!(self.read().await, "the connection was cut: {:?}", self.kinds()),
            }
        }
    }

    /// Reads until an event of this type. Returns its data.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await;
            let event = event.unwrap_or_else(|| panic!("ended before {kind}: {:?}", self.kinds()));
            if event.kind == kind {
                return event.data;
            }
        }
    }

    /// Reads to the end, which must be `complete`. Returns its data.
    pub(crate) async fn complete(&mut self) -> Value {
        while self.next().await.is_some() {}
        let last = self.heard.last().expect("at least one event");
        assert_eq!(last.kind, "complete", "{:?}", self.kinds());
        let completes = self.heard.iter().filter(|event| event.kind == "complete");
        assert_eq!(completes.count(), 1);
        last.data.clone()
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.heard.iter().map(|event| event.kind.as_str()).collect()
    }

    /// As [`Self::kinds`], with consecutive duplicates removed.
    pub(crate) fn story(&self) -> Vec<&str> {
        let mut kinds = self.kinds();
        kinds.dedup();
        kinds
    }

    /// All of `text` or `thinking`, in order of blocks.
    pub(crate) fn joined(&self, kind: &str) -> String {
        let pieces = self.heard.iter().filter(|event| event.kind == kind);
        pieces.map(|event| event.data[kind].as_str().unwrap()).collect()
    }

    pub(crate) fn last_id(&self) -> u64 {
        self.heard.iter().rev().find_map(|event| event.id).expect("an id")
    }
}

/// `None` for a comment.
fn parse(text: &str) -> Option<SseEvent> {
    let field = |name: &str| {
        let start = format!("{name}: ");
        text.lines().find_map(|line| line.strip_prefix(&start))
    };
    Some(SseEvent {
        id: field("id").map(|id| id.parse().unwrap()),
        kind: field("event")?.to_owned(),
        data: serde_json::from_str(field("data").unwrap()).unwrap(),
    })
}

/// A question as the agent asks it.
pub(crate) fn question(text: &str, multi_select: bool) -> Value {
    json!({
        "question": text, "header": "Choice", "multiSelect": multi_select,
        "options": [
            { "label": "Red", "description": "warm" },
            { "label": "Blue", "description": "cool" },
        ],
    })
}
