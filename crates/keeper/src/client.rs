//! The program's side: starting a keeper, finding it again, and talking to an agent through it.

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
use crate::lines::{Output, Telling, left_word, next_news};
use crate::wire::{Frames, Instruction, News, Order};

/// Lines and other orders that wait to be passed on.
const ORDERS: usize = 64;

/// Room for a line that is passed on; what is longer is given back.
const LINE: usize = 64 * 1024;

/// How long a keeper may take to clear its folder away, and how often that is looked at.
const FINISH_TIME: Duration = Duration::from_secs(2);
const FINISH_LOOK: Duration = Duration::from_millis(5);

/// How long a keeper may take to say how things stand. It does nothing else that takes time, but the machine may.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// How long is tried to reach a keeper that may be there, and how often. What is in the way is mostly short of something:
/// descriptors, memory.
const REACH_TIME: Duration = Duration::from_secs(5);
const REACH_AGAIN: Duration = Duration::from_millis(100);

/// How keepers are started, and where their folders are.
#[derive(Debug, Clone)]
pub struct Keeping {
    /// The folder in which every run has one.
    pub folder: PathBuf,
    /// The program that calls [`keep`](crate::keep) with its last argument…
    pub program: PathBuf,
    /// …and what comes before that.
    pub args: Vec<OsString>,
    /// How long an agent may go without a program and without work.
    pub grace: Duration,
    /// What an agent writes when it has done its work: from then on, and until it is given more, it is without work.
    /// Empty: nothing tells, and it is never without work.
    pub turn_end: Vec<u8>,
    /// What agents are shielded with.
    pub shield: Shield,
}

/// An agent with a keeper.
pub struct Kept {
    /// The connection to the agent. Its end is heard by whoever reads what it says: nobody else hears the keeper.
    pub wire: Wire,
    /// The last numbered line that was passed on to it. `None`: the keeper is gone and has left no word of that.
    pub last_input: Option<u64>,
    /// Whether it can be told anything. If not, it is about to end or has ended: what it had still to say comes over the
    /// wire, and then its end.
    pub listens: bool,
    /// Told when what the agent had said by now has been read from the wire, and more is asked for. Never, if its end
    /// comes before that.
    pub caught_up: oneshot::Receiver<()>,
    /// What else can be said to the keeper.
    pub run: Run,
}

/// Why there is no agent to go on with.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// Nothing was ever started under that name, so nothing that it said or did can be lost.
    #[error("it was never started")]
    NeverStarted,
    /// It was started, or may have been, and nobody can tell what became of it. It may be at work.
    #[error("{0}")]
    Unknown(#[source] io::Error),
}

/// Tells a keeper what it need not keep any more. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Run {
    folder: PathBuf,
    orders: mpsc::Sender<Order>,
}

impl Run {
    /// What the agent wrote before this position is not needed any more.
    pub fn forget(&self, before: u64) {
        // One that is left out is made good by the next one.
        self.orders.try_send(Order::Forget { before }).ok();
    }

    /// The agent is gone and everything that it said is in safe hands: nothing of the run remains.
    pub async fn finish(&self) {
        let deadline = tokio::time::Instant::now() + FINISH_TIME;
        let told = tokio::time::timeout_at(deadline, self.orders.send(Order::Finish)).await;
        if let Ok(Err(_)) = told {
            // A keeper that has gone can't clean up after itself.
            return discard_folder(&self.folder);
        }
        // It does so at once.
        while self.folder.exists() {
            if tokio::time::Instant::now() >= deadline {
                return self.force().await;
            }
            tokio::time::sleep(FINISH_LOOK).await;
        }
    }

    /// Ends a keeper that does not end itself, because it was stopped or hangs, and cleans up after it.
    async fn force(&self) {
        tracing::warn!("a keeper does not end and is killed");
        match read_identity(&self.folder) {
            Ok(Some(identity)) => {
                if let Some(tree) = Tree::find(&identity) {
                    SharedTree::new(tree).kill_with_keeper().await;
                }
                discard_folder(&self.folder);
            }
            // It has just come to its senses.
            Ok(None) => {}
            // Whoever comes next finds the folder and clears it away.
            Err(error) => tracing::warn!(%error, "which process the keeper is can't be read"),
        }
    }
}

