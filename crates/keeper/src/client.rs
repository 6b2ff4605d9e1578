//! The program's side: starts keepers, reconnects to them, and talks to agents through them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, sink, stream};
use rustix::process::Pid;
use tiller_process::{Ended, Launch, Line, Process, SharedTree, Shield, Tree, TreeIdentity, Wire};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot, watch};

use crate::files::{PID_FILE, SOCKET, create_secret, read_exit, read_secret};
use crate::lines::{KeeperReports, Output, end_on_record, next_report};
use crate::signs::Signs;
use crate::wire::{Frames, Instruction, Order, Report};

/// How many lines and other orders may wait to be sent.
const ORDERS: usize = 64;

/// The initial size of the line buffer; larger buffers are released.
const LINE: usize = 64 * 1024;

/// How long a keeper may take to remove its folder, and how often that is checked.
const FINISH_TIME: Duration = Duration::from_secs(2);
const FINISH_LOOK: Duration = Duration::from_millis(5);

/// How long a keeper may take to report its state. It is fast, but the machine may be slow.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// How long to retry if a keeper can't be reached, and how often. The usual cause is a temporary lack of descriptors or
/// memory.
const REACH_TIME: Duration = Duration::from_secs(5);
const REACH_AGAIN: Duration = Duration::from_millis(100);

/// How keepers are started, and where their folders are.
#[derive(Debug, Clone)]
pub struct KeeperConfig {
    /// The folder that contains the folders of all runs.
    pub folder: PathBuf,
    /// The program that calls [`keep`](crate::keep) with its last argument…
    pub program: PathBuf,
    /// …and the arguments before that.
    pub args: Vec<OsString>,
    /// How long an agent without a connected program may be idle.
    pub grace: Duration,
    /// How long it may go without a program while it waits for an answer.
    pub decision_grace: Duration,
    /// What tells what an agent is about.
    pub signs: Signs,
    /// The shield of the agents.
    pub shield: Shield,
}

/// An agent with a keeper.
pub struct KeptAgent {
    /// The connection to the agent. Only its reader learns of the agent's end.
    pub wire: Wire,
    /// The number of the last numbered line that the agent got. `None`: the keeper has gone and left no record of it.
    pub last_input: Option<u64>,
    /// Whether the agent accepts input. If not, it is ending or has ended: the wire delivers the rest of its output, and
    /// then its end.
    pub listens: bool,
    /// Sent when everything that the agent had written so far was read from the wire and more is requested. Never sent
    /// if the agent ends before that.
    pub caught_up: oneshot::Receiver<()>,
    /// Further commands to the keeper.
    pub run: KeeperHandle,
}

/// Why there is no agent to reconnect to.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No agent was ever started under that name, so no output can be lost.
    #[error("it was never started")]
    NeverStarted,
    /// The agent was or may have been started, and its state is unknown. It may be running.
    #[error("{0}")]
    Unknown(#[source] io::Error),
}

/// Sends commands about a run to its keeper. Cheap to clone.
#[derive(Debug, Clone)]
pub struct KeeperHandle {
    folder: PathBuf,
    orders: mpsc::Sender<Order>,
}

impl KeeperHandle {
    /// The output before this position is no longer needed.
    pub fn forget(&self, before: u64) {
        // If the channel is full, the next position is sent instead.
        self.orders.try_send(Order::Forget { before }).ok();
    }

    /// The agent has ended and all of its output is stored: removes everything of the run.
    pub async fn finish(&self) {
        let deadline = tokio::time::Instant::now() + FINISH_TIME;
        let told = tokio::time::timeout_at(deadline, self.orders.send(Order::Finish)).await;
        if let Ok(Err(_)) = told {
            // If the keeper has gone, this process removes the folder.
            return discard_folder(&self.folder);
        }
        // The keeper removes its folder at once.
        while self.folder.exists() {
            if tokio::time::Instant::now() >= deadline {
                return self.force().await;
            }
            tokio::time::sleep(FINISH_LOOK).await;
        }
    }

    /// Kills a keeper that does not exit, because it was stopped or hangs, and removes its folder.
    async fn force(&self) {
        tracing::warn!("a keeper does not end and is killed");
        match read_identity(&self.folder) {
            Ok(Some(identity)) => {
                if let Some(tree) = Tree::find(&identity) {
                    SharedTree::new(tree).kill_with_keeper().await;
                }
                discard_folder(&self.folder);
            }
            // The keeper has just exited after all.
            Ok(None) => {}
            // The next server finds the folder and removes it.
            Err(error) => tracing::warn!(%error, "which process the keeper is can't be read"),
        }
    }
}

