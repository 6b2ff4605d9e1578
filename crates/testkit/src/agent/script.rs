//! Scripts for the scripted CLI: exact content at exact speed, and every way in which a CLI can misbehave.
//!
//! ```json
//! {
//!   "on_start": [{"do": "stderr", "text": "a warning\n"}],
//!   "rules": [{"contains": "say hello", "steps": [{"do": "text", "text": "Hello."}]}],
//!   "turns": [
//!     [{"do": "thinking", "thinking": "Hm."},
//!      {"do": "text", "text": "Working on {{prompt}}"},
//!      {"do": "tool", "name": "Bash", "input": {"command": "make"}, "result": "built"},
//!      {"do": "usage", "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.01}],
//!     [{"do": "flood", "events": 10000}],
//!     [{"do": "text", "text": "about to di"}, {"do": "exit", "code": 3}]
//!   ],
//!   "ignore_control": ["interrupt"],
//!   "ignore_stdin_close": true,
//!   "ignore_sigterm": true
//! }
//! ```
//!
//! The first of the `rules` whose text is part of the prompt has the steps of the turn. `turns` has the steps for the
//! first, second, … prompt that no rule matches; its last list is used for all later ones. A turn ends with a
//! successful `result` unless a step ends it otherwise. `on_start` is played before anything is read from stdin.
//! `ignore_control` lists control requests that are never answered; `ignore_stdin_close` and `ignore_sigterm` make a
//! process that has to be killed. All of them are optional. [`Step`] lists the steps.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::permission::Decision;
use super::session::Session;
use super::turn::{Stop, Turn, Usage};

/// A script, as it is read from its file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    on_start: Vec<Step>,
    rules: Vec<Rule>,
    turns: Vec<Vec<Step>>,
    ignore_control: Vec<String>,
    ignore_stdin_close: bool,
    ignore_sigterm: bool,
    #[serde(skip)]
    turns_played: AtomicUsize,
}

/// Steps for the prompts that contain a text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    contains: String,
    steps: Vec<Step>,
}

/// One action of the scripted CLI. Steps marked with * may also be used in `on_start`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Writes `text`, in deltas of `chunk` characters with `pause_ms` after each. `{{prompt}}` stands for the user's
    /// message and `{{prompts}}` for all of the session, joined by ` | `.
    Text {
        text: String,
        #[serde(default)]
        chunk: Option<usize>,
        #[serde(default)]
        pause_ms: u64,
    },
    /// Thinks aloud.
    Thinking { thinking: String },
    /// Calls a tool. Nothing is run: `result` is the text of its result and `structured` its `tool_use_result`. The
    /// session's mode and rules determine whether it asks for permission; with `ask: false` it does not.
    Tool {
        name: String,
        input: Value,
        #[serde(default = "yes")]
        ask: bool,
        #[serde(default)]
        result: String,
        #[serde(default)]
        structured: Value,
    },
    /// Streams `events` deltas of `bytes` bytes each, `per_second` or as fast as they are read.
    Flood {
        events: usize,
        #[serde(default = "small")]
        bytes: usize,
        #[serde(default)]
        per_second: Option<f64>,
    },
    /// * Writes any JSON as a line, `times` times: unknown types, duplicate lines.
    Line {
        json: Value,
        #[serde(default = "once")]
        times: usize,
    },
    /// * Writes raw text without a line ending: torn JSON.
    Raw { text: String },
    /// * Writes a line of JSON with an invalid UTF-8 byte.
    BadUtf8,
    /// * Writes one valid line of at least that many bytes.
    Oversize { bytes: usize },
    /// * Writes to stderr, `times` times.
    Stderr {
        text: String,
        #[serde(default = "once")]
        times: usize,
    },
    /// * Waits.
    Sleep { ms: u64 },
    /// Stops doing anything. An interrupt still ends the turn; with `deaf` before it, nothing does.
    Hang,
    /// * Stops reading stdin, without closing it.
    Deaf,
    /// * Starts a process in its own process group that outlives this one by `seconds`. A `system` line of the subtype
    ///   `grandchild` has its `pid`. With `holds_stdout` it keeps the pipe open.
    Grandchild {
        seconds: u64,
        #[serde(default)]
        holds_stdout: bool,
    },
    /// The figures in the result of this turn.
    Usage {
        input_tokens: u64,
        output_tokens: u64,
        #[serde(default)]
        cost_usd: f64,
    },
    /// Ends the turn with a `result` of that subtype, such as `error_max_turns`.
    Result {
        subtype: String,
        #[serde(default = "yes")]
        is_error: bool,
        #[serde(default)]
        errors: Vec<String>,
    },
    /// Ends the turn without any `result`; the process continues.
    NoResult,
    /// * Ends the process, in the middle of its work.
    Exit { code: u8 },
    /// * Dies by a signal (SIGABRT).
    Abort,
}

