//! Runs one session: processes inputs one at a time with [`step`], stores the recorded events, then performs the
//! effects.
//!
//! Events are stored before they are published and before anything is sent to the agent. The exception are messages of
//! agents with a keeper, which are most events: see [`Journal`].

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::Instrument;

use crate::backend::{
    AgentChannels, AgentCommand, AgentEvent, Backend, Exit, ForkOrigin, Launch, Meaning, PositionedEvent,
};
use crate::event::{DecisionRequest, Event, EventBody, Notice};
use crate::hub::Hub;
use crate::ids::{Cause, SessionId, Timestamp};
use crate::json::RawJson;
use crate::paths::PathPolicy;
use crate::prompt::Image;
use crate::rights::Provenance;
use crate::session::inbox::{self, Acknowledged, Command, CommandFailed, Inbox, Refused};
use crate::session::journal::{Journal, Progress, RETRY, StepContent, Tail};
use crate::session::state::{AgentState, AgentStatus, Delivery, SessionRecord, State};
use crate::session::step::{Effect, Input, Refusal, step, step_into, totals};
use crate::store::{Epoch, Store, StoreError};

/// How long a stopped turn may take to end by itself before its agent is ended. Most agents need about 25 ms.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// How long a stopping server waits for the output that an agent wrote without it.
const CATCH_UP_TIME: Duration = Duration::from_secs(2);

/// How much of an agent's output is discarded at once. Each time costs a message to its keeper.
const FORGET: u64 = 1024 * 1024;

/// The parts of a session's state that others can read without asking its actor.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) record: SessionRecord,
    pub(crate) pending: Vec<DecisionRequest>,
    pub(crate) agent: AgentStatus,
    /// Whether the reconnect to an earlier server's agent is still in progress.
    pub(crate) attaching: bool,
    pub(crate) pid: Option<u32>,
    /// Whether the agent could be ended without losing work.
    pub(crate) may_hibernate: bool,
    /// Whether the actor holds state that the store does not have: registered hooks.
    pub(crate) has_hooks: bool,
    /// The session was deleted, and its actor has ended.
    pub(crate) deleted: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ActorHandle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) view: watch::Receiver<Arc<View>>,
    pub(crate) tail: Tail,
}

/// Starts the actor of a session that was acquired with this epoch.
pub(crate) fn spawn(
    state: State,
    epoch: Epoch,
    store: Arc<dyn Store>,
    backend: Arc<dyn Backend>,
    paths: Arc<PathPolicy>,
    hub: Hub,
) -> ActorHandle {
    let (commands, inbox) = inbox::channel();
    let (publish_view, view) = watch::channel(Arc::new(View::of(&state)));
    let from = Arc::new(Provenance::of(&state.record));
    let journal = Journal::new(Arc::clone(&store), epoch, state.record.last_seq);
    let tail = journal.tail();
    let actor = Actor {
        inbox,
        from,
        state,
        journal,
        store,
        backend,
        paths,
        hub,
        view: publish_view,
        agent: None,
        settling: None,
        stop_deadline: None,
        held_up: false,
        fenced: false,
    };
    // Whatever is logged on the way carries the session's id.
    let span = tracing::info_span!("session", session = %actor.state.record.id);
    tokio::spawn(actor.run().instrument(span));
    ActorHandle { commands, view, tail }
}

impl View {
    fn of(state: &State) -> Self {
        Self {
            record: state.record.clone(),
            pending: state.pending.clone(),
            agent: state.agent_status(),
            attaching: state.agent == AgentState::Attaching,
            pid: state.agent_pid,
            may_hibernate: state.may_hibernate(),
            has_hooks: !state.hooks.is_empty(),
            deleted: false,
        }
    }
}

