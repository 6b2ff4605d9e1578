//! The state machine, by named cases and by generated sequences.

mod prompts;
mod rewinds;
pub(super) mod sequences;
mod settings;
mod spending;

use std::sync::Arc;

use super::*;
use crate::backend::{
    AgentCommand, AgentEvent, AgentQuestion, ConversationStart, Exit, HookCall, Meaning, OptionChange,
    OptionInfo, OptionRefused, OptionRules, Options, TurnEnd, Verdict,
};
use crate::event::{Behavior, Event, EventBody};
use crate::ids::{Cause, PromptId, SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Prompt;

/// An agent that can change its model and its mode while it runs; but to the mode `all`, in which it asks for nothing,
/// only if it was started in it.
#[derive(Debug)]
pub(super) struct TestRules;

/// The modes of [`TestRules`]; `None` is the default.
pub(super) const MODES: &[Option<&str>] = &[None, Some("edit"), Some("plan"), Some("all")];

impl OptionRules for TestRules {
    fn describe(&self) -> Vec<OptionInfo> {
        Vec::new()
    }

    fn check(&self, options: Options, _before: Option<&Options>) -> Result<Options, OptionRefused> {
        Ok(options)
    }

    fn live_changes(&self, started: &Options, current: &Options, wanted: &Options) -> Vec<OptionChange> {
        let mut changes = current.changes_to(wanted);
        changes.retain(|change| match change.name.as_str() {
            "model" => true,
            "mode" => wanted.text("mode") != Some("all") || started.text("mode") == Some("all"),
            _ => false,
        });
        changes
    }

    fn budget_usd(&self, options: &Options) -> Option<f64> {
        options.get("budget")?.as_f64()
    }

    fn verdict(&self, options: &Options, tool: &str) -> Verdict {
        if options.text("tools").is_some_and(|tools| tools != tool) {
            Verdict::Deny("not listed")
        } else if options.text("mode") == Some("all") {
            Verdict::Allow
        } else {
            Verdict::Ask
        }
    }
}

pub(super) fn record() -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        owner: None,
        title: "title".to_owned(),
        title_source: TitleSource::Prompt,
        archived: false,
        fork_of: None,
        fork_at: None,
        rewound: Vec::new(),
        summary: Some(Arc::default()),
        delete_at: None,
        conversation: None,
        expired: false,
        status: SessionStatus::Idle,
        cwd: "/project".to_owned(),
        backend: None,
        settings: Settings::default(),
        last_prompt: None,
        created_at: Timestamp(1),
        updated_at: Timestamp(1),
        queue: Vec::new(),
        last_seq: 0,
        runs: 0,
        turn: None,
        run: None,
    }
}

/// A session, and the effects so far.
pub(super) struct Story {
    pub(super) state: State,
    pub(super) effects: Vec<Effect>,
}

impl Story {
    pub(super) fn new() -> Self {
        Self {
            state: State::new(record(), Vec::new(), Arc::new(TestRules)),
            effects: Vec::new(),
        }
    }

    /// A session whose first turn runs and has reported its id.
    pub(super) fn running() -> Self {
        let mut story = Self::new();
        story.take(prompt("hello"));
        story.take(init());
        story
    }

    pub(super) fn take(&mut self, input: Input) -> &mut Self {
        let effects = step(&mut self.state, input, Timestamp(2)).expect("not refused");
        self.effects.extend(effects);
        self
    }

    fn refuse(&mut self, input: Input) -> Refusal {
        let before = format!("{:?}", self.state);
        let refusal = step(&mut self.state, input, Timestamp(2)).expect_err("refused");
        assert_eq!(
            before,
            format!("{:?}", self.state),
            "a refused command changes nothing"
        );
        refusal
    }

