//! The state machine of a session, as a pure function: what is asked of it and what the agent says go in, what to
//! record and what to do come out. No clock, no I/O, no channel.

mod agent_events;
pub(crate) mod totals;

use std::sync::Arc;

use crate::backend::{
    AgentCommand, AgentEvent, Attach, ConversationStart, ForkOrigin, HookCall, Launch, Options,
};
use crate::event::{Behavior, DecisionRequest, Event, EventBody, Reply, StatusChange};
use crate::ids::{PromptId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Prompt;
use crate::session::settings::SettingsPatch;
use crate::session::state::{
    AgentState, DecisionAnswer, DecisionRef, Delivery, RunRecord, SessionStatus, State, TitleSource, Turn,
    TurnRecord,
};

mod steering;

/// What happens to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// The user says something. The first one starts the session.
    Prompt(Prompt),
    Stop,
    /// From now on where a running agent can be told, from the next turn on where it can't.
    Configure(Box<SettingsPatch>),
    /// A title from a model never replaces one from a person.
    Rename {
        title: String,
        source: TitleSource,
    },
    Archive(bool),
    /// These prompts wait from now on, each with the id that it gets if it is new. Refused if `expected` is given and
    /// something else waits.
    Queue {
        prompts: Vec<(QueueItem, PromptId)>,
        expected: Option<Vec<QueueItem>>,
    },
    /// Send the first waiting prompt, if no turn runs.
    Flush,
    /// Someone wants to be called back for these events, from the agent's next start on.
    Hooks(Vec<String>),
    AnswerHook {
        agent_request: String,
        output: RawJson,
    },
    /// The session is to be deleted for good at that time; whatever runs is ended now.
    Discard {
        at: Timestamp,
    },
    /// It is not to be deleted after all.
    Restore,
    /// Something is asked of an agent outside of a turn: there must be one.
    Wake,
    /// The agent may be ended if it does nothing.
    Hibernate,
    Answer {
        decision: DecisionRef,
        answer: DecisionAnswer,
        /// The key that was used; `None`: the person at the machine.
        by: Option<String>,
    },
    Agent(AgentEvent),
    /// A stopped turn has had its time to end by itself.
    StopOverdue {
        turn: u64,
    },
    /// The session goes away, or the whole server.
    Close {
        reason: &'static str,
    },
    /// The server has come back and finds the session as the last one left it, with the prompt of the turn that runs
    /// and the answers since: the agent may not have heard of them.
    Recovered {
        unconfirmed: Vec<Event>,
        /// The latest events, among which may be twins of what the agent says next.
        recent: Vec<Event>,
    },
}

/// How a client names a prompt that waits, and the words that it has or gets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QueueItem {
    /// `None`: the first that waits with these words, or a new one.
    pub id: Option<PromptId>,
    pub text: String,
}

impl QueueItem {
    /// Whether this is what the client says of `prompt`.
    fn describes(&self, prompt: &Prompt) -> bool {
        self.id.is_none_or(|id| id == prompt.id) && self.text == prompt.text
    }
}

/// What is to be done, in this order. What is recorded before a step to the outside is on disk by then.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Record(Arc<Event>),
    /// Remember for as long as the session is kept that this prompt was accepted. It is accepted for the first time, or
    /// the step is not taken.
    Accept(PromptId),
    /// The queue changed: it is part of the session's record, and watchers are told.
    QueueChanged,
    /// The record changed without an event: subscribers read the record again.
    RecordChanged,
    /// The record changed, and only the next server needs the change.
    Keep,
    Launch(Box<Launch>),
    /// As `Launch`, with a copy of a conversation.
    Fork(Box<Launch>, ForkOrigin),
    /// Go on with an agent that an earlier server started.
    Attach(Box<Attach>),
    /// Give the agent a prompt, with the bytes of its images.
    Deliver(Box<Delivery>),
    Send(AgentCommand),
    /// Tell watchers that the agent calls back. Not part of the log.
    Announce(HookCall),
    /// Tell watchers that this call waits no longer. Not part of the log.
    Retract(String),
    /// Answer a call of the agent.
    AnswerHook {
        agent_request: String,
        output: RawJson,
    },
    /// End the agent's whole process tree; `Exited` follows.
    EndAgent,
    /// Come back with [`Input::StopOverdue`] after a while.
    ArmStopDeadline {
        turn: u64,
    },
}

/// Why a command was not taken. The session is as it was.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("Session has no resume id yet.")]
    NoResumeId,
    #[error("No such request is waiting for an answer.")]
    RequestNotFound,
    #[error("This request has been answered already.")]
    AlreadyAnswered,
    #[error("What waits is not what was shown. Look at it again.")]
    NotAsShown,
    #[error("The waiting prompts have changed. Look at them again.")]
    QueueChanged,
    #[error("The session is being deleted. Undo that first.")]
    Deleted,
    #[error("A waiting prompt would be empty: write what the agent should do, or take it away.")]
    EmptyPrompt,
    #[error("This prompt id was used in another session. Choose a new one for each prompt.")]
    PromptIdUsed,
}

