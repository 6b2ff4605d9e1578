//! A home of the CLI's with transcripts written by hand.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use tiller_history::{History, Message, SessionId};

pub(crate) const ID: &str = "11111111-1111-4111-8111-111111111111";

/// A home of the CLI's with crafted transcripts.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("claude/projects/-p")).unwrap();
        Self { folder }
    }

    pub(crate) fn claude(&self) -> PathBuf {
        self.folder.path().join("claude")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.claude().join("projects/-p").join(name)
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.beside("index")
    }

    /// A path outside of the CLI's own folder.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, lines: &[Value]) {
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text.join("\n") + "\n").unwrap();
    }

    pub(crate) fn append(&self, name: &str, text: &str) {
        fs::OpenOptions::new()
            .append(true)
            .open(self.path(name))
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    pub(crate) fn history(&self) -> History {
        History::open(&self.claude(), Some(&self.index())).unwrap()
    }

    pub(crate) fn without_index(&self) -> History {
        History::open(&self.claude(), None).unwrap()
    }
}

pub(crate) fn id() -> SessionId {
    SessionId::parse(ID).unwrap()
}

pub(crate) fn line(kind: &str, uuid: &str, parent: Option<&str>, content: Value) -> Value {
    // The later in the alphabet of these tests, the later in time: u1, a1, u2, a2, …
    let number = uuid.bytes().last().map_or(0, |digit| u64::from(digit % 16));
    let second = 2 * number + u64::from(uuid.starts_with('a'));
    json!({"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "sessionId": ID, "cwd": "/home/user/p",
        "timestamp": format!("2026-11-15T10:00:{second:02}.000Z"), "version": "2.1.325",
        "message": {"role": kind, "content": content}})
}

pub(crate) fn user(uuid: &str, parent: Option<&str>, text: &str) -> Value {
    line("user", uuid, parent, json!(text))
}

pub(crate) fn assistant(uuid: &str, parent: &str, text: &str) -> Value {
    line(
        "assistant",
        uuid,
        Some(parent),
        json!([{"type": "text", "text": text}]),
    )
}

/// The blocks of a message, as clients get them.
pub(crate) fn content(message: &Message) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| content(message)[0]["text"].as_str().unwrap_or("-").to_owned();
    messages.iter().map(text).collect()
}

pub(crate) fn conversation() -> Vec<Value> {
    vec![
        user("u1", None, "first question"),
        assistant("a1", "u1", "first answer"),
    ]
}
