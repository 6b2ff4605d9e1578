//! The totals of a session, kept message by message.
//!
//! A summary is kept with the session's log, so that no reader adds up what it happens to have loaded. It costs next
//! to nothing for the pieces of streamed messages, which are most of what an agent says.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::cost::Cost;
use crate::files::{changed_file, is_editing_tool};
use crate::message::{Body, Kind, Message, SystemMessage, TurnResult, Usage};
use crate::tasks::{RunningTask, RunningTasks};
use crate::todos::{Todo, Todos};

/// How many calls without a result are remembered. Only a broken agent has more.
const OPEN_CALLS: usize = 1024;

/// The totals of a session, and what is needed to go on counting. Serialise it to keep it; [`Summary::view`] is for
/// readers.
///
/// ```
/// use tiller_message::{Message, Summary};
///
/// let mut summary = Summary::default();
/// summary.turn_started(1_000);
/// let line = r#"{"type":"result","subtype":"success","total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":2}}"#;
/// summary.push(&Message::parse(line)?, 3_000);
/// summary.turn_ended(3_000);
/// let view = summary.view();
/// assert_eq!((view.turns, view.working_ms, view.tokens_in, view.tokens_out), (1, 2_000, 7, 2));
/// # Ok::<(), tiller_message::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    turns: u64,
    working_ms: u64,
    tokens_in: u64,
    tokens_out: u64,
    /// How many tokens the model read for the main agent's last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_tokens: Option<u64>,
    cost: Cost,
    files_changed: Vec<String>,
    todos: Todos,
    tasks: RunningTasks,
    mcp: BTreeMap<String, String>,
    last_activity: i64,
    /// When the running turn began.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_began: Option<i64>,
    /// The totals of the session when the running turn began, as figures of a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_turn: Option<TurnFigures>,
    /// The figures of the turn that ended last, until they are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_turn: Option<TurnFigures>,
    /// The agent's working directory.
    cwd: String,
    /// Calls of editing tools without a result.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    edits: BTreeSet<String>,
}

/// What one turn took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(feature = "ts", derive(ts_rs::TS), ts(export_to = "messages.ts"))]
pub struct TurnFigures {
    /// From the prompt to the result, in milliseconds.
    #[cfg_attr(feature = "ts", ts(type = "number"))]
    pub duration_ms: u64,
    /// Tokens that models have read, from caches too.
    #[cfg_attr(feature = "ts", ts(type = "number"))]
    pub tokens_in: u64,
    /// Tokens that models have written.
    #[cfg_attr(feature = "ts", ts(type = "number"))]
    pub tokens_out: u64,
    /// The cost in dollars.
    pub cost_usd: f64,
}

/// The totals of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[cfg_attr(
    feature = "ts",
    derive(ts_rs::TS),
    ts(export_to = "messages.ts", rename = "Summary")
)]
pub struct SummaryView {
    /// How many turns have ended.
    #[cfg_attr(feature = "ts", ts(type = "number"))]
    pub turns: u64,
    /// How long turns have run, in milliseconds; the running one is not included.
    #[cfg_attr(feature = "ts", ts(type = "number"))]
    pub working_ms: u64,
    /// Tokens that models have read, from caches too.
    #[cfg_attr(feature = "ts", ts(type = "number"))]
    pub tokens_in: u64,
    /// Tokens that models have written.
    #[cfg_attr(feature = "ts", ts(type = "number"))]
    pub tokens_out: u64,
    /// How many tokens the model read for the main agent's last message: the size of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "ts", ts(optional, type = "number"))]
    pub context_tokens: Option<u64>,
    /// The cost in dollars. What was spent before the session began is not included.
    pub cost_usd: f64,
    /// The files that were changed, relative to the working directory where inside it, in the order of their first
    /// change.
    pub files_changed: Vec<String>,
    /// The to-do list.
    pub todos: Vec<Todo>,
    /// The tasks that run beside the conversation.
    pub tasks: Vec<RunningTask>,
    /// The MCP servers, by name, with their state when the last turn began.
    pub mcp: BTreeMap<String, String>,
    /// The time of the last prompt or whole message, in milliseconds since 1970; 0 if there was none.
    #[cfg_attr(feature = "ts", ts(type = "number"))]
    pub last_activity: i64,
    /// When the running turn began, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "ts", ts(optional, type = "number"))]
    pub turn_began: Option<i64>,
}

impl Summary {
    /// The summary of a session whose conversation has cost so much before, in dollars.
    pub fn resumed(cost_usd: f64) -> Self {
        Self {
            cost: Cost::resumed(cost_usd),
            ..Self::default()
        }
    }

