//! The task between a client and its agent: sends one prompt at a time, gives every message to the turn that it belongs
//! to, and has the agent's questions answered.
//!
//! Prompts wait here and not in the CLI, which would merge those that wait into one turn. An interrupt stops what runs
//! when it is asked for: the next prompt is sent only after the CLI has answered the interrupt.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

use super::answers::Answers;
use super::route::{Route, Router};
use crate::control::{Interrupt, RequestError};
use crate::link::{Closed, Exit, Inbound, Inbox, InboxSender, Link, NotSent};
use crate::user::UserMessage;
use tiller_message::{Kind, Message};

/// A prompt that waits for its turn.
pub(super) struct Prompt {
    pub(super) id: String,
    pub(super) message: UserMessage,
    pub(super) turn: InboxSender,
    /// Set when the turn begins: what the session had cost by then.
    pub(super) cost_before: oneshot::Sender<f64>,
}

/// Somebody waits for an interrupt to be answered.
pub(super) type InterruptWaiter = oneshot::Sender<Result<(), RequestError>>;

/// What is known of the session, shared with the client.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<KnownFields>);

#[derive(Debug, Default)]
struct KnownFields {
    session_id: Option<String>,
    total_usd: f64,
}

impl Known {
    pub(super) fn session_id(&self) -> Option<String> {
        self.fields().session_id.clone()
    }

    pub(super) fn set_total_usd(&self, total: f64) {
        self.fields().total_usd = total;
    }

    pub(super) fn total_usd(&self) -> f64 {
        self.fields().total_usd
    }

    fn note(&self, message: &Message) {
        let mut fields = self.fields();
        if let Some(id) = message
            .session_id()
            .filter(|id| fields.session_id.as_deref() != Some(id))
        {
            fields.session_id = Some(id.to_owned());
        }
        if message.kind() == Kind::Result
            && let Some(result) = message.result()
        {
            fields.total_usd = result.total_cost_usd;
        }
    }

    // Held to copy a field, never across an await.
    fn fields(&self) -> std::sync::MutexGuard<'_, KnownFields> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Conductor {
    pub(super) inbox: Inbox,
    pub(super) link: Link,
    pub(super) answers: Answers,
    pub(super) router: Router,
    /// Messages that belong to no turn.
    pub(super) outside: InboxSender,
    pub(super) prompts: mpsc::Receiver<Prompt>,
    pub(super) interrupts: mpsc::Receiver<InterruptWaiter>,
    pub(super) known: Arc<Known>,
    #[cfg(feature = "history")]
    pub(super) mirror: Option<crate::sessions::Mirror>,
}

/// What the conductor waits for, beside its channels.
#[derive(Default)]
struct Pending {
    /// A prompt is being written.
    sending: Option<BoxFuture<'static, Result<(), Closed>>>,
    /// An interrupt is not answered yet.
    interrupting: Option<BoxFuture<'static, ()>>,
    /// A message waits for room in its turn.
    delivering: Option<BoxFuture<'static, ()>>,
    /// How many messages that belong to no turn were dropped.
    dropped: u64,
}

impl Conductor {
    /// Runs until the agent has ended. Aborted when the client is dropped.
    pub(super) async fn run(mut self) {
        let mut turn: Option<Arc<InboxSender>> = None;
        let mut order = 0;
        let mut pending = Pending::default();
        loop {
            tokio::select! {
                biased;
                Some(()) = maybe(&mut pending.interrupting) => pending.interrupting = None,
                Some(sent) = maybe(&mut pending.sending) => {
                    pending.sending = None;
                    if sent.is_err() {
                        tracing::debug!("the agent does not read any more");
                    }
                }
                Some(waiter) = self.interrupts.recv(), if pending.interrupting.is_none() => {
                    pending.interrupting = Some(self.interrupt(waiter));
                }
                Some(prompt) = self.prompts.recv(), if turn.is_none() && pending.interrupting.is_none() => {
                    turn = self.begin(prompt, &mut pending);
                }
                Some(()) = maybe(&mut pending.delivering) => pending.delivering = None,
                inbound = self.inbox.next(), if pending.delivering.is_none() => match inbound {
                    Some(Inbound::Message(message)) if message.type_name() == "transcript_mirror" => {
                        pending.delivering = self.keep(&message);
                    }
                    Some(Inbound::Message(message)) => {
                        order += 1;
                        self.deliver(message, order, &mut turn, &mut pending);
                    }
                    Some(Inbound::Request(request)) => self.answers.begin(request),
                    Some(Inbound::Cancelled(id)) => self.answers.withdraw(&id),
                    Some(Inbound::Malformed { error, .. }) => {
                        tracing::warn!(%error, "a line of the agent was not understood");
                    }
                    Some(Inbound::Oversized { length }) => {
                        tracing::warn!(length, "a line of the agent was too long");
                    }
                    Some(Inbound::Exited(exit)) => return self.end(&exit, turn.as_deref()),
                    None => return,
                },
            }
        }
    }

