//! One turn: a prompt, and everything that the agent says about it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::link::{Exit, Inbound, InboxReceiver, Link};
use tiller_message::{Cost, Digest, Kind, Message, TurnResult};

/// Tells what the end of an agent means.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) resumes: bool,
    pub(super) resumed: Option<String>,
}

impl Judge {
    /// Why nothing more comes.
    pub(super) fn error(&self, exit: Exit) -> Error {
        if exit.expired {
            Error::SessionExpired {
                session_id: self.resumed.clone(),
            }
        } else if exit.requested {
            Error::Closed
        } else if exit.resume_failed {
            Error::ResumeFailed {
                session_id: self.resumed.clone(),
                exit,
            }
        } else {
            Error::Exited(exit)
        }
    }

    /// An expired conversation has a result of its own; the end of the process follows.
    fn expired(&self, result: &TurnResult) -> bool {
        self.resumes
            && result
                .errors
                .iter()
                .any(|error| error.contains(crate::link::NOT_FOUND))
    }
}

/// A prompt and its answer: a stream of the messages of this turn and no other, whose last one is the turn's result.
///
/// Made by [`Client::turn`](crate::Client::turn) and [`ClientHandle::turn`](crate::ClientHandle::turn). Turns run one
/// after another, in the order in which they were made. A turn does not borrow its client: it may be read in another
/// task.
///
/// Dropping a turn that has not begun takes the prompt back. Dropping one that runs gives up its answer; the agent goes
/// on until the turn ends or [`Client::interrupt`](crate::Client::interrupt) stops it, and the next turn begins after
/// that. Either way no other turn gets this one's messages.
///
/// A turn that is not read holds up those behind it once
/// [`Options::inbox_bytes`](crate::Options::inbox_bytes) of its messages wait: read it or drop it.
///
/// ```no_run
/// # async fn example() -> Result<(), tiller_agent::Error> {
/// use tiller_agent::{Client, Options};
///
/// let client = Client::connect(Options::new()).await?;
/// let mut first = client.turn("Which files are here?").await?;
/// let mut second = client.turn("Which of them is the largest?").await?;
/// while let Some(message) = first.next().await {
///     println!("{:?}", message?);
/// }
/// println!("{}", second.finish().await?.result.unwrap_or_default());
/// # Ok(())
/// # }
/// ```
pub struct Turn {
    id: String,
    messages: InboxReceiver,
    judge: Arc<Judge>,
    link: Link,
    state: State,
    cost_before: CostBefore,
}

enum State {
    Open,
    /// Nothing comes any more, and this is being found out why.
    Ending(tokio::task::JoinHandle<Exit>),
    Ended(Option<Box<TurnResult>>),
}

enum CostBefore {
    Coming(oneshot::Receiver<f64>),
    Known(f64),
}

impl Turn {
    pub(super) fn new(
        id: String,
        messages: InboxReceiver,
        cost_before: oneshot::Receiver<f64>,
        judge: Arc<Judge>,
        link: Link,
    ) -> Self {
        Self {
            id,
            messages,
            judge,
            link,
            state: State::Open,
            cost_before: CostBefore::Coming(cost_before),
        }
    }

    /// The uuid of the prompt. With [`Options::file_checkpointing`](crate::Options::file_checkpointing) it is what
    /// [`Client::rewind_files`](crate::Client::rewind_files) wants.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next message; `None` after the turn's result, or after an error.
    ///
    /// Cancel safe: if the future is dropped, no message is lost.
    pub async fn next(&mut self) -> Option<Result<Message, Error>> {
        std::future::poll_fn(|context| self.poll_message(context)).await
    }

    /// Reads to the end of the turn. May be called again, and returns the same result.
    ///
    /// A turn that was interrupted, or that hit a limit, has a result like any other: see
    /// [`TurnResult::is_error`] and [`TurnResult::subtype`].
    ///
    /// Cancel safe: if the future is dropped, for example by a timeout, it may be called again.
    pub async fn finish(&mut self) -> Result<TurnResult, Error> {
        while let Some(message) = self.next().await {
            message?;
        }
        match &self.state {
            State::Ended(Some(result)) => Ok((**result).clone()),
            _ => Err(Error::NoTurn),
        }
    }

    /// Reads the rest of the turn, and tells what it came to: text, tool calls, to-dos, cost.
    ///
    /// Not cancel safe: what was read is lost with the future. Push messages into a [`Digest`] of your own to keep it.
    pub async fn digest(&mut self) -> Result<Digest, Error> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message?);
        }
        let mut digest = Digest::resumed(Cost::resumed(self.cost_before()));
        for message in &messages {
            digest.push(message);
        }
        Ok(digest)
    }

    /// Whether the result was read, or an error.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    /// What the session had cost when the turn began; 0 before that.
    fn cost_before(&mut self) -> f64 {
        if let CostBefore::Coming(coming) = &mut self.cost_before
            && let Ok(cost) = coming.try_recv()
        {
            self.cost_before = CostBefore::Known(cost);
        }
        match self.cost_before {
            CostBefore::Known(cost) => cost,
            CostBefore::Coming(_) => 0.0,
        }
    }

    /// The place of the next message among all messages of the client; `None` when there is none to come.
    pub(super) fn poll_order(&mut self, context: &mut Context<'_>) -> Poll<Option<u64>> {
        match self.state {
            State::Open => match self.messages.poll_order(context) {
                Poll::Ready(None) => Poll::Ready(Some(u64::MAX)),
                order => order,
            },
            State::Ending(_) => Poll::Ready(Some(u64::MAX)),
            State::Ended(_) => Poll::Ready(None),
        }
    }

    pub(super) fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Message, Error>>> {
        loop {
            match &mut self.state {
                State::Ended(_) => return Poll::Ready(None),
                State::Ending(exit) => {
                    let Poll::Ready(exit) = Pin::new(exit).poll(context) else {
                        return Poll::Pending;
                    };
                    self.state = State::Ended(None);
                    // Without an answer the runtime is shutting down.
                    let error = exit.map_or(Error::Closed, |exit| self.judge.error(exit));
                    return Poll::Ready(Some(Err(error)));
                }
                State::Open => match self.messages.poll_receive(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Inbound::Message(message))) => {
                        return Poll::Ready(Some(self.take(message)));
                    }
                    Poll::Ready(Some(Inbound::Exited(exit))) => {
                        self.state = State::Ended(None);
                        return Poll::Ready(Some(Err(self.judge.error(exit))));
                    }
                    Poll::Ready(Some(_)) => {}
                    // The client was dropped, and with it the task that reads messages.
                    Poll::Ready(None) => {
                        let link = self.link.clone();
                        self.state = State::Ending(tokio::spawn(async move { link.exited().await }));
                    }
                },
            }
        }
    }

    fn take(&mut self, message: Message) -> Result<Message, Error> {
        if message.kind() != Kind::Result {
            return Ok(message);
        }
        let result = message.result();
        if result.as_ref().is_some_and(|result| self.judge.expired(result)) {
            self.state = State::Ended(None);
            return Err(Error::SessionExpired {
                session_id: self.judge.resumed.clone(),
            });
        }
        self.state = State::Ended(result.map(Box::new));
        Ok(message)
    }
}

impl Stream for Turn {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(context)
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("id", &self.id)
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