    /// Takes a message that came at `at`, in milliseconds since 1970. Returns whether the summary changed and
    /// needs to be stored again.
    pub fn push(&mut self, message: &Message, at: i64) -> bool {
        match message.kind() {
            Kind::Assistant | Kind::User | Kind::Result | Kind::System => {}
            // Most messages are pieces of others.
            _ => return false,
        }
        self.last_activity = at;
        let body = message.body();
        self.todos.push(&body);
        match &body {
            Body::Assistant(assistant) => {
                let read = tokens_read(&assistant.message.usage);
                if assistant.parent_tool_use_id.is_none() && read > 0 {
                    self.context_tokens = Some(read);
                }
                let calls = assistant
                    .message
                    .content
                    .iter()
                    .filter_map(|block| block.as_tool_use());
                for call in calls.filter(|call| is_editing_tool(&call.name)) {
                    if self.edits.len() < OPEN_CALLS {
                        self.edits.insert(call.id.clone());
                    }
                }
            }
            Body::User(user) => {
                let blocks = user.message.content.blocks().iter();
                for result in blocks.filter_map(|block| block.as_tool_result()) {
                    if self.edits.remove(&result.tool_use_id)
                        && !result.is_error
                        && let Some(path) = changed_file(&user.tool_use_result, &self.cwd)
                        && !self.files_changed.contains(&path)
                    {
                        self.files_changed.push(path);
                    }
                }
            }
            Body::Result(result) => self.result(result, at),
            Body::System(SystemMessage::TurnStopped(_)) => {
                if let Some(result) = message.turn_result() {
                    self.result(&result, at);
                }
            }
            Body::System(SystemMessage::Init(init)) => {
                self.cwd.clone_from(&init.cwd);
                let servers = init.mcp_servers.iter();
                self.mcp = servers
                    .map(|server| (server.name.clone(), server.status.clone()))
                    .collect();
            }
            Body::System(system) => {
                self.tasks.push(system);
            }
            _ => {}
        }
        true
    }

    /// Takes a message by its JSON; see [`Summary::push`]. What is not a message counts for nothing.
    pub fn push_json(&mut self, json: &str, at: i64) -> bool {
        Self::is_counted(json) && Message::parse(json).is_ok_and(|message| self.push(&message, at))
    }

