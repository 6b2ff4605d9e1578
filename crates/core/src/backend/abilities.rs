//! The optional abilities of backends. Each ability is an object that a backend either offers or not.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Sink, Stream};

use super::{AgentChannels, Driver, Inquiry, InquiryFailed, Launch, Offers};
use crate::ids::{SessionId, Timestamp};
use crate::json::RawJson;

/// The abilities of a backend.
#[derive(Clone, Default)]
pub struct Abilities {
    pub titles: Option<Arc<dyn TitleWriter>>,
    pub drivers: Option<Arc<dyn Drivers>>,
    pub connections: Option<Arc<dyn Connections>>,
    pub catalogue: Option<Arc<dyn Catalogue>>,
    pub leftovers: Option<Arc<dyn Leftovers>>,
    pub fork: Option<Arc<dyn Fork>>,
    pub rewind: Option<Arc<dyn Rewind>>,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub inquire: Option<Arc<dyn Inquire>>,
    pub account: Option<Arc<dyn Account>>,
}

/// Starts agents with a copy of an earlier conversation.
pub trait Fork: Send + Sync + 'static {
    /// As [`Backend::launch`](super::Backend::launch), with a new conversation that begins as a copy of `origin`.
    fn launch(&self, launch: Launch, origin: ForkOrigin) -> AgentChannels;
}

/// What a forked conversation begins with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ForkOrigin {
    /// The agent's id of the conversation that is copied.
    pub conversation: String,
    /// The last message that is copied, by the agent's id. `None`: all of them.
    pub at: Option<String>,
}

/// Restores files that an agent changed.
pub trait Rewind: Send + Sync + 'static {
    /// Restores the files to their state before the prompt with this id. A dry run only reports what would change.
    fn rewind(
        &self,
        run: &str,
        prompt: String,
        dry_run: bool,
    ) -> BoxFuture<'static, Result<Rewound, InquiryFailed>>;
}

/// What a rewind changed or, for a dry run, would change.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rewound {
    pub possible: bool,
    pub files_changed: Vec<String>,
    pub insertions: u32,
    pub deletions: u32,
    /// Why the rewind is not possible.
    pub error: Option<String>,
}

/// Lets agents call hooks for their events.
pub trait Hooks: Send + Sync + 'static {
    /// The events that [`Launch::hooks`] may name.
    fn events(&self) -> &'static [&'static str];

    /// Answers a hook call, in the agent's own format. The first answer counts.
    fn answer(&self, run: &str, agent_request: String, output: RawJson);
}

/// Knows whether the user is signed in to the agent's provider.
pub trait Account: Send + Sync + 'static {
    /// `None`: the agent does not report it. Has a time limit.
    fn signed_in(&self) -> BoxFuture<'static, Option<bool>>;
}

/// Asks running agents questions about themselves, beside their work.
pub trait Inquire: Send + Sync + 'static {
    /// The answer is in the agent's own format.
    fn inquire(&self, run: &str, inquiry: Inquiry) -> BoxFuture<'static, Result<RawJson, InquiryFailed>>;
}

/// Writes titles for sessions.
pub trait TitleWriter: Send + Sync + 'static {
    /// A title for a session that would begin with this prompt. `None` if no title could be made. Takes a few seconds
    /// and has a time limit.
    fn title(&self, prompt: String, cwd: PathBuf) -> BoxFuture<'static, Option<String>>;

    /// As [`Self::title`], written by a running agent beside its work.
    fn title_by(&self, run: &str, prompt: String) -> BoxFuture<'static, Option<String>>;
}

/// Finds processes that drive a conversation and were started elsewhere. Two processes that write one conversation
/// would fork it.
pub trait Drivers: Send + Sync + 'static {
    /// The process that drives the conversation while this server has no agent on it. `since`: when this server last
    /// had one.
    fn driver(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>>;

    /// Reserves the conversation until this server has launched an agent on it, which must happen at once. Returns the
    /// process that already drives the conversation, if there is one.
    fn claim(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>>;

    /// The processes that drive any of these conversations, given with their folders.
    fn drivers(
        &self,
        conversations: Vec<(String, PathBuf)>,
    ) -> BoxFuture<'static, Option<HashMap<String, Driver>>>;

    /// Other processes that claim to drive one of these conversations, on each of which this server has an agent. Given
    /// are each conversation and the process id of this server's agent; the agent's own child processes are ignored.
    fn competing_drivers(&self, agents: Vec<(String, u32)>) -> BoxFuture<'static, HashMap<String, Driver>>;

    /// Ends that process, with SIGTERM at first. An error says what the user can do.
    fn end_driver(&self, driver: Driver) -> BoxFuture<'static, Result<(), String>>;
}

/// Hands connections that agents open to the server to the runs that they belong to.
pub trait Connections: Send + Sync + 'static {
    /// Sets the address at which agents reach this server: `ws://HOST:PORT`.
    fn serve_at(&self, address: String);

    /// Whether the agent of this session may connect with this secret from this address.
    fn expects(&self, session: SessionId, secret: &str, peer: SocketAddr) -> bool;

    /// Hands over a connection, which replaces an earlier connection of the same run. False: no run expects it.
    fn attach(&self, session: SessionId, secret: &str, connection: Connection) -> BoxFuture<'static, bool>;
}

/// Both directions of a connection that an agent opened.
pub struct Connection {
    pub incoming: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    pub outgoing: Pin<Box<dyn Sink<String, Error = io::Error> + Send>>,
}

/// Knows what agents offer, as far as an agent has reported it since the server started.
pub trait Catalogue: Send + Sync + 'static {
    fn offers(&self) -> Option<Arc<Offers>>;
}

/// Ends and removes runs that an earlier server left behind.
pub trait Leftovers: Send + Sync + 'static {
    /// Removes everything except these runs, which are still needed.
    fn keep_only(&self, runs: HashSet<String>);
}
