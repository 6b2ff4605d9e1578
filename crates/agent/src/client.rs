//! An agent as a program wants to use it: ask it things, read what it says, with functions that answer what it asks.

mod answers;
mod builder;
mod conductor;
mod handle;
mod query;
mod route;
mod turn;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::control::Initialized;
use crate::error::Error;
use crate::link::{Exit, Inbound, InboxReceiver, Link};
use crate::user::UserMessage;
use tiller_message::{Message, TurnResult};

#[cfg(feature = "tools")]
pub(crate) use answers::guarded;
pub use builder::ClientBuilder;
pub use handle::{ClientHandle, Interrupter};
pub use query::{Query, query, query_stream};
pub use turn::Turn;

/// How long a session store may take for what the agent wrote last.
#[cfg(feature = "history")]
const STORE_TIME: std::time::Duration = std::time::Duration::from_secs(30);

/// A running agent: a conversation of several turns.
///
/// There are three ways to read an answer. They can be mixed; every message is read once.
///
/// | way | for |
/// | --- | --- |
/// | [`ask`](Self::ask) | the result of the turn, nothing else |
/// | [`turn`](Self::turn) | the messages of one turn as a stream of its own, which may move to another task |
/// | [`query`](Self::query), then [`receive_turn`](Self::receive_turn), [`finish_turn`](Self::finish_turn) or [`receive`](Self::receive) | the same, one turn after another, as the Python SDK does it |
///
/// The client is a stream too: of the messages of turns that `query` has begun, and of what the agent says between
/// turns, for example when a background task has ended.
///
/// A client derefs to its [`ClientHandle`], which has everything that needs no `&mut`. The agent ends when the client is
/// dropped, or better with [`Client::close`], which waits until nothing is left of it.
///
/// ```no_run
/// # async fn example() -> Result<(), tiller_agent::Error> {
/// use tiller_agent::{Client, Options};
///
/// let mut client = Client::connect(Options::new().model("sonnet")).await?;
/// client.query("Which files are here?").await?;
/// while let Some(message) = client.receive_turn().await {
///     println!("{:?}", message?);
/// }
/// let answer = client.ask("Which of them is the largest?").await?;
/// println!("{}", answer.result.unwrap_or_default());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "ClaudeSDKClient")]
pub struct Client {
    handle: ClientHandle,
    /// Turns that `query` has begun and that were not read to their end.
    turns: VecDeque<Turn>,
    /// What belongs to no turn.
    outside: InboxReceiver,
    initialized: Initialized,
    /// The end of the agent was read.
    ended: bool,
    conductor: tokio::task::JoinHandle<()>,
    /// Ends when everything is in the session store.
    #[cfg(feature = "history")]
    mirroring: Option<tokio::task::JoinHandle<()>>,
}

impl Client {
    /// Starts an agent. Use [`Client::builder`] to give it functions that answer its questions.
    ///
    /// If the future is dropped, the agent ends, and nothing is left of it.
    pub async fn connect(options: impl Into<ClientBuilder>) -> Result<Self, Error> {
        options.into().connect().await
    }

    /// A way to start an agent with permissions, hooks and tools of the caller's.
    pub fn builder(options: crate::Options) -> ClientBuilder {
        options.into()
    }

    /// A handle for other tasks.
    pub fn handle(&self) -> ClientHandle {
        self.handle.clone()
    }

    /// Sends a prompt, whose answer is read with [`receive_turn`](Self::receive_turn),
    /// [`finish_turn`](Self::finish_turn) or [`receive`](Self::receive). If a turn runs, the prompt waits for its end.
    ///
    /// Cancel safe: if the future is dropped, the prompt is not sent.
    pub async fn query(&mut self, prompt: impl Into<UserMessage>) -> Result<(), Error> {
        let turn = self.handle.turn(prompt).await?;
        // One whose result was read need not be read to its `None`.
        self.turns.retain(|turn| !turn.is_finished());
        self.turns.push_back(turn);
        Ok(())
    }

    /// The next message of the oldest turn that [`query`](Self::query) has begun; `None` once after its result, and when
    /// no turn was begun. After several queries, each `None` separates two turns.
    ///
    /// Cancel safe: if the future is dropped, no message is lost.
    #[doc(alias = "receive_response")]
    pub async fn receive_turn(&mut self) -> Option<Result<Message, Error>> {
        let message = self.turns.front_mut()?.next().await;
        if message.is_none() {
            self.turns.pop_front();
        }
        message
    }