    /// False for most messages that count for nothing: pieces of streamed ones, which usually say so first.
    pub fn is_counted(json: &str) -> bool {
        !json.starts_with(r#"{"type":"stream_event""#)
    }

    /// Whether readers should be told. The time of the last activity and the size of the conversation change with almost
    /// every message, which readers see anyway.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        let numbers = |summary: &Self| {
            (
                summary.turns,
                summary.working_ms,
                summary.tokens_in,
                summary.tokens_out,
                summary.turn_began,
            )
        };
        numbers(self) != numbers(other)
            || self.cost != other.cost
            || self.files_changed != other.files_changed
            || self.todos.items() != other.todos.items()
            || self.tasks != other.tasks
            || self.mcp != other.mcp
    }

    /// A turn ended, stopped or not.
    fn result(&mut self, result: &TurnResult, at: i64) {
        self.cost.push(result);
        self.tokens_in = self.tokens_in.saturating_add(tokens_read(&result.usage));
        self.tokens_out = self.tokens_out.saturating_add(result.usage.output_tokens);
        // The user's own turn goes on while something in the background reports.
        if !result.is_background() {
            self.turn_ended(at);
        }
    }

    /// A prompt was sent, and a turn begins.
    pub fn turn_started(&mut self, at: i64) {
        self.last_activity = at;
        if self.turn_began.is_none() {
            self.turn_began = Some(at);
            self.before_turn = Some(self.so_far());
            self.last_turn = None;
        }
    }

    /// The totals as figures of one turn.
    fn so_far(&self) -> TurnFigures {
        TurnFigures {
            duration_ms: self.working_ms,
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            cost_usd: self.cost.spent_usd,
        }
    }

    /// What the turn took that ended last. `None` if that was told before, or a turn runs.
    pub fn take_last_turn(&mut self) -> Option<TurnFigures> {
        self.last_turn.take()
    }

    /// A process of the agent has begun, for which the conversation has cost so much, in dollars. An agent that was killed
    /// knows less than it had reported, so the sums of two processes can't be compared.
    pub fn counts_from(&mut self, usd: f64) {
        self.cost.total_usd = usd;
    }

    /// What was spent in this session, in dollars.
    pub fn spent_usd(&self) -> f64 {
        self.cost.spent_usd
    }

    /// The turn has ended, also one that came to no result.
    pub fn turn_ended(&mut self, at: i64) {
        if let Some(began) = self.turn_began.take() {
            self.turns += 1;
            self.working_ms += u64::try_from(at.saturating_sub(began)).unwrap_or(0);
            // A session that an earlier version stored in the middle of a turn does not know what the turn began with.
            if let Some(before) = self.before_turn.take() {
                let now = self.so_far();
                self.last_turn = Some(TurnFigures {
                    duration_ms: now.duration_ms - before.duration_ms,
                    tokens_in: now.tokens_in - before.tokens_in,
                    tokens_out: now.tokens_out - before.tokens_out,
                    cost_usd: now.cost_usd - before.cost_usd,
                });
            }
        }
    }

    /// The agent's process has ended, and with it everything that ran beside the conversation.
    pub fn agent_ended(&mut self) {
        self.tasks.clear();
        self.edits.clear();
    }

    /// Takes over what describes the conversation as it is now, after a rewind: to-dos, files, its size. What was spent
    /// stays spent.
    pub fn describe_as(&mut self, kept: &Self) {
        self.context_tokens = kept.context_tokens;
        self.files_changed.clone_from(&kept.files_changed);
        self.todos.clone_from(&kept.todos);
        self.edits.clear();
    }

    /// The totals of a session that begins with everything that happened in this one.
    #[must_use]
    pub fn forked(&self) -> Self {
        let mut fork = self.clone();
        fork.turn_began = None;
        fork.before_turn = None;
        fork.last_turn = None;
        fork.agent_ended();
        fork
    }

    /// The totals, for readers.
    pub fn view(&self) -> SummaryView {
        SummaryView {
            turns: self.turns,
            working_ms: self.working_ms,
            tokens_in: self.tokens_in,
            tokens_out: self.tokens_out,
            context_tokens: self.context_tokens,
            cost_usd: self.cost.spent_usd,
            files_changed: self.files_changed.clone(),
            todos: self.todos.items().to_vec(),
            tasks: self.tasks.iter().cloned().collect(),
            mcp: self.mcp.clone(),
            last_activity: self.last_activity,
            turn_began: self.turn_began,
        }
    }
}

