//! A server that dies at any moment, and the next one.

use std::sync::Arc;

use proptest::prelude::*;

use super::state::{AgentState, AgentStatus, State};
use super::step::{Effect, Input, Refusal, step};
use super::step_tests::sequences::any_input;
use super::step_tests::{
    Story, TestRules, allow, asks, exited, max_turns, message, mode, mode_change, prompt, record, success,
};
use crate::backend::{AgentCommand, AgentEvent, Exit, Meaning};
use crate::event::{DecisionRequest, Event, EventBody};
use crate::ids::Timestamp;
use crate::session::SessionRecord;

/// What is stored, and what a keeper has seen.
#[derive(Clone)]
struct Disk {
    record: SessionRecord,
    pending: Vec<DecisionRequest>,
    log: Vec<Event>,
}

impl Disk {
    fn of(state: &State, log: &[Event]) -> Self {
        Self {
            record: state.record.clone(),
            pending: state.pending.clone(),
            log: log.to_vec(),
        }
    }

    /// The next server's state, and its first effects.
    fn recover(&self) -> Story {
        let said = |event: &&Event| {
            matches!(
                event.body,
                EventBody::UserPrompt { .. } | EventBody::DecisionResolved { .. }
            )
        };
        let since = self.record.turn.map(|turn| turn.prompt_seq);
        let unconfirmed = self
            .log
            .iter()
            .filter(said)
            .filter(|event| since.is_some_and(|since| event.seq >= since))
            .cloned()
            .collect();
        let mut story = Story {
            state: State::new(self.record.clone(), self.pending.clone(), Arc::new(TestRules)),
            effects: Vec::new(),
        };
        story.take(Input::Recovered {
            unconfirmed,
            recent: self.log.clone(),
        });
        story
    }
}

fn disk_of(story: &Story) -> Disk {
    let log: Vec<_> = story
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Record(event) => Some(Event::clone(event)),
            _ => None,
        })
        .collect();
    Disk::of(&story.state, &log)
}

fn attached(last_input: u64) -> Input {
    Input::Agent(AgentEvent::Attached { last_input })
}

fn caught_up() -> Input {
    Input::Agent(AgentEvent::CaughtUp)
}

#[test]
fn an_answer_survives_a_crash() {
    let mut story = Story::running();
    story.take(asks(1, false)).take(allow("t1"));
    let mut next = disk_of(&story).recover();
    let again = step(&mut next.state, allow("t1"), Timestamp(3));
    assert_eq!(again, Err(Refusal::AlreadyAnswered));
}

