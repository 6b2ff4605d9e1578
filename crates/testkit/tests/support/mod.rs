//! A process with the CLI's protocol, driven line by line.

// Every test crate uses its own part of this.
#![allow(clippy::unwrap_used, clippy::expect_used, dead_code, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Far longer than anything here takes, so that a hanging test fails with everything that it saw.
const PATIENCE: Duration = Duration::from_mins(2);

pub const PROTOCOL_ARGUMENTS: [&str; 9] = [
    "--print",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
];

/// A home and a working folder for one process.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    pub fn home(&self) -> &Path {
        self.folder.path()
    }

    pub fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }
}

/// A running CLI, real or scripted.
pub struct Cli {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    /// Everything that was read, for the message of a failing test.
    pub seen: Vec<Value>,
}

impl Cli {
    pub fn spawn(
        program: &Path,
        place: &Place,
        environment: Vec<(String, String)>,
        more_arguments: &[&str],
    ) -> Self {
        let mut child = Command::new(program)
            .args(more_arguments)
            .args(PROTOCOL_ARGUMENTS)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", place.home())
            .envs(environment)
            .current_dir(place.cwd())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self {
            child,
            stdin,
            lines,
            seen: Vec::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub async fn send(&mut self, message: Value) {
        let stdin = self.stdin.as_mut().expect("stdin is still open");
        stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub async fn prompt(&mut self, text: &str) {
        self.send(json!({
            "type": "user", "message": {"role": "user", "content": text},
            "parent_tool_use_id": null, "session_id": "",
        }))
        .await;
    }

    pub async fn control(&mut self, id: &str, request: Value) -> Value {
        self.send(json!({"type": "control_request", "request_id": id, "request": request}))
            .await;
        let id = id.to_owned();
        let answer = self
            .until(move |line| line["type"] == "control_response" && line["response"]["request_id"] == *id)
            .await;
        answer["response"].clone()
    }

    pub async fn answer(&mut self, request: &Value, response: Value) {
        self.send(json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": request["request_id"], "response": response,
        }}))
        .await;
    }

    pub async fn allow(&mut self, request: &Value) {
        let input = request["request"]["input"].clone();
        self.answer(request, json!({"behavior": "allow", "updatedInput": input}))
            .await;
    }

    /// The next line, or `None` at the end of the output.
    pub async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line())
            .await
            .unwrap_or_else(|_| panic!("nothing more came after {:#?}", self.seen))
            .unwrap()?;
        let value: Value = serde_json::from_str(&line).unwrap();
        self.seen.push(value.clone());
        Some(value)
    }

    /// Reads on until a line matches.
    pub async fn until(&mut self, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        loop {
            match self.next().await {
                Some(line) if wanted(&line) => return line,
                Some(_) => {}
                None => panic!("the output ended after {:#?}", self.seen),
            }
        }
    }

    pub async fn result(&mut self) -> Value {
        self.until(|line| line["type"] == "result").await
    }

    pub async fn permission_request(&mut self) -> Value {
        self.until(|line| line["type"] == "control_request" && line["request"]["subtype"] == "can_use_tool")
            .await
    }

    /// The streamed text of everything seen so far.
    pub fn streamed(&self, delta_field: &str) -> String {
        self.seen
            .iter()
            .filter_map(|line| line["event"]["delta"][delta_field].as_str())
            .collect()
    }

    pub fn lines_of_type(&self, kind: &str) -> Vec<&Value> {
        self.seen.iter().filter(|line| line["type"] == kind).collect()
    }

    pub fn close_stdin(&mut self) {
        drop(self.stdin.take());
    }

    /// Closes stdin and waits until the process ends by itself.
    pub async fn finish(mut self) -> ExitStatus {
        self.close_stdin();
        self.wait().await
    }

    pub async fn wait(&mut self) -> ExitStatus {
        while self.next().await.is_some() {}
        self.ended().await
    }

    /// Whether the process is still alive after a while.
    pub async fn lives_for(&mut self, period: Duration) -> bool {
        tokio::time::timeout(period, self.child.wait()).await.is_err()
    }

    /// Waits for the end of the process, even if others hold its output open.
    pub async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .expect("the process ends")
            .unwrap()
    }

    pub async fn stderr(&mut self) -> String {
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut text).await.unwrap();
        text
    }
}
