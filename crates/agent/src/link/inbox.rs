//! What the agent says, in order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::{Semaphore, mpsc, watch};

use super::supervisor::{Closing, Evidence, Exit, NOT_FOUND};
use super::{Alive, Shared};
use crate::control::{self, CancelLine, InboundRequest, RequestId, ResponseLine};
use crate::options::Grace;
use tiller_message::{Kind, Message, ParseError};
use tiller_process::{Frame, Located};

/// How long the output of an ended process may still be held open by something else.
const AFTER_EXIT: Duration = Duration::from_secs(2);
/// What a small message costs at least, so that a flood of empty ones is bounded as well.
const MIN_COST: usize = 256;

/// One thing that the agent says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Inbound {
    /// A message.
    Message(Message),
    /// A question, to be answered with [`Link::respond`](crate::link::Link::respond).
    Request(InboundRequest),
    /// The agent no longer wants an answer to this question.
    Cancelled(RequestId),
    /// A line that is no message. Nothing else is affected.
    Malformed {
        /// The line as it came, without its end.
        line: Bytes,
        /// What is wrong with it.
        error: ParseError,
    },
    /// A line that was too long to be looked at. Nothing else is affected.
    Oversized {
        /// How long it was.
        length: u64,
    },
    /// The end. Nothing comes after.
    Exited(Exit),
}

/// What the agent says, in order. The last item is [`Inbound::Exited`].
///
/// An inbox that is not read fills up; then the CLI has to wait. So read it all the time, and never wait for a
/// person between two reads.
pub struct Inbox {
    receiver: Receiver,
    /// Keeps the agent alive.
    _alive: Arc<Alive>,
}

impl Inbox {
    pub(super) fn new(receiver: Receiver, alive: Arc<Alive>) -> Self {
        Self {
            receiver,
            _alive: alive,
        }
    }

