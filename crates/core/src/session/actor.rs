//! Runs one session: takes inputs one at a time, lets [`step`] decide, writes what it says, then does what it says.
//!
//! What a step records is on disk before anyone sees it and before anything goes out to the agent.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::backend::{
    AgentChannels, AgentCommand, AgentEvent, Backend, Exit, Inquiry, InquiryFailed, InquiryReply,
};
use crate::event::{DecisionRequest, Notice};
use crate::hub::Hub;
use crate::ids::Timestamp;
use crate::prompt::Image;
use crate::registry::Accepted;
use crate::session::state::{AgentState, AgentStatus, Delivery, SessionRecord, State};
use crate::session::step::{Effect, Input, Refusal, step};
use crate::store::{Commit, Store, StoreError};

/// How long a stopped turn may take to end by itself before its agent is ended. The CLI needs about 25 ms.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// How many of the agent's messages are written in one go at most: bounds memory and the delay of the first of them.
const BATCH: usize = 256;

/// How many commands may wait for one session. More means that nobody reads them.
const COMMANDS: usize = 64;

/// How long to wait before an agent's messages are offered to a store again that did not take them.
const STORE_RETRY: Duration = Duration::from_millis(500);

pub(crate) enum Command {
    /// With the bytes of the images that the input names.
    Input(
        Input,
        Vec<Image>,
        oneshot::Sender<Result<Accepted, CommandFailed>>,
    ),
    /// Asks something of the agent, if there is one.
    Inquire(Inquiry, InquiryReply),
    /// Ends the agent, removes everything, ends the actor.
    Delete(oneshot::Sender<Result<(), StoreError>>),
    /// Ends the agent, answers when it is gone, ends the actor.
    Close {
        reason: &'static str,
        done: oneshot::Sender<()>,
    },
}

#[derive(Debug)]
pub(crate) enum CommandFailed {
    Refused(Refusal),
    Store(StoreError),
}

/// What others see of a session without asking its actor.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) record: SessionRecord,
    pub(crate) pending: Vec<DecisionRequest>,
    pub(crate) agent: AgentStatus,
}

#[derive(Clone, Debug)]
pub(crate) struct ActorHandle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) view: watch::Receiver<Arc<View>>,
}

pub(crate) fn spawn(state: State, store: Arc<dyn Store>, backend: Arc<dyn Backend>, hub: Hub) -> ActorHandle {
    let (commands, inbox) = mpsc::channel(COMMANDS);
    let (publish_view, view) = watch::channel(Arc::new(View::of(&state)));
    let owner = state.record.owner.as_deref().map(Arc::from);
    let actor = Actor {
        owner,
        state,
        store,
        backend,
        hub,
        view: publish_view,
        agent: None,
        stop_deadline: None,
    };
    tokio::spawn(actor.run(inbox));
    ActorHandle { commands, view }
}

impl View {
    fn of(state: &State) -> Self {
        Self {
            record: state.record.clone(),
            pending: state.pending.clone(),
            agent: state.agent_status(),
        }
    }
}

struct Actor {
    owner: Option<Arc<str>>,
    state: State,
    store: Arc<dyn Store>,
    backend: Arc<dyn Backend>,
    hub: Hub,
    view: watch::Sender<Arc<View>>,
    agent: Option<Agent>,
    stop_deadline: Option<(Instant, u64)>,
}

struct Agent {
    /// Taken away to end the agent.
    commands: Option<mpsc::Sender<AgentCommand>>,
    events: mpsc::Receiver<AgentEvent>,
}

