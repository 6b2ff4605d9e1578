//! Generated sequences of inputs, and the rules that none of them may break.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::ids::RequestId;

pub(in crate::session) fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        3 => any::<u8>().prop_map(|_| prompt("p")),
        1 => Just(Input::Stop),
        1 => (1u32..3).prop_map(max_turns),
        1 => prop::sample::select(MODES).prop_map(mode),
        1 => prop::sample::select(MODES)
            .prop_map(|mode| message("status", None, Meaning::Option(mode_change(mode)))),
        1 => any::<bool>().prop_map(|opus| model(opus.then_some("opus"))),
        1 => (prop::sample::select(MODES), any::<bool>())
            .prop_map(|(mode, done)| Input::Agent(AgentEvent::Configured { change: mode_change(mode), done })),
        1 => (0usize..3).prop_map(|length| queue(&vec!["q"; length], None)),
        1 => Just(Input::Flush),
        1 => Just(Input::EnsureAgent),
        1 => any::<bool>().prop_map(|some| Input::Hooks(if some { vec!["Stop".to_owned()] } else { Vec::new() })),
        1 => (0u8..2).prop_map(|number| Input::Agent(AgentEvent::Hook(Box::new(HookCall {
            agent_request: format!("h{number}"),
            event: "Stop".to_owned(),
            input: RawJson::parse("{}").unwrap(),
            tool_use_id: None,
        })))),
        1 => (0u8..2).prop_map(|number| Input::AnswerHook {
            agent_request: format!("h{number}"),
            output: RawJson::parse("{}").unwrap(),
        }),
        1 => Just(Input::Discard { at: Timestamp(9) }),
        2 => Just(Input::Restore),
        1 => Just(Input::Hibernate),
        1 => (0usize..2).prop_map(|running| message("background", None, Meaning::Background { running })),
        2 => (0u8..4).prop_map(|number| allow(&format!("t{number}"))),
        2 => Just(init()),
        3 => Just(message("m", None, Meaning::Nothing)),
        2 => Just(success()),
        1 => Just(failure("f")),
        1 => Just(message("gone", None, Meaning::TurnEnded(TurnEnd::Expired))),
        2 => (0u8..4, any::<bool>()).prop_map(|(number, always)| asks(number, always)),
        1 => (0u8..4).prop_map(|number| Input::Agent(AgentEvent::Withdrew { agent_request: format!("r{number}") })),
        2 => Just(exited("x")),
        1 => Just(Input::Agent(AgentEvent::Exited(Exit::Expired))),
        1 => (0u64..4).prop_map(|turn| Input::StopOverdue { turn }),
        1 => Just(Input::Close { reason: "closing" }),
    ]
}

/// The rules that no sequence of inputs may break.
#[derive(Default)]
struct Watcher {
    seq: u64,
    running: bool,
    open: Vec<(RequestId, String)>,
    /// The unanswered questions of running agents, by the agents' own ids.
    asked: HashSet<String>,
    /// Questions whose decision was recorded in this step, and whose answer must follow in it.
    owed: Vec<String>,
    /// Prompts that were accepted and not recorded yet.
    accepted: HashSet<PromptId>,
    /// Prompts that were recorded and not delivered yet.
    prompted: HashSet<PromptId>,
    agents: i32,
}

impl Watcher {
    fn watch(&mut self, effect: &Effect) {
        match effect {
            Effect::Record(event) => self.event(event),
            Effect::Launch(_) | Effect::Fork(..) => {
                self.agents += 1;
                assert!(self.agents <= 1, "two agents at once");
            }
            Effect::Deliver(delivery) => {
                assert_eq!(self.agents, 1, "a prompt was sent to nobody");
                assert!(
                    self.prompted.remove(&delivery.prompt.id),
                    "a prompt was sent twice, or never recorded"
                );
            }
            Effect::Send(AgentCommand::Answer { agent_request, .. }) => {
                assert_eq!(self.agents, 1, "an answer was sent to nobody");
                assert!(self.asked.remove(agent_request), "answered twice, or never asked");
                self.owed.retain(|owed| owed != agent_request);
            }
            Effect::Send(_) | Effect::AnswerHook { .. } => {
                assert_eq!(self.agents, 1, "something was sent to nobody");
            }
            Effect::Accept(prompt) => {
                assert!(self.accepted.insert(*prompt), "a prompt was accepted twice");
            }
            Effect::QueueChanged
            | Effect::RecordChanged
            | Effect::StoreRecord
            | Effect::Attach(_)
            | Effect::HookCalled(_)
            | Effect::HookClosed(_)
            | Effect::EndAgent
            | Effect::ArmStopDeadline { .. } => {}
        }
    }