/// Starts a keeper for `run`, and through it the agent. The run's name must be unique on the machine: the agent's
/// processes are found by it.
pub async fn start(keeping: &KeeperConfig, run: &str, launch: &Launch) -> io::Result<KeptAgent> {
    let folder = keeping.folder.join(run);
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&keeping.folder)?;
    // A folder must exist to be hidden.
    let launch = keeping.shield.wrap(launch)?;
    builder.recursive(false).create(&folder)?;
    let outcome = start_in(keeping, &folder, run, launch).await;
    if outcome.is_err() {
        discard_folder(&folder);
    }
    outcome
}

async fn start_in(keeping: &KeeperConfig, folder: &Path, run: &str, launch: Launch) -> io::Result<KeptAgent> {
    let secret = create_secret(folder)?;
    let listener = Address::of(folder)?.bind()?;
    let (ours, theirs) = StdStream::pair()?;
    let mut child = Command::new(&keeping.program)
        .args(&keeping.args)
        .arg(folder)
        .arg0("tiller-keeper")
        // The agent can read its keeper's environment, so it is empty.
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        // Only the keeper holds the listener: when the keeper has gone, connecting fails at once.
        .stdout(Stdio::from(OwnedFd::from(listener)))
        .stderr(Stdio::null())
        .current_dir("/")
        .spawn()?;
    tokio::spawn(async move {
        // Only to reap the process; its exit status does not matter.
        if let Err(error) = child.wait().await {
            tracing::debug!(%error, "waiting for a keeper failed");
        }
    });
    let instruction = Instruction {
        launch,
        mark: run.to_owned(),
        grace: keeping.grace,
        decision_grace: keeping.decision_grace,
        signs: keeping.signs.clone(),
        // Only over the socket: other users can read command lines and environments.
        secret,
    };
    let connection = Connection::open(ours, Order::Start(Box::new(instruction))).await?;
    match connection.standing {
        Report::Running { pid, .. } => {
            // The keeper wrote the file. If it can't be read now, the agent runs all the same and must be supervised.
            let tree = match read_identity(folder) {
                Ok(identity) => identity.and_then(|identity| Tree::find(&identity)),
                Err(error) => {
                    tracing::warn!(%error, run, "can't read the agent's process id");
                    let leader = i32::try_from(pid).ok().and_then(Pid::from_raw);
                    leader.map(|leader| Tree::new(leader, run))
                }
            };
            Ok(connection.kept(folder, 0, tree))
        }
        Report::NotStarted { reason } => Err(io::Error::other(reason)),
        Report::Wrote { .. } | Report::Exited { .. } | Report::Replaced => Err(unexpected()),
    }
}

/// Reconnects to the keeper of `run` and reads the agent's output from `position` on.
pub async fn attach(keeping: &KeeperConfig, run: &str, position: u64) -> Result<KeptAgent, AttachError> {
    let folder = keeping.folder.join(run);
    let deadline = tokio::time::Instant::now() + REACH_TIME;
    loop {
        match try_attach(&folder, position).await {
            Ok(Some(kept)) => return Ok(kept),
            Ok(None) => return Err(AttachError::NeverStarted),
            Err(error) if tokio::time::Instant::now() < deadline => {
                tracing::debug!(%error, run, "a keeper can't be reached; retrying");
                tokio::time::sleep(REACH_AGAIN).await;
            }
            Err(error) => {
                tracing::warn!(%error, run, "a keeper can't be reached");
                return match read_identity(&folder) {
                    // The next server would start another agent beside it.
                    Ok(Some(identity)) => Ok(without_keeper(&folder, &identity, position).await),
                    Ok(None) | Err(_) => Err(AttachError::Unknown(error)),
                };
            }
        }
    }
}

/// `None`: there is neither a keeper nor a trace of an agent. An error proves neither.
async fn try_attach(folder: &Path, position: u64) -> io::Result<Option<KeptAgent>> {
    let connected = Address::of(folder).and_then(|address| address.connect());
    match connected {
        Ok(stream) => {
            let secret = read_secret(folder)?;
            let connection = Connection::open(stream, Order::Attach { secret }).await?;
            let tree = read_identity(folder)?.and_then(|identity| Tree::find(&identity));
            Ok(Some(connection.kept(folder, position, tree)))
        }
        // Nobody listens on the socket: the keeper has gone, or never existed.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            // The agent gets no input before its process id is stored; without the file there was no agent.
            match read_identity(folder)? {
                Some(identity) => Ok(Some(without_keeper(folder, &identity, position).await)),
                None => Ok(None),
            }
        }
        Err(error) => Err(error),
    }
}