struct Actor {
    inbox: Inbox,
    /// Decides who hears of this session.
    from: Arc<Provenance>,
    state: State,
    journal: Journal,
    store: Arc<dyn Store>,
    backend: Arc<dyn Backend>,
    paths: Arc<PathPolicy>,
    hub: Hub,
    view: watch::Sender<Arc<View>>,
    agent: Option<Agent>,
    /// Closes when the previous agent's run has been removed.
    settling: Option<mpsc::Receiver<Vec<PositionedEvent>>>,
    stop_deadline: Option<(Instant, u64)>,
    /// Subscribers were told that nothing can be stored.
    held_up: bool,
    /// Another owner has acquired the session: this actor must not do anything any more.
    fenced: bool,
}

struct Agent {
    /// Taken to end the agent.
    commands: Option<mpsc::Sender<AgentCommand>>,
    events: mpsc::Receiver<Vec<PositionedEvent>>,
    settled: oneshot::Sender<()>,
    /// The position up to which the agent's keeper may discard its output.
    forgotten: u64,
}

impl From<AgentChannels> for Agent {
    fn from(channels: AgentChannels) -> Self {
        Self {
            commands: Some(channels.commands),
            events: channels.events,
            settled: channels.settled,
            forgotten: 0,
        }
    }
}

impl Actor {
    async fn run(mut self) {
        loop {
            if self.fenced {
                self.step_down();
                return;
            }
            let deadline = self.stop_deadline;
            let has_room = self.journal.has_room();
            let attaching = self.state.agent == AgentState::Attaching;
            tokio::select! {
                biased;
                command = self.inbox.next(attaching) => match command {
                    Some(Command::Input { input, images, cause, reply }) => {
                        let outcome = self.command(*input, images, cause).await;
                        // The caller may have gone; the command was executed anyway.
                        drop(reply.send(outcome));
                    }
                    Some(Command::FindRun(reply)) => self.find_run(reply),
                    Some(Command::Delete(deletion, reply)) => {
                        let applies = deletion.applies_to(&self.state);
                        let outcome = if applies {
                            self.store.delete(self.state.record.id).await
                        } else {
                            Ok(())
                        };
                        let deleted = applies && outcome.is_ok();
                        if deleted {
                            // Only after the deletion: a session that stays must keep its agent.
                            if let Some(agent) = self.agent.take() {
                                // The output is no longer needed. If the timeout passes, the agent's end is not
                                // awaited.
                                agent.settled.send(()).ok();
                            }
                            self.view.send_replace(Arc::new(View {
                                deleted: true,
                                ..View::of(&self.state)
                            }));
                            self.publish(Notice::Deleted(self.state.record.id));
                        }
                        drop(reply.send(outcome.map(|()| deleted)));
                        if deleted {
                            return;
                        }
                    }
                    Some(Command::Close { reason, done }) => {
                        // Otherwise published numbers would be reused for other events.
                        self.catch_up().await;
                        // At once: a store that can't be written must not keep the agent alive. The next server finds
                        // that the agent has gone and records it.
                        self.end_agent();
                        self.inputs([Input::Close { reason }]).await;
                        self.wait_for_agent().await;
                        // Nothing of the run may be left when the server exits.
                        if let Some(mut events) = self.settling.take() {
                            while events.recv().await.is_some() {}
                        }
                        done.send(()).ok();
                        return;
                    }
                    Some(Command::Leave(done)) => {
                        while let Err(error) = self.journal.write(self.state.record.clone(), StepContent::default()).await {
                            if matches!(error, StoreError::Stale) {
                                break;
                            }
                            tracing::error!(%error, session = %self.state.record.id, "can't store the agent's messages; retrying");
                            tokio::time::sleep(RETRY).await;
                        }
                        done.send(()).ok();
                        // Dropping the channels would end the agent.
                        return std::future::pending().await;
                    }
                    None => return,
                },
                progress = self.journal.progress() => self.written(progress),
                events = next_events(&mut self.agent), if has_room => self.process(events).await,
                () = sleep_until(deadline), if deadline.is_some() => {
                    if let Some((_, turn)) = self.stop_deadline.take() {
                        self.inputs([Input::StopOverdue { turn }]).await;
                    }
                }
            }
        }
    }