    fn event(&mut self, event: &Event) {
        self.seq += 1;
        assert_eq!(event.seq, self.seq, "the numbering has no gap");
        match &event.body {
            EventBody::Status(change) if change.status == SessionStatus::Running => {
                assert!(!self.running, "a turn began within a turn");
                self.running = true;
            }
            EventBody::Status(change) => {
                // Once per turn. A stop is also sent if no turn runs.
                assert!(
                    self.running || change.status == SessionStatus::Idle,
                    "a turn ended that never began, or twice"
                );
                self.running = false;
                let stopped = change.status == SessionStatus::Idle;
                assert!(!stopped || self.open.is_empty(), "a stop left a decision open");
            }
            EventBody::DecisionRequested(request) => {
                self.open.push((request.id, request.agent_request.clone()));
            }
            EventBody::DecisionResolved {
                request, behavior, ..
            } => {
                let position = self.open.iter().position(|(open, _)| open == request);
                let position = position.expect("a decision was resolved that was not open");
                let (_, agent_request) = self.open.remove(position);
                if *behavior != Behavior::Withdrawn {
                    self.owed.push(agent_request);
                }
            }
            EventBody::UserPrompt { prompt } => {
                assert!(self.running, "a prompt outside of a turn");
                assert!(
                    self.accepted.remove(&prompt.id),
                    "a prompt began twice, or was never accepted"
                );
                self.prompted.insert(prompt.id);
            }
            EventBody::Message { .. } | EventBody::Unreadable(_) => {}
        }
    }
}

/// An agent's questions have their own ids, and people answer what they see.
fn addressed(input: Input, number: usize, state: &State) -> Input {
    match input {
        Input::Agent(AgentEvent::Asked(question)) => {
            Input::Agent(AgentEvent::Asked(Box::new(AgentQuestion {
                agent_request: format!("r{number}"),
                tool_use_id: format!("t{number}"),
                ..*question
            })))
        }
        Input::Answer { answer, .. } if !state.pending.is_empty() => Input::Answer {
            decision: DecisionRef::Request(state.pending[number % state.pending.len()].id),
            answer,
            by: None,
        },
        Input::Agent(AgentEvent::Withdrew { .. }) if !state.pending.is_empty() => {
            let agent_request = state.pending[number % state.pending.len()].agent_request.clone();
            Input::Agent(AgentEvent::Withdrew { agent_request })
        }
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_sequence_of_inputs_breaks_the_rules(auto in any::<bool>(), inputs in prop::collection::vec(any_input(), 0..60)) {
        let mut state = State::new(record(), Vec::new(), Arc::new(TestRules));
        if auto {
            state.record.settings.approval = Approval::Auto;
        }
        let mut watcher = Watcher::default();
        let ending = [Input::Close { reason: "closing" }, exited("gone")];
        for (number, input) in inputs.into_iter().chain(ending).enumerate() {
            let input = addressed(input, number, &state);
            let from_agent = matches!(input, Input::Agent(_));
            // An agent that does not run sends nothing.
            if from_agent && state.agent == AgentState::Absent {
                continue;
            }
            match &input {
                Input::Agent(AgentEvent::Exited(_)) => {
                    watcher.agents -= 1;
                    watcher.asked.clear();
                }
                Input::Agent(AgentEvent::Asked(question)) => {
                    watcher.asked.insert(question.agent_request.clone());
                }
                Input::Agent(AgentEvent::Withdrew { agent_request }) => {
                    watcher.asked.remove(agent_request);
                }
                _ => {}
            }
            if let Ok(effects) = step(&mut state, input, Timestamp(3)) {
                for effect in &effects {
                    watcher.watch(effect);
                }
            }
            prop_assert_eq!(&watcher.owed, &Vec::<String>::new(), "a decision that the agent never heard of");
            prop_assert_eq!(watcher.running, state.turn.is_some());
            prop_assert_eq!(watcher.running, state.record.status == SessionStatus::Running);
            prop_assert_eq!(watcher.open.len(), state.pending.len());
            prop_assert!(state.agent != AgentState::Absent || state.pending.is_empty(), "nobody waits for an answer");
            prop_assert_eq!(state.record.last_seq, watcher.seq);
        }
        prop_assert!(!watcher.running, "a turn that never ended");
        prop_assert!(watcher.open.is_empty(), "a decision that was neither answered nor withdrawn");
    }
}

#[test]
fn derived_ids_are_deterministic() {
    let session = SessionId::random();
    assert_eq!(
        crate::ids::RequestId::of(session, 7),
        crate::ids::RequestId::of(session, 7)
    );
    assert_ne!(
        crate::ids::RequestId::of(session, 7),
        crate::ids::RequestId::of(session, 8)
    );
    assert_eq!(
        Behavior::parse(Behavior::Withdrawn.as_str()),
        Some(Behavior::Withdrawn)
    );
}