/// The position from which the output of `run` can be read: the beginning, or a position in the middle of a line before
/// which everything was discarded.
pub fn first_kept(keeping: &KeeperConfig, run: &str) -> u64 {
    crate::output::first_kept(&keeping.folder.join(run))
}

/// The names of all runs that have a folder.
pub fn runs(keeping: &KeeperConfig) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(&keeping.folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Ends all processes of `run` and removes its folder. Processes that can't be identified now are left to the next
/// server.
pub async fn remove(keeping: &KeeperConfig, run: &str) {
    let folder = keeping.folder.join(run);
    let connected = Address::of(&folder).and_then(|address| address.connect());
    let identity = match read_identity(&folder) {
        Ok(identity) => identity,
        // The file was torn when the machine lost its power, and the processes ended with it.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
        Err(error) => {
            tracing::warn!(%error, run, "can't identify the processes of an earlier run");
            return;
        }
    };
    let tree = identity.and_then(|identity| Tree::find(&identity));
    let tree = tree.map(SharedTree::new);
    if let Some(tree) = &tree {
        tree.kill().await;
    }
    let dismissed = match connected {
        Ok(stream) => dismiss(&folder, stream).await,
        Err(error) => Err(error),
    };
    if let Err(error) = dismissed {
        tracing::debug!(%error, run, "a keeper did not confirm its exit");
        // The keeper may have been stopped, or may hang; usually it has been gone for long.
        if let Some(tree) = &tree {
            tree.kill_with_keeper().await;
        }
    }
    discard_folder(&folder);
}

/// Tells a keeper whose agent was killed to exit.
async fn dismiss(folder: &Path, stream: StdStream) -> io::Result<()> {
    let secret = read_secret(folder)?;
    let mut connection = Connection::open(stream, Order::Attach { secret }).await?;
    let farewell = async {
        let mut bytes = Vec::new();
        Order::Finish.encode(&mut bytes);
        while let Some(news) = next_report(&mut connection.reading, &mut connection.frames).await? {
            if matches!(news, Report::Exited { .. }) {
                connection.writing.write_all(&bytes).await?;
            }
        }
        Ok(())
    };
    tokio::time::timeout(ANSWER_TIME, farewell).await?
}

fn discard_folder(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "a run's folder can't be removed");
        }
        _ => {}
    }
}

/// The address of a keeper's socket. A socket's path may have about a hundred characters and a folder's path may be
/// longer, so the folder is named by an open descriptor if the system supports that.
struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Address {
    fn of(folder: &Path) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let opened = File::open(folder)?;
            let path = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd()));
            Ok(Self {
                path,
                _folder: Some(opened),
            })
        }
        #[cfg(not(target_os = "linux"))]
        {
            Ok(Self {
                path: folder.join(SOCKET),
                _folder: None,
            })
        }
    }

    fn bind(&self) -> io::Result<StdListener> {
        StdListener::bind(&self.path)
    }

    fn connect(&self) -> io::Result<StdStream> {
        StdStream::connect(&self.path)
    }
}

/// A connection to a keeper that has reported its state.
struct Connection {
    reading: OwnedReadHalf,
    writing: OwnedWriteHalf,
    frames: Frames,
    standing: Report,
}

impl Connection {
    async fn open(stream: StdStream, first: Order) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (mut reading, mut writing) = UnixStream::from_std(stream)?.into_split();
        let mut bytes = Vec::new();
        first.encode(&mut bytes);
        let mut frames = Frames::default();
        let exchange = async {
            writing.write_all(&bytes).await?;
            loop {
                match next_report(&mut reading, &mut frames).await? {
                    // Keepers of earlier versions may report this first.
                    Some(Report::Wrote { .. }) => {}
                    Some(news) => return Ok(news),
                    None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
                }
            }
        };
        let standing = tokio::time::timeout(ANSWER_TIME, exchange)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(Self {
            reading,
            writing,
            frames,
            standing,
        })
    }

    fn kept(self, folder: &Path, position: u64, tree: Option<Tree>) -> KeptAgent {
        let (pid, last_input, end, listens) = match self.standing {
            Report::Running {
                pid,
                last_input,
                end,
                listens,
            } => (Some(pid), Some(last_input), end, listens),
            _ => (None, None, 0, false),
        };
        let (lines, line_inbox) = mpsc::channel(ORDERS);
        let (orders, order_inbox) = mpsc::channel(ORDERS);
        let (tell_ended, ended) = watch::channel(None);
        let tree = tree.map(SharedTree::new);
        tokio::spawn(write(Writing(Some(self.writing)), line_inbox, order_inbox));
        let keeper = KeeperReports {
            connection: self.reading,
            frames: self.frames,
            tree: tree.clone(),
        };
        let (tell_caught_up, caught_up) = oneshot::channel();
        let output = Output::new(
            folder,
            position,
            end,
            Some(keeper),
            tell_ended,
            Some(tell_caught_up),
        );
        KeptAgent {
            wire: wire(output, lines, KeptProcess { pid, tree, ended }),
            last_input,
            listens,
            caught_up,
            run: KeeperHandle {
                folder: folder.to_owned(),
                orders,
            },
        }
    }
}