/// The tokens that a model read, from caches too.
fn tokens_read(usage: &Usage) -> u64 {
    [usage.cache_creation_input_tokens, usage.cache_read_input_tokens]
        .into_iter()
        .fold(usage.input_tokens, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: &[&str] = &[
        r#"{"type":"system","subtype":"init","cwd":"/srv","mcp_servers":[{"name":"db","status":"connected"}]}"#,
        r#"{"type":"stream_event","event":{"type":"message_start"}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"TodoWrite","input":{"todos":[{"content":"Write it","status":"in_progress"}]}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#,
        r#"{"type":"assistant","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":40},"content":[{"type":"tool_use","id":"t2","name":"Edit","input":{}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2"}]},"tool_use_result":{"filePath":"/srv/a.rs"}}"#,
        r#"{"type":"assistant","parent_tool_use_id":"t0","message":{"usage":{"input_tokens":9},"content":[{"type":"tool_use","id":"t3","name":"Write","input":{}}]}}"#,
        r#"{"type":"user","parent_tool_use_id":"t0","message":{"content":[{"type":"tool_result","tool_use_id":"t3"}]},"tool_use_result":{"filePath":"/tmp/b.rs"}}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t4","name":"Write","input":{}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t4","is_error":true}]},"tool_use_result":"Error: no"}"#,
        r#"{"type":"system","subtype":"task_started","task_id":"k","description":"build"}"#,
        r#"{"type":"result","subtype":"success","total_cost_usd":0.25,"usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":4,"output_tokens":8}}"#,
    ];

    fn turn(summary: &mut Summary, from: i64) {
        summary.turn_started(from);
        for line in TURN {
            summary.push(&Message::parse(line).unwrap(), from + 5);
        }
        summary.turn_ended(from + 10);
    }

    #[test]
    fn totals_add_up_over_turns() {
        let mut summary = Summary::default();
        turn(&mut summary, 100);
        turn(&mut summary, 200);
        let view = summary.view();
        assert_eq!((view.turns, view.working_ms), (2, 10), "up to the results");
        assert_eq!((view.tokens_in, view.tokens_out), (14, 16));
        assert_eq!(view.context_tokens, Some(43), "of the main agent");
        assert_eq!(view.files_changed, ["a.rs", "/tmp/b.rs"]);
        assert_eq!(view.todos[0].content, "Write it");
        assert_eq!(view.tasks[0].description, "build");
        assert_eq!(view.mcp["db"], "connected");
        assert_eq!(view.last_activity, 205);
        assert!(
            (view.cost_usd - 0.25).abs() < 1e-9,
            "the agent reports the sum of all turns"
        );
    }

    #[test]
    fn a_summary_that_was_stored_goes_on_counting_anywhere() {
        let mut whole = Summary::default();
        let mut stored = serde_json::to_string(&whole).unwrap();
        whole.turn_started(1);
        for line in TURN {
            let message = Message::parse(line).unwrap();
            let changed = whole.push(&message, 2);
            let mut read: Summary = serde_json::from_str(&stored).unwrap();
            if read == Summary::default() {
                read.turn_started(1);
            }
            assert_eq!(read.push(&message, 2), changed);
            assert_eq!(read, whole);
            stored = serde_json::to_string(&read).unwrap();
        }
    }

    #[test]
    fn a_turn_has_figures_of_its_own() {
        let mut summary = Summary::default();
        turn(&mut summary, 100);
        summary.turn_started(200);
        assert_eq!(summary.take_last_turn(), None, "a turn runs");
        let result = r#"{"type":"result","subtype":"success","total_cost_usd":0.75,"usage":{"input_tokens":5,"output_tokens":6}}"#;
        summary.push(&Message::parse(result).unwrap(), 230);
        let took = TurnFigures {
            duration_ms: 30,
            tokens_in: 5,
            tokens_out: 6,
            cost_usd: 0.5,
        };
        assert_eq!(summary.take_last_turn(), Some(took), "without the turn before");
        assert_eq!(summary.take_last_turn(), None, "told once");
        summary.turn_started(300);
        summary.turn_ended(304);
        let died = TurnFigures {
            duration_ms: 4,
            ..TurnFigures::default()
        };
        assert_eq!(summary.take_last_turn(), Some(died), "a turn without a result");
    }

    #[test]
    fn what_a_killed_agent_forgot_is_spent_all_the_same() {
        let mut summary = Summary::default();
        let result = |total: f64| {
            Message::parse(format!(
                r#"{{"type":"result","subtype":"success","total_cost_usd":{total}}}"#
            ))
            .unwrap()
        };
        summary.push(&result(0.5), 1);
        // The next process knows of the first quarter only, and spends another one.
        summary.counts_from(0.25);
        summary.push(&result(0.5), 2);
        assert!((summary.spent_usd() - 0.75).abs() < 1e-9);
    }

    #[test]
    fn a_report_from_the_background_does_not_end_the_turn() {
        let mut summary = Summary::default();
        summary.turn_started(100);
        let report = r#"{"type":"result","subtype":"success","total_cost_usd":0.1,"origin":{"kind":"task-notification"}}"#;
        summary.push(&Message::parse(report).unwrap(), 150);
        assert_eq!((summary.view().turns, summary.view().turn_began), (0, Some(100)));
        assert!((summary.spent_usd() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn pieces_change_nothing() {
        let mut summary = Summary::default();
        let piece = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}}"#;
        assert!(!summary.push(&Message::parse(piece).unwrap(), 7));
        assert_eq!(summary, Summary::default());
    }

    #[test]
    fn readers_are_told_of_totals_and_not_of_every_message() {
        let mut summary = Summary::default();
        summary.turn_started(1);
        let mut told = Vec::new();
        for line in TURN {
            let before = summary.clone();
            summary.push(&Message::parse(line).unwrap(), 2);
            told.push(summary.differs(&before));
        }
        // The server, the to-do, a file, another one, the task, the result.
        let changes = [0, 2, 5, 7, 10, 11];
        assert_eq!(told, std::array::from_fn::<_, 12, _>(|at| changes.contains(&at)));
    }

    #[test]
    fn what_was_spent_before_a_resume_does_not_count() {
        let mut summary = Summary::resumed(2.0);
        let result = r#"{"type":"result","subtype":"success","total_cost_usd":2.5}"#;
        summary.push(&Message::parse(result).unwrap(), 1);
        assert!((summary.view().cost_usd - 0.5).abs() < 1e-9);
    }

    #[test]
    fn tasks_end_with_their_agent() {
        let mut summary = Summary::default();
        turn(&mut summary, 1);
        summary.agent_ended();
        assert_eq!(summary.view().tasks, []);
    }
}