/// Takes `input`. The state is changed only if the result is `Ok`.
pub fn step(state: &mut State, input: Input, now: Timestamp) -> Result<Vec<Effect>, Refusal> {
    let mut effects = Vec::new();
    step_on(state, input, now, &mut effects)?;
    Ok(effects)
}

/// The same, with the effects added to those of earlier steps.
pub(crate) fn step_on(
    state: &mut State,
    input: Input,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) -> Result<(), Refusal> {
    // Each run has a number of its own.
    let runs_before = (state.record.runs, state.record.run.is_some());
    let mut step = Step { state, now, effects };
    match input {
        Input::Prompt(prompt) => step.prompt(prompt)?,
        Input::Stop => step.stop(),
        Input::Configure(patch) => step.configure(&patch),
        Input::Rename { title, source } => step.rename(title, source),
        Input::Archive(archived) => step.archive(archived),
        Input::Queue { prompts, expected } => step.queue(prompts, expected)?,
        Input::Flush => step.flush()?,
        Input::Hooks(events) => step.state.hooks = events,
        Input::AnswerHook {
            agent_request,
            output,
        } => step.answer_hook(agent_request, output)?,
        Input::Discard { at } => step.discard(at),
        Input::Restore => step.restore(),
        Input::Wake => step.wake()?,
        Input::Hibernate => step.hibernate(),
        Input::Answer { decision, answer, by } => step.answer(&decision, answer, by)?,
        Input::Agent(event) => step.agent(event),
        Input::StopOverdue { turn } => step.stop_overdue(turn),
        Input::Close { reason } => step.close(reason),
        Input::Recovered { unconfirmed, recent } => step.recovered(unconfirmed, &recent),
    }
    step.keep_for_the_next_server(runs_before);
    Ok(())
}

fn aborted() -> DecisionAnswer {
    DecisionAnswer::Deny {
        message: Some("Session aborted".to_owned()),
        interrupt: true,
    }
}

struct Step<'a> {
    state: &'a mut State,
    now: Timestamp,
    effects: &'a mut Vec<Effect>,
}

