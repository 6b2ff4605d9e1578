//! What some backends can do beside running agents. Each ability is an object that a backend has or has not.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Sink, Stream};

use super::{Driver, Offers};
use crate::ids::{SessionId, Timestamp};

/// The abilities of a backend.
#[derive(Clone, Default)]
pub struct Abilities {
    pub titles: Option<Arc<dyn TitleWriter>>,
    pub drivers: Option<Arc<dyn Drivers>>,
    pub connections: Option<Arc<dyn Connections>>,
    pub catalogue: Option<Arc<dyn Catalogue>>,
    pub leftovers: Option<Arc<dyn Leftovers>>,
    /// What a running agent can be told beside prompts and answers.
    pub steering: Steering,
}

/// Which of the optional commands the agents of a backend take.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Steering {
    /// [`Conversation::Fork`](super::Conversation::Fork).
    pub fork: bool,
    /// [`Inquiry::Rewind`](super::Inquiry::Rewind).
    pub rewind: bool,
    /// Callbacks, see [`Launch::hooks`](super::Launch).
    pub hooks: bool,
    /// Every other [`Inquiry`](super::Inquiry).
    pub inquire: bool,
}

/// Writes titles without a session.
pub trait TitleWriter: Send + Sync + 'static {
    /// A title for a session that begins with this prompt. `None` if there is none to be had; takes a few seconds, and
    /// never for ever.
    fn title(&self, prompt: String, cwd: PathBuf) -> BoxFuture<'static, Option<String>>;
}

/// Finds processes that drive a conversation and were started elsewhere: two that write one conversation would fork it.
pub trait Drivers: Send + Sync + 'static {
    /// The process that drives the conversation while this server has no agent on it. `since`: when it last had one.
    fn driver(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>>;

    /// Reserves the conversation until this server has launched an agent on it, which it does at once or not at all. The
    /// process that drives it already, if there is one.
    fn claim(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>>;

    /// The processes that drive any of these conversations, each of which comes with its folder.
    fn drivers(
        &self,
        conversations: Vec<(String, PathBuf)>,
    ) -> BoxFuture<'static, Option<HashMap<String, Driver>>>;

    /// The other processes that say that they drive one of these conversations, on each of which this server has an
    /// agent: that process, and those that it has started.
    fn rivals(&self, agents: Vec<(String, u32)>) -> BoxFuture<'static, HashMap<String, Driver>>;

    /// Ends that process, politely at first. An error says what the user can do.
    fn end_driver(&self, driver: Driver) -> BoxFuture<'static, Result<(), String>>;
}

/// Hands the connections that agents open to the server over to the runs they belong to.
pub trait Connections: Send + Sync + 'static {
    /// Tells where agents reach this server: `ws://HOST:PORT`.
    fn serve_at(&self, address: String);

    /// Whether the agent of this session may connect with this secret.
    fn expects(&self, session: SessionId, secret: &str) -> bool;

    /// Hands over a connection, which replaces an earlier one of the same run. False: no run expects it.
    fn attach(&self, session: SessionId, secret: &str, connection: Connection) -> BoxFuture<'static, bool>;
}

/// Both directions of a connection that an agent opened.
pub struct Connection {
    pub incoming: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
    pub outgoing: Pin<Box<dyn Sink<String, Error = io::Error> + Send>>,
}

/// Knows what agents offer, as far as one has told since the server started.
pub trait Catalogue: Send + Sync + 'static {
    fn offers(&self) -> Option<Arc<Offers>>;
}

/// Ends and removes what an earlier server has left behind.
pub trait Leftovers: Send + Sync + 'static {
    /// Everything but these runs, which are still needed.
    fn keep_only(&self, runs: HashSet<String>);
}