impl Actor {
    async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        loop {
            let deadline = self.stop_deadline;
            tokio::select! {
                biased;
                command = inbox.recv() => match command {
                    Some(Command::Input(input, images, reply)) => {
                        let outcome = self.command(input, images).await;
                        // The asker may have gone; what was done is done.
                        drop(reply.send(outcome));
                    }
                    Some(Command::Inquire(inquiry, reply)) => self.inquire(inquiry, reply),
                    Some(Command::Delete(reply)) => {
                        self.agent = None;
                        let outcome = self.store.delete(self.state.record.id).await;
                        let deleted = outcome.is_ok();
                        if deleted {
                            self.publish(Notice::Deleted(self.state.record.id));
                        }
                        drop(reply.send(outcome));
                        if deleted {
                            return;
                        }
                    }
                    Some(Command::Close { reason, done }) => {
                        self.inputs([Input::Close { reason }]).await;
                        self.wait_for_agent().await;
                        done.send(()).ok();
                        return;
                    }
                    None => return,
                },
                events = next_events(&mut self.agent) => {
                    self.inputs(events.into_iter().map(Input::Agent)).await;
                }
                () = sleep_until(deadline), if deadline.is_some() => {
                    if let Some((_, turn)) = self.stop_deadline.take() {
                        self.inputs([Input::StopOverdue { turn }]).await;
                    }
                }
            }
        }
    }

    /// A command is taken whole or not at all.
    async fn command(&mut self, input: Input, images: Vec<Image>) -> Result<Accepted, CommandFailed> {
        let before = self.state.clone();
        let effects = step(&mut self.state, input, Timestamp::now()).map_err(CommandFailed::Refused)?;
        if let Err(error) = self.write(&effects, images).await {
            self.state = before;
            return Err(CommandFailed::Store(error));
        }
        let queued = effects.contains(&Effect::QueueChanged);
        self.perform(effects).await;
        Ok(if queued {
            Accepted::Queued
        } else {
            Accepted::Started
        })
    }

    /// What is not a command can't be refused, so a store that can't take it is asked again. Meanwhile nothing more is
    /// read from the agent, which waits.
    async fn inputs(&mut self, inputs: impl IntoIterator<Item = Input>) {
        let now = Timestamp::now();
        let mut effects = Vec::new();
        for input in inputs {
            match step(&mut self.state, input, now) {
                Ok(more) => effects.extend(more),
                Err(refusal) => tracing::error!(%refusal, "refused what is not a command"),
            }
        }
        while let Err(error) = self.write(&effects, Vec::new()).await {
            tracing::error!(%error, session = %self.state.record.id, "can't store what the agent said; trying again");
            tokio::time::sleep(STORE_RETRY).await;
        }
        self.perform(effects).await;
    }

    /// Puts on disk what the effects record, then shows it.
    async fn write(&mut self, effects: &[Effect], images: Vec<Image>) -> Result<(), StoreError> {
        let queue_changed = effects.contains(&Effect::QueueChanged);
        let record_changed = effects.contains(&Effect::RecordChanged);
        let events: Vec<_> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Record(event) => Some(Arc::new(event.clone())),
                _ => None,
            })
            .collect();
        if events.is_empty() && !queue_changed && !record_changed {
            self.show_agent();
            return Ok(());
        }
        let record = self.state.record.clone();
        self.store
            .commit(Commit {
                record,
                events: events.clone(),
                images,
            })
            .await?;
        let agent = self.view.borrow().agent;
        let view = View::of(&self.state);
        // Whether it works or waits the status tells.
        let working = |agent| matches!(agent, AgentStatus::Running | AgentStatus::Idle);
        let updated = record_changed || (agent != view.agent && !(working(agent) && working(view.agent)));
        self.view.send_replace(Arc::new(view));
        for event in events {
            self.publish(Notice::Event(event));
        }
        if queue_changed {
            let session = self.state.record.id;
            self.publish(Notice::Queue {
                session,
                prompts: self.state.record.queue.clone(),
            });
        }
        if updated {
            self.publish(Notice::Updated(self.state.record.id));
        }
        Ok(())
    }

    /// An agent may come and go without an event.
    fn show_agent(&mut self) {
        let view = View::of(&self.state);
        if self.view.borrow().agent != view.agent {
            self.view.send_replace(Arc::new(view));
            self.publish(Notice::Updated(self.state.record.id));
        }
    }

    fn inquire(&mut self, inquiry: Inquiry, reply: InquiryReply) {
        if self.state.agent == AgentState::Live {
            self.send(AgentCommand::Inquire(inquiry, reply));
        } else {
            reply.send(Err(InquiryFailed::NoAgent));
        }
    }

    fn publish(&self, notice: Notice) {
        self.hub.publish(self.owner.as_ref(), notice);
    }

    async fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Record(_) | Effect::QueueChanged | Effect::RecordChanged => {}
                Effect::Deliver(delivery) => self.deliver(delivery).await,
                Effect::Announce(call) => {
                    let session = self.state.record.id;
                    self.publish(Notice::Hook { session, call });
                }
                Effect::Launch(launch) => {
                    let AgentChannels { commands, events } = self.backend.launch(launch);
                    self.agent = Some(Agent {
                        commands: Some(commands),
                        events,
                    });
                }
                Effect::Send(command) => self.send(command),
                Effect::EndAgent => self.end_agent(),
                Effect::ArmStopDeadline { turn } => {
                    self.stop_deadline = Some((Instant::now() + STOP_GRACE, turn));
                }
            }
        }
    }

    /// The bytes of images are read where they were kept: a prompt may have waited for longer than this server lives.
    async fn deliver(&mut self, Delivery { uuid, prompt }: Delivery) {
        let mut images = Vec::new();
        for attachment in &prompt.attachments {
            match self.stored_image(&attachment.id).await {
                Some(image) => images.push(image),
                None => {
                    tracing::error!(session = %self.state.record.id, "an image that was sent is not in the store");
                }
            }
        }
        let words = prompt.words();
        self.send(AgentCommand::Prompt { uuid, words, images });
    }

    async fn stored_image(&self, id: &str) -> Option<Image> {
        let session = self.state.record.id;
        loop {
            match self.store.image(session, id.to_owned()).await {
                Ok(image) => return image,
                Err(error) => {
                    tracing::error!(%error, %session, "can't read an image; trying again");
                    tokio::time::sleep(STORE_RETRY).await;
                }
            }
        }
    }

    fn send(&mut self, command: AgentCommand) {
        let Some(commands) = self.agent.as_ref().and_then(|agent| agent.commands.as_ref()) else {
            return;
        };
        // A closed channel means that the agent is gone: `Exited` is on its way and says so. A full one means that it
        // does not listen any more.
        if let Err(mpsc::error::TrySendError::Full(_)) = commands.try_send(command) {
            tracing::warn!(session = %self.state.record.id, "the agent takes no commands; ending it");
            self.end_agent();
        }
    }

    fn end_agent(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.commands = None;
        }
    }

    async fn wait_for_agent(&mut self) {
        while self.agent.is_some() {
            let events = next_events(&mut self.agent).await;
            self.inputs(events.into_iter().map(Input::Agent)).await;
        }
    }
}

async fn sleep_until(deadline: Option<(Instant, u64)>) {
    if let Some((at, _)) = deadline {
        tokio::time::sleep_until(at).await;
    }
}

/// What the agent has said since the last time, at least one event. Never returns without an agent. Clears `agent`
/// when it is gone.
async fn next_events(agent: &mut Option<Agent>) -> Vec<AgentEvent> {
    let Some(live) = agent else {
        return std::future::pending().await;
    };
    let mut events = Vec::new();
    live.events.recv_many(&mut events, BATCH).await;
    if events.is_empty() {
        // A backend that broke its promise; the session must not hang for it.
        events.push(AgentEvent::Exited(Exit::Ended {
            message: "The agent went away without a word.".to_owned(),
        }));
    }
    if matches!(events.last(), Some(AgentEvent::Exited(_))) {
        *agent = None;
    }
    events
}
