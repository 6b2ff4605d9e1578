//! The state machine of a session, as a pure function: what is asked of it and what the agent says go in, what to
//! record and what to do come out. No clock, no I/O, no channel.

use crate::backend::{AgentCommand, AgentEvent, Conversation, Exit, Launch, Meaning, Question, TurnEnd};
use crate::event::{Behavior, DecisionRequest, Event, EventBody, StatusChange};
use crate::ids::{RequestId, Timestamp};
use crate::json::RawJson;
use crate::session::state::{
    AgentState, Answer, Approval, DecisionRef, SessionStatus, Settings, State, Turn,
};

/// What happens to a session.
#[derive(Clone, Debug)]
pub enum Input {
    /// The user says something. The first one starts the session.
    Prompt(String),
    Stop,
    /// From the next turn on.
    Configure(Settings),
    Answer {
        decision: DecisionRef,
        answer: Answer,
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
    /// The server has come back and finds the session as the last one left it.
    Recovered,
}

/// What is to be done, in this order. What is recorded before a step to the outside is on disk by then.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Record(Event),
    /// The queue is another: it is part of the session's record, and watchers are told.
    QueueChanged,
    /// The settings are others: they are part of the session's record.
    SettingsChanged,
    Launch(Launch),
    Send(AgentCommand),
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
}

/// Takes `input`. The state is changed only if the result is `Ok`.
pub fn step(state: &mut State, input: Input, now: Timestamp) -> Result<Vec<Effect>, Refusal> {
    let mut step = Step {
        state,
        now,
        effects: Vec::new(),
    };
    match input {
        Input::Prompt(prompt) => step.prompt(prompt)?,
        Input::Stop => step.stop(),
        Input::Configure(settings) => step.configure(settings),
        Input::Answer { decision, answer } => step.answer(&decision, answer)?,
        Input::Agent(event) => step.agent(event),
        Input::StopOverdue { turn } => step.stop_overdue(turn),
        Input::Close { reason } => step.close(reason),
        Input::Recovered => step.recovered(),
    }
    Ok(step.effects)
}

fn aborted() -> Answer {
    Answer::Deny {
        message: Some("Session aborted".to_owned()),
        interrupt: true,
    }
}

struct Step<'a> {
    state: &'a mut State,
    now: Timestamp,
    effects: Vec<Effect>,
}

