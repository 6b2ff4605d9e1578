//! The state machine of a session, as a pure function: commands and agent events go in, events to record and effects to
//! perform come out. No clock, no I/O, no channels.

mod agent_events;
pub(crate) mod totals;

use std::sync::Arc;

use tiller_message::{Summary, TurnFigures};

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

/// An input of the state machine.
#[derive(Clone, Debug)]
pub enum Input {
    /// A prompt. The first one starts the session.
    Prompt(Prompt),
    /// The same. A session that never had a conversation begins one, where [`Input::Prompt`] is refused.
    PromptAfresh(Prompt),
    Stop,
    /// Changes settings: at once if a running agent can apply them, otherwise with the next turn.
    Configure(Box<SettingsPatch>),
    /// A model's title never replaces a person's.
    Rename {
        title: String,
        source: TitleSource,
    },
    Archive(bool),
    /// Replaces the queue; each prompt comes with the id that it gets if it is new. Refused if `expected` is given and
    /// differs from the queue.
    Queue {
        prompts: Vec<(QueueItem, PromptId)>,
        expected: Option<Vec<QueueItem>>,
    },
    /// Sends the first queued prompt if no turn runs.
    Flush,
    /// The same. A session that never had a conversation begins one, where [`Input::Flush`] is refused.
    FlushAfresh,
    /// Registers hooks for these events, from the agent's next start on.
    Hooks(Vec<String>),
    AnswerHook {
        agent_request: String,
        output: RawJson,
    },
    /// Schedules the deletion of the session; its agent is ended now.
    Discard {
        at: Timestamp,
    },
    /// Cancels the deletion.
    Restore,
    /// The conversation goes back to what it was after the event `after`.
    Rewind {
        after: u64,
        kept: Box<Kept>,
    },
    /// The last rewind is undone. The totals that describe the conversation, with what comes back.
    UndoRewind {
        summary: Option<Arc<Summary>>,
    },
    /// Starts an agent outside of a turn, if none runs.
    EnsureAgent,
    /// Ends the agent if it is idle.
    Hibernate,
    Answer {
        decision: DecisionRef,
        answer: DecisionAnswer,
        /// The key that answered; `None`: the person at the machine.
        by: Option<String>,
    },
    Agent(AgentEvent),
    /// A stopped turn did not end in time.
    StopOverdue {
        turn: u64,
    },
    /// The session or the whole server is closed.
    Close {
        reason: &'static str,
    },
    /// A server has loaded a session that an earlier server left unfinished. `unconfirmed`: the prompt of the running
    /// turn and the answers since, which the agent may have missed.
    Recovered {
        unconfirmed: Vec<Event>,
        /// The latest events, which may duplicate the agent's next messages.
        recent: Vec<Event>,
    },
}

/// What is left of a conversation that is rewound.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The agent's id of its last own message. `None`: it has said nothing.
    pub at: Option<String>,
    pub last_prompt: Option<String>,
    /// What the totals would be if nothing else had happened.
    pub summary: Option<Arc<Summary>>,
}

/// A queued prompt, as a client refers to it, and its text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QueueItem {
    /// `None`: the first queued prompt with this text, or a new prompt.
    pub id: Option<PromptId>,
    pub text: String,
}

impl QueueItem {
    /// Whether the client means `prompt`.
    fn describes(&self, prompt: &Prompt) -> bool {
        self.id.is_none_or(|id| id == prompt.id) && self.text == prompt.text
    }
}

/// An effect to perform. Events that precede an external effect are stored before it is performed.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Record(Arc<Event>),
    /// Stores for the session's lifetime that this prompt was accepted. If it was accepted before, the whole step
    /// fails.
    Accept(PromptId),
    /// The queue changed: it is part of the session's record and is published.
    QueueChanged,
    /// The record changed without an event: subscribers read the record again.
    RecordChanged,
    /// The record changed, and only the next server needs the change.
    StoreRecord,
    Launch(Box<Launch>),
    /// As `Launch`, with a copy of another conversation.
    Fork(Box<Launch>, ForkOrigin),
    /// Reconnect to an agent that an earlier server started.
    Attach(Box<Attach>),
    /// Send the agent a prompt, with the bytes of its images.
    Deliver(Box<Delivery>),
    Send(AgentCommand),
    /// Publish a hook call. Not part of the log.
    HookCalled(HookCall),
    /// Publish that a hook call no longer waits. Not part of the log.
    HookClosed(String),
    /// Answer a hook call.
    AnswerHook {
        agent_request: String,
        output: RawJson,
    },
    /// End the agent's whole process tree; `Exited` follows.
    EndAgent,
    /// Send [`Input::StopOverdue`] after a while.
    ArmStopDeadline {
        turn: u64,
    },
}

