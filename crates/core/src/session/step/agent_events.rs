//! How a session processes its agent's events, exits and reconnects.

use std::sync::Arc;

use super::{Effect, Step, aborted};
use crate::backend::{
    AgentCommand, AgentEvent, AgentQuestion, Attach, Exit, Meaning, OptionChange, TurnEnd, Verdict,
};
use crate::event::{Behavior, DecisionRequest, Event, EventBody};
use crate::ids::RequestId;
use crate::json::RawJson;
use crate::prompt::Prompt;
use crate::session::state::{
    AgentState, Approval, DecisionAnswer, Delivery, RunRecord, SessionStatus, Turn, TurnRecord,
};

/// The error of a session whose agent got an answer that was not Tiller's.
const ALARM: &str = "Alarm: the agent ran something that waited for your permission, and nobody gave that here. Somebody else \
    answered for you. The agent was ended; look at what it did before you go on.";

impl Step<'_> {
    pub(super) fn agent(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Message { raw, uuid, meaning } => self.message(raw, uuid, meaning),
            AgentEvent::Unreadable(line) => {
                self.state.agent_heard = true;
                self.record(EventBody::Unreadable(line));
            }
            AgentEvent::Asked(question) => self.asks(*question),
            AgentEvent::Hook(call) => {
                self.state.hooks_open.push(call.agent_request.clone());
                self.effects.push(Effect::HookCalled(*call));
            }
            AgentEvent::Withdrew { agent_request } => {
                let hook = self
                    .state
                    .hooks_open
                    .iter()
                    .position(|open| *open == agent_request);
                if let Some(position) = hook {
                    let closed = self.state.hooks_open.remove(position);
                    self.effects.push(Effect::HookClosed(closed));
                }
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
            AgentEvent::Attached { last_input } => self.attached(last_input),
            AgentEvent::CaughtUp => self.caught_up(),
            AgentEvent::Configured { change, done } => self.configured(&change, done),
            AgentEvent::CountsFrom { usd } => {
                if let Some(summary) = &mut self.state.record.summary {
                    Arc::make_mut(summary).counts_from(usd);
                }
            }
            AgentEvent::ProcessStarted { pid } => self.state.agent_pid = pid,
            AgentEvent::Exited(exit) => self.exited(&exit),
        }
    }

    /// An earlier server's agent is still running. The inputs that it missed are sent later: its missed output comes
    /// first, because those events already have numbers.
    fn attached(&mut self, last_input: u64) {
        let mut unheard = std::mem::take(&mut self.state.unconfirmed);
        unheard.retain(|event| event.seq > last_input);
        self.keep_missed_prompt(&unheard);
        self.state.unconfirmed = unheard;
    }

    /// Keeps the prompt of the running turn for delivery if it is among the missed inputs.
    fn keep_missed_prompt(&mut self, unheard: &[Event]) {
        let Some(turn) = &mut self.state.turn else { return };
        let event = unheard.iter().find(|event| event.seq == turn.prompt_seq);
        if let Some(EventBody::UserPrompt { prompt }) = event.map(|event| &event.body) {
            turn.undelivered = Some(Delivery {
                number: turn.prompt_seq,
                prompt: Prompt::clone(prompt),
            });
        }
    }

    /// The agent's missed output is recorded: now it gets the inputs that it missed.
    fn caught_up(&mut self) {
        if self.state.agent != AgentState::Attaching {
            return;
        }
        self.state.agent = AgentState::Live;
        self.configure_agent();
        let unheard = std::mem::take(&mut self.state.unconfirmed);
        let turn = self.state.turn.as_ref();
        let after_stop = turn.map_or(0, |turn| turn.after_stop);
        let turn = turn.map(|turn| (turn.number, turn.stopping, turn.undelivered.is_some()));
        match turn {
            Some((_, true, true)) => {
                self.state.turn = None;
                self.stopped(after_stop);
            }
            Some((_, false, true)) if self.is_outdated() => return self.end_agent(),
            // Before the answers: a keeper forwards numbers only in rising order.
            Some((_, false, true)) => self.deliver(),
            Some((_, _, false)) | None => {}
        }
        for event in unheard {
            if let EventBody::DecisionResolved {
                reply: Some(reply), ..
            } = event.body
            {
                self.effects.push(Effect::Send(AgentCommand::Answer {
                    agent_request: reply.agent_request,
                    answer: reply.answer,
                    number: event.seq,
                }));
            }
        }
        if let Some((number, true, false)) = turn {
            self.effects.push(Effect::Send(AgentCommand::Interrupt));
            self.effects.push(Effect::ArmStopDeadline { turn: number });
        }
    }

    fn message(&mut self, raw: RawJson, uuid: Option<String>, meaning: Meaning) {
        self.state.agent_heard = true;
        match &meaning {
            Meaning::Init { conversation } => {
                self.state.record.conversation = Some(conversation.clone());
                self.state.record.expired = false;
                self.state.record.fork_of = None;
                self.state.record.fork_at = None;
            }
            Meaning::Option(change) => self.option_changed(change),
            Meaning::Background { running } => self.state.background = *running,
            Meaning::TurnEnded(TurnEnd::Success) => {
                // The conversation existed: if the agent ends soon after, which only the next server may see, that is
                // not a sign that the conversation expired.
                if let Some(run) = &mut self.state.record.run {
                    run.resumes = false;
                }
            }
            Meaning::TurnEnded(TurnEnd::Failure { .. } | TurnEnd::Expired) | Meaning::Nothing => {}
        }
        if uuid.as_deref().is_some_and(|uuid| !self.state.seen.insert(uuid)) {
            return;
        }
        let raw = match &meaning {
            // Not a failure for the user, who asked for it.
            Meaning::TurnEnded(TurnEnd::Failure { .. }) if self.is_stopped() || self.is_interrupted() => {
                RawJson::checked(tiller_message::turn_stopped(raw.as_str()).into())
            }
            _ => raw,
        };
        let forged = self.was_answered_elsewhere(&raw);
        self.record(EventBody::Message { raw, uuid });
        if forged {
            return self.raise_alarm();
        }
        if let Meaning::TurnEnded(end) = meaning {
            self.turn_ended(end);
        }
    }

    /// Whether a tool ran whose permission is still pending: then the agent got an answer that Tiller did not send. A
    /// call that was denied, or failed because its turn ended, has no such result.
    fn was_answered_elsewhere(&self, raw: &RawJson) -> bool {
        if self.state.pending.is_empty() || self.is_stopped() {
            return false;
        }
        let run = tiller_message::succeeded_calls(raw.as_str());
        let pending = &self.state.pending;
        run.iter()
            .any(|call| pending.iter().any(|asked| asked.tool_use_id == *call))
    }

    /// Ends the run of an agent that got an answer from elsewhere.
    fn raise_alarm(&mut self) {
        let has_turn = self.state.turn.is_some();
        self.close(ALARM);
        if !has_turn {
            self.finish(SessionStatus::Error, Some(ALARM.to_owned()));
        }
    }

    /// Whether the agent was told to stop, though that could not be stored.
    fn is_interrupted(&self) -> bool {
        let turn = self.state.turn.as_ref();
        turn.is_some_and(|turn| turn.interrupted && turn.closing.is_none())
    }

    /// Whether the running turn was delivered to the agent and then stopped by the user.
    fn is_stopped(&self) -> bool {
        let turn = self.state.turn.as_ref();
        turn.is_some_and(|turn| turn.stopping && turn.undelivered.is_none() && turn.closing.is_none())
    }

    /// The agent changed one of its options, by itself or because it was told to.
    fn option_changed(&mut self, change: &OptionChange) {
        let wanted = self.state.record.settings.options.get(&change.name).cloned();
        self.state.configuring.retain(|told| told != change);
        if let Some(RunRecord { options, .. }) = &mut self.state.record.run {
            let before = options.get(&change.name).cloned();
            options.apply(change);
            // A change that this process can't make stays pending for the next process.
            if before == change.value || before != wanted {
                return;
            }
        }
        if wanted != change.value {
            self.state.record.settings.options.apply(change);
            self.record_changed();
        }
    }

    fn asks(&mut self, question: AgentQuestion) {
        let stopping = self
            .state
            .turn
            .as_ref()
            .is_some_and(|turn| turn.stopping || turn.closing.is_some());
        if stopping {
            // The agent asked before it received the stop.
            self.reply(question.agent_request, question.input, aborted());
            return;
        }
        let answer = if question.always_ask {
            None
        } else {
            self.answer_by_settings(&question.tool_name)
        };
        if let Some(answer) = answer {
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
                blocked_path: question.blocked_path,
            };
            self.record(EventBody::DecisionRequested(Box::new(request.clone())));
            self.state.pending.push(request);
        }
    }

    /// What the settings say about a tool. `None`: a person decides. Applies also if the agent's process was started
    /// with other options and will be replaced with the next turn.
    fn answer_by_settings(&self, tool: &str) -> Option<DecisionAnswer> {
        let settings = &self.state.record.settings;
        match (
            self.state.rules.verdict(&settings.options, tool),
            settings.approval,
        ) {
            (Verdict::Deny(message), _) => Some(DecisionAnswer::Deny {
                message: Some(message.to_owned()),
                interrupt: false,
            }),
            (Verdict::Allow, _) | (Verdict::Ask, Approval::Auto) => Some(DecisionAnswer::Allow {
                input: None,
                permissions: None,
            }),
            (Verdict::Ask, Approval::Ask) => None,
        }
    }

    fn turn_ended(&mut self, end: TurnEnd) {
        let Some(turn) = &self.state.turn else { return };
        if turn.undelivered.is_some() {
            // The last messages of a process that is ending, about an earlier turn.
            return;
        }
        if turn.closing.is_some() {
            // The agent's exit, which follows, ends the turn.
            return;
        }
        // An interrupt that could not be stored explains a failure, and nothing else.
        let interrupted = turn.interrupted && matches!(end, TurnEnd::Failure { .. });
        let (stopped, after_stop) = (turn.stopping || interrupted, turn.after_stop);
        // Pending decisions stay: a background task may still wait for them. The agent withdraws those that it no
        // longer needs.
        self.state.turn = None;
        if end == TurnEnd::Expired {
            self.forget_conversation();
            self.end_agent();
        }
        match end {
            _ if stopped => return self.stopped(after_stop),
            TurnEnd::Expired => {
                self.finish(SessionStatus::Error, Some(Exit::Expired.message().to_owned()));
                // Prompts that were queued for one conversation must not go to another one unseen.
                return;
            }
            TurnEnd::Success => self.finish(SessionStatus::Completed, None),
            TurnEnd::Failure { message } => self.finish(SessionStatus::Error, Some(message)),
        }
        self.next_in_queue();
    }

    /// Clears the conversation, so that the next prompt starts a new one.
    fn forget_conversation(&mut self) {
        let record = &mut self.state.record;
        if record.expired && record.conversation.is_none() {
            // Already cleared: the agent reported the loss before it ended.
            return;
        }
        record.conversation = None;
        record.fork_of = None;
        record.fork_at = None;
        record.expired = true;
        self.record_changed();
    }

    fn exited(&mut self, exit: &Exit) {
        let was = std::mem::replace(&mut self.state.agent, AgentState::Absent);
        let closed = self.state.hooks_open.drain(..).map(Effect::HookClosed);
        self.effects.extend(closed);
        self.state.agent_pid = None;
        self.state.record.run = None;
        if let Some(summary) = &mut self.state.record.summary {
            Arc::make_mut(summary).agent_ended();
        }
        let unconfirmed = std::mem::take(&mut self.state.unconfirmed);
        if *exit == Exit::NeverStarted {
            self.keep_missed_prompt(&unconfirmed);
        }
        if *exit == Exit::Expired {
            self.forget_conversation();
        }
        let Some(turn) = &self.state.turn else {
            self.withdraw_all();
            return;
        };
        // A new agent gets the prompt that this one did not get.
        let another =
            matches!(was, AgentState::Ending | AgentState::Attaching) || *exit == Exit::NeverStarted;
        if another && turn.undelivered.is_some() && !turn.stopping && turn.closing.is_none() {
            // Nobody can answer what the ended process asked in the background.
            self.withdraw_all();
            self.launch();
            return;
        }
        let (stopped, after_stop, closing) =
            (turn.stopping || turn.interrupted, turn.after_stop, turn.closing);
        self.withdraw_all();
        self.state.turn = None;
        if stopped && closing.is_some() {
            // Nothing is started any more.
            self.set_idle();
        } else if stopped {
            self.stopped(after_stop);
        } else if let Some(reason) = closing {
            self.finish(SessionStatus::Error, Some(reason.to_owned()));
        } else {
            self.finish(SessionStatus::Error, Some(exit.message().to_owned()));
            // Prompts that were queued for one conversation must not go to another one unseen.
            if *exit != Exit::Expired && self.state.record.conversation.is_some() {
                self.next_in_queue();
            }
        }
    }

    pub(super) fn recovered(&mut self, unconfirmed: Vec<Event>, recent: &[Event]) {
        for event in recent {
            match &event.body {
                EventBody::Message { uuid: Some(uuid), .. } => {
                    self.state.seen.insert(uuid);
                }
                EventBody::DecisionResolved {
                    request, tool_use_id, ..
                } => self.state.settled.push((*request, tool_use_id.clone())),
                _ => {}
            }
        }
        let record = &self.state.record;
        if let Some(run) = &record.run {
            self.state.agent = AgentState::Attaching;
            self.state.agent_heard = true;
            self.effects.push(Effect::Attach(Box::new(Attach {
                session: record.id,
                run: run.name.clone(),
                cwd: record.cwd.clone().into(),
                options: run.options.clone(),
                conversation: record
                    .conversation
                    .clone()
                    .unwrap_or_else(|| record.id.to_string()),
                position: run.position,
                resumes: run.resumes,
                prompt: record.turn.map(|turn| turn.prompt_seq),
            })));
            if let Some(TurnRecord {
                prompt_seq,
                stopping,
                undelivered,
                after_stop,
            }) = self.state.record.turn
            {
                self.state.turns += 1;
                self.state.turn = Some(Turn {
                    number: self.state.turns,
                    prompt_seq,
                    undelivered: None,
                    stopping,
                    interrupted: false,
                    after_stop,
                    closing: None,
                });
                if undelivered {
                    // Whatever happens to the agent that is found: its options are outdated.
                    self.keep_missed_prompt(&unconfirmed);
                }
                self.state.unconfirmed = unconfirmed;
            }
            return;
        }
        self.withdraw_all();
        if self.state.record.status == SessionStatus::Running {
            let message =
                "Tiller ended while this turn was running. Send a message to go on from where it stopped.";
            self.finish(SessionStatus::Error, Some(message.to_owned()));
        }
    }
}
