//! The executable, started as a user would, in its own world.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tiller_testkit::installed::Claude;
use tiller_testkit::model::{ModelServer, Reply, Script};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::http;

/// Long enough for a slow and busy machine; nothing waits for it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A model's call of the tool Bash.
pub(crate) fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({ "command": command, "description": "a test" }))
}

/// A home folder, a data folder, a project, and a scripted model.
pub(crate) struct World {
    folder: TempDir,
    pub(crate) model: ModelServer,
    claude: Option<PathBuf>,
}

impl World {
    /// With the real Claude Code.
    pub(crate) async fn new(script: Script) -> Self {
        let claude = Claude::V2_1_325
            .executable()
            .unwrap_or_else(|missing| panic!("{missing}"));
        Self::with_claude(script, Some(claude)).await
    }

    /// `None`: a machine without Claude Code.
    pub(crate) async fn with_claude(script: Script, claude: Option<PathBuf>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "home/project", "data"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        // A title from the model would cost a call at any moment of any test.
        std::fs::write(folder.path().join("data/config.toml"), "titles = \"prompt\"\n").unwrap();
        Self {
            folder,
            model: ModelServer::start(script).await.unwrap(),
            claude,
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The executable of Claude Code.
    pub(crate) fn claude(&self) -> &Path {
        self.claude.as_deref().expect("a machine with Claude Code")
    }

    /// The CLI that resumes a session as in a terminal, with a pipe as its keyboard.
    pub(crate) fn claude_elsewhere(&self, session: &str) -> tokio::process::Child {
        self.claude_with(&["--resume", session])
    }

    /// The CLI with a pipe as its keyboard, in the project.
    pub(crate) fn claude_with(&self, arguments: &[&str]) -> tokio::process::Child {
        tokio::process::Command::new(self.claude())
            .args([
                "--print",
                "--verbose",
                "--input-format=stream-json",
                "--output-format=stream-json",
            ])
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home())
            .envs(self.model.env())
            .current_dir(self.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the CLI starts")
    }

    /// Runs the CLI for one prompt as in a terminal, without Tiller. Returns the conversation's id.
    pub(crate) async fn claude_in_terminal(&self, arguments: &[&str], prompt: &str) -> String {
        let claude = Claude::V2_1_325.executable();
        let output = Command::new(claude.unwrap_or_else(|missing| panic!("{missing}")))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home())
            .envs(self.model.env())
            .current_dir(self.project())
            .args(["--print", "--output-format=json"])
            .args(arguments)
            .args(["--", prompt])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        result["session_id"].as_str().expect("a session").to_owned()
    }

    /// What the CLI has stored of a session so far.
    pub(crate) fn transcript(&self, session: &str) -> String {
        let projects = std::fs::read_dir(self.home().join(".claude/projects")).into_iter();
        let files = projects
            .flatten()
            .flatten()
            .map(|project| project.path().join(format!("{session}.jsonl")));
        files
            .filter_map(|file| std::fs::read_to_string(file).ok())
            .collect()
    }

    pub(crate) fn configure(&self, config: &str) {
        std::fs::write(self.data().join("config.toml"), config).unwrap();
    }

    /// The program in this world.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tiller"));
        command
            .env_clear()
            // Nothing of the machine that runs the test: an installed Claude Code would show.
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home())
            .env("TILLER_DATA_DIR", self.data())
            .envs(self.model.env())
            .current_dir(self.project())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(claude) = &self.claude {
            command.env("TILLER_CLAUDE_BIN", claude);
        }
        command
    }

    pub(crate) async fn serve(&self) -> Server {
        self.serve_with(&[], &[]).await
    }

    pub(crate) async fn serve_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Server {
        let mut command = self.command();
        command
            .args(["serve", "--port", "0", "--no-open"])
            .args(arguments)
            .envs(environment.iter().copied());
        Server::start(command).await
    }

    /// As from a shell after `ulimit -Sn COUNT`.
    pub(crate) async fn serve_limited(&self, count: u64) -> Server {
        let command = self.command();
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &format!("ulimit -Sn {count} && exec \"$0\" \"$@\"")])
            .arg(command.as_std().get_program())
            .args(["serve", "--port", "0", "--no-open"])
            .env_clear()
            .envs(
                command
                    .as_std()
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir(self.project())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        Server::start(shell).await
    }

    /// A query on the database, as a curious user would run it.
    pub(crate) fn query(&self, sql: &str) -> Vec<String> {
        let connection = rusqlite::Connection::open(self.data().join("sessions.db")).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement
            .query_map([], |row| row.get::<_, rusqlite::types::Value>(0))
            .unwrap();
        rows.map(|value| match value.unwrap() {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            other => format!("{other:?}"),
        })
        .collect()
    }
}