/// Why a command was refused. The session is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("Session has no resume id yet.")]
    NoResumeId,
    #[error("No such request is waiting. It may have been withdrawn.")]
    RequestNotFound,
    #[error("This request was already answered.")]
    AlreadyAnswered,
    #[error("The request differs from what you were shown. Review it and answer again.")]
    NotAsShown,
    #[error("The queue has changed in the meantime. Review it and try again.")]
    QueueChanged,
    #[error("The session is being deleted. Undo the deletion first.")]
    Deleted,
    #[error("A queued prompt is empty. Write what the agent should do, or remove it.")]
    EmptyPrompt,
    #[error("A turn is running. Stop it first.")]
    TurnRuns,
    #[error("There is no rewind that could be undone: something was said since.")]
    NothingToUndo,
    #[error("This prompt id was already used in another session. Use a new id for each prompt.")]
    PromptIdUsed,
    #[error("The budget of this session is used up. Raise it to go on.")]
    BudgetSpent,
}

/// Processes `input`. The state changes only if the result is `Ok`.
pub fn step(state: &mut State, input: Input, now: Timestamp) -> Result<Vec<Effect>, Refusal> {
    let mut effects = Vec::new();
    step_into(state, input, now, &mut effects)?;
    Ok(effects)
}

/// As [`step`], but appends the effects to those of earlier steps.
pub(crate) fn step_into(
    state: &mut State,
    input: Input,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) -> Result<(), Refusal> {
    // Each run has its own number.
    let runs_before = (state.record.runs, state.record.run.is_some());
    let mut step = Step { state, now, effects };
    match input {
        Input::Prompt(prompt) => step.prompt(prompt, false)?,
        Input::PromptAfresh(prompt) => step.prompt(prompt, true)?,
        Input::Stop => step.stop(),
        Input::Configure(patch) => step.configure(&patch),
        Input::Rename { title, source } => step.rename(title, source),
        Input::Archive(archived) => step.archive(archived),
        Input::Queue { prompts, expected } => step.queue(prompts, expected)?,
        Input::Flush => step.flush(false)?,
        Input::FlushAfresh => step.flush(true)?,
        Input::Hooks(events) => step.state.hooks = events,
        Input::AnswerHook {
            agent_request,
            output,
        } => step.answer_hook(agent_request, output)?,
        Input::Discard { at } => step.discard(at),
        Input::Restore => step.restore(),
        Input::Rewind { after, kept } => step.rewind(after, *kept)?,
        Input::UndoRewind { summary } => step.undo_rewind(summary.as_deref())?,
        Input::EnsureAgent => step.ensure_agent()?,
        Input::Hibernate => step.hibernate(),
        Input::Answer { decision, answer, by } => step.answer(&decision, answer, by)?,
        Input::Agent(event) => step.agent(event),
        Input::StopOverdue { turn } => step.stop_overdue(turn),
        Input::Close { reason } => step.close(reason),
        Input::Recovered { unconfirmed, recent } => step.recovered(unconfirmed, &recent),
    }
    step.store_recovery_state(runs_before);
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
    fn prompt(&mut self, prompt: Prompt, afresh: bool) -> Result<(), Refusal> {
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
        self.can_go_on(afresh)?;
        self.allow_new_conversation();
        self.effects.push(Effect::Accept(prompt.id));
        self.begin_turn(prompt);
        Ok(())
    }

    /// Whether another turn can begin. `afresh`: it may begin a conversation where there is none.
    fn can_go_on(&self, afresh: bool) -> Result<(), Refusal> {
        if !afresh && !self.has_conversation() {
            return Err(Refusal::NoResumeId);
        }
        if self.is_budget_spent() {
            return Err(Refusal::BudgetSpent);
        }
        Ok(())
    }

    /// Whether the next turn has a conversation to go on with, or may begin one.
    fn has_conversation(&self) -> bool {
        let record = &self.state.record;
        let first = record.last_seq == 0;
        first || record.expired || record.conversation.is_some() || record.fork_of.is_some()
    }

    /// The agent of the first turn ended before it told the id of its conversation. The next one begins another, as
    /// after a conversation that was lost.
    fn allow_new_conversation(&mut self) {
        if !self.has_conversation() {
            self.state.record.expired = true;
        }
    }

    /// An agent's process knows only what it has spent itself; the budget is the session's.
    fn is_budget_spent(&self) -> bool {
        let record = &self.state.record;
        let budget = self.state.rules.budget_usd(&record.settings.options);
        budget.is_some_and(|budget| record.spent_usd() >= budget)
    }

    fn begin_turn(&mut self, prompt: Prompt) {
        // The prompt's event follows the change of status.
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
            interrupted: false,
            after_stop: 0,
            closing: None,
        });
        if let Some(part) = self.state.record.rewound.last_mut() {
            part.undo = None;
        }
        self.state.record.last_prompt = Some(prompt.text.clone());
        let title = Some(self.state.record.title.clone());
        let cwd = Some(self.state.record.cwd.clone());
        self.status(StatusChange {
            status: SessionStatus::Running,
            title,
            cwd,
            error: None,
            turn: None,
            cause,
        });
        let prompt = Box::new(prompt);
        self.record(EventBody::UserPrompt { prompt });
        match self.state.agent {
            AgentState::Absent => self.launch(),
            // A running process keeps its options; a new process resumes the conversation.
            AgentState::Live if self.is_outdated() => self.end_agent(),
            AgentState::Live => self.deliver(),
            // Continues when the old process has ended or was found.
            AgentState::Ending | AgentState::Attaching => {}
        }
    }

    /// Leaves `updated_at` unchanged: that is the time of the conversation's last change.
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

    /// Whether the agent's process can't have the options that the session's settings ask for.
    fn is_outdated(&self) -> bool {
        let (Some(options), Some(run)) = (self.run_options(), &self.state.record.run) else {
            return false;
        };
        // The approval mode concerns only the server and the user; no process knows it.
        run.stale || options != self.state.record.settings.options || run.hooks != self.state.hooks
    }

    /// The options that the agent's process has, or will have after the changes that were sent to it.
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
            // The agent refuses an id that it has used before, so a fresh start gets a new id.
            (None, None) if record.expired => {
                ConversationStart::New(record.id.fresh_conversation(record.created_at, record.last_seq))
            }
            // The session's own id is that of the conversation that it was rewound from.
            (None, Some(_)) if !record.rewound.is_empty() => ConversationStart::New(
                record
                    .id
                    .branched_conversation(record.created_at, record.runs + 1),
            ),
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
            stale: false,
        });
        let launch = Box::new(Launch {
            session: record.id,
            cwd: record.cwd.clone().into(),
            run,
            options: record.settings.options.clone(),
            spent_usd: record.spent_usd(),
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
            // No turn runs, but a background task of an earlier turn may have asked something.
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

    /// Sends an answer without asking a person. It is not numbered: a server that reads the question again answers it
    /// again, and the agent accepts one answer.
    fn reply(&mut self, agent_request: String, shown: RawJson, answer: DecisionAnswer) {
        self.effects.push(Effect::Send(AgentCommand::Answer {
            agent_request,
            answer: answer.to(shown),
            number: 0,
        }));
    }

    /// Records an answer and sends it.
    fn settle_with(
        &mut self,
        pending: &DecisionRequest,
        behavior: Behavior,
        answer: DecisionAnswer,
        by: Option<String>,
    ) {
        let edited = matches!(&answer, DecisionAnswer::Allow { input: Some(input), .. } if !input.says_the_same(&pending.input));
        let reply = Reply {
            agent_request: pending.agent_request.clone(),
            edited,
            answer: answer.to(pending.input.clone()),
            by,
        };
        self.settle_decision(pending, behavior, Some(reply.clone()));
        self.effects.push(Effect::Send(AgentCommand::Answer {
            agent_request: reply.agent_request,
            answer: reply.answer,
            number: self.state.record.last_seq,
        }));
    }

    /// The user stopped the turn. Prompts that were queued before keep waiting; prompts that arrived after the stop
    /// run.
    fn stopped(&mut self, after_stop: usize) {
        self.set_idle();
        if after_stop > 0 && self.state.record.delete_at.is_none() && self.can_go_on(false).is_ok() {
            self.next_in_queue();
        }
    }

    /// What can't be paid for keeps waiting.
    fn next_in_queue(&mut self) {
        if !self.state.record.queue.is_empty() && !self.is_budget_spent() {
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
                // The turn ends with the agent: messages until then come before its end.
                turn.closing = Some(reason);
            }
        }
        if self.has_agent() {
            self.end_agent();
        }
    }

    /// Whether an agent runs that was not told to end.
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

    /// Stores the state that the next server needs of the turn and the agent: together with recorded events, or on its
    /// own.
    fn store_recovery_state(&mut self, runs_before: (u64, bool)) {
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
            self.effects.push(Effect::StoreRecord);
        }
    }

    /// Settles a decision without an answer.
    fn settle(&mut self, pending: &DecisionRequest, behavior: Behavior) {
        self.settle_decision(pending, behavior, None);
    }

    fn settle_decision(&mut self, pending: &DecisionRequest, behavior: Behavior, reply: Option<Reply>) {
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
        let turn = self.figures_of_turn();
        self.status(StatusChange {
            status,
            title: None,
            cwd: None,
            error,
            turn,
            cause: None,
        });
    }

    /// What the turn took that ends now, if one does.
    fn figures_of_turn(&mut self) -> Option<TurnFigures> {
        let summary = Arc::make_mut(self.state.record.summary.as_mut()?);
        summary.turn_ended(self.now.0);
        summary.take_last_turn()
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
