//! A running agent: messages out of it in order, requests both ways, and its end.
//!
//! Three tasks serve a link. The reader takes lines, pairs answers with requests and fills the inbox; it never waits
//! for anyone but the inbox's own reader. The writer takes lines from everybody and writes them one after another.
//! The supervisor waits for the process and ends it, and all that it started, when that is wanted.

mod inbox;
mod supervisor;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::SinkExt;
use tokio::sync::{mpsc, oneshot, watch};

use crate::control::{self, ControlRequest, Reply, RequestError, RequestId, Response};
use crate::launch::{self, Channel, LaunchError};
use crate::options::{Conversation, Grace, Options};
use crate::user::UserMessage;
use crate::version::Version;
use tiller_process::{self as process, Launch, Line, LineSink, Wire};

pub use inbox::{Inbound, Inbox};
pub(crate) use inbox::{NotSent, Receiver as InboxReceiver, Sender as InboxSender, channel as inbox_channel};
use supervisor::Closing;
pub use supervisor::Exit;
pub use supervisor::NOT_FOUND as CONVERSATION_NOT_FOUND;
pub(crate) use supervisor::NOT_FOUND;

/// Lines that wait to be written. More senders than this have to wait themselves.
const OUTGOING: usize = 64;

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no executable, or its command line can't be made.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The operating system did not start it.
    #[error("Claude Code could not be started: {0}")]
    Spawn(#[source] io::Error),
    /// This version does not connect to a WebSocket server of the caller's.
    #[error("Claude Code {version} does not connect to a WebSocket server; versions before 2.1.126 do")]
    WebSocketUnsupported {
        /// The installed version.
        version: Version,
    },
}

/// The agent has ended, or its input is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent has ended")]
pub struct Closed;

/// Why an answer was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RespondError {
    /// The request is not open: it was answered, or the CLI has withdrawn it, or it never was.
    #[error("the request is not open any more")]
    NotOpen,
    /// The agent has ended.
    #[error("the agent has ended")]
    Closed,
}

/// What a link needs to know of a run, apart from its [`Wire`].
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// How long each stage of ending the agent may take.
    pub grace: Grace,
    /// How long the CLI may take to answer a request.
    pub request_timeout: Duration,
    /// How many bytes of messages may wait in the inbox.
    pub inbox_bytes: usize,
    /// Whether the run goes on with an earlier conversation, which may have expired.
    pub resumes: bool,
}

impl From<&Options> for LinkSettings {
    fn from(options: &Options) -> Self {
        Self {
            grace: options.grace,
            request_timeout: options.request_timeout,
            inbox_bytes: options.inbox_bytes,
            resumes: matches!(
                options.conversation,
                Conversation::Resume(_) | Conversation::Latest
            ),
        }
    }
}

/// Starts an agent and talks to it over its standard input and output.
///
/// Dropping the inbox and every clone of the link ends the agent and everything that it started.
pub async fn connect(options: &Options) -> Result<(Link, Inbox), ConnectError> {
    let launch = prepare(options, None).await?;
    let spawned = process::spawn(&launch, options.on_stderr.clone()).map_err(ConnectError::Spawn)?;
    Ok(connect_over(process::stdio(spawned), LinkSettings::from(options)))
}

/// Starts an agent that connects to `url`, where a server of the caller's accepts the connection and hands it over
/// through `sockets`. Only for versions with [`Capabilities::sdk_url`](crate::cli::Capabilities::sdk_url), which is found
/// out before anything is started.
#[cfg(feature = "websocket")]
pub async fn connect_websocket(
    options: &Options,
    url: &str,
    sockets: process::Sockets,
) -> Result<(Link, Inbox), ConnectError> {
    let executable = launch::executable(options).map_err(LaunchError::from)?;
    match executable.version().await {
        Ok(version) if !version.capabilities().sdk_url => {
            return Err(ConnectError::WebSocketUnsupported { version });
        }
        Ok(_) => {}
        // Whatever is wrong with it shows when it is started.
        Err(error) => tracing::warn!(%error, "the version of Claude Code is not known"),
    }
    let launch = prepare(options, Some(url.to_owned())).await?;
    let spawned = process::spawn(&launch, options.on_stderr.clone()).map_err(ConnectError::Spawn)?;
    Ok(connect_over(
        process::websocket(spawned, sockets),
        LinkSettings::from(options),
    ))
}

/// Looks for the executable and reads settings: file system work, kept off the runtime's threads.
async fn prepare(options: &Options, url: Option<String>) -> Result<Launch, ConnectError> {
    let options = options.clone();
    let prepared = tokio::task::spawn_blocking(move || {
        launch::prepare(&options, url.as_deref().map_or(Channel::Stdio, Channel::SdkUrl))
    });
    match prepared.await {
        Ok(launch) => Ok(launch?),
        Err(error) => Err(ConnectError::Spawn(io::Error::other(error))),
    }
}