    /// The next thing that the agent says; `None` after its end. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Inbound> {
        self.receiver.receive().await
    }

    /// What it has said already.
    pub fn try_next(&mut self) -> Option<Inbound> {
        self.receiver.try_receive()
    }

    /// How much of the agent's output lies before the end of what [`next`](Self::next) returned last. Means something
    /// only with a transport whose output can be read again.
    pub fn position(&self) -> u64 {
        self.receiver.position
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

/// A queue that is bounded by the size of what is in it, not by its number: one message may be 16 MiB.
pub(crate) fn channel(bytes: usize) -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let limit = bytes.clamp(MIN_COST, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
    let room = Arc::new(Semaphore::new(limit));
    (
        Sender {
            queue: sender,
            room: Arc::clone(&room),
            limit,
        },
        Receiver {
            queue: receiver,
            room,
            taken: VecDeque::new(),
            position: 0,
        },
    )
}

pub(crate) struct Sender {
    queue: mpsc::UnboundedSender<Vec<Queued>>,
    room: Arc<Semaphore>,
    limit: usize,
}

pub(crate) struct Receiver {
    queue: mpsc::UnboundedReceiver<Vec<Queued>>,
    room: Arc<Semaphore>,
    /// What has been handed over and not been asked for.
    taken: VecDeque<Queued>,
    position: u64,
}

struct Queued {
    item: Inbound,
    cost: usize,
    /// Where the item's line ends, or its place in the order of messages; `None` for what is no line.
    end: Option<u64>,
}

impl Queued {
    fn new(item: Inbound, size: usize, end: Option<u64>) -> Self {
        Self {
            item,
            cost: size.max(MIN_COST),
            end,
        }
    }
}

/// The inbox was dropped.
pub(crate) struct Unread;

/// Why something was not put into the inbox.
pub(crate) enum NotSent {
    /// There is no room; here it is again.
    Full(Box<Inbound>),
    /// The inbox was dropped.
    Unread,
}

impl Sender {
    /// Waits for room. `order` is what [`Receiver::poll_order`] tells of it.
    pub(crate) async fn send(&self, item: Inbound, size: usize, order: u64) -> Result<(), Unread> {
        self.send_all(vec![Queued::new(item, size, Some(order))]).await
    }

    /// Does not wait.
    pub(crate) fn try_send(&self, item: Inbound, size: usize, order: u64) -> Result<(), NotSent> {
        if self.queue.is_closed() {
            return Err(NotSent::Unread);
        }
        let mut queued = Queued::new(item, size, Some(order));
        queued.cost = queued.cost.min(self.limit);
        let permits = u32::try_from(queued.cost).unwrap_or(u32::MAX);
        match self.room.try_acquire_many(permits) {
            // The receiver gives the room back.
            Ok(permit) => permit.forget(),
            Err(_) => return Err(NotSent::Full(Box::new(queued.item))),
        }
        self.queue.send(vec![queued]).map_err(|_| NotSent::Unread)
    }

    /// Whether nobody will read what is sent.
    pub(crate) fn is_unread(&self) -> bool {
        self.queue.is_closed()
    }

    /// Together, so that the reader is woken once.
    async fn send_all(&self, mut items: Vec<Queued>) -> Result<(), Unread> {
        let mut cost = 0;
        for item in &mut items {
            // More than there is room for altogether would never fit.
            item.cost = item.cost.min(self.limit - cost);
            cost += item.cost;
        }
        let permits = u32::try_from(cost).unwrap_or(u32::MAX);
        tokio::select! {
            biased;
            () = self.queue.closed() => return Err(Unread),
            permit = self.room.acquire_many(permits) => match permit {
                // The receiver gives the room back.
                Ok(permit) => permit.forget(),
                Err(_) => return Err(Unread),
            },
        }
        self.queue.send(items).map_err(|_| Unread)
    }

    /// The last item needs no room.
    pub(crate) fn send_last(&self, item: Inbound) {
        let last = Queued {
            item,
            cost: 0,
            end: None,
        };
        if self.queue.send(vec![last]).is_err() {
            tracing::trace!("nobody waits for the agent's end");
        }
    }
}

impl Receiver {
    pub(crate) async fn receive(&mut self) -> Option<Inbound> {
        if self.taken.is_empty() {
            self.taken = self.queue.recv().await?.into();
        }
        self.take()
    }

    pub(crate) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Option<Inbound>> {
        match self.poll_order(context) {
            Poll::Ready(Some(_)) => Poll::Ready(self.take()),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    /// The order of the next item, which stays where it is; the end of the agent comes after everything.
    pub(crate) fn poll_order(&mut self, context: &mut Context<'_>) -> Poll<Option<u64>> {
        if self.taken.is_empty() {
            match self.queue.poll_recv(context) {
                Poll::Ready(Some(items)) => self.taken = items.into(),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(self.taken.front().map(|queued| queued.end.unwrap_or(u64::MAX)))
    }

    fn try_receive(&mut self) -> Option<Inbound> {
        if self.taken.is_empty() {
            self.taken = self.queue.try_recv().ok()?.into();
        }
        self.take()
    }

    fn take(&mut self) -> Option<Inbound> {
        let Queued { item, cost, end } = self.taken.pop_front()?;
        self.room.add_permits(cost);
        self.position = end.unwrap_or(self.position);
        Some(item)
    }
}

/// Reads lines until there are no more and the process has ended.
pub(super) async fn read(
    incoming: BoxStream<'static, Vec<Located>>,
    inbox: Sender,
    shared: Arc<Shared>,
    evidence: Arc<Evidence>,
    mut exit: watch::Receiver<Option<Exit>>,
    closing: watch::Sender<Closing>,
) {
    let mut incoming = incoming.fuse();
    let mut exited = false;
    loop {
        let frames = if exited {
            tokio::time::timeout(AFTER_EXIT, incoming.next())
                .await
                .ok()
                .flatten()
        } else {
            tokio::select! {
                biased;
                frames = incoming.next() => frames,
                _ = exit.wait_for(Option::is_some) => {
                    exited = true;
                    continue;
                }
            }
        };
        let Some(frames) = frames else { break };
        let mut items = Vec::with_capacity(frames.len());
        for Located { frame, end } in frames {
            if let Some((item, size)) = route(frame, &shared, &evidence) {
                items.push(Queued::new(item, size, Some(end)));
            }
        }
        // When messages are not read any more, answers to requests are still passed on, and the CLI does not get stuck.
        if !items.is_empty() && inbox.send_all(items).await.is_err() {
            tracing::trace!("nobody reads the agent's messages");
        }
    }
    // Without output an agent is of no use, even if its process lives on.
    if tokio::time::timeout(AFTER_EXIT, exit.wait_for(Option::is_some))
        .await
        .is_err()
    {
        evidence.saw_silence();
        Closing::ask(&closing, Grace::default());
    }
    let exit = match exit.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(exit)) => exit.clone(),
        Ok(None) | Err(_) => Exit::unknown(),
    };
    shared.pending().clear();
    shared.open().clear();
    inbox.send_last(Inbound::Exited(exit));
}

/// Passes an answer on to the caller that waits for it; everything else goes into the inbox.
fn route(frame: Frame, shared: &Shared, evidence: &Evidence) -> Option<(Inbound, usize)> {
    let line = match frame {
        Frame::Line(line) => line,
        Frame::Oversized { length } => return Some((Inbound::Oversized { length }, 0)),
    };
    let size = line.len();
    // Its own copy: what is kept must not keep in memory what was read with it.
    let malformed = |error| {
        let line = Bytes::copy_from_slice(&line);
        Some((Inbound::Malformed { line, error }, size))
    };
    let message = match Message::parse(&line) {
        Ok(message) => message,
        Err(error) => return malformed(error),
    };
    let unreadable = |error: serde_json::Error| {
        malformed(ParseError::Json {
            reason: error.to_string(),
        })
    };
    match message.kind() {
        Kind::KeepAlive => None,
        Kind::ControlResponse => match message.decode::<ResponseLine>() {
            Ok(ResponseLine { response }) => {
                let Some(waiting) = shared.pending().remove(&response.request_id) else {
                    tracing::debug!(id = %response.request_id, "an answer without a waiting request");
                    return None;
                };
                // The caller may have stopped waiting.
                drop(waiting.send(response));
                None
            }
            Err(error) => unreadable(error),
        },
        Kind::ControlRequest => match control::parse_request(&message) {
            Ok(request) => {
                shared.open().insert(request.id.clone());
                Some((Inbound::Request(request), size))
            }
            Err(error) => unreadable(error),
        },
        Kind::ControlCancelRequest => match message.decode::<CancelLine>() {
            Ok(CancelLine { request_id }) => {
                shared.open().remove(&request_id);
                Some((Inbound::Cancelled(request_id), size))
            }
            Err(error) => unreadable(error),
        },
        Kind::Result => {
            if message.subtype() == Some("success") {
                evidence.saw_answer();
            } else if message.json().contains(NOT_FOUND) {
                evidence.saw_not_found();
            }
            Some((Inbound::Message(message), size))
        }
        _ => Some((Inbound::Message(message), size)),
    }
}
