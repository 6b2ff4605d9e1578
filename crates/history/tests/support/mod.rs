//! A home for the real CLI, and the history of what it does there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tiller_history::History;
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{ModelServer, Script};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// A home, a project and a scripted model for the CLI.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    pub(crate) model: ModelServer,
    version: Claude,
}

impl Scene {
    pub(crate) async fn new(version: Claude, script: impl FnOnce(&Path) -> Script) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        let model = ModelServer::start(script(&project)).await.unwrap();
        Self {
            folder,
            model,
            version,
        }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn claude_home(&self) -> PathBuf {
        self.folder.path().join("home/.claude")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    pub(crate) fn history(&self) -> History {
        History::open(&self.claude_home(), Some(&self.index())).unwrap()
    }

    /// Runs the CLI for one prompt, and returns the line with its result. The CLI is told to end only when everything
    /// is on disk: a CLI that ends gives its last lines two seconds, and on a busy machine they were lost.
    pub(crate) async fn run(&self, prompt: &str, arguments: &[&str]) -> Value {
        let program = self
            .version
            .executable()
            .unwrap_or_else(|missing| panic!("{missing}"));
        let mut command = if program.extension().is_some_and(|extension| extension == "js") {
            let mut node = tokio::process::Command::new("node");
            node.arg(program);
            node
        } else {
            tokio::process::Command::new(program)
        };
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path().join("home"))
            .env("IS_SANDBOX", "1")
            .env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1")
            .envs(self.model.env())
            .current_dir(self.project())
            .args([
                "--print",
                "--verbose",
                "--permission-mode=bypassPermissions",
                "--input-format=stream-json",
                "--output-format=stream-json",
            ])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut cli = command.spawn().unwrap();
        let mut input = cli.stdin.take().unwrap();
        let message = json!({ "type": "user", "message": { "role": "user", "content": prompt },
            "parent_tool_use_id": null, "session_id": "" });
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        let mut output = BufReader::new(cli.stdout.take().unwrap()).lines();
        let mut last = None;
        let result = loop {
            let line = output.next_line().await.unwrap().expect("a result");
            let line: Value = serde_json::from_str(&line).unwrap();
            let is_kept = line["type"] == "assistant" || line["subtype"] == "compact_boundary";
            if is_kept && line["parent_tool_use_id"].is_null() {
                last = line["uuid"].as_str().map(str::to_owned);
            }
            if line["type"] == "result" {
                break line;
            }
        };
        let last = last.expect("something that is written down");
        while !self.has_written(&last) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        drop(input);
        cli.wait().await.unwrap();
        result
    }

    fn has_written(&self, uuid: &str) -> bool {
        let files = walk(&self.claude_home().join("projects")).into_iter();
        let mut transcripts =
            files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        transcripts.any(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(uuid)))
    }

    /// The lines of a session's own transcript, fully parsed.
    pub(crate) fn lines(&self, session: &str) -> Vec<Value> {
        let path = walk(&self.claude_home().join("projects"))
            .into_iter()
            .find(|path| path.ends_with(format!("{session}.jsonl")))
            .unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Every file beneath a folder.
pub(crate) fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(walk(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

/// A state that changes if anything beneath a folder is written.
pub(crate) fn state(folder: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    walk(folder)
        .into_iter()
        .map(|path| {
            let metadata = std::fs::symlink_metadata(&path).unwrap();
            (path, (metadata.len(), metadata.modified().unwrap()))
        })
        .collect()
}