/// Starts a keeper for `run`, and through it the agent. The name must be the only one of its kind on the machine: what the
/// agent starts is found by it.
pub async fn start(keeping: &Keeping, run: &str, launch: &Launch) -> io::Result<Kept> {
    let folder = keeping.folder.join(run);
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&keeping.folder)?;
    // Only what is there can be hidden.
    let launch = keeping.shield.wrap(launch)?;
    builder.recursive(false).create(&folder)?;
    let outcome = start_in(keeping, &folder, run, launch).await;
    if outcome.is_err() {
        discard_folder(&folder);
    }
    outcome
}

async fn start_in(keeping: &Keeping, folder: &Path, run: &str, launch: Launch) -> io::Result<Kept> {
    let secret = create_secret(folder)?;
    let listener = Address::of(folder)?.bind()?;
    let (ours, theirs) = StdStream::pair()?;
    let mut child = Command::new(&keeping.program)
        .args(&keeping.args)
        .arg(folder)
        .arg0("tiller-keeper")
        // The agent can read its keeper's environment; there must be nothing in it.
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        // Nobody else holds the listener: when the keeper is gone, connecting fails at once.
        .stdout(Stdio::from(OwnedFd::from(listener)))
        .stderr(Stdio::null())
        .current_dir("/")
        .spawn()?;
    tokio::spawn(async move {
        // Only to take its end note; how it ended is of no interest.
        if let Err(error) = child.wait().await {
            tracing::debug!(%error, "waiting for a keeper failed");
        }
    });
    let instruction = Instruction {
        launch,
        mark: run.to_owned(),
        grace: keeping.grace,
        turn_end: keeping.turn_end.clone(),
        // Over the socket only: command lines and environments can be read by others.
        secret,
    };
    let connection = Connection::open(ours, Order::Start(Box::new(instruction))).await?;
    match connection.standing {
        News::Running { pid, .. } => {
            // The file has been written. If it can't be read now, the agent is there all the same and must be looked after.
            let tree = match read_identity(folder) {
                Ok(identity) => identity.and_then(|identity| Tree::find(&identity)),
                Err(error) => {
                    tracing::warn!(%error, run, "which process the agent is can't be read");
                    let leader = i32::try_from(pid).ok().and_then(Pid::from_raw);
                    leader.map(|leader| Tree::new(leader, run))
                }
            };
            Ok(connection.kept(folder, 0, tree))
        }
        News::NotStarted { reason } => Err(io::Error::other(reason)),
        News::Wrote { .. } | News::Exited { .. } | News::Replaced => Err(unexpected()),
    }
}

/// Finds the keeper of `run` again and reads what its agent says from `position` on.
pub async fn attach(keeping: &Keeping, run: &str, position: u64) -> Result<Kept, Lost> {
    let folder = keeping.folder.join(run);
    let deadline = tokio::time::Instant::now() + REACH_TIME;
    loop {
        match try_attach(&folder, position).await {
            Ok(Some(kept)) => return Ok(kept),
            Ok(None) => return Err(Lost::NeverStarted),
            Err(error) if tokio::time::Instant::now() < deadline => {
                tracing::debug!(%error, run, "a keeper can't be reached; trying again");
                tokio::time::sleep(REACH_AGAIN).await;
            }
            Err(error) => {
                tracing::warn!(%error, run, "a keeper can't be reached");
                return match read_identity(&folder) {
                    // Whoever comes next would start another beside it.
                    Ok(Some(identity)) => Ok(remains(&folder, &identity, position).await),
                    Ok(None) | Err(_) => Err(Lost::Unknown(error)),
                };
            }
        }
    }
}

/// `None`: there is neither a keeper nor a trace of an agent. An error tells nothing about either.
async fn try_attach(folder: &Path, position: u64) -> io::Result<Option<Kept>> {
    let connected = Address::of(folder).and_then(|address| address.connect());
    match connected {
        Ok(stream) => {
            let secret = read_secret(folder)?;
            let connection = Connection::open(stream, Order::Attach { secret }).await?;
            let tree = read_identity(folder)?.and_then(|identity| Tree::find(&identity));
            Ok(Some(connection.kept(folder, position, tree)))
        }
        // Nobody has the socket open: the keeper is gone, or never was.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            // The agent is told nothing before its id is written; without it there was none.
            match read_identity(folder)? {
                Some(identity) => Ok(Some(remains(folder, &identity, position).await)),
                None => Ok(None),
            }
        }
        Err(error) => Err(error),
    }
}