    /// Executes a command completely or not at all.
    async fn command(
        &mut self,
        input: Input,
        images: Vec<Image>,
        cause: Option<Cause>,
    ) -> Result<Acknowledged, CommandFailed> {
        let before = self.state.clone();
        let stops = matches!(input, Input::Stop);
        self.state.cause = cause;
        let stepped = step(&mut self.state, input, Timestamp::now());
        let effects = match stepped {
            Ok(effects) => effects,
            Err(refusal) => {
                self.state.cause = None;
                return Err(CommandFailed::Refused(refusal));
            }
        };
        if let Err(error) = self.write(&effects, images).await {
            self.state = before;
            return match error {
                StoreError::Duplicate { session } if session == self.state.record.id => {
                    Ok(Acknowledged::Duplicate)
                }
                StoreError::Duplicate { .. } => Err(CommandFailed::Refused(Refusal::PromptIdUsed)),
                StoreError::Stale => {
                    self.fenced = true;
                    Err(CommandFailed::Store(StoreError::Stale))
                }
                error => {
                    if stops && let Some(turn) = &mut self.state.turn {
                        // The agent may be what fills the disk. After a crash it is not known that it was stopped.
                        turn.interrupted = true;
                        self.send(AgentCommand::Interrupt);
                    }
                    Err(CommandFailed::Store(error))
                }
            };
        }
        self.state.cause = None;
        self.perform(effects).await;
        Ok(Acknowledged::New(before.record.last_seq))
    }

    /// Processes inputs that are not commands. They can't be refused, so a failed write is retried; meanwhile nothing
    /// more is read from the agent, which waits.
    async fn inputs(&mut self, inputs: impl IntoIterator<Item = Input>) {
        let now = Timestamp::now();
        let mut effects = Vec::new();
        for input in inputs {
            self.step(input, now, &mut effects);
        }
        self.carry_out(effects).await;
    }

    fn step(&mut self, input: Input, now: Timestamp, effects: &mut Vec<Effect>) {
        if let Err(refusal) = step_into(&mut self.state, input, now, effects) {
            tracing::error!(%refusal, "an input that is not a command was refused");
        }
    }

    async fn carry_out(&mut self, effects: Vec<Effect>) {
        while let Err(error) = self.write(&effects, Vec::new()).await {
            if matches!(error, StoreError::Stale) {
                self.fenced = true;
                return;
            }
            tracing::error!(%error, session = %self.state.record.id, "can't store events; retrying");
            self.report_held_up(&error);
            self.refuse_commands_for(RETRY, &error).await;
        }
        self.held_up = false;
        self.perform(effects).await;
    }

    /// Another owner has acquired the session. The agent that was started here ends, because two agents would drive one
    /// conversation. Waiting commands are dropped; the next command goes to the new owner.
    fn step_down(&mut self) {
        let session = self.state.record.id;
        tracing::warn!(%session, "another owner has acquired a session; its agent here is ended");
        if let Some(agent) = self.agent.take() {
            // The agent's output is not recorded here any more. If the timeout passes, the agent's end is not awaited.
            agent.settled.send(()).ok();
        }
        self.publish(Notice::HeldUp {
            session,
            reason: StoreError::Stale.to_string(),
        });
    }

