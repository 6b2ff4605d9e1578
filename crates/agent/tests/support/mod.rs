//! A place to run the real CLI in: a home folder, a working directory and a scripted model.

#![allow(dead_code, reason = "each test program uses its own part of this")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that fails here should say so"
)]

pub(crate) mod websocket;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tiller_agent::control::{InboundRequest, RequestKind};
use tiller_agent::link::{Inbound, Inbox};
use tiller_agent::{Message, Options};
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{ModelServer, Script};

/// Far longer than anything takes; only there so that a mistake shows as a failure instead of a hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Stage {
    pub(crate) model: ModelServer,
    pub(crate) claude: Claude,
    folder: TempDir,
}

impl Stage {
    pub(crate) async fn new(claude: Claude, script: Script) -> Self {
        Self::with(claude, |_| script).await
    }

    /// For a script that names files in the working directory.
    pub(crate) async fn with(claude: Claude, script: impl FnOnce(&Path) -> Script) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        std::fs::create_dir_all(&work).unwrap();
        Self {
            model: ModelServer::start(script(&work)).await.unwrap(),
            claude,
            folder,
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn executable(&self) -> PathBuf {
        self.claude
            .executable()
            .unwrap_or_else(|missing| panic!("{missing}"))
    }

    /// Options with which the CLI talks to the scripted model and finds a home of its own.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new()
            .executable(self.executable())
            .request_timeout(PATIENCE)
            .cwd(self.cwd())
            .env("HOME", self.home())
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove_prefix("ANTHROPIC_")
            .env_remove_prefix("CLAUDE_CODE_");
        for (name, value) in self.model.env() {
            options = options.env(name, value);
        }
        options
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.cwd().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.cwd().join(name)).unwrap_or_default()
    }
}

/// Reads an inbox with patience.
pub(crate) struct Reader(pub(crate) Inbox);

impl Reader {
    pub(crate) async fn next(&mut self) -> Inbound {
        tokio::time::timeout(PATIENCE, self.0.next())
            .await
            .expect("the agent says something")
            .expect("not ended")
    }

    /// The next message for which `wanted` holds; questions on the way are a mistake of the test.
    pub(crate) async fn message(&mut self, wanted: impl Fn(&Message) -> bool) -> Message {
        loop {
            match self.next().await {
                Inbound::Message(message) if wanted(&message) => return message,
                Inbound::Message(_) => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
    }

    /// The next question.
    pub(crate) async fn request(&mut self) -> InboundRequest {
        loop {
            match self.next().await {
                Inbound::Request(request) => return request,
                Inbound::Message(_) => {}
                other => panic!("unexpected: {other:?}"),
            }
        }
    }

    pub(crate) async fn permission(&mut self) -> (InboundRequest, Box<tiller_agent::PermissionRequest>) {
        let request = self.request().await;
        match request.kind.clone() {
            RequestKind::CanUseTool(permission) => (request, permission),
            other => panic!("unexpected: {other:?}"),
        }
    }
}

/// Processes that still have `needle` in their command line or environment.
pub(crate) fn processes_with(needle: &str) -> Vec<u32> {
    let Ok(entries) = Path::new("/proc").read_dir() else {
        return Vec::new();
    };
    let own = std::process::id();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            ["cmdline", "environ"].iter().any(|file| {
                let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                String::from_utf8_lossy(&bytes).contains(needle)
            })
        })
        .collect()
}

/// Equal as JSON, where `1` and `1.0` are the same number.
pub(crate) fn assert_same(left: &serde_json::Value, right: &serde_json::Value) {
    assert!(same(left, right), "{left}\nis not\n{right}");
}

fn same(left: &serde_json::Value, right: &serde_json::Value) -> bool {
    use serde_json::Value;
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}