/// What a browser has after opening a link.
#[derive(Clone)]
pub(crate) struct SignIn {
    /// `NAME=VALUE`
    pub(crate) cookie: String,
    /// The page's own secret.
    pub(crate) page: String,
}

impl SignIn {
    pub(crate) fn from_response(response: &http::Response) -> Self {
        assert_eq!(response.status, 303, "{}", response.body);
        let cookie = response.header("set-cookie").expect("a cookie");
        let location = response.header("location").expect("a redirect");
        Self {
            cookie: cookie.split(';').next().unwrap().to_owned(),
            page: location.strip_prefix("/#k=").expect("a secret").to_owned(),
        }
    }

    /// The headers of a request.
    pub(crate) fn headers(&self) -> [(&str, &str); 2] {
        [("cookie", &self.cookie), ("x-tiller-page", &self.page)]
    }

    /// The subprotocols of an upgrade.
    pub(crate) fn protocols(&self) -> String {
        format!("tiller.v1, page.{}", self.page)
    }
}

pub(crate) struct Server {
    child: Child,
    /// `127.0.0.1:PORT`
    pub(crate) address: String,
    /// The link that was printed.
    pub(crate) link: String,
}

impl Server {
    pub(crate) async fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line())
            .await
            .expect("ready in time")
            .unwrap();
        let line = line.expect("a ready line");
        let link = line
            .strip_prefix("tiller is ready: ")
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned();
        let address = link
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once('/'))
            .unwrap()
            .0
            .to_owned();
        Self { child, address, link }
    }

    /// With what it logs, for which `command` has a pipe.
    pub(crate) async fn start_with_log(command: Command) -> (Self, tokio::process::ChildStderr) {
        let mut server = Self::start(command).await;
        let log = server.child.stderr.take().expect("a pipe");
        (server, log)
    }

    /// The same process, which has become a new server and printed another link.
    pub(crate) fn moved_to(self, link: &str) -> Self {
        let address = link.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
        Self {
            child: self.child,
            address: address.unwrap().0.to_owned(),
            link: link.to_owned(),
        }
    }

    pub(crate) fn path_of(&self, link: &str) -> String {
        link.strip_prefix(&format!("http://{}", self.address))
            .unwrap()
            .to_owned()
    }

    /// Opens the link as a browser would.
    pub(crate) async fn sign_in(&self) -> SignIn {
        let response = http::get(&self.address, &self.path_of(&self.link), &[]).await;
        SignIn::from_response(&response)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("still running")
    }

    /// The limit of open files: the current one, and its maximum.
    pub(crate) fn open_files(&self) -> (String, String) {
        let pid = self.child.id().expect("still running");
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))
            .unwrap();
        let mut columns = line.split_whitespace().map(str::to_owned);
        (columns.next().unwrap(), columns.next().unwrap())
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id().expect("still running")).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// The peak memory so far, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let pid = self.child.id().expect("still running");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kilobytes * 1024
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> std::process::ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait())
            .await
            .expect("ends in time")
            .unwrap()
    }

    pub(crate) async fn stop(self) {
        self.signal(rustix::process::Signal::TERM);
        assert!(self.ended().await.success());
    }

    pub(crate) async fn kill(self) {
        self.signal(rustix::process::Signal::KILL);
        self.ended().await;
    }
}

/// Polls for a state that no event reports.
pub(crate) async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !done() {
        assert!(tokio::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// The processes whose working directory is `folder` or below.
pub(crate) fn processes_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .map(|entry| {
            std::fs::read_to_string(entry.path().join("cmdline"))
                .unwrap_or_default()
                .replace('\0', " ")
        })
        .collect()
}

/// A stopped server has ended its agents. Leftovers disappear a moment later: a keeper removes its folder before it
/// exits, and a `git` command of the CLI may still be running.
pub(crate) async fn until_nothing_is_left(world: &World) {
    until("something is left", || processes_in(&world.project()).is_empty()).await;
}

/// The process that drives this conversation: the CLI, not its keeper, and not a fork.
pub(crate) fn agent_of(session: &str) -> Pid {
    let flags = ["--session-id", "--resume"].map(|flag| format!("{flag}={session}"));
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let found: Vec<i32> = entries
        .filter(|entry| {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let mut words = line.split('\0');
            let is_cli = words.next().is_some_and(|program| program.ends_with("/claude"));
            let drives = flags.iter().any(|flag| line.contains(flag)) && !line.contains("--fork-session");
            is_cli && drives
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    // A process that the CLI is about to start looks like the CLI until it executes its own program.
    let found: Vec<Pid> = found.into_iter().filter_map(Pid::from_raw).collect();
    let is_child = |pid: &Pid| parent_of(*pid).is_some_and(|parent| found.contains(&parent));
    let agent = found.iter().find(|pid| !is_child(pid));
    *agent.expect("an agent")
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}