    /// Reads the oldest turn that [`query`](Self::query) has begun to its end. [`Error::NoTurn`] if there is none whose
    /// result was not read yet.
    ///
    /// Cancel safe: if the future is dropped, it may be called again, for the same turn.
    pub async fn finish_turn(&mut self) -> Result<TurnResult, Error> {
        self.turns.retain(|turn| !turn.is_finished());
        let turn = self.turns.front_mut().ok_or(Error::NoTurn)?;
        let result = turn.finish().await;
        self.turns.pop_front();
        result
    }

    /// The next message of turns that [`query`](Self::query) has begun, or of the time between turns; `None` when the
    /// agent was closed. Messages of [`turn`](ClientHandle::turn) and [`ask`](ClientHandle::ask) are not among them.
    ///
    /// What comes between turns is kept for as long as [`Options::inbox_bytes`](crate::Options::inbox_bytes) of it are
    /// not read; then it is dropped, with a log line.
    ///
    /// Cancel safe: if the future is dropped, no message is lost.
    #[doc(alias = "receive_messages")]
    pub async fn receive(&mut self) -> Option<Result<Message, Error>> {
        std::future::poll_fn(|context| self.poll_message(context)).await
    }

    /// How many turns that [`query`](Self::query) has begun were not read to their end.
    pub fn open_turns(&self) -> usize {
        self.turns.iter().filter(|turn| !turn.is_finished()).count()
    }

    /// What this CLI offers: commands, models, subagents.
    #[doc(alias = "get_server_info")]
    pub fn initialized(&self) -> &Initialized {
        &self.initialized
    }

    /// The connection underneath. Do not send prompts through it: the client would not know whose answer is whose.
    pub fn link(&self) -> &Link {
        &self.handle.link
    }

    /// Ends the agent, and everything that it started: its input is closed, then it is asked to terminate, then killed,
    /// with the graces of [`Options::grace`](crate::Options::grace). Done when nothing is left of it.
    ///
    /// If the future is dropped, the agent ends all the same.
    #[doc(alias = "disconnect")]
    #[cfg_attr(
        not(feature = "history"),
        allow(unused_mut, reason = "there is nothing to take out")
    )]
    pub async fn close(mut self) -> Exit {
        let exit = self.handle.link.close().await;
        #[cfg(feature = "history")]
        if let Some(mirroring) = self.mirroring.take() {
            // The turns are not read any more and must not hold up what was written last.
            self.turns.clear();
            let storing = async {
                drop((&mut self.conductor).await);
                drop(mirroring.await);
            };
            if tokio::time::timeout(STORE_TIME, storing).await.is_err() {
                tracing::error!("the session store did not take everything in time");
            }
        }
        exit
    }

    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Message, Error>>> {
        while self.turns.front().is_some_and(Turn::is_finished) {
            self.turns.pop_front();
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let outside = self.outside.poll_order(context);
        let turn = match self.turns.front_mut() {
            Some(turn) => turn.poll_order(context),
            None => Poll::Pending,
        };
        let turn_is_next = match (&turn, &outside) {
            (Poll::Ready(Some(turn)), Poll::Ready(Some(outside))) => turn <= outside,
            (Poll::Ready(_), _) => true,
            (Poll::Pending, _) => false,
        };
        if turn_is_next && let Some(turn) = self.turns.front_mut() {
            let message = turn.poll_message(context);
            // The same end is told once.
            self.ended |= matches!(message, Poll::Ready(Some(Err(_))));
            return message;
        }
        match outside {
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => match self.outside.poll_receive(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Some(Inbound::Message(message))) => Poll::Ready(Some(Ok(message))),
                Poll::Ready(Some(Inbound::Exited(exit))) => {
                    self.ended = true;
                    if exit.requested {
                        return Poll::Ready(None);
                    }
                    Poll::Ready(Some(Err(self.handle.judge.error(exit))))
                }
                Poll::Ready(_) => {
                    self.ended = true;
                    Poll::Ready(None)
                }
            },
        }
    }
}

impl Deref for Client {
    type Target = ClientHandle;

    fn deref(&self) -> &ClientHandle {
        &self.handle
    }
}

impl Stream for Client {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(context)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Handles and turns may live on; the agent does not.
        self.handle.link.begin_close();
        self.conductor.abort();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("session_id", &self.handle.session_id())
            .field("pid", &self.handle.link.pid())
            .field("open_turns", &self.open_turns())
            .finish_non_exhaustive()
    }
}