impl Step<'_> {
    fn prompt(&mut self, prompt: Prompt) -> Result<(), Refusal> {
        if self.state.record.delete_at.is_some() {
            return Err(Refusal::Deleted);
        }
        if let Some(turn) = &mut self.state.turn {
            let queue = &mut self.state.record.queue;
            self.effects.push(Effect::Accept(prompt.id));
            if let Some(cause) = self.state.cause {
                self.state.causes.insert(prompt.id, cause);
            }
            queue.insert(turn.place_in(queue), prompt);
            if turn.stopping {
                turn.after_stop += 1;
            }
            self.state.record.updated_at = self.now;
            self.effects.push(Effect::QueueChanged);
            return Ok(());
        }
        self.can_go_on()?;
        self.effects.push(Effect::Accept(prompt.id));
        self.begin_turn(prompt);
        Ok(())
    }

    fn can_go_on(&self) -> Result<(), Refusal> {
        let record = &self.state.record;
        let first = record.last_seq == 0;
        if first || record.expired || record.conversation.is_some() || record.fork_of.is_some() {
            Ok(())
        } else {
            Err(Refusal::NoResumeId)
        }
    }

    fn begin_turn(&mut self, prompt: Prompt) {
        // The event after the change of status.
        let prompt_seq = self.state.record.last_seq + 2;
        let queued_by = self.state.causes.remove(&prompt.id);
        let cause = self.state.cause.or(queued_by);
        self.state.turns += 1;
        self.state.settled.clear();
        self.state.turn = Some(Turn {
            number: self.state.turns,
            prompt_seq,
            undelivered: Some(Delivery {
                number: prompt_seq,
                prompt: prompt.clone(),
            }),
            stopping: false,
            after_stop: 0,
            closing: None,
        });
        self.state.record.last_prompt = Some(prompt.text.clone());
        let title = Some(self.state.record.title.clone());
        let cwd = Some(self.state.record.cwd.clone());
        self.status(StatusChange {
            status: SessionStatus::Running,
            title,
            cwd,
            error: None,
            cause,
        });
        let prompt = Box::new(prompt);
        self.record(EventBody::UserPrompt { prompt });
        match self.state.agent {
            AgentState::Absent => self.launch(),
            // A process keeps what it was started with; another one goes on with the conversation.
            AgentState::Live if self.is_outdated() => self.end_agent(),
            AgentState::Live => self.deliver(),
            // Goes on when the old process is gone, or found.
            AgentState::Ending | AgentState::Attaching => {}
        }
    }

    /// Not a change of `updated_at`: that is about the conversation.
    fn record_changed(&mut self) {
        if !self.effects.contains(&Effect::RecordChanged) {
            self.effects.push(Effect::RecordChanged);
        }
    }

    fn hibernate(&mut self) {
        if self.state.may_hibernate() {
            self.state.hibernated = true;
            self.end_agent();
        }
    }

    /// The agent's process can't be what the session's settings want.
    fn is_outdated(&self) -> bool {
        let (Some(options), Some(run)) = (self.run_options(), &self.state.record.run) else {
            return false;
        };
        // Who approves is between the server and the user; no process knows it.
        options != self.state.record.settings.options || run.hooks != self.state.hooks
    }

    /// The options that the agent's process has, or will have when it has made the changes that it was told.
    fn run_options(&self) -> Option<Options> {
        let mut options = self.state.record.run.as_ref()?.options.clone();
        for change in &self.state.configuring {
            options.apply(change);
        }
        Some(options)
    }

    fn launch(&mut self) {
        let record = &self.state.record;
        let conversation = match (&record.conversation, &record.fork_of) {
            (Some(id), _) => ConversationStart::Resume(id.clone()),
            // The agent refuses an id that it has seen before, so a fresh start gets a fresh one.
            (None, None) if record.expired => {
                ConversationStart::New(record.id.fresh_conversation(record.created_at, record.last_seq))
            }
            (None, _) => ConversationStart::New(record.id.to_string()),
        };
        let origin = match (&record.conversation, &record.fork_of) {
            (None, Some(from)) => Some(ForkOrigin {
                conversation: from.clone(),
                at: record.fork_at.clone(),
            }),
            _ => None,
        };
        let record = &mut self.state.record;
        record.runs += 1;
        let run = record.id.run_name(record.created_at, record.runs);
        record.run = Some(RunRecord {
            name: run.clone(),
            position: 0,
            resumes: matches!(conversation, ConversationStart::Resume(_)),
            started: record.settings.options.clone(),
            options: record.settings.options.clone(),
            hooks: self.state.hooks.clone(),
        });
        let launch = Box::new(Launch {
            session: record.id,
            cwd: record.cwd.clone().into(),
            run,
            options: record.settings.options.clone(),
            conversation,
            hooks: self.state.hooks.clone(),
        });
        self.effects.push(match origin {
            Some(origin) => Effect::Fork(launch, origin),
            None => Effect::Launch(launch),
        });
        self.state.agent_heard = false;
        self.state.hibernated = false;
        self.state.background = 0;
        self.state.configuring.clear();
        self.state.agent = AgentState::Live;
        self.deliver();
    }

    fn deliver(&mut self) {
        if let Some(delivery) = self.state.turn.as_mut().and_then(|turn| turn.undelivered.take()) {
            self.effects.push(Effect::Deliver(Box::new(delivery)));
        }
    }

    fn stop(&mut self) {
        let Some(turn) = &mut self.state.turn else {
            // No turn runs, but something that an earlier one left in the background may be asking.
            for pending in std::mem::take(&mut self.state.pending) {
                self.settle_with(&pending, Behavior::Withdrawn, aborted(), None);
            }
            self.set_idle();
            return;
        };
        if turn.stopping {
            return;
        }
        turn.stopping = true;
        let number = turn.number;
        let undelivered = turn.undelivered.is_some();
        self.withdraw_all();
        if undelivered {
            self.state.turn = None;
            self.set_idle();
        } else {
            self.effects.push(Effect::Send(AgentCommand::Interrupt));
            self.effects.push(Effect::ArmStopDeadline { turn: number });
        }
    }

    fn stop_overdue(&mut self, number: u64) {
        let overdue = self
            .state
            .turn
            .as_ref()
            .is_some_and(|turn| turn.stopping && turn.number == number);
        if overdue && self.has_agent() {
            self.end_agent();
        }
    }

    fn answer(
        &mut self,
        decision: &DecisionRef,
        answer: DecisionAnswer,
        by: Option<String>,
    ) -> Result<(), Refusal> {
        let found = self
            .state
            .pending
            .iter()
            .position(|pending| decision.names(pending.id, &pending.tool_use_id));
        let Some(position) = found else {
            let settled = self
                .state
                .settled
                .iter()
                .any(|(id, tool_use_id)| decision.names(*id, tool_use_id));
            return Err(if settled {
                Refusal::AlreadyAnswered
            } else {
                Refusal::RequestNotFound
            });
        };
        let pending = self.state.pending.remove(position);
        let behavior = match &answer {
            DecisionAnswer::Allow { .. } => Behavior::Allow,
            DecisionAnswer::Deny { .. } => Behavior::Deny,
        };
        self.settle_with(&pending, behavior, answer, by);
        Ok(())
    }

    /// Answers on our own, without anybody having been asked. Not numbered: whoever reads the question again answers it
    /// again, and the agent takes one answer.
    fn reply(&mut self, agent_request: String, shown: RawJson, answer: DecisionAnswer) {
        self.effects.push(Effect::Send(AgentCommand::Answer {
            agent_request,
            answer: answer.to(shown),
            number: 0,
        }));
    }

    /// Puts an answer on record, and gives it.
    fn settle_with(
        &mut self,
        pending: &DecisionRequest,
        behavior: Behavior,
        answer: DecisionAnswer,
        by: Option<String>,
    ) {
        let reply = Reply {
            agent_request: pending.agent_request.clone(),
            answer: answer.to(pending.input.clone()),
            by,
        };
        self.settle_and(pending, behavior, Some(reply.clone()));
        self.effects.push(Effect::Send(AgentCommand::Answer {
            agent_request: reply.agent_request,
            answer: reply.answer,
            number: self.state.record.last_seq,
        }));
    }

    /// The user stopped the turn. Prompts that waited keep waiting: the user wanted quiet. Prompts that came after the
    /// stop run.
    fn stopped(&mut self, after_stop: usize) {
        self.set_idle();
        if after_stop > 0 && self.state.record.delete_at.is_none() && self.can_go_on().is_ok() {
            self.next_in_queue();
        }
    }

    fn next_in_queue(&mut self) {
        if !self.state.record.queue.is_empty() {
            let prompt = self.state.record.queue.remove(0);
            self.effects.push(Effect::QueueChanged);
            self.begin_turn(prompt);
        }
    }

    fn close(&mut self, reason: &'static str) {
        self.withdraw_all();
        if let Some(turn) = &mut self.state.turn {
            if self.state.agent == AgentState::Absent || turn.undelivered.is_some() {
                self.state.turn = None;
                self.finish(SessionStatus::Error, Some(reason.to_owned()));
            } else {
                // The turn ends when the agent does: what it says until then comes before that.
                turn.closing = Some(reason);
            }
        }
        if self.has_agent() {
            self.end_agent();
        }
    }

    /// One that has not been told to end.
    fn has_agent(&self) -> bool {
        matches!(self.state.agent, AgentState::Live | AgentState::Attaching)
    }

    fn end_agent(&mut self) {
        self.state.agent = AgentState::Ending;
        self.effects.push(Effect::EndAgent);
    }

    fn withdraw_all(&mut self) {
        for pending in std::mem::take(&mut self.state.pending) {
            self.settle(&pending, Behavior::Withdrawn);
        }
    }

    /// What the next server must know of the turn and the agent, beside the events: it goes to disk with them, or else
    /// on its own.
    fn keep_for_the_next_server(&mut self, runs_before: (u64, bool)) {
        let turn = self.state.turn.as_ref().map(|turn| TurnRecord {
            prompt_seq: turn.prompt_seq,
            stopping: turn.stopping,
            undelivered: turn.undelivered.is_some(),
            after_stop: turn.after_stop,
        });
        let record = &mut self.state.record;
        let changed = record.turn != turn || (record.runs, record.run.is_some()) != runs_before;
        record.turn = turn;
        if changed {
            self.effects.push(Effect::Keep);
        }
    }

    /// It gets no answer.
    fn settle(&mut self, pending: &DecisionRequest, behavior: Behavior) {
        self.settle_and(pending, behavior, None);
    }

    fn settle_and(&mut self, pending: &DecisionRequest, behavior: Behavior, reply: Option<Reply>) {
        let tool_use_id = pending.tool_use_id.clone();
        self.state.settled.push((pending.id, tool_use_id.clone()));
        self.record(EventBody::DecisionResolved {
            request: pending.id,
            tool_use_id,
            behavior,
            reply: reply.map(Box::new),
        });
    }

    fn set_idle(&mut self) {
        self.finish(SessionStatus::Idle, None);
    }

    fn finish(&mut self, status: SessionStatus, error: Option<String>) {
        self.status(StatusChange {
            status,
            title: None,
            cwd: None,
            error,
            cause: None,
        });
    }

    fn status(&mut self, change: StatusChange) {
        self.state.record.status = change.status;
        self.record(EventBody::Status(Box::new(change)));
    }

    fn record(&mut self, body: EventBody) {
        let record = &mut self.state.record;
        record.last_seq += 1;
        record.updated_at = self.now;
        let event = Event {
            session: record.id,
            seq: record.last_seq,
            at: self.now,
            body,
        };
        if let Some(summary) = &mut record.summary {
            totals::add(summary, &event);
        }
        self.effects.push(Effect::Record(Arc::new(event)));
    }
}