/// From where on what the agent of `run` has said can be read: the beginning, or a place in the middle of a line before
/// which everything is forgotten.
pub fn first_kept(keeping: &Keeping, run: &str) -> u64 {
    crate::output::first_kept(&keeping.folder.join(run))
}

/// The names of all runs that have a folder.
pub fn runs(keeping: &Keeping) -> io::Result<Vec<String>> {
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

/// Ends what is left of `run`, with everything that its agent started, and removes its folder. What can't be identified
/// now is left to whoever comes next.
pub async fn remove(keeping: &Keeping, run: &str) {
    let folder = keeping.folder.join(run);
    let connected = Address::of(&folder).and_then(|address| address.connect());
    let identity = match read_identity(&folder) {
        Ok(identity) => identity,
        // Torn when the machine lost its power, and its processes with it.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
        Err(error) => {
            tracing::warn!(%error, run, "can't tell what an earlier server has left");
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
        tracing::debug!(%error, run, "a keeper did not take its leave");
        // It may have been stopped, or hang; mostly it has been gone for long.
        if let Some(tree) = &tree {
            tree.kill_with_keeper().await;
        }
    }
    discard_folder(&folder);
}

/// Lets a keeper go whose agent has been killed.
async fn dismiss(folder: &Path, stream: StdStream) -> io::Result<()> {
    let secret = read_secret(folder)?;
    let mut connection = Connection::open(stream, Order::Attach { secret }).await?;
    let farewell = async {
        let mut bytes = Vec::new();
        Order::Finish.encode(&mut bytes);
        while let Some(news) = next_news(&mut connection.reading, &mut connection.frames).await? {
            if matches!(news, News::Exited { .. }) {
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

/// Where a keeper listens. A socket's address has room for about a hundred characters, a folder's name may be longer;
/// so it is named by an open descriptor where the system has names for those.
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

/// A keeper that has said how things stand.
struct Connection {
    reading: OwnedReadHalf,
    writing: OwnedWriteHalf,
    frames: Frames,
    standing: News,
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
                match next_news(&mut reading, &mut frames).await? {
                    // Keepers before this one may say so first.
                    Some(News::Wrote { .. }) => {}
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

    fn kept(self, folder: &Path, position: u64, tree: Option<Tree>) -> Kept {
        let (pid, last_input, end, listens) = match self.standing {
            News::Running {
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
        let keeper = Telling {
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
        Kept {
            wire: wire(output, lines, KeptProcess { pid, tree, ended }),
            last_input,
            listens,
            caught_up,
            run: Run {
                folder: folder.to_owned(),
                orders,
            },
        }
    }
}

/// What is left of a run whose keeper is gone.
async fn remains(folder: &Path, identity: &TreeIdentity, position: u64) -> Kept {
    let tree = Tree::find(identity).map(SharedTree::new);
    if let Some(tree) = &tree {
        // Without its keeper it talks to nobody.
        tree.kill().await;
    }
    let exit = read_exit(folder);
    let last_input = exit.as_ref().and_then(|exit| exit.last_input);
    let (tell_ended, ended) = watch::channel(Some(left_word(exit)));
    let (lines, _) = mpsc::channel(1);
    let (orders, _) = mpsc::channel(1);
    let process = KeptProcess {
        pid: None,
        tree,
        ended,
    };
    let output = Output::new(folder, position, 0, None, tell_ended, None);
    Kept {
        wire: wire(output, lines, process),
        last_input,
        listens: false,
        caught_up: oneshot::channel().1,
        run: Run {
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

/// An agent's process, which is its keeper's child.
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
                // Whoever tells always tells the end, unless this program is about to end itself: then the agent goes on.
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

/// Our half of the connection, which does not close when it goes: when a runtime shuts down its tasks go one by one, and
/// to the reader a half-closed connection would look like a keeper that has died.
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

/// Passes orders on. The end of the lines is the end of the agent's input.
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
            tracing::debug!(%error, "the keeper is gone");
            return;
        }
        // Lines with pictures are rare; their room is given back.
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
    io::Error::new(io::ErrorKind::InvalidData, "the keeper spoke out of turn")
}