fn yes() -> bool {
    true
}

fn once() -> usize {
    1
}

fn small() -> usize {
    20
}

impl Script {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("The script {} can't be read: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{} is not a script: {error}", path.display()))
    }

    pub(crate) fn ignores_control(&self, subtype: &str) -> bool {
        self.ignore_control.iter().any(|ignored| ignored == subtype)
    }

    /// Plays what comes before the conversation.
    pub(crate) async fn start(&self, session: &Session) -> Result<Signals, Stop> {
        let signals = Signals::new(self);
        for step in &self.on_start {
            if !play_anywhere(step, session).await? {
                eprintln!("{step:?} needs a turn and can't be part of on_start.");
                return Err(Stop::Exit(1));
            }
        }
        Ok(signals)
    }

    /// Plays the steps of one turn.
    pub(crate) async fn play(&self, turn: &mut Turn<'_>) -> Result<(), Stop> {
        for step in self.steps_for(&turn.prompt) {
            if !play_anywhere(step, turn.session).await? {
                play_in_turn(step, turn).await?;
            }
        }
        Ok(())
    }

    fn steps_for(&self, prompt: &str) -> &[Step] {
        let rule = self.rules.iter().find(|rule| prompt.contains(&rule.contains));
        if let Some(rule) = rule {
            return &rule.steps;
        }
        let number = self.turns_played.fetch_add(1, Ordering::Relaxed);
        let steps = self.turns.get(number).or(self.turns.last());
        steps.map_or(&[], Vec::as_slice)
    }
}