    /// Tells subscribers why they see no further events.
    fn report_held_up(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.held_up, true) {
            self.publish(Notice::HeldUp {
                session: self.state.record.id,
                reason: error.to_string(),
            });
        }
    }

    /// Refuses the commands that arrive while nothing can be stored, so that callers learn the reason instead of
    /// waiting.
    async fn refuse_commands_for(&mut self, time: Duration, error: &StoreError) {
        let deadline = Instant::now() + time;
        while let Ok(command) = tokio::time::timeout_at(deadline, self.inbox.next_to_refuse()).await {
            // The caller may have gone.
            match command {
                Refused::Input(reply) => drop(reply.send(Err(CommandFailed::Store(error.clone())))),
                Refused::Delete(reply) => drop(reply.send(Err(error.clone()))),
                Refused::FindRun(reply) => self.find_run(reply),
                // Executed later, when its turn comes; but even a server that can't write must end its agents.
                Refused::Closing => self.end_agent(),
            }
        }
    }

    /// Processes a batch of the agent's events.
    async fn process(&mut self, events: Vec<PositionedEvent>) {
        let now = Timestamp::now();
        let mut effects = Vec::with_capacity(events.len());
        let mut kept = true;
        let mut gone = false;
        for PositionedEvent { event, position } in events {
            // The last messages of a turn arrive together with its end; only the end must be stored before it is
            // published.
            if kept && !is_plain(&event) && !effects.is_empty() && effects.iter().all(is_replayable) {
                self.publish_replayable(std::mem::take(&mut effects)).await;
            }
            gone = matches!(event, AgentEvent::Exited(_));
            kept &= position.is_some();
            // Before the step, which may remove the run or begin another one.
            if let (Some(position), Some(run)) = (position, &mut self.state.record.run) {
                run.position = position;
            }
            self.step(Input::Agent(event), now, &mut effects);
        }
        if kept && !gone && effects.iter().all(is_replayable) {
            self.publish_replayable(effects).await;
            return;
        }
        // Taken first: a step may have started another agent.
        let ended = if gone { self.agent.take() } else { None };
        self.carry_out(effects).await;
        if let Some(agent) = ended {
            // The agent's end is stored.
            agent.settled.send(()).ok();
            self.settling = Some(agent.events);
        }
    }

    /// Publishes events at once that can be read again from the keeper.
    async fn publish_replayable(&mut self, effects: Vec<Effect>) {
        let events = recorded(&effects);
        self.journal.add(&events);
        self.show(events, false, false);
        self.perform(effects).await;
    }

    fn written(&mut self, progress: Progress) {
        match progress {
            Progress::Due => self.journal.begin(self.state.record.clone()),
            Progress::Refused(StoreError::Stale) => self.fenced = true,
            Progress::Refused(error) => self.report_held_up(&error),
            Progress::Written { position } => {
                self.held_up = false;
                if let (Some(position), Some(agent)) = (position, &mut self.agent)
                    && position >= agent.forgotten + FORGET
                    && let Some(commands) = &agent.commands
                {
                    agent.forgotten = position;
                    // If the channel is full, the next position is sent instead.
                    commands.try_send(AgentCommand::Forget { before: position }).ok();
                }
            }
        }
    }

    /// Stores the events of the effects, then publishes them.
    async fn write(&mut self, effects: &[Effect], images: Vec<Image>) -> Result<(), StoreError> {
        let queue_changed = effects.contains(&Effect::QueueChanged);
        let record_changed = effects.contains(&Effect::RecordChanged);
        let events = recorded(effects);
        if events.is_empty() && !queue_changed && !record_changed && !effects.contains(&Effect::StoreRecord) {
            self.show_agent();
            return Ok(());
        }
        let accepted = effects.iter().filter_map(|effect| match effect {
            Effect::Accept(prompt) => Some(*prompt),
            _ => None,
        });
        let step = StepContent {
            events: events.clone(),
            images,
            prompts: accepted.collect(),
        };
        self.journal.write(self.state.record.clone(), step).await?;
        log(&events);
        self.show(events, queue_changed, record_changed);
        Ok(())
    }

    fn show(&mut self, events: Vec<Arc<Event>>, queue_changed: bool, record_changed: bool) {
        let view = Arc::new(View::of(&self.state));
        let before = self.view.send_replace(view.clone());
        // The status already tells subscribers whether the agent is working.
        let working = |agent| matches!(agent, AgentStatus::Running | AgentStatus::Idle);
        let updated = record_changed
            || (before.agent != view.agent && !(working(before.agent) && working(view.agent)))
            || totals::changed(before.record.summary.as_ref(), view.record.summary.as_ref());
        self.hub.publish_events(&self.from, events);
        if queue_changed {
            let session = self.state.record.id;
            self.publish(Notice::Queue {
                session,
                prompts: self.state.record.queue.clone(),
                cause: self.state.cause,
            });
        }
        if updated {
            self.publish(Notice::Updated(self.state.record.id));
        }
    }

    /// Publishes a change of the agent's state, which can change without an event.
    fn show_agent(&mut self) {
        let view = View::of(&self.state);
        let before = self.view.send_replace(Arc::new(view));
        if before.agent != self.view.borrow().agent {
            self.publish(Notice::Updated(self.state.record.id));
        }
    }

    fn find_run(&self, reply: oneshot::Sender<Option<String>>) {
        let run = self.state.record.run.as_ref();
        let live = run.filter(|_| self.state.agent == AgentState::Live);
        // The caller may have gone.
        drop(reply.send(live.map(|run| run.name.clone())));
    }

    /// Starts the agent, if its folder is still one in which agents may work.
    async fn launch(&mut self, launch: Launch, fork: Option<ForkOrigin>) {
        let channels = match (self.paths.check_again(&launch.cwd).await, fork) {
            (Err(refused), _) => AgentChannels::ended(Exit::NotStarted {
                message: refused.to_string(),
            }),
            (Ok(()), None) => self.backend.launch(launch),
            (Ok(()), Some(origin)) => match self.backend.abilities().fork {
                Some(fork) => fork.launch(launch, origin),
                None => AgentChannels::ended(Exit::NotStarted {
                    message: format!("{} can't fork a conversation.", self.backend.info().title),
                }),
            },
        };
        self.agent = Some(channels.into());
    }

    fn answer_hook(&self, agent_request: String, output: RawJson) {
        if let (Some(hooks), Some(run)) = (self.backend.abilities().hooks, &self.state.record.run) {
            hooks.answer(&run.name, agent_request, output);
        }
    }

    fn publish(&self, notice: Notice) {
        self.hub.publish(&self.from, notice);
    }

    async fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Record(_)
                | Effect::Accept(_)
                | Effect::QueueChanged
                | Effect::RecordChanged
                | Effect::StoreRecord => {}
                Effect::Deliver(delivery) => self.deliver(*delivery).await,
                Effect::HookCalled(call) => {
                    let session = self.state.record.id;
                    self.publish(Notice::Hook { session, call });
                }
                Effect::HookClosed(agent_request) => {
                    let session = self.state.record.id;
                    self.publish(Notice::HookClosed {
                        session,
                        agent_request,
                    });
                }
                Effect::Launch(launch) => self.launch(*launch, None).await,
                Effect::Fork(launch, origin) => self.launch(*launch, Some(origin)).await,
                Effect::AnswerHook {
                    agent_request,
                    output,
                } => self.answer_hook(agent_request, output),
                Effect::Attach(attach) => self.agent = Some(self.backend.attach(*attach).into()),
                Effect::Send(command) => self.send(command),
                Effect::EndAgent => self.end_agent(),
                Effect::ArmStopDeadline { turn } => {
                    self.stop_deadline = Some((Instant::now() + STOP_GRACE, turn));
                }
            }
        }
    }

    /// The bytes of images are read from the store: a prompt may have waited longer than this server runs.
    async fn deliver(&mut self, delivery: Delivery) {
        let Delivery { number, prompt } = delivery;
        let mut images = Vec::new();
        for attachment in &prompt.attachments {
            let session = self.state.record.id;
            match stored_image(Arc::clone(&self.store), session, attachment.id.clone()).await {
                Some(image) => images.push(image),
                None => {
                    tracing::error!(session = %self.state.record.id, "an image of a prompt is not in the store");
                }
            }
        }
        let words = prompt.text_for_agent();
        self.send(AgentCommand::Prompt {
            uuid: prompt.id.to_string(),
            words,
            images,
            parent_tool_use_id: prompt.parent_tool_use_id,
            number,
        });
    }

    fn send(&mut self, command: AgentCommand) {
        let Some(commands) = self.agent.as_ref().and_then(|agent| agent.commands.as_ref()) else {
            return;
        };
        // A closed channel means that the agent has gone: `Exited` will follow. A full channel means that the agent no
        // longer reads.
        if let Err(mpsc::error::TrySendError::Full(_)) = commands.try_send(command) {
            tracing::warn!(session = %self.state.record.id, "the agent does not read its commands; ending it");
            self.end_agent();
        }
    }

    fn end_agent(&mut self) {
        if let Some(agent) = &mut self.agent {
            agent.commands = None;
        }
    }

    /// Records the output that an agent wrote without a server, if it arrives soon.
    async fn catch_up(&mut self) {
        let deadline = Instant::now() + CATCH_UP_TIME;
        while self.state.agent == AgentState::Attaching && !self.fenced {
            let events = tokio::time::timeout_at(deadline, next_events(&mut self.agent)).await;
            let Ok(events) = events else {
                tracing::warn!(session = %self.state.record.id, "an agent is ended before its output was read");
                return;
            };
            self.process(events).await;
        }
    }

    async fn wait_for_agent(&mut self) {
        while self.agent.is_some() && !self.fenced {
            let events = next_events(&mut self.agent).await;
            self.process(events).await;
        }
    }
}