    /// The effects since the last call, in short.
    pub(super) fn tale(&mut self) -> Vec<String> {
        // Effects that only the store needs are left out.
        let effects = std::mem::take(&mut self.effects);
        effects
            .iter()
            .filter(|effect| !matches!(effect, Effect::StoreRecord | Effect::Accept(_)))
            .map(in_short)
            .collect()
    }

    fn status(&self) -> SessionStatus {
        self.state.record.status
    }
}

fn in_short(effect: &Effect) -> String {
    match effect {
        Effect::Record(event) => match &event.body {
            EventBody::Status(change) => match &change.error {
                Some(error) => format!("{}: {error}", change.status.as_str()),
                None => change.status.as_str().to_owned(),
            },
            EventBody::UserPrompt { prompt, .. } => format!("prompt {}", prompt.text),
            EventBody::Message { raw, .. } => format!("message {}", raw.as_str()),
            EventBody::Unreadable(line) => format!("unreadable {}", line.line),
            EventBody::DecisionRequested(request) => format!("asks {}", request.tool_use_id),
            EventBody::DecisionResolved {
                tool_use_id,
                behavior,
                ..
            } => {
                format!("{} {tool_use_id}", behavior.as_str())
            }
        },
        Effect::Accept(_) => "accept".to_owned(),
        Effect::QueueChanged => "queue".to_owned(),
        Effect::RecordChanged => "record".to_owned(),
        Effect::StoreRecord => "keep".to_owned(),
        Effect::HookCalled(call) => format!("calls back {}", call.agent_request),
        Effect::HookClosed(agent_request) => format!("closes {agent_request}"),
        Effect::Launch(launch) => match &launch.conversation {
            ConversationStart::New(_) => "launch new".to_owned(),
            ConversationStart::Resume(id) => format!("launch {id}"),
        },
        Effect::Fork(_, origin) => format!("launch fork of {}", origin.conversation),
        Effect::Attach(attach) => format!("attach {} from {}", attach.run, attach.position),
        Effect::Deliver(delivery) => format!("> {}", delivery.prompt.text),
        Effect::Send(AgentCommand::Configure(OptionChange { name, value })) => {
            let value = value.as_ref().and_then(|value| value.as_str());
            format!("> {name} {}", value.unwrap_or("default"))
        }
        Effect::AnswerHook { agent_request, .. } => format!("> hook {agent_request}"),
        Effect::Send(command @ (AgentCommand::Prompt { .. } | AgentCommand::Forget { .. })) => {
            panic!("not for the state machine: {command:?}")
        }
        Effect::Send(AgentCommand::Interrupt) => "> interrupt".to_owned(),
        Effect::Send(AgentCommand::Answer {
            agent_request,
            answer: DecisionAnswer::Allow { input, .. },
            ..
        }) => {
            format!(
                "> allow {agent_request} {}",
                input.as_ref().map_or("", RawJson::as_str)
            )
        }
        Effect::Send(AgentCommand::Answer {
            agent_request,
            answer: DecisionAnswer::Deny { .. },
            ..
        }) => {
            format!("> deny {agent_request}")
        }
        Effect::EndAgent => "end agent".to_owned(),
        Effect::ArmStopDeadline { .. } => "arm".to_owned(),
    }
}

pub(super) fn prompt(text: &str) -> Input {
    Input::Prompt(text.into())
}

/// Prompts by their texts.
fn queue(prompts: &[&str], expected: Option<&[&str]>) -> Input {
    let items = |texts: &[&str]| texts.iter().map(|text| item(None, text)).collect();
    Input::Queue {
        prompts: with_ids(items(prompts)),
        expected: expected.map(items),
    }
}

/// Prompts by their ids, or by their texts.
fn edit(prompts: &[(Option<PromptId>, &str)], expected: Option<&[(Option<PromptId>, &str)]>) -> Input {
    let items = |items: &[(Option<PromptId>, &str)]| items.iter().map(|(id, text)| item(*id, text)).collect();
    Input::Queue {
        prompts: with_ids(items(prompts)),
        expected: expected.map(items),
    }
}

