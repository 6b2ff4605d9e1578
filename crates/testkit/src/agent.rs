//! A scripted CLI with Claude Code's protocol on stdin and stdout. By default it is the demo agent, which runs if
//! Claude Code is not installed: a short, honest tour of what an agent does.
//!
//! It accepts the command line of `claude --print --input-format stream-json --output-format stream-json …`: stream
//! events, permission prompts, questions, interrupts, changes of model and mode, resumed sessions. Unknown flags are
//! ignored. It stores its conversation where the CLI would (`$CLAUDE_CONFIG_DIR/projects/…`), in the CLI's format, so
//! that another process can resume a session and readers of the CLI's transcripts can read it.
//!
//! It has no model, and says so. `--version` and `init` report the version of the CLI whose protocol it implements.
//!
//! Two flags are its own:
//!
//! - `--demo-speed FACTOR` (or `DEMO_AGENT_SPEED`) plays the tour faster or slower; `inf` plays it without pauses.
//! - `--script FILE` (or `SCRIPTED_CLI`) plays a script instead of the tour: exact content, floods, faults. The format
//!   is in [`script`].

mod demo;
mod options;
mod output;
mod permission;
pub mod script;
mod session;
mod transcript;
mod turn;

use std::collections::VecDeque;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};

use options::Options;
use output::Output;
use script::Script;
use session::{Session, UserMessage};
use transcript::Transcript;
use turn::{Stop, Turn};

/// The CLI version whose protocol this is.
const PROTOCOL_VERSION: &str = "2.1.325";

/// What a turn does with the user's message.
enum Behaviour {
    Tour,
    Script(Script),
}

/// How a turn ended.
enum TurnEnd {
    Finished,
    Failed,
    Exit(u8),
}

type TurnFuture = Pin<Box<dyn Future<Output = TurnEnd> + Send>>;

/// Runs the scripted CLI as the whole of a process.
pub fn main(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("The demo agent can't start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(run(arguments, tokio::io::stdin(), tokio::io::stdout()));
    // A thread of the runtime may still be waiting for stdin, and must not keep the process alive.
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// Runs the scripted CLI on any pair of streams and returns its exit code. The caller must not wait for threads that
/// still read `stdin`; [`main`] handles that for a whole process.
pub async fn run(
    arguments: impl IntoIterator<Item = String>,
    stdin: impl AsyncRead + Unpin + Send,
    stdout: impl AsyncWrite + Unpin + Send + 'static,
) -> u8 {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return 1;
        }
    };
    let (output, writing) = Output::spawn(stdout);
    let code = converse(options, stdin, output).await;
    // The last sender is gone, so the writer ends when everything is written.
    if writing.await.is_err() { 1 } else { code }
}

/// About the time that the real CLI needs to look for a conversation.
const START_TIME: Duration = Duration::from_secs(1);

async fn converse(options: Options, stdin: impl AsyncRead + Unpin + Send, output: Output) -> u8 {
    if options.version {
        let line = format!("{PROTOCOL_VERSION} (Tiller demo agent)\n");
        output.raw(line.into_bytes()).await;
        return 0;
    }
    if !options.stream_json {
        eprintln!(
            "The demo agent speaks only to programs: start it with --input-format stream-json --output-format stream-json"
        );
        return 1;
    }
    let behaviour = match &options.script {
        None => Behaviour::Tour,
        Some(path) => match Script::read(path) {
            Ok(script) => Behaviour::Script(script),
            Err(error) => {
                eprintln!("{error}");
                return 1;
            }
        },
    };
    let transcript = match Transcript::open(&options) {
        Ok(transcript) => transcript,
        Err(error) => {
            // The real CLI takes longer to find that out than its caller to send the first message.
            let mut first = Vec::new();
            let mut input = BufReader::new(stdin);
            drop(tokio::time::timeout(START_TIME, input.read_until(b'\n', &mut first)).await);
            if let Some(errors) = error.result_errors() {
                output.line(session::failed_start(&options, errors)).await;
            }
            eprintln!("{error}");
            return 1;
        }
    };
    let session = Arc::new(Session::new(options, transcript, output));
    Conversation {
        session,
        behaviour: Arc::new(behaviour),
        queue: VecDeque::new(),
        turn: None,
        failed: false,
    }
    .run(stdin)
    .await
}