    /// Passes on to the session store what the agent has written to disk.
    #[cfg(feature = "history")]
    fn keep(&self, message: &Message) -> Option<BoxFuture<'static, ()>> {
        let mirror = self.mirror.as_ref()?.sender();
        let batch = crate::sessions::Mirror::batch(message)?;
        Some(async move { mirror.send(batch).await }.boxed())
    }

    #[cfg(not(feature = "history"))]
    #[allow(clippy::unused_self, reason = "the same shape as with a session store")]
    fn keep(&self, _message: &Message) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn interrupt(&self, waiter: InterruptWaiter) -> BoxFuture<'static, ()> {
        let link = self.link.clone();
        async move {
            let answer = link.request(Interrupt {}).await.map(drop);
            // The one who asked may have stopped waiting.
            drop(waiter.send(answer));
        }
        .boxed()
    }

    /// Sends a prompt, unless nobody wants its answer any more.
    fn begin(&mut self, prompt: Prompt, pending: &mut Pending) -> Option<Arc<InboxSender>> {
        let Prompt {
            id,
            message,
            turn,
            cost_before,
        } = prompt;
        if turn.is_unread() {
            return None;
        }
        // The turn may have been dropped since.
        cost_before.send(self.known.total_usd()).ok();
        self.router.sent(id);
        let link = self.link.clone();
        pending.sending = Some(async move { link.send_user(&message).await }.boxed());
        Some(Arc::new(turn))
    }

    fn deliver(
        &mut self,
        message: Message,
        order: u64,
        turn: &mut Option<Arc<InboxSender>>,
        pending: &mut Pending,
    ) {
        self.known.note(&message);
        let size = message.json().len();
        let route = self.router.route(&message);
        let item = Inbound::Message(message);
        match route {
            Route::Hidden => {}
            Route::Turn | Route::TurnEnds => {
                let Some(receiver) = turn.clone() else { return };
                if route == Route::TurnEnds {
                    *turn = None;
                }
                // A turn that was dropped is not waited for.
                if let Err(NotSent::Full(item)) = receiver.try_send(item, size, order) {
                    let delivering = async move {
                        if receiver.send(*item, size, order).await.is_err() {
                            tracing::trace!("nobody reads the turn");
                        }
                    };
                    pending.delivering = Some(delivering.boxed());
                }
            }
            Route::Outside => {
                // Not waited for: a caller that only reads its turns would hold up the agent.
                if let Err(NotSent::Full(_)) = self.outside.try_send(item, size, order) {
                    pending.dropped += 1;
                    if pending.dropped.is_power_of_two() {
                        tracing::warn!(
                            dropped = pending.dropped,
                            "messages between turns are not read and were dropped"
                        );
                    }
                }
            }
        }
    }

    /// Tells everybody who waits that nothing comes any more.
    fn end(mut self, exit: &Exit, turn: Option<&InboxSender>) {
        if let Some(turn) = turn {
            turn.send_last(Inbound::Exited(exit.clone()));
        }
        self.prompts.close();
        while let Ok(prompt) = self.prompts.try_recv() {
            prompt.turn.send_last(Inbound::Exited(exit.clone()));
        }
        self.outside.send_last(Inbound::Exited(exit.clone()));
    }
}

/// What the future comes to; never, if there is none.
async fn maybe<T>(future: &mut Option<BoxFuture<'static, T>>) -> Option<T> {
    match future {
        Some(future) => Some(future.await),
        None => std::future::pending().await,
    }
}