/// Talks to an agent over any [`Wire`].
pub fn connect_over(wire: Wire, settings: LinkSettings) -> (Link, Inbox) {
    let (outgoing, lines) = mpsc::channel(OUTGOING);
    let (closing, closing_wanted) = watch::channel(Closing::No);
    let (exit_sender, exit) = watch::channel(None);
    let (inbox_sender, inbox_receiver) = inbox::channel(settings.inbox_bytes);
    let shared = Arc::new(Shared {
        outgoing,
        pending: Mutex::default(),
        open: Mutex::default(),
        closing: closing.clone(),
        exit: exit.clone(),
        pid: wire.process.pid(),
        prefix: uuid::Uuid::new_v4().simple().to_string(),
        counter: AtomicU64::new(0),
        request_timeout: settings.request_timeout,
    });
    let alive = Arc::new(Alive {
        closing: closing.clone(),
        grace: settings.grace,
    });
    let evidence = Arc::new(supervisor::Evidence::new(settings.resumes));
    tokio::spawn(write(wire.outgoing, lines, closing_wanted.clone()));
    tokio::spawn(supervisor::supervise(
        wire.process,
        settings.grace,
        closing_wanted,
        exit_sender,
        Arc::clone(&evidence),
    ));
    tokio::spawn(inbox::read(
        wire.incoming,
        inbox_sender,
        Arc::clone(&shared),
        evidence,
        exit,
        closing,
    ));
    let link = Link {
        shared,
        _alive: Arc::clone(&alive),
        grace: settings.grace,
    };
    (link, Inbox::new(inbox_receiver, alive))
}

/// The handle of a running agent. Cheap to clone; every clone may be used from anywhere.
#[derive(Clone)]
pub struct Link {
    shared: Arc<Shared>,
    /// Keeps the agent alive.
    _alive: Arc<Alive>,
    grace: Grace,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("pid", &self.pid())
            .finish_non_exhaustive()
    }
}

/// What the link's handles and tasks share.
struct Shared {
    outgoing: mpsc::Sender<Outgoing>,
    // Std mutexes: held to look something up, never across an await.
    pending: Mutex<HashMap<RequestId, oneshot::Sender<Response>>>,
    /// The CLI's requests that wait for our answer.
    open: Mutex<HashSet<RequestId>>,
    closing: watch::Sender<Closing>,
    exit: watch::Receiver<Option<Exit>>,
    pid: Option<u32>,
    /// Makes our request ids different from those of an earlier link to the same process.
    prefix: String,
    counter: AtomicU64,
    request_timeout: Duration,
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, HashMap<RequestId, oneshot::Sender<Response>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, line: Vec<u8>) -> Result<(), Closed> {
        self.write_numbered(line, 0).await
    }

    async fn write_numbered(&self, line: Vec<u8>, number: u64) -> Result<(), Closed> {
        let (written, done) = oneshot::channel();
        let json = line.into();
        self.outgoing
            .send(Outgoing {
                line: Line { json, number },
                written,
            })
            .await
            .map_err(|_| Closed)?;
        done.await.map_err(|_| Closed)
    }
}

/// Held by the inbox and all clones of the link: when the last one goes, the agent ends.
struct Alive {
    closing: watch::Sender<Closing>,
    grace: Grace,
}

impl Drop for Alive {
    fn drop(&mut self) {
        Closing::ask(&self.closing, self.grace);
    }
}

struct Outgoing {
    line: Line,
    /// Told when the line is in the hands of the operating system; dropped when it never will be.
    written: oneshot::Sender<()>,
}

impl Link {
    /// Sends a user message. Done when the CLI can read it.
    pub async fn send_user(&self, message: &UserMessage) -> Result<(), Closed> {
        self.send_user_once(message, 0).await
    }

    /// The same, under a [number](Line::number).
    pub async fn send_user_once(&self, message: &UserMessage, number: u64) -> Result<(), Closed> {
        let line = serde_json::to_vec(message).map_err(|_| Closed)?;
        self.shared.write_numbered(line, number).await
    }

    /// Sends a line of the caller's own making, which must be one JSON object.
    pub async fn send_raw(&self, line: impl Into<Vec<u8>>) -> Result<(), Closed> {
        self.shared.write(line.into()).await
    }

    /// Asks the CLI something and waits for the answer, for as long as
    /// [`Options::request_timeout`](crate::Options::request_timeout) says.
    pub async fn request<R: ControlRequest>(&self, request: R) -> Result<R::Answer, RequestError> {
        self.request_within(request, self.shared.request_timeout).await
    }