/// The loop of a process: reads stdin, plays one turn at a time, and answers control requests during it.
struct Conversation {
    session: Arc<Session>,
    behaviour: Arc<Behaviour>,
    queue: VecDeque<UserMessage>,
    turn: Option<TurnFuture>,
    /// Whether the last turn ended in an error, which determines the exit code.
    failed: bool,
}

impl Conversation {
    async fn run(mut self, stdin: impl AsyncRead + Unpin + Send) -> u8 {
        let mut signals = match &*self.behaviour {
            Behaviour::Script(script) => match script.start(&self.session).await {
                Ok(signals) => signals,
                Err(Stop::Exit(code)) => return code,
                Err(Stop::Failed | Stop::Interrupted) => return 1,
            },
            Behaviour::Tour => script::Signals::default(),
        };
        let mut input = BufReader::new(stdin).split(b'\n');
        let mut input_open = true;
        loop {
            if self.turn.is_none() {
                if let Some(message) = self.queue.pop_front() {
                    self.turn = Some(self.begin(message));
                } else if !input_open && !signals.outlives_stdin {
                    return u8::from(self.failed);
                }
            }
            tokio::select! {
                // In this order, so that a deaf process does not read another line.
                biased;
                () = self.session.deafened(), if !self.session.is_deaf() => {}
                line = input.next_segment(), if input_open && !self.session.is_deaf() => {
                    if let Ok(Some(line)) = line {
                        if let Err(error) = self.take(&line).await {
                            eprintln!("{error}");
                            return 1;
                        }
                    } else {
                        input_open = false;
                        self.session.withdraw_unanswerable();
                    }
                }
                end = next_end(&mut self.turn) => {
                    self.turn = None;
                    match end {
                        TurnEnd::Finished => self.failed = false,
                        TurnEnd::Failed => self.failed = true,
                        TurnEnd::Exit(code) => return code,
                    }
                }
                () = self.session.output.closed() => return 1,
                () = signals.ignored() => {}
            }
        }
    }

    fn begin(&self, message: UserMessage) -> TurnFuture {
        let session = Arc::clone(&self.session);
        let behaviour = Arc::clone(&self.behaviour);
        Box::pin(async move {
            let mut turn = Turn::begin(&session, &message).await;
            let outcome = match &*behaviour {
                Behaviour::Tour => demo::play(&mut turn).await,
                Behaviour::Script(script) => script.play(&mut turn).await,
            };
            match outcome {
                Ok(()) => {
                    turn.finish().await;
                    TurnEnd::Finished
                }
                Err(Stop::Failed) => TurnEnd::Failed,
                Err(Stop::Interrupted) => {
                    session.end_interrupted_turn().await;
                    TurnEnd::Failed
                }
                Err(Stop::Exit(code)) => TurnEnd::Exit(code),
            }
        })
    }

    /// Processes one line of stdin. An error ends the process, as invalid JSON ends the CLI.
    async fn take(&mut self, line: &[u8]) -> Result<(), String> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let message: Value = serde_json::from_slice(line)
            .map_err(|error| format!("Error parsing streaming input line: {error}"))?;
        match message["type"].as_str() {
            Some("user") => {
                let message = UserMessage::new(message);
                let queued = self.queue.iter().any(|other| other.uuid == message.uuid);
                // A client that is not sure whether its message arrived may send it again.
                if self.session.knows(&message) {
                    self.session.replay(&message, None).await;
                } else if !queued {
                    self.queue.push_back(message);
                }
            }
            Some("control_request") => self.control(&message).await,
            Some("control_response") => self.session.resolve(message).await,
            _ => {}
        }
        Ok(())
    }

    async fn control(&mut self, message: &Value) {
        let id = &message["request_id"];
        let request = &message["request"];
        let subtype = request["subtype"].as_str().unwrap_or_default();
        if matches!(&*self.behaviour, Behaviour::Script(script) if script.ignores_control(subtype)) {
            return;
        }
        match subtype {
            "interrupt" => {
                // Dropping the turn stops it wherever it is; lines are passed on whole, so none is torn.
                let running = self.turn.take().is_some();
                self.session.cancel_pending().await;
                self.session.succeed(id, json!({"still_queued": []})).await;
                if running {
                    self.session.end_interrupted_turn().await;
                    self.failed = true;
                }
            }
            subtype => self.session.answer_control(id, subtype, request).await,
        }
    }
}

async fn next_end(turn: &mut Option<TurnFuture>) -> TurnEnd {
    match turn {
        Some(turn) => turn.await,
        None => std::future::pending().await,
    }
}