impl Step<'_> {
    fn prompt(&mut self, prompt: String) -> Result<(), Refusal> {
        if self.state.turn.is_some() {
            self.state.record.queue.push(prompt);
            self.state.record.updated_at = self.now;
            self.effects.push(Effect::QueueChanged);
            return Ok(());
        }
        let first = self.state.record.last_seq == 0;
        if !first && !self.state.record.expired && self.state.record.claude_session_id.is_none() {
            return Err(Refusal::NoResumeId);
        }
        self.begin_turn(prompt);
        Ok(())
    }

    fn begin_turn(&mut self, prompt: String) {
        self.state.turns += 1;
        self.state.settled.clear();
        self.state.turn = Some(Turn {
            number: self.state.turns,
            undelivered: Some(prompt.clone()),
            stopping: false,
            closing: None,
        });
        self.state.record.last_prompt = Some(prompt.clone());
        let title = Some(self.state.record.title.clone());
        let cwd = Some(self.state.record.cwd.clone());
        self.status(StatusChange {
            status: SessionStatus::Running,
            title,
            cwd,
            error: None,
        });
        self.record(EventBody::UserPrompt { prompt });
        match self.state.agent {
            AgentState::Absent => self.launch(),
            // A process keeps what it was started with; another one goes on with the conversation.
            AgentState::Live if self.is_outdated() => self.end_agent(),
            AgentState::Live => self.deliver(),
            // Goes on when the old process is gone.
            AgentState::Ending => {}
        }
    }

    fn configure(&mut self, settings: Settings) {
        if self.state.record.settings != settings {
            self.state.record.settings = settings;
            self.state.record.updated_at = self.now;
            self.effects.push(Effect::SettingsChanged);
        }
    }

    fn is_outdated(&self) -> bool {
        let started_with = self.state.agent_settings.as_ref();
        started_with.is_some_and(|settings| *settings != self.state.record.settings)
    }

    fn launch(&mut self) {
        let record = &self.state.record;
        let conversation = match &record.claude_session_id {
            Some(id) => Conversation::Resume(id.clone()),
            // The agent refuses an id that it has seen before, so a fresh start gets a fresh one.
            None if record.expired => Conversation::New(record.id.fresh_conversation(record.last_seq)),
            None => Conversation::New(record.id.to_string()),
        };
        self.effects.push(Effect::Launch(Launch {
            session: record.id,
            cwd: record.cwd.clone().into(),
            settings: record.settings.clone(),
            conversation,
        }));
        self.state.agent_settings = Some(record.settings.clone());
        self.state.agent = AgentState::Live;
        self.deliver();
    }

    fn deliver(&mut self) {
        if let Some(prompt) = self.state.turn.as_mut().and_then(|turn| turn.undelivered.take()) {
            self.effects.push(Effect::Send(AgentCommand::Prompt(prompt)));
        }
    }

    fn stop(&mut self) {
        let Some(turn) = &mut self.state.turn else {
            // No turn runs, but something that an earlier one left in the background may be asking.
            for pending in std::mem::take(&mut self.state.pending) {
                self.settle(&pending, Behavior::Withdrawn);
                self.reply(pending.agent_request, pending.input, aborted());
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
        if overdue && self.state.agent == AgentState::Live {
            self.end_agent();
        }
    }

    fn answer(&mut self, decision: &DecisionRef, answer: Answer) -> Result<(), Refusal> {
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
            Answer::Allow { .. } => Behavior::Allow,
            Answer::Deny { .. } => Behavior::Deny,
        };
        self.settle(&pending, behavior);
        self.reply(pending.agent_request, pending.input, answer);
        Ok(())
    }

    fn reply(&mut self, agent_request: String, shown: RawJson, answer: Answer) {
        let answer = match answer {
            // What runs is what was shown, unless the user changed it.
            Answer::Allow { input, permissions } => Answer::Allow {
                input: Some(input.unwrap_or(shown)),
                permissions,
            },
            deny @ Answer::Deny { .. } => deny,
        };
        self.effects.push(Effect::Send(AgentCommand::Answer {
            agent_request,
            answer,
        }));
    }

    fn agent(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Message { raw, uuid, meaning } => self.message(raw, uuid, meaning),
            AgentEvent::Asks(question) => self.asks(question),
            AgentEvent::TakesBack { agent_request } => {
                let found = self
                    .state
                    .pending
                    .iter()
                    .position(|pending| pending.agent_request == agent_request);
                if let Some(position) = found {
                    let pending = self.state.pending.remove(position);
                    self.settle(&pending, Behavior::Withdrawn);
                }
            }
            AgentEvent::Exited(exit) => self.exited(&exit),
        }
    }

    fn message(&mut self, raw: RawJson, uuid: Option<String>, meaning: Meaning) {
        if let Meaning::Init { conversation } = &meaning {
            self.state.record.claude_session_id = Some(conversation.clone());
            self.state.record.expired = false;
        }
        if uuid.as_deref().is_some_and(|uuid| !self.state.seen.insert(uuid)) {
            return;
        }
        self.record(EventBody::Message { raw, uuid });
        if let Meaning::TurnEnded(end) = meaning {
            self.turn_ended(end);
        }
    }

    fn asks(&mut self, question: Question) {
        let stopping = self
            .state
            .turn
            .as_ref()
            .is_some_and(|turn| turn.stopping || turn.closing.is_some());
        if stopping {
            // It asked before it heard of the stop.
            self.reply(question.agent_request, question.input, aborted());
        } else if !question.always_ask && !self.may_have(&question.tool_name) {
            let answer = Answer::Deny {
                message: Some("This tool is not among those that this session may use.".to_owned()),
                interrupt: false,
            };
            self.reply(question.agent_request, question.input, answer);
        } else if self.state.record.settings.approval == Approval::Auto && !question.always_ask {
            let answer = Answer::Allow {
                input: None,
                permissions: None,
            };
            self.reply(question.agent_request, question.input, answer);
        } else {
            let request = DecisionRequest {
                id: RequestId::of(self.state.record.id, self.state.record.last_seq + 1),
                agent_request: question.agent_request,
                tool_use_id: question.tool_use_id,
                tool_name: question.tool_name,
                input: question.input,
                suggestions: question.suggestions,
                description: question.description,
            };
            self.record(EventBody::DecisionRequested(request.clone()));
            self.state.pending.push(request);
        }
    }

    fn may_have(&self, tool: &str) -> bool {
        let tools = self.state.record.settings.tools.as_ref();
        tools.is_none_or(|tools| tools.iter().any(|listed| listed == tool))
    }

    fn turn_ended(&mut self, end: TurnEnd) {
        let Some(turn) = &self.state.turn else { return };
        if turn.undelivered.is_some() {
            // The last words of a process that is on its way out, about an earlier turn.
            return;
        }
        if turn.closing.is_some() {
            // Its end, which follows, ends the turn.
            return;
        }
        let stopped = turn.stopping;
        // Open decisions stay: an agent in the background may still wait for them. The CLI takes back what it does not
        // want to know any more.
        self.state.turn = None;
        match end {
            _ if stopped => self.set_idle(),
            TurnEnd::Success => self.finish(SessionStatus::Completed, None),
            TurnEnd::Failure { message } => self.finish(SessionStatus::Error, Some(message)),
        }
        // A stop keeps the queue: the user wanted quiet.
        if !stopped {
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

    fn exited(&mut self, exit: &Exit) {
        let was = std::mem::replace(&mut self.state.agent, AgentState::Absent);
        if *exit == Exit::Expired {
            self.state.record.claude_session_id = None;
            self.state.record.expired = true;
        }
        let Some(turn) = &self.state.turn else {
            self.withdraw_all();
            return;
        };
        if was == AgentState::Ending && turn.undelivered.is_some() {
            // What the old process asked in the background nobody can answer any more.
            self.withdraw_all();
            self.launch();
            return;
        }
        let (stopped, closing) = (turn.stopping, turn.closing);
        self.withdraw_all();
        self.state.turn = None;
        if stopped {
            self.set_idle();
        } else if let Some(reason) = closing {
            self.finish(SessionStatus::Error, Some(reason.to_owned()));
        } else {
            self.finish(SessionStatus::Error, Some(exit.message().to_owned()));
            // What the user queued for a conversation must not go to another one unseen.
            if *exit != Exit::Expired && self.state.record.claude_session_id.is_some() {
                self.next_in_queue();
            }
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
        if self.state.agent == AgentState::Live {
            self.end_agent();
        }
    }

    fn recovered(&mut self) {
        self.withdraw_all();
        if self.state.record.status == SessionStatus::Running {
            let message =
                "Tiller ended while this turn was running. Send a message to go on from where it stopped.";
            self.finish(SessionStatus::Error, Some(message.to_owned()));
        }
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

    fn settle(&mut self, pending: &DecisionRequest, behavior: Behavior) {
        let tool_use_id = pending.tool_use_id.clone();
        self.state.settled.push((pending.id, tool_use_id.clone()));
        self.record(EventBody::DecisionResolved {
            request: pending.id,
            tool_use_id,
            behavior,
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
        });
    }

    fn status(&mut self, change: StatusChange) {
        self.state.record.status = change.status;
        self.record(EventBody::Status(change));
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
        self.effects.push(Effect::Record(event));
    }
}
