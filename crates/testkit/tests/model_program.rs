//! The scripted model as a program, controlled from outside as in a browser test.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tiller-testkit");

struct Program {
    address: String,
    _child: Child,
    _folder: tempfile::TempDir,
}

impl Program {
    async fn start(script: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.json");
        std::fs::write(&path, script.to_string()).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["model", "--port", "0", "--script"])
            .arg(path)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .await
            .unwrap();
        Self {
            address: line.trim().strip_prefix("http://").unwrap().to_owned(),
            _child: child,
            _folder: folder,
        }
    }

    /// Sends a request and leaves the answer to be read.
    async fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = self.send(method, path, body).await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

fn body_of(answer: &str) -> Value {
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

fn prompt(text: &str, stream: bool) -> String {
    json!({"model": "any", "stream": stream, "messages": [{"role": "user", "content": text}]}).to_string()
}

#[tokio::test]
async fn it_answers_without_a_stream_too() {
    let program = Program::start(json!({"queue": [{"parts": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "One", "chunk": 1},
        {"type": "end_block"},
        {"type": "text", "text": "Two"},
        {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}, "id": "toolu_1"},
    ]}]}))
    .await;
    let answer = program
        .call("POST", "/v1/messages?beta=true", &prompt("hi", false))
        .await;
    let message = body_of(&answer);
    assert_eq!(
        message["content"],
        json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "text", "text": "One"},
            {"type": "text", "text": "Two"},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
        ])
    );
    assert_eq!(message["stop_reason"], "tool_use");
    assert!(program.call("HEAD", "/", "").await.starts_with("HTTP/1.1 200"));
    let counted = program
        .call("POST", "/v1/messages/count_tokens", &prompt("hi", false))
        .await;
    assert!(body_of(&counted)["input_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn gates_are_opened_and_requests_are_read_over_http() {
    let program = Program::start(json!({"rules": [{"contains": "wait", "replies": [{"parts": [
        {"type": "text", "text": "before"}, {"type": "gate", "name": "go"}, {"type": "text", "text": "after"},
    ]}]}]}))
    .await;
    let mut stream = program
        .send("POST", "/v1/messages", &prompt("please wait", true))
        .await;
    let reached = program.call("GET", "/_testkit/gates/go/reached", "").await;
    assert!(reached.starts_with("HTTP/1.1 204"));
    let mut so_far = vec![0; 64 * 1024];
    let mut length = 0;
    while !String::from_utf8_lossy(&so_far[..length]).contains("before") {
        length += stream.read(&mut so_far[length..]).await.unwrap();
    }
    assert!(!String::from_utf8_lossy(&so_far[..length]).contains("after"));
    program.call("POST", "/_testkit/gates/go/open", "").await;
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("after") && rest.contains("message_stop"));

    let requests = body_of(&program.call("GET", "/_testkit/requests", "").await);
    assert_eq!(requests[0]["prompt"], "please wait");
    assert_eq!(
        requests[0]["answered_by"],
        json!({"rule": {"rule": 0, "reply": 0}})
    );
}

#[tokio::test]
async fn errors_look_like_the_api_s() {
    let program = Program::start(json!({"queue": [
        {"error": {"status": 429, "retry_after": 7}}, {"error": {"status": 529}},
        {"parts": [{"type": "text", "text": "half"}, {"type": "cut"}]},
    ]}))
    .await;
    let limited = program.call("POST", "/v1/messages", &prompt("x", true)).await;
    assert!(limited.starts_with("HTTP/1.1 429"));
    assert!(limited.contains("retry-after: 7"));
    assert_eq!(body_of(&limited)["error"]["type"], "rate_limit_error");
    let busy = program.call("POST", "/v1/messages", &prompt("x", true)).await;
    assert_eq!(body_of(&busy)["error"]["type"], "overloaded_error");
    let cut = program.call("POST", "/v1/messages", &prompt("x", true)).await;
    assert!(cut.contains("half") && !cut.contains("message_stop"));
    assert!(!cut.ends_with("0\r\n\r\n"), "the body is not ended");
}

#[tokio::test]
async fn it_can_end_with_the_process_that_started_it() {
    let mut child = Command::new(PROGRAM)
        .args(["model", "--until-stdin-ends"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).await.unwrap();
    let address = line.trim().strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap();
    drop(child.stdin.take());
    assert!(child.wait().await.unwrap().success());
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn an_invalid_script_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script.json");
    std::fs::write(&path, r#"{"rules": [{"contain": "x", "replies": []}]}"#).unwrap();
    let output = Command::new(PROGRAM)
        .args(["model", "--script"])
        .arg(&path)
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown field `contain`"));
}