/// Plays a step that needs no turn. `false` if it needs one.
async fn play_anywhere(step: &Step, session: &Session) -> Result<bool, Stop> {
    match step {
        Step::Line { json, times } => {
            for _ in 0..*times {
                session.output.line(json.clone()).await;
            }
        }
        Step::Raw { text } => session.output.raw(text.clone().into_bytes()).await,
        Step::BadUtf8 => {
            let line = b"{\"type\":\"system\",\"subtype\":\"bad_utf8\",\"text\":\"\xff\xfe\"}\n";
            session.output.raw(line.to_vec()).await;
        }
        Step::Oversize { bytes } => {
            let mut line = b"{\"type\":\"system\",\"subtype\":\"oversize\",\"text\":\"".to_vec();
            line.resize(line.len() + bytes, b'x');
            line.extend_from_slice(b"\"}\n");
            session.output.raw(line).await;
        }
        Step::Stderr { text, times } => {
            for _ in 0..*times {
                eprint!("{text}");
            }
        }
        Step::Sleep { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
        Step::Deaf => session.go_deaf(),
        Step::Grandchild {
            seconds,
            holds_stdout,
        } => {
            let line = match grandchild(*seconds, *holds_stdout) {
                Ok(pid) => json!({"type": "system", "subtype": "grandchild", "pid": pid}),
                Err(error) => {
                    json!({"type": "system", "subtype": "grandchild", "error": error.to_string()})
                }
            };
            session.emit(line).await;
        }
        Step::Exit { code } => return Err(Stop::Exit(*code)),
        Step::Abort => {
            session.output.flushed().await;
            std::process::abort();
        }
        _ => return Ok(false),
    }
    Ok(true)
}

async fn play_in_turn(step: &Step, turn: &mut Turn<'_>) -> Result<(), Stop> {
    match step {
        Step::Text {
            text,
            chunk,
            pause_ms,
        } => {
            let mut prompts = turn.earlier_prompts.clone();
            prompts.push(turn.prompt.clone());
            let text = text
                .replace("{{prompts}}", &prompts.join(" | "))
                .replace("{{prompt}}", &turn.prompt);
            let pieces = match chunk {
                Some(chunk) => {
                    let characters: Vec<char> = text.chars().collect();
                    characters
                        .chunks((*chunk).max(1))
                        .map(|piece| piece.iter().collect())
                        .collect()
                }
                None => vec![text.clone()],
            };
            turn.text(&text, &pieces, Duration::from_millis(*pause_ms)).await;
        }
        Step::Thinking { thinking } => {
            turn.thinking(std::slice::from_ref(thinking), Duration::ZERO)
                .await;
        }
        Step::Tool {
            name,
            input,
            ask,
            result,
            structured,
        } => {
            let call = turn.tool_use(name, input.clone()).await;
            let mut answers = Value::Null;
            if *ask {
                match turn.permission(&call, Value::Null).await? {
                    Decision::Allow { input } => answers = input["answers"].clone(),
                    // The denial is the call's result, and the script continues.
                    Decision::Deny => return Ok(()),
                }
            }
            // The answers are the result of a question, unless the script has another one.
            let result = match (result.as_str(), answers) {
                ("", Value::Object(answers)) => Value::Object(answers).to_string(),
                (result, _) => result.to_owned(),
            };
            turn.tool_result(&call, &result, false, structured.clone()).await;
        }
        Step::Flood {
            events,
            bytes,
            per_second,
        } => flood(turn, *events, *bytes, *per_second).await,
        Step::Usage {
            input_tokens,
            output_tokens,
            cost_usd,
        } => {
            let mut state = turn.session.state();
            state.progress.usage.add(Usage {
                input_tokens: *input_tokens,
                output_tokens: *output_tokens,
            });
            state.total_cost_usd += cost_usd;
        }
        Step::Result {
            subtype,
            is_error,
            errors,
        } => {
            turn.end_message("end_turn").await;
            let mut result = turn.session.result(subtype);
            result["is_error"] = Value::from(*is_error);
            result["errors"] = json!(errors);
            turn.session.emit(result).await;
            return Err(Stop::Failed);
        }
        Step::NoResult => return Err(Stop::Failed),
        Step::Hang => std::future::pending().await,
        // `play_anywhere` has played all others.
        _ => {}
    }
    Ok(())
}

async fn flood(turn: &mut Turn<'_>, events: usize, bytes: usize, per_second: Option<f64>) {
    let index = turn.next_index().await;
    turn.event(
        json!({"type": "content_block_start", "index": index, "content_block": {
            "type": "text", "text": "",
        }}),
    )
    .await;
    let line = DeltaLine::new(turn.session, index);
    let started = Instant::now();
    let mut whole = String::new();
    let mut waiting = Vec::new();
    for number in 0..events {
        // Numbered, so that a reader can see what it missed.
        let piece = format!("{number:<bytes$}");
        if turn.session.options.partial_messages {
            line.write(&piece, &mut waiting);
        }
        whole.push_str(&piece);
        let due = per_second.and_then(|rate| {
            // Events are counted in thousands, far below where a float loses precision.
            #[allow(clippy::cast_precision_loss)]
            let seconds = (number + 1) as f64 / rate;
            Duration::try_from_secs_f64(seconds).ok()
        });
        if due.is_some() || waiting.len() > FLOOD_BATCH {
            turn.session.output.raw(std::mem::take(&mut waiting)).await;
        }
        if let Some(due) = due {
            tokio::time::sleep_until(started + due).await;
        }
    }
    turn.session.output.raw(waiting).await;
    turn.end_block(index, json!({"type": "text", "text": whole}))
        .await;
}

/// About the size of a pipe's buffer; a flood is written in pieces of this size.
const FLOOD_BATCH: usize = 64 * 1024;

/// The line of a text delta with gaps for the variable parts. Building every line as JSON would slow down a debug
/// build.
struct DeltaLine {
    before_text: String,
    before_uuid: String,
    end: String,
}

impl DeltaLine {
    fn new(session: &Session, index: usize) -> Self {
        const GAP: &str = "<gap>";
        // The text comes before the uuid, whether keys are in this order or sorted.
        let line = json!({
            "event": {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": GAP}},
            "parent_tool_use_id": null, "session_id": session.id(), "type": "stream_event", "uuid": GAP,
        })
        .to_string();
        let mut parts = line.splitn(3, GAP).map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Self {
            before_text: next(),
            before_uuid: next(),
            end: next(),
        }
    }

    fn write(&self, text: &str, line: &mut Vec<u8>) {
        let uuid = Uuid::new_v4().to_string();
        for part in [&self.before_text, text, &self.before_uuid, &uuid, &self.end, "\n"] {
            line.extend_from_slice(part.as_bytes());
        }
    }
}

fn grandchild(seconds: u64, holds_stdout: bool) -> std::io::Result<u32> {
    let mut command = std::process::Command::new("sleep");
    command
        .arg(seconds.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    if !holds_stdout {
        command.stdout(Stdio::null());
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }
    // Not waited for: it is meant to be left behind.
    Ok(command.spawn()?.id())
}

/// How the process reacts to requests to end.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    pub(crate) outlives_stdin: bool,
    #[cfg(unix)]
    sigterm: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    fn new(script: &Script) -> Self {
        Self {
            outlives_stdin: script.ignore_stdin_close,
            #[cfg(unix)]
            sigterm: script
                .ignore_sigterm
                .then(|| {
                    // Handling the signal keeps it from ending the process.
                    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                        .inspect_err(|error| eprintln!("SIGTERM can't be ignored: {error}"))
                        .ok()
                })
                .flatten(),
        }
    }

    /// Returns when an ignored signal has arrived.
    pub(crate) async fn ignored(&mut self) {
        #[cfg(unix)]
        if let Some(sigterm) = &mut self.sigterm
            && sigterm.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example_is_a_script() {
        let example = crate::documented_json(include_str!("script.rs"));
        let script: Script = serde_json::from_str(&example).unwrap();
        assert_eq!(script.turns.len(), 3);
        assert_eq!(script.rules.len(), 1);
    }
}