fn item(id: Option<PromptId>, text: &str) -> QueueItem {
    let text = text.to_owned();
    QueueItem { id, text }
}

pub(super) fn with_ids(items: Vec<QueueItem>) -> Vec<(QueueItem, PromptId)> {
    items.into_iter().map(|item| (item, PromptId::random())).collect()
}

fn texts(queue: &[Prompt]) -> Vec<&str> {
    queue.iter().map(|prompt| prompt.text.as_str()).collect()
}

pub(super) fn max_turns(turns: u32) -> Input {
    configure(SettingsPatch {
        options: vec![OptionChange::new("turns", turns)],
        ..SettingsPatch::default()
    })
}

pub(super) fn mode(mode: Option<&str>) -> Input {
    configure(SettingsPatch {
        options: vec![mode_change(mode)],
        ..SettingsPatch::default()
    })
}

pub(super) fn mode_change(mode: Option<&str>) -> OptionChange {
    OptionChange::new("mode", mode)
}

fn model(name: Option<&str>) -> Input {
    configure(SettingsPatch {
        options: vec![OptionChange::new("model", name)],
        ..SettingsPatch::default()
    })
}

fn configure(patch: SettingsPatch) -> Input {
    Input::Configure(Box::new(patch))
}

pub(super) fn message(text: &str, uuid: Option<&str>, meaning: Meaning) -> Input {
    let raw = RawJson::of(&text).unwrap();
    Input::Agent(AgentEvent::Message {
        raw,
        uuid: uuid.map(str::to_owned),
        meaning,
    })
}

pub(super) fn init() -> Input {
    message(
        "init",
        None,
        Meaning::Init {
            conversation: "c1".to_owned(),
        },
    )
}

pub(super) fn success() -> Input {
    message("result", None, Meaning::TurnEnded(TurnEnd::Success))
}

fn failure(text: &str) -> Input {
    message(
        "result",
        None,
        Meaning::TurnEnded(TurnEnd::Failure {
            message: text.to_owned(),
        }),
    )
}

