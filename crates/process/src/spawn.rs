//! A child process with pipes: starts it from a [`Launch`], and ends it with everything that it started.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::launch::Launch;
use crate::limits::limit_open_files_of;
use crate::tree::{RUN_MARK, SharedTree, Tree};

/// How many lines of stderr are kept for the error message, and their total length.
const STDERR_LINES: usize = 40;
const STDERR_BYTES: usize = 16 * 1024;

/// Called with every line of the process's stderr.
pub type StderrCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code, if it exited.
    pub code: Option<i32>,
    /// The signal, if it was ended by one.
    pub signal: Option<i32>,
    /// The last lines of its stderr.
    pub stderr_tail: String,
    /// How long it lived.
    pub uptime: Duration,
}

/// A process, wherever it runs. A transport that leaves the process to another one implements this over its own
/// connection.
pub trait Process: Send + 'static {
    /// Waits for the end. Cancel-safe.
    fn wait(&mut self) -> BoxFuture<'_, Ended>;
    /// Asks the process and its child processes to end.
    fn terminate(&mut self) -> BoxFuture<'_, ()>;
    /// Kills the process and its child processes. Also called after the end of the process itself, to end what it left
    /// behind.
    fn kill(&mut self) -> BoxFuture<'_, ()>;
    /// Whether any child process is still alive.
    fn leftovers(&mut self) -> BoxFuture<'_, bool>;
    /// The process id, if it is on this machine.
    fn pid(&self) -> Option<u32>;
}

/// A process that was started here, with its pipes.
#[derive(Debug)]
pub struct Spawned {
    /// The process.
    pub process: LocalProcess,
    /// Its standard input.
    pub stdin: ChildStdin,
    /// Its standard output.
    pub stdout: ChildStdout,
}

/// Starts a process in its own process group. Its stderr is read to the end, by `on_stderr` and for the error message.
pub fn spawn(launch: &Launch, on_stderr: Option<StderrCallback>) -> io::Result<Spawned> {
    let mark = uuid::Uuid::new_v4().to_string();
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(&launch.env)
        .env(RUN_MARK, &mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let cwd = launch.open_cwd()?;
    if let Some(cwd) = &cwd {
        command.current_dir(cwd.path());
    }
    let started = Instant::now();
    let mut child = command.spawn()?;
    let (Some(stdin), Some(stdout), Some(stderr), Some(pid)) = (
        child.stdin.take(),
        child.stdout.take(),
        child.stderr.take(),
        child.id(),
    ) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    let leader = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .ok_or_else(|| io::Error::other("the process has no usable id"))?;
    if let Some(count) = launch.open_files
        && let Err(error) = limit_open_files_of(leader, count)
    {
        tracing::debug!(%error, "can't limit the agent's open files");
    }
    let tail = Arc::new(StderrTail::default());
    let reader = tokio::spawn(read_stderr(stderr, Arc::clone(&tail), on_stderr));
    let process = LocalProcess {
        child,
        pid,
        tree: SharedTree::new(Tree::new(leader, mark)),
        started,
        tail,
        reader,
        ended: None,
        swept: false,
    };
    Ok(Spawned {
        process,
        stdin,
        stdout,
    })
}

/// A child process on this machine. Dropping it ends it, with everything that it started.
pub struct LocalProcess {
    child: Child,
    pid: u32,
    tree: SharedTree,
    started: Instant,
    tail: Arc<StderrTail>,
    reader: JoinHandle<()>,
    ended: Option<Ended>,
    /// At the last check, after the end of the process itself, no process of the tree was left.
    swept: bool,
}

impl fmt::Debug for LocalProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalProcess")
            .field("pid", &self.pid)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl LocalProcess {
    async fn wait_for_end(&mut self) -> Ended {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        let (code, signal) = match self.child.wait().await {
            Ok(status) => (
                status.code(),
                std::os::unix::process::ExitStatusExt::signal(&status),
            ),
            Err(error) => {
                tracing::warn!(%error, "waiting for the agent failed");
                (None, None)
            }
        };
        let uptime = self.started.elapsed();
        // The last lines are the most useful; but a grandchild may hold stderr open forever.
        if tokio::time::timeout(Duration::from_millis(500), &mut self.reader)
            .await
            .is_err()
        {
            tracing::debug!("the agent's stderr is still held open by something that it started");
        }
        let ended = Ended {
            code,
            signal,
            stderr_tail: self.tail.text(),
            uptime,
        };
        self.ended = Some(ended.clone());
        ended
    }
}

impl Process for LocalProcess {
    fn wait(&mut self) -> BoxFuture<'_, Ended> {
        Box::pin(self.wait_for_end())
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.tree.terminate().await;
        })
    }

    fn kill(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.tree.kill().await;
        })
    }

    fn leftovers(&mut self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            let living = self.tree.living().await;
            self.swept = self.ended.is_some() && living == 0;
            living > 0
        })
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
}

impl Drop for LocalProcess {
    fn drop(&mut self) {
        if !self.swept {
            self.tree.kill_now();
        }
        self.reader.abort();
    }
}

/// The last lines of stderr.
#[derive(Default)]
struct StderrTail {
    // A std mutex: held for a push or a join, never across an await.
    lines: Mutex<VecDeque<String>>,
}

impl StderrTail {
    fn push(&self, line: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push_back(line.to_owned());
        while lines.len() > STDERR_LINES || lines.iter().map(String::len).sum::<usize>() > STDERR_BYTES {
            if lines.len() == 1 {
                break;
            }
            lines.pop_front();
        }
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// Reads stderr in lines. An endless line is cut at the size that is kept anyway.
async fn read_stderr(mut stderr: ChildStderr, tail: Arc<StderrTail>, callback: Option<StderrCallback>) {
    let mut pending: Vec<u8> = Vec::new();
    let mut chunk = vec![0; 8 * 1024];
    let emit = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches('\r');
        if !line.is_empty() {
            tail.push(line);
            if let Some(callback) = &callback {
                callback(line);
            }
        }
    };
    loop {
        let read = match stderr.read(&mut chunk).await {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, "reading the agent's stderr failed");
                break;
            }
        };
        pending.extend_from_slice(&chunk[..read]);
        while let Some(end) = memchr::memchr(b'\n', &pending) {
            emit(&pending[..end]);
            pending.drain(..=end);
        }
        if pending.len() > STDERR_BYTES {
            emit(&pending);
            pending.clear();
        }
    }
    emit(&pending);
}