    /// The same, with a limit of its own.
    pub async fn request_within<R: ControlRequest>(
        &self,
        request: R,
        limit: Duration,
    ) -> Result<R::Answer, RequestError> {
        let subtype = R::SUBTYPE;
        let number = self.shared.counter.fetch_add(1, Ordering::Relaxed);
        let id = RequestId::from(format!("req_{}_{number}", self.shared.prefix));
        let line = control::request_line(&id, subtype, &request)
            .map_err(|source| RequestError::Unexpected { subtype, source })?;
        let (sender, answer) = oneshot::channel();
        self.shared.pending().insert(id.clone(), sender);
        // Also when this future is dropped and its answer is not needed any more.
        let _guard = PendingGuard {
            shared: &self.shared,
            id: &id,
        };
        let mut exit = self.shared.exit.clone();
        let exchange = async {
            self.shared
                .write(line)
                .await
                .map_err(|Closed| RequestError::Closed)?;
            tokio::select! {
                biased;
                answer = answer => answer.map_err(|_| RequestError::Closed),
                _ = exit.wait_for(Option::is_some) => Err(RequestError::Closed),
            }
        };
        if let Ok(answer) = tokio::time::timeout(limit, exchange).await {
            return interpret::<R>(answer?);
        }
        if let Ok(line) = control::cancel_line(&id) {
            let json = line.into();
            let outgoing = Outgoing {
                line: Line { json, number: 0 },
                written: oneshot::channel().0,
            };
            // The CLI may still be busy with it; whether it hears this changes nothing for the caller.
            self.shared.outgoing.try_send(outgoing).ok();
        }
        Err(RequestError::TimedOut { subtype })
    }

    /// Answers a request of the CLI's. Only once, and only while the CLI still wants it.
    pub async fn respond(&self, id: &RequestId, reply: impl Into<Reply>) -> Result<(), RespondError> {
        self.respond_once(id, reply, 0).await
    }

    /// The same, under a [number](Line::number).
    pub async fn respond_once(
        &self,
        id: &RequestId,
        reply: impl Into<Reply>,
        number: u64,
    ) -> Result<(), RespondError> {
        let line = control::reply_line(id, &reply.into()).map_err(|_| RespondError::NotOpen)?;
        if !self.shared.open().remove(id) {
            return Err(RespondError::NotOpen);
        }
        self.shared
            .write_numbered(line, number)
            .await
            .map_err(|Closed| RespondError::Closed)
    }

    /// Makes a request answerable that an earlier link to the same process has received.
    pub fn reopen(&self, id: RequestId) {
        self.shared.open().insert(id);
    }

    /// Asks the agent to end, as [`Link::close`] does, and does not wait for it.
    pub fn begin_close(&self) {
        Closing::ask(&self.shared.closing, self.grace);
    }

    /// Ends the agent: its input is closed, then it is asked to terminate, then killed, together with everything it
    /// started; each stage with its grace. Done when nothing is left of it.
    pub async fn close(&self) -> Exit {
        self.close_within(self.grace).await
    }

    /// The same, with other graces than the run was started with.
    pub async fn close_within(&self, grace: Grace) -> Exit {
        Closing::ask(&self.shared.closing, grace);
        self.exited().await
    }

    /// Ends the agent and everything that it started at once.
    pub async fn kill(&self) -> Exit {
        self.close_within(Grace {
            after_input: Duration::ZERO,
            after_terminate: Duration::ZERO,
        })
        .await
    }

    /// Waits for the agent's end.
    pub async fn exited(&self) -> Exit {
        let mut exit = self.shared.exit.clone();
        match exit.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(exit)) => exit.clone(),
            // The supervisor tells before it goes; without it (the runtime is shutting down) nothing is known.
            Ok(None) | Err(_) => Exit::unknown(),
        }
    }

    /// The CLI's process id, if it is on this machine.
    pub fn pid(&self) -> Option<u32> {
        self.shared.pid
    }
}

struct PendingGuard<'a> {
    shared: &'a Shared,
    id: &'a RequestId,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.shared.pending().remove(self.id);
    }
}

fn interpret<R: ControlRequest>(response: Response) -> Result<R::Answer, RequestError> {
    let subtype = R::SUBTYPE;
    if response.subtype != "success" {
        let message = response.error.unwrap_or_default();
        // The CLI's words for an operation that it does not know, in all versions so far.
        if message.starts_with("Unsupported control request subtype") {
            return Err(RequestError::Unsupported { subtype });
        }
        return Err(RequestError::Refused { subtype, message });
    }
    let answer = response
        .answer
        .as_deref()
        .map_or("{}", serde_json::value::RawValue::get);
    let answer = if answer == "null" { "{}" } else { answer };
    serde_json::from_str(answer).map_err(|source| RequestError::Unexpected { subtype, source })
}

/// Writes lines until the agent is to end, or can't be written to.
async fn write(
    mut sink: LineSink,
    mut lines: mpsc::Receiver<Outgoing>,
    mut closing: watch::Receiver<Closing>,
) {
    loop {
        let outgoing = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| !matches!(closing, Closing::No)) => break,
            outgoing = lines.recv() => outgoing,
        };
        let Some(Outgoing { line, written }) = outgoing else {
            break;
        };
        let sent = tokio::select! {
            sent = sink.send(line) => sent,
            // A CLI that no longer reads must not keep its own input open.
            _ = closing.wait_for(|closing| !matches!(closing, Closing::No)) => break,
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "writing to the agent failed");
            break;
        }
        // The sender may have stopped waiting; the line is written all the same.
        written.send(()).ok();
    }
    // Dropping the sink closes the CLI's input.
    if let Err(error) = sink.close().await {
        tracing::debug!(%error, "closing the agent's input failed");
    }
}
