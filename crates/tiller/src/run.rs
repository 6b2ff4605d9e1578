//! `tiller run`: runs one task, for scripts.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tiller_core::PromptId;
use tiller_core::title_from_prompt;
use tiller_message::{Message, TurnResult, Usage};
use tokio::time::Instant;

use crate::attach::{Asking, Terminal};
use crate::cli::{Approve, Output, RunArgs, ServeArgs};
use crate::client::Client;
use crate::log;
use crate::render::Renderer;
use crate::serve::Ending;

/// The exit codes of `timeout` and of shells.
const TIMED_OUT: u8 = 124;
const INTERRUPTED: u8 = 130;
pub(crate) const PIPE_CLOSED: u8 = 141;

pub(crate) async fn run(args: &ServeArgs, task: RunArgs) -> anyhow::Result<ExitCode> {
    log::start("warn", log::Format::Text);
    let mut ending = Ending::listen()?;
    let prompt = prompt(&task.prompt)?;
    // More than the clock can count means no limit.
    let timeout = task
        .timeout
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let mut client = Client::connect(args).await?;
    let outcome = Run::begin(&mut client, &task, &prompt)
        .await?
        .finish(&mut client, &mut ending, timeout)
        .await;
    client.close().await;
    outcome
}

/// Whether the reader of the output has closed it.
pub(crate) fn output_is_closed(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind == Some(std::io::ErrorKind::BrokenPipe)
}

fn prompt(given: &str) -> anyhow::Result<String> {
    let mut prompt = given.to_owned();
    if given == "-" {
        prompt.clear();
        std::io::stdin()
            .read_to_string(&mut prompt)
            .context("can't read the prompt from standard input")?;
    }
    ensure!(
        !prompt.trim().is_empty(),
        "the prompt is empty: write what the agent should do"
    );
    Ok(prompt)
}

struct Run {
    session: String,
    output: Output,
    approve: Approve,
    renderer: Renderer,
    /// The result of this turn.
    result: Option<TurnResult>,
    /// The event of our own prompt was received: later events belong to it.
    begun: bool,
    /// The prompt's id.
    prompt: String,
    stopped_by: Option<StoppedBy>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum StoppedBy {
    User,
    Clock,
}

impl Run {
    async fn begin(client: &mut Client, task: &RunArgs, prompt: &str) -> anyhow::Result<Self> {
        let prompt_id = PromptId::random().to_string();
        let session = if let Some(wanted) = &task.session {
            let session = client.session_like(wanted).await?;
            let (id, after) = (session["id"].clone(), session["lastSeq"].clone());
            client
                .send("session.subscribe", json!({ "sessionId": id, "afterSeq": after }))
                .await?;
            client
                .send(
                    "session.continue",
                    json!({ "sessionId": id, "prompt": prompt, "promptId": prompt_id }),
                )
                .await?;
            id
        } else {
            let mut start = start(task, prompt)?;
            start["promptId"] = json!(prompt_id);
            client.send("session.start", start).await?;
            let mut started = client.until("session.started").await?;
            let id = started["sessionId"].take();
            client
                .send("session.subscribe", json!({ "sessionId": id }))
                .await?;
            id
        };
        let session = session
            .as_str()
            .context("the server named no session")?
            .to_owned();
        let someone = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && task.prompt != "-";
        let usual = if someone { Approve::Ask } else { Approve::Deny };
        Ok(Self {
            session,
            output: task.output,
            approve: task.approve.unwrap_or(usual),
            renderer: Renderer::default(),
            result: None,
            begun: false,
            prompt: prompt_id,
            stopped_by: None,
        })
    }

    /// Follows the turn to its end.
    async fn finish(
        mut self,
        client: &mut Client,
        ending: &mut Ending,
        timeout: Option<Duration>,
    ) -> anyhow::Result<ExitCode> {
        let mut asking = Asking::new(Terminal::open(self.approve == Approve::Ask));
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let overdue = async {
                match deadline {
                    Some(deadline) if self.stopped_by.is_none() => tokio::time::sleep_until(deadline).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                event = client.next() => {
                    let event = event?;
                    if event["type"] == "runner.error" && !self.begun {
                        bail!("{}", event["payload"]["message"].as_str().unwrap_or("refused"));
                    }
                    if event["payload"]["sessionId"] != self.session.as_str() {
                        continue;
                    }
                    match self.event(client, &mut asking, &event).await {
                        Ok(Some(code)) => return Ok(code),
                        Ok(None) => {}
                        Err(error) if output_is_closed(&error) => {
                            // As with `… | head`: output that nobody reads need not be produced.
                            self.stop(client, StoppedBy::User).await?;
                            return Ok(PIPE_CLOSED.into());
                        }
                        Err(error) => return Err(error),
                    }
                }
                line = asking.line() => {
                    if let Some((request, answer)) = asking.answered(line) {
                        self.answer(client, &request, answer).await?;
                    }
                }
                () = overdue => self.stop(client, StoppedBy::Clock).await?,
                _ = ending.asked() => {
                    // The second interrupt: exit at once.
                    if self.stopped_by == Some(StoppedBy::User) {
                        return Ok(INTERRUPTED.into());
                    }
                    self.stop(client, StoppedBy::User).await?;
                }
            }
        }
    }