pub(super) fn asks(number: u8, always_ask: bool) -> Input {
    Input::Agent(AgentEvent::Asked(Box::new(AgentQuestion {
        agent_request: format!("r{number}"),
        tool_use_id: format!("t{number}"),
        tool_name: "Bash".to_owned(),
        input: RawJson::parse(r#"{"command":"ls"}"#).unwrap(),
        suggestions: None,
        description: None,
        blocked_path: None,
        always_ask,
    })))
}

pub(super) fn exited(message: &str) -> Input {
    Input::Agent(AgentEvent::Exited(Exit::Ended {
        message: message.to_owned(),
    }))
}

pub(super) fn allow(tool_use: &str) -> Input {
    let decision = DecisionRef::ToolUse(tool_use.to_owned());
    Input::Answer {
        decision,
        answer: DecisionAnswer::Allow {
            input: None,
            permissions: None,
        },
        by: None,
    }
}

#[test]
fn a_turn_runs_in_the_order_of_the_contract() {
    let mut story = Story::new();
    story
        .take(prompt("hello"))
        .take(init())
        .take(message("hi", None, Meaning::Nothing))
        .take(success());
    assert_eq!(
        story.tale(),
        [
            "running",
            "prompt hello",
            "launch new",
            "> hello",
            r#"message "init""#,
            r#"message "hi""#,
            r#"message "result""#,
            "completed",
        ]
    );
    assert_eq!(story.state.record.conversation.as_deref(), Some("c1"));
    story.take(prompt("more"));
    assert_eq!(story.tale(), ["running", "prompt more", "> more"]);
}

#[test]
fn a_conversation_is_resumed_by_its_id_when_the_agent_has_ended() {
    let mut story = Story::running();
    story.take(success()).take(exited("bye")).tale();
    assert_eq!(story.status(), SessionStatus::Completed);
    story.take(prompt("again"));
    assert_eq!(story.tale(), ["running", "prompt again", "launch c1", "> again"]);
}

#[test]
fn a_session_without_a_resume_id_can_not_continue() {
    let mut story = Story::new();
    story.take(prompt("hello")).take(exited("no such file"));
    assert_eq!(story.status(), SessionStatus::Error);
    assert_eq!(story.refuse(prompt("again")), Refusal::NoResumeId);
}

#[test]
fn a_result_that_is_an_error_ends_in_error() {
    let mut story = Story::running();
    story.tale();
    story.take(failure("overloaded"));
    assert_eq!(story.tale(), [r#"message "result""#, "error: overloaded"]);
}

#[test]
fn an_agent_that_dies_in_mid_turn_ends_it_in_error() {
    let mut story = Story::running();
    story.take(asks(1, false)).tale();
    story.take(exited("killed"));
    assert_eq!(story.tale(), ["withdrawn t1", "error: killed"]);
}

#[test]
fn a_stop_ends_in_idle_whatever_the_result_is() {
    for last in [success(), failure("interrupted"), exited("gone")] {
        let mut story = Story::running();
        story.take(asks(1, false)).tale();
        story.take(Input::Stop).take(Input::Stop);
        assert_eq!(story.tale(), ["withdrawn t1", "> interrupt", "arm"]);
        story.take(last);
        assert_eq!(story.tale().last().map(String::as_str), Some("idle"));
    }
}

#[test]
fn a_stopped_turn_is_no_failure() {
    let mut story = Story::running();
    story.take(Input::Stop).tale();
    story.take(failure("interrupted"));
    let stopped = r#"{"type":"system","subtype":"turn_stopped","duration_ms":null,"usage":null,"total_cost_usd":null,"result":"result"}"#;
    assert_eq!(story.tale(), [format!("message {stopped}"), "idle".to_owned()]);
    story.take(prompt("again")).tale();
    story.take(failure("broken"));
    assert_eq!(
        story.tale(),
        [r#"message "result""#, "error: broken"],
        "nobody stopped this one"
    );
    story.take(prompt("more")).take(Input::Stop).tale();
    story.take(success());
    assert_eq!(
        story.tale(),
        [r#"message "result""#, "idle"],
        "it was faster than the stop"
    );
}

#[test]
fn an_agent_that_does_not_stop_is_ended() {
    let mut story = Story::running();
    story.take(Input::Stop).tale();
    let turn = story.state.turn.as_ref().unwrap().number;
    story.take(Input::StopOverdue { turn: turn + 1 });
    assert!(story.tale().is_empty(), "another turn's deadline");
    story.take(Input::StopOverdue { turn });
    assert_eq!(story.tale(), ["end agent"]);
    story.take(exited("killed"));
    assert_eq!(story.tale(), ["idle"]);
    story.take(prompt("again"));
    assert_eq!(story.tale(), ["running", "prompt again", "launch c1", "> again"]);
}

#[test]
fn nothing_is_launched_before_the_old_agent_is_gone() {
    let mut story = Story::running();
    story.take(success());
    story.state.agent = AgentState::Ending;
    story.tale();
    story.take(prompt("again"));
    assert_eq!(story.tale(), ["running", "prompt again"]);
    story.take(exited("bye"));
    assert_eq!(story.tale(), ["launch c1", "> again"]);
}

#[test]
fn an_answer_counts_once_and_for_what_was_shown() {
    let mut story = Story::running();
    story.take(asks(1, false)).take(asks(2, false)).tale();
    let wrong = DecisionRef::Both {
        request: story.state.pending[0].id,
        tool_use: "t2".to_owned(),
    };
    let deny = DecisionAnswer::Deny {
        message: None,
        interrupt: false,
    };
    assert_eq!(
        story.refuse(Input::Answer {
            decision: wrong,
            answer: deny.clone(),
            by: None,
        }),
        Refusal::RequestNotFound
    );
    story.take(allow("t1"));
    assert_eq!(story.tale(), ["allow t1", r#"> allow r1 {"command":"ls"}"#]);
    assert_eq!(story.refuse(allow("t1")), Refusal::AlreadyAnswered);
    let second = DecisionRef::Request(story.state.pending[0].id);
    story.take(Input::Answer {
        decision: second,
        answer: deny,
        by: None,
    });
    assert_eq!(story.tale(), ["deny t2", "> deny r2"]);
    assert_eq!(story.refuse(allow("t9")), Refusal::RequestNotFound);
}

#[test]
fn auto_approval_asks_people_only_questions_and_plans() {
    let mut story = Story::running();
    story.state.record.settings.approval = Approval::Auto;
    story.tale();
    story.take(asks(1, false)).take(asks(2, true));
    assert_eq!(story.tale(), [r#"> allow r1 {"command":"ls"}"#, "asks t2"]);
}

#[test]
fn a_persons_title_is_never_replaced() {
    let mut story = Story::running();
    story.tale();
    let rename = |title: &str, source| Input::Rename {
        title: title.to_owned(),
        source,
    };
    story.take(rename("from a model", TitleSource::Model));
    assert_eq!(story.tale(), ["record"]);
    story.take(rename("again", TitleSource::Model));
    assert!(story.tale().is_empty());
    story
        .take(rename("mine", TitleSource::User))
        .take(rename("theirs", TitleSource::Model));
    assert_eq!(story.tale(), ["record"]);
    assert_eq!(story.state.record.title, "mine");
    story.take(Input::Archive(true)).take(Input::Archive(true));
    assert_eq!(story.tale(), ["record"]);
}

#[test]
fn a_hook_call_is_answered_once() {
    let mut story = Story::running();
    story
        .take(Input::Hooks(vec!["PreToolUse".to_owned()]))
        .take(success())
        .tale();
    story.take(prompt("again")).take(exited("bye"));
    assert_eq!(
        story.tale(),
        ["running", "prompt again", "end agent", "launch c1", "> again"],
        "hooks are registered when an agent starts"
    );
    let call = |id: &str| {
        Input::Agent(AgentEvent::Hook(Box::new(HookCall {
            agent_request: id.to_owned(),
            event: "PreToolUse".to_owned(),
            input: RawJson::parse("{}").unwrap(),
            tool_use_id: None,
        })))
    };
    let answer = |id: &str| Input::AnswerHook {
        agent_request: id.to_owned(),
        output: RawJson::parse("{}").unwrap(),
    };
    story.take(call("h1")).take(answer("h1"));
    assert_eq!(story.tale(), ["calls back h1", "closes h1", "> hook h1"]);
    assert_eq!(story.refuse(answer("h1")), Refusal::RequestNotFound);
    story.take(call("h2")).take(Input::Agent(AgentEvent::Withdrew {
        agent_request: "h2".to_owned(),
    }));
    assert_eq!(story.tale(), ["calls back h2", "closes h2"]);
    assert_eq!(story.refuse(answer("h2")), Refusal::RequestNotFound);
    story.take(call("h3")).take(exited("gone"));
    assert!(story.tale().contains(&"closes h3".to_owned()));
    assert_eq!(story.refuse(answer("h3")), Refusal::RequestNotFound);
}

#[test]
fn a_session_with_a_scheduled_deletion_stops_and_can_be_restored() {
    let mut story = Story::running();
    story.take(asks(1, false)).take(prompt("later")).tale();
    story.take(Input::Discard { at: Timestamp(9) });
    assert_eq!(story.tale(), ["withdrawn t1", "end agent", "record"]);
    assert_eq!(story.refuse(prompt("no")), Refusal::Deleted);
    story.take(failure("interrupted")).take(exited("bye"));
    let told = story.tale();
    assert!(told[0].contains("turn_stopped"), "{told:?}");
    assert_eq!(told[1..], ["idle"]);
    assert_eq!(story.refuse(Input::Flush), Refusal::Deleted);
    assert_eq!(story.refuse(Input::EnsureAgent), Refusal::Deleted);
    story.take(Input::Restore);
    assert_eq!(story.tale(), ["record"]);
    story.take(Input::Flush);
    assert_eq!(
        story.tale(),
        ["queue", "running", "prompt later", "launch c1", "> later"]
    );
}

#[test]
fn a_fork_continues_under_its_own_id() {
    let mut story = Story::new();
    story.state.record.fork_of = Some("c0".to_owned());
    story.state.record.last_seq = 7;
    story.take(prompt("go on"));
    assert_eq!(
        story.tale(),
        ["running", "prompt go on", "launch fork of c0", "> go on"]
    );
    story.take(init()).take(success()).take(exited("bye")).tale();
    story.take(prompt("again"));
    assert_eq!(story.tale(), ["running", "prompt again", "launch c1", "> again"]);
}

#[test]
fn an_agent_can_be_started_without_a_prompt() {
    assert_eq!(Story::new().refuse(Input::EnsureAgent), Refusal::NoResumeId);
    let mut story = Story::running();
    story
        .take(Input::EnsureAgent)
        .take(success())
        .take(exited("bye"))
        .tale();
    story.take(Input::EnsureAgent).take(Input::EnsureAgent);
    assert_eq!(story.tale(), ["launch c1"]);
    story.take(prompt("hello"));
    assert_eq!(story.tale(), ["running", "prompt hello", "> hello"]);
}

#[test]
fn a_tool_that_was_not_listed_is_denied() {
    let mut story = Story::running();
    story.state.record.settings.options.set("tools", "Read");
    story.tale();
    story.take(asks(1, false));
    assert_eq!(story.tale(), ["> deny r1"]);
    story.state.record.settings.options.set("tools", "Bash");
    story.take(asks(2, false));
    assert_eq!(story.tale(), ["asks t2"]);
}

#[test]
fn a_background_task_may_ask_after_the_turn() {
    let mut story = Story::running();
    story.take(asks(1, false)).take(success()).tale();
    story.take(asks(2, false)).take(allow("t1"));
    assert_eq!(
        story.tale(),
        ["asks t2", "allow t1", r#"> allow r1 {"command":"ls"}"#]
    );
    story.take(Input::Stop);
    assert_eq!(story.tale(), ["withdrawn t2", "> deny r2", "idle"]);
}

#[test]
fn the_agent_may_withdraw_a_question() {
    let mut story = Story::running();
    story.take(asks(1, false)).tale();
    story.take(Input::Agent(AgentEvent::Withdrew {
        agent_request: "r1".to_owned(),
    }));
    assert_eq!(story.tale(), ["withdrawn t1"]);
    assert_eq!(story.refuse(allow("t1")), Refusal::AlreadyAnswered);
}

#[test]
fn a_call_that_runs_while_its_permission_is_pending_raises_an_alarm() {
    let result = |id: &str, is_error: bool| {
        let raw = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","is_error":{is_error}}}]}}}}"#
        );
        Input::Agent(AgentEvent::Message {
            raw: RawJson::parse(&raw).unwrap(),
            uuid: None,
            meaning: Meaning::Nothing,
        })
    };
    let ends = |story: &mut Story| {
        story
            .effects
            .iter()
            .any(|effect| matches!(effect, Effect::EndAgent))
    };

    // Calls that were answered here, that are not pending, and that did not run.
    let mut story = Story::running();
    story
        .take(asks(1, false))
        .take(allow("t1"))
        .take(result("t1", false));
    story
        .take(asks(2, false))
        .take(result("t0", false))
        .take(result("t2", true));
    assert!(!ends(&mut story));

    let mut story = Story::running();
    story.take(asks(1, false)).take(result("t1", false));
    assert!(ends(&mut story));
    story.take(exited("killed"));
    assert_eq!(story.state.record.status, SessionStatus::Error);
    assert!(story.tale().iter().any(|line| line.contains("Alarm: ")));
    assert!(story.state.pending.is_empty());

    // Stopped by the user: a running call may finish.
    let mut story = Story::running();
    story
        .take(asks(1, false))
        .take(Input::Stop)
        .take(result("t1", false));
    assert!(!ends(&mut story));
}

#[test]
fn an_expired_conversation_starts_afresh_with_the_next_message() {
    let mut story = Story::running();
    story
        .take(success())
        .take(exited("bye"))
        .take(prompt("again"))
        .tale();
    story.take(Input::Agent(AgentEvent::Exited(Exit::Expired)));
    assert_eq!(story.status(), SessionStatus::Error);
    assert_eq!(story.state.record.conversation, None);
    story.tale();
    story.take(prompt("afresh"));
    assert_eq!(
        story.tale(),
        ["running", "prompt afresh", "launch new", "> afresh"]
    );
}

#[test]
fn a_prompt_before_the_end_of_an_expired_conversations_agent_starts_afresh() {
    let mut story = Story::running();
    story
        .take(success())
        .take(exited("bye"))
        .take(prompt("again"))
        .take(prompt("later"));
    story.tale();
    let expired = Meaning::TurnEnded(TurnEnd::Expired);
    story.take(message("not found", None, expired));
    assert_eq!(story.status(), SessionStatus::Error);
    let tale = story.tale();
    assert!(
        tale.iter()
            .any(|line| line.contains("The next message starts afresh")),
        "{tale:?}"
    );
    assert_eq!(
        story.state.record.queue.len(),
        1,
        "nothing goes to another conversation unseen"
    );
    story.take(prompt("afresh"));
    assert_eq!(story.tale(), ["running", "prompt afresh"]);
    story.take(Input::Agent(AgentEvent::Exited(Exit::Expired)));
    assert_eq!(story.tale(), ["launch new", "> afresh"]);
}

#[test]
fn a_duplicate_line_is_recorded_once() {
    let mut story = Story::running();
    story.tale();
    let twin = || message("hi", Some("uuid-1"), Meaning::Nothing);
    story.take(twin()).take(twin());
    assert_eq!(story.tale(), [r#"message "hi""#]);
}

#[test]
fn the_next_server_ends_turns_that_it_can_not_continue() {
    let mut story = Story::running();
    story.take(asks(1, false));
    let pending = story.state.pending.clone();
    let mut story = Story {
        state: State::new(story.state.record.clone(), pending, Arc::new(TestRules)),
        effects: Vec::new(),
    };
    story.state.record.run = None;
    story.take(Input::Recovered {
        unconfirmed: Vec::new(),
        recent: Vec::new(),
    });
    let tale = story.tale();
    assert_eq!(tale[0], "withdrawn t1");
    assert!(
        tale[1].starts_with("error: Tiller ended while this turn was running."),
        "{tale:?}"
    );
    story.take(prompt("go on"));
    assert_eq!(story.tale(), ["running", "prompt go on", "launch c1", "> go on"]);
}

#[test]
fn a_turn_that_is_closed_ends_when_the_agent_has_ended() {
    let mut story = Story::running();
    story.take(asks(1, false)).take(prompt("later")).tale();
    story.take(Input::Close { reason: "closing" });
    assert_eq!(story.tale(), ["withdrawn t1", "end agent"]);
    story.take(asks(2, false)).take(failure("interrupted"));
    assert_eq!(story.tale(), ["> deny r2", r#"message "result""#]);
    story.take(exited("bye"));
    assert_eq!(
        story.tale(),
        ["error: closing"],
        "nothing comes after, and nothing more is sent"
    );
}