async fn stored_image(store: Arc<dyn Store>, session: SessionId, id: String) -> Option<Image> {
    loop {
        match store.image(session, id.clone()).await {
            Ok(image) => return image,
            Err(error) => {
                tracing::error!(%error, %session, "can't read an image; retrying");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

async fn sleep_until(deadline: Option<(Instant, u64)>) {
    if let Some((at, _)) = deadline {
        tokio::time::sleep_until(at).await;
    }
}

/// Whether an effect may be published before it is stored. All other events are stored first, so that a client that
/// sees a turn end finds all of it stored.
fn is_replayable(effect: &Effect) -> bool {
    match effect {
        Effect::Record(event) => {
            matches!(event.body, EventBody::Message { .. } | EventBody::Unreadable(_))
        }
        Effect::HookCalled(_) | Effect::Send(AgentCommand::Answer { number: 0, .. }) => true,
        _ => false,
    }
}

/// Whether an event is a plain message, whatever the session's state.
fn is_plain(event: &AgentEvent) -> bool {
    matches!(
        event,
        AgentEvent::Message {
            meaning: Meaning::Nothing,
            ..
        } | AgentEvent::Unreadable(_)
    )
}

/// The events among the effects.
fn recorded(effects: &[Effect]) -> Vec<Arc<Event>> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Record(event) => Some(Arc::clone(event)),
            _ => None,
        })
        .collect()
}

/// The agent's next events, at least one. Never returns if there is no agent.
async fn next_events(agent: &mut Option<Agent>) -> Vec<PositionedEvent> {
    let Some(live) = agent else {
        return std::future::pending().await;
    };
    let mut events = live.events.recv().await.unwrap_or_default();
    if events.is_empty() {
        // The backend broke its contract; the session must not hang because of it.
        events.push(PositionedEvent::without_position(AgentEvent::Exited(
            Exit::Ended {
                message: "The agent ended without an exit message.".to_owned(),
            },
        )));
    }
    events
}

/// What operators want to follow. Nothing of what was said.
fn log(events: &[Arc<Event>]) {
    for event in events {
        match &event.body {
            EventBody::Status(change) => {
                tracing::debug!(status = change.status.as_str(), seq = event.seq, "status");
            }
            EventBody::DecisionRequested(asked) => {
                tracing::debug!(tool = asked.tool_name, seq = event.seq, "a decision waits");
            }
            EventBody::DecisionResolved { behavior, .. } => {
                tracing::debug!(
                    behavior = behavior.as_str(),
                    seq = event.seq,
                    "a decision is resolved"
                );
            }
            EventBody::UserPrompt { .. } | EventBody::Message { .. } | EventBody::Unreadable(_) => {}
        }
    }
}