#[test]
fn a_turn_continues_with_the_agent_of_an_earlier_server() {
    let mut story = Story::running();
    story.take(asks(1, false));
    let disk = disk_of(&story);
    let mut story = disk.recover();
    let run = disk.record.run.unwrap().name;
    assert_eq!(story.tale(), [format!("attach {run} from 0")]);
    story.take(attached(2)).take(caught_up());
    assert_eq!(story.tale(), [""; 0], "it has heard everything");
    story.take(allow("t1"));
    assert_eq!(story.tale(), ["allow t1", r#"> allow r1 {"command":"ls"}"#]);
    story.take(success());
    assert_eq!(story.tale(), [r#"message "result""#, "completed"]);
    story.take(prompt("more"));
    assert_eq!(
        story.tale(),
        ["running", "prompt more", "> more"],
        "the same agent is told"
    );
}

#[test]
fn inputs_that_the_agent_missed_are_sent_again() {
    let mut story = Story::running();
    story.take(asks(1, false)).take(allow("t1"));
    let disk = disk_of(&story);
    let mut story = disk.recover();
    story.tale();
    story.take(attached(0)).take(caught_up());
    assert_eq!(story.tale(), ["> hello", r#"> allow r1 {"command":"ls"}"#]);
    let mut story = disk.recover();
    story.tale();
    story.take(attached(2)).take(caught_up());
    assert_eq!(story.tale(), [r#"> allow r1 {"command":"ls"}"#]);
}

#[test]
fn an_agent_that_was_never_started_is_started() {
    let mut story = Story::new();
    story.take(prompt("hello"));
    let mut story = disk_of(&story).recover();
    let first = story.state.record.run.clone().unwrap().name;
    story.tale();
    story.take(Input::Agent(AgentEvent::Exited(Exit::NeverStarted)));
    assert_eq!(story.tale(), ["launch new", "> hello"]);
    assert_ne!(
        story.state.record.run.unwrap().name,
        first,
        "a run's name is never used twice"
    );
}

#[test]
fn a_prompt_waits_until_the_reconnect_has_finished() {
    let mut story = Story::running();
    story.take(success());
    let disk = disk_of(&story);
    let mut story = disk.recover();
    story.tale();
    story.take(prompt("more"));
    assert_eq!(story.tale(), ["running", "prompt more"]);
    story.take(attached(2)).take(caught_up());
    assert_eq!(story.tale(), ["> more"]);
    let mut story = disk.recover();
    story.take(prompt("more")).tale();
    story.take(exited("gone"));
    assert_eq!(story.tale(), ["launch c1", "> more"]);
}

#[test]
fn output_without_a_server_comes_before_later_events() {
    let mut story = Story::running();
    story.take(asks(1, false)).take(Input::Stop);
    let disk = disk_of(&story);
    let mut story = disk.recover();
    story.tale();
    // The agent did not get the prompt, so the stop ends the turn; but not before the agent's output.
    story
        .take(attached(0))
        .take(message("meanwhile", None, Meaning::Nothing))
        .take(caught_up());
    assert_eq!(story.tale(), [r#"message "meanwhile""#, "idle"]);
}

#[test]
fn a_prompt_for_the_next_process_survives_a_crash() {
    for end in [
        exited("gone"),
        Input::Agent(AgentEvent::Exited(Exit::NeverStarted)),
    ] {
        let mut story = Story::running();
        story.take(success());
        story.take(max_turns(3)).take(prompt("more"));
        assert_eq!(story.state.agent, AgentState::Ending, "it can't be told");
        let mut story = disk_of(&story).recover();
        story.tale();
        story.take(end);
        assert_eq!(story.tale(), ["launch c1", "> more"]);
    }
}

#[test]
fn an_unconfirmed_change_of_options_is_sent_again() {
    let mut story = Story::running();
    story.take(mode(Some("plan")));
    let disk = disk_of(&story);
    let mut next = disk.recover();
    next.tale();
    next.take(attached(2)).take(caught_up());
    assert_eq!(next.tale(), ["> mode plan"]);
    let change = mode_change(Some("plan"));
    story.take(Input::Agent(AgentEvent::Configured { change, done: true }));
    let mut next = disk_of(&story).recover();
    next.tale();
    next.take(attached(2)).take(caught_up());
    assert_eq!(next.tale(), [""; 0]);
}

#[test]
fn a_stop_survives_a_crash() {
    let mut story = Story::running();
    story.take(Input::Stop);
    let mut story = disk_of(&story).recover();
    story.tale();
    story.take(attached(2)).take(caught_up());
    assert_eq!(story.tale(), ["> interrupt", "arm"]);
    story.take(prompt("after"));
    let mut story = disk_of(&story).recover();
    story.tale();
    story.take(attached(2)).take(success()).take(caught_up());
    let tale = [
        r#"message "result""#,
        "idle",
        "queue",
        "running",
        "prompt after",
        "> after",
    ];
    assert_eq!(story.tale(), tale, "nor what was said after it");
}

#[test]
fn a_vanished_agent_ends_the_turn_after_its_last_messages() {
    let mut story = Story::running();
    story.take(asks(1, false));
    let mut story = disk_of(&story).recover();
    story.tale();
    story
        .take(message("last", None, Meaning::Nothing))
        .take(exited("gone"));
    assert_eq!(story.tale(), [r#"message "last""#, "withdrawn t1", "error: gone"]);
    assert_eq!(story.state.record.run, None);
}

#[test]
fn an_idle_agent_hibernates_and_the_next_message_starts_it() {
    let mut story = Story::running();
    story.take(Input::Hibernate);
    assert_eq!(story.tale().last().unwrap(), r#"message "init""#, "it works");
    story.take(success()).tale();
    story.take(message("started", None, Meaning::Background { running: 1 }));
    story.take(Input::Hibernate);
    assert_eq!(
        story.tale(),
        [r#"message "started""#],
        "it works in the background"
    );
    story.take(message("ended", None, Meaning::Background { running: 0 }));
    story.tale();
    story.take(Input::Hibernate).take(exited("bye"));
    assert_eq!(story.tale(), ["end agent"]);
    assert_eq!(story.state.agent_status(), AgentStatus::Hibernated);
    story.take(prompt("more"));
    assert_eq!(story.tale(), ["running", "prompt more", "launch c1", "> more"]);
    assert_eq!(story.state.agent_status(), AgentStatus::Starting);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// An agent's messages are published before they are stored. Whenever the server dies, the next one reads the same
    /// output again and must produce the same events, and an agent must get every prompt and every answer once.
    #[test]
    fn a_crash_changes_no_published_event(
        inputs in prop::collection::vec((any_input(), any::<bool>()), 0..40),
        written in any::<u8>(),
    ) {
        let mut state = State::new(record(), Vec::new(), Arc::new(TestRules));
        let mut log: Vec<Event> = Vec::new();
        let mut disk = Disk::of(&state, &log);
        // The agent's output since the last write.
        let mut unread: Vec<Input> = Vec::new();
        let mut delivered: Vec<u64> = Vec::new();
        for (at, (input, crash)) in inputs.into_iter().enumerate() {
            let from_agent = matches!(input, Input::Agent(_));
            if from_agent && state.agent == AgentState::Absent {
                continue;
            }
            // Hooks are forgotten with the server; they are not tested here.
            if matches!(input, Input::Hooks(_) | Input::AnswerHook { .. }) {
                continue;
            }
            let Ok(effects) = step(&mut state, input.clone(), Timestamp(3)) else { continue };
            let is_replayable = effects.iter().all(|effect| {
                matches!(effect, Effect::Record(_) | Effect::StoreRecord | Effect::HookCalled(_))
                    || matches!(effect, Effect::Send(AgentCommand::Answer { number: 0, .. }))
            });
            let gone = matches!(input, Input::Agent(AgentEvent::Exited(_)));
            deliver(&effects, &mut delivered);
            log.extend(events(&effects));
            if from_agent && is_replayable && !gone {
                unread.push(input);
                // Written in groups, some time later.
                if at % (usize::from(written % 7) + 1) == 0 {
                    disk = Disk::of(&state, &log);
                    unread.clear();
                }
            } else {
                disk = Disk::of(&state, &log);
                unread.clear();
            }
            let closing = state.turn.as_ref().is_some_and(|turn| turn.closing.is_some());
            if crash && !closing && matches!(state.agent, AgentState::Live | AgentState::Ending) {
                let shown = log.clone();
                let mut story = disk.recover();
                let ending = state.agent == AgentState::Ending;
                if !ending {
                    story.take(attached(delivered.last().copied().unwrap_or(0)));
                }
                for input in &unread {
                    let effects = step(&mut story.state, input.clone(), Timestamp(3));
                    story.effects.extend(effects.expect("what an agent says is never refused"));
                }
                let waiting = state.turn.as_ref().and_then(|turn| turn.undelivered.clone());
                if !ending {
                    story.take(caught_up());
                }
                deliver(&story.effects, &mut delivered);
                log.clone_from(&disk.log);
                log.extend(events(&story.effects));
                prop_assert_eq!(&log, &shown);
                prop_assert_eq!(&story.state.record, &state.record);
                prop_assert_eq!(&story.state.pending, &state.pending);
                let turn = |state: &State| state.turn.as_ref().map(|turn| (turn.stopping, turn.undelivered.clone()));
                prop_assert_eq!(turn(&story.state), turn(&state));
                // A new server counts its turns from zero; nothing else may differ.
                state = story.state;
                if ending {
                    // The agent was told to end, and has: a queued prompt gets another agent.
                    let effects = step(&mut state, exited("x"), Timestamp(3)).expect("not refused");
                    deliver(&effects, &mut delivered);
                    log.extend(events(&effects));
                    if let Some(waiting) = waiting {
                        prop_assert_eq!(delivered.last(), Some(&waiting.number));
                    }
                    disk = Disk::of(&state, &log);
                    unread.clear();
                }
            }
        }
    }
}

fn events(effects: &[Effect]) -> impl Iterator<Item = Event> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Record(event) => Some(Event::clone(event)),
        _ => None,
    })
}

/// As a keeper does: a number that was already forwarded is dropped.
fn deliver(effects: &[Effect], delivered: &mut Vec<u64>) {
    for effect in effects {
        let number = match effect {
            Effect::Launch(_) => {
                // Another agent has got nothing.
                delivered.clear();
                continue;
            }
            Effect::Deliver(delivery) => delivery.number,
            Effect::Send(AgentCommand::Answer { number, .. }) if *number > 0 => *number,
            _ => continue,
        };
        assert!(
            delivered.iter().all(|before| *before < number),
            "said twice, or in another order"
        );
        delivered.push(number);
    }
}