/// The rest of a run whose keeper has gone.
async fn without_keeper(folder: &Path, identity: &TreeIdentity, position: u64) -> KeptAgent {
    let tree = Tree::find(identity).map(SharedTree::new);
    if let Some(tree) = &tree {
        // Without its keeper the agent can't be reached.
        tree.kill().await;
    }
    let exit = read_exit(folder);
    let last_input = exit.as_ref().and_then(|exit| exit.last_input);
    let (tell_ended, ended) = watch::channel(Some(end_on_record(exit)));
    let (lines, _) = mpsc::channel(1);
    let (orders, _) = mpsc::channel(1);
    let process = KeptProcess {
        pid: None,
        tree,
        ended,
    };
    let output = Output::new(folder, position, 0, None, tell_ended, None);
    KeptAgent {
        wire: wire(output, lines, process),
        last_input,
        listens: false,
        caught_up: oneshot::channel().1,
        run: KeeperHandle {
            folder: folder.to_owned(),
            orders,
        },
    }
}

fn wire(output: Output, lines: mpsc::Sender<Line>, process: KeptProcess) -> Wire {
    let outgoing = sink::unfold(lines, |lines, line: Line| async move {
        lines
            .send(line)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(lines)
    });
    Wire {
        incoming: stream::unfold(output, |mut output| async move {
            let lines = output.next().await?;
            Some((lines, output))
        })
        .boxed(),
        outgoing: Box::pin(outgoing),
        process: Box::new(process),
    }
}

/// An agent's process, which is a child of its keeper.
struct KeptProcess {
    pid: Option<u32>,
    tree: Option<SharedTree>,
    ended: watch::Receiver<Option<Ended>>,
}

impl Process for KeptProcess {
    fn wait(&mut self) -> BoxFuture<'_, Ended> {
        Box::pin(async {
            let ended = self.ended.wait_for(Option::is_some).await;
            let ended = ended.ok().and_then(|ended| ended.clone());
            match ended {
                Some(ended) => ended,
                // The end is always reported, unless this program is about to exit: then the agent continues.
                None => std::future::pending().await,
            }
        })
    }

    fn terminate(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(tree) = &self.tree {
                tree.terminate().await;
            }
        })
    }

    fn kill(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(tree) = &self.tree {
                tree.kill().await;
            }
        })
    }

    fn leftovers(&mut self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            match &self.tree {
                Some(tree) => tree.living().await > 0,
                None => false,
            }
        })
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }
}

/// Our half of the connection, which is not closed when it is dropped: when a runtime shuts down, its tasks are dropped
/// one by one, and to the reader a half-closed connection would look like a dead keeper.
struct Writing(Option<OwnedWriteHalf>);

impl Writing {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Some(half) => half.write_all(bytes).await,
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(half) = self.0.take() {
            half.forget();
        }
    }
}

/// Sends orders. When the lines end, the agent's input ends.
async fn write(mut connection: Writing, mut lines: mpsc::Receiver<Line>, mut orders: mpsc::Receiver<Order>) {
    let mut bytes = Vec::new();
    let mut open = true;
    loop {
        let order = tokio::select! {
            biased;
            line = lines.recv(), if open => {
                open = line.is_some();
                line.map_or(Order::CloseInput, |Line { json, number }| Order::Input { number, line: json })
            }
            Some(order) = orders.recv() => order,
            else => return,
        };
        bytes.clear();
        order.encode(&mut bytes);
        if let Err(error) = connection.write(&bytes).await {
            tracing::debug!(%error, "the keeper has gone");
            return;
        }
        // Lines with images are rare; their memory is released.
        if bytes.capacity() > LINE {
            bytes = Vec::new();
        }
    }
}

/// `None`: no agent was started, or nothing is left of its run.
fn read_identity(folder: &Path) -> io::Result<Option<TreeIdentity>> {
    let bytes = match fs::read(folder.join(PID_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the keeper sent an unexpected frame")
}