    async fn stop(&mut self, client: &mut Client, by: StoppedBy) -> anyhow::Result<()> {
        self.stopped_by = Some(by);
        client
            .send("session.stop", json!({ "sessionId": self.session }))
            .await
    }

    async fn event(
        &mut self,
        client: &mut Client,
        asking: &mut Asking,
        event: &Value,
    ) -> anyhow::Result<Option<ExitCode>> {
        self.show(event)?;
        let payload = &event["payload"];
        match event["type"].as_str() {
            Some("stream.user_prompt") if payload["promptId"] == self.prompt.as_str() => self.begun = true,
            Some("stream.message") if self.begun => {
                let message = Message::of(&payload["message"]).ok();
                let result = message.and_then(|message| message.turn_result());
                if let Some(result) = result.filter(|result| !result.is_background()) {
                    self.result = Some(result);
                }
            }
            Some("permission.request") if self.begun => self.asked(client, asking, payload).await?,
            Some("permission.resolved") => asking.forget(payload),
            _ => {}
        }
        let status = payload["status"].as_str().unwrap_or_default();
        if !self.begun || event["type"] != "session.status" || status == "running" {
            return Ok(None);
        }
        self.conclude(status, payload["error"].as_str()).map(Some)
    }

    async fn asked(
        &mut self,
        client: &mut Client,
        asking: &mut Asking,
        request: &Value,
    ) -> anyhow::Result<()> {
        let for_people = request["toolName"]
            .as_str()
            .is_some_and(tiller_message::is_for_people);
        match self.approve {
            Approve::Ask => asking.ask(request),
            Approve::All if !for_people => {
                self.answer(client, request, json!({ "behavior": "allow" }))
                    .await?;
            }
            Approve::All | Approve::Deny => {
                let message = "Nobody can be asked in this task. Continue without it.";
                self.answer(client, request, json!({ "behavior": "deny", "message": message }))
                    .await?;
            }
        }
        Ok(())
    }

    async fn answer(&mut self, client: &mut Client, request: &Value, result: Value) -> anyhow::Result<()> {
        let answer = json!({
            "sessionId": self.session, "requestId": request["requestId"], "shown": request["shown"], "result": result,
        });
        client.send("permission.response", answer).await
    }

    fn show(&mut self, event: &Value) -> anyhow::Result<()> {
        let mut stdout = std::io::stdout().lock();
        match self.output {
            Output::Json => {}
            Output::StreamJson => writeln!(stdout, "{event}")?,
            Output::Text if event["type"] == "stream.user_prompt" => {}
            Output::Text => {
                let screen = self.renderer.event(event);
                stdout.write_all(screen.words.as_bytes())?;
                stdout.flush()?;
                eprint!("{}", screen.notes);
            }
        }
        Ok(())
    }

    fn conclude(&mut self, status: &str, error: Option<&str>) -> anyhow::Result<ExitCode> {
        let mut stdout = std::io::stdout().lock();
        if self.output == Output::Text {
            stdout.write_all(self.renderer.line_end().as_bytes())?;
        }
        if self.output == Output::Json {
            let result = self.result.as_ref();
            let usage = result.map(|result| &result.usage);
            let summary = json!({
                "success": status == "completed",
                "status": status,
                "session_id": self.session,
                "result": result.and_then(|result| result.result.as_ref()),
                "error": match (error, self.stopped_by) {
                    (Some(error), _) => json!(error),
                    (None, Some(StoppedBy::Clock)) => json!("The time limit was reached."),
                    (None, Some(StoppedBy::User)) => json!("The task was stopped."),
                    (None, None) => Value::Null,
                },
                "cost_usd": result.map(|result| result.total_cost_usd),
                "duration_ms": result.map(|result| result.duration_ms),
                "num_turns": result.map(|result| result.num_turns),
                "usage": usage.filter(|usage| **usage != Usage::default()),
                "permission_denials": result.map(|result| result.permission_denials.as_slice()).unwrap_or_default(),
            });
            writeln!(stdout, "{summary}")?;
        }
        stdout.flush()?;
        if self.output == Output::Text && std::io::stderr().is_terminal() {
            eprintln!("session {}", self.session);
        }
        Ok(match (status, self.stopped_by) {
            (_, Some(StoppedBy::Clock)) => {
                eprintln!("tiller: the time limit was reached; the task was stopped");
                TIMED_OUT.into()
            }
            (_, Some(StoppedBy::User)) => INTERRUPTED.into(),
            ("completed", None) => ExitCode::SUCCESS,
            // Stopped by another client, or failed.
            _ => ExitCode::FAILURE,
        })
    }
}

fn start(task: &RunArgs, prompt: &str) -> anyhow::Result<Value> {
    let cwd = match &task.cwd {
        Some(cwd) => std::path::absolute(cwd)?,
        None => std::env::current_dir().context("the current folder is gone")?,
    };
    let mut start = json!({
        // A script does not pay for a title that it did not ask for.
        "title": title_from_prompt(prompt), "prompt": prompt, "cwd": cwd, "requestId": "run",
        "model": task.model, "permissionMode": task.permission_mode, "allowedTools": task.allowed_tools,
        "maxTurns": task.max_turns, "maxBudgetUsd": task.max_budget_usd,
    });
    if let Some(fields) = start.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    Ok(start)
}
