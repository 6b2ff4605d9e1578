//! Carries commands to a running CLI and its messages to the session.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::FutureExt as _;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use tiller_agent::UserMessage;
use tiller_agent::control::{
    ControlRequest, ElicitationReply, ElicitationRequest, HookRequest, InboundRequest, Interrupt,
    PermissionReply, Reply, RequestId, RequestKind, SetModel, SetPermissionMode,
};
use tiller_agent::link::{Inbound, Inbox, Link};
use tiller_agent::message::ParseError;
use tiller_keeper::KeeperHandle;
use tokio::sync::{mpsc, oneshot};

use crate::inquiry::{Exchange, aside};
use crate::meaning::meaning;
use crate::options::{Chosen, MODEL, PERMISSION_MODE};
use tiller_core::backend::{
    AgentCommand, AgentEvent, AgentQuestion, Exit, HookCall, Meaning, OptionChange, Options, PositionedEvent,
};
use tiller_core::{DecisionAnswer, RawJson, UnreadableLine};

/// How long an interrupted turn may take to end before its agent is ended. The CLI needs about 25 ms.
const INTERRUPT_TIME: Duration = Duration::from_millis(1500);

/// The maximum batch for a session: bounds memory and the delay of its first event.
const TOGETHER: usize = 256;
const BYTES_TOGETHER: usize = 256 * 1024;

/// The prefix of our id of an MCP server's question, which is answered in another format. It is in the id because that
/// is all that is known about a question that an earlier server received.
const ELICITED: &str = "elicitation/";

/// The tool name of an MCP server's question to the user.
const ELICITATION: &str = "Elicitation";

/// Carries commands to a running CLI and its messages to the session.
pub(crate) struct Relay {
    pub(crate) link: Link,
    /// The first request to the CLI, until it is answered. The CLI answers it before any message that needs the answer.
    pub(crate) greeting: Option<Exchange>,
    /// Whether an earlier server started the CLI, and may have received questions that we have to answer.
    pub(crate) attached: bool,
    /// Sent when the output that the CLI wrote without us is in the inbox.
    pub(crate) catching_up: Option<oneshot::Receiver<()>>,
    pub(crate) events: mpsc::Sender<Vec<PositionedEvent>>,
    /// The next batch for the session.
    pub(crate) heard: Vec<PositionedEvent>,
    /// Whether a turn is running, as far as known.
    pub(crate) busy: bool,
    pub(crate) run: Option<KeeperHandle>,
    /// The position of the CLI's last message, if it can be read again.
    pub(crate) position: Option<u64>,
    /// How long a hook call waits for its answer.
    pub(crate) hook_time: Duration,
    /// The number of lines that were not messages.
    pub(crate) malformed: u64,
}

/// The session no longer listens to the agent.
struct Unheard;

/// Waits for the end of a request.
async fn over(exchange: &mut Option<Exchange>) {
    match exchange {
        Some(exchange) => exchange.await,
        None => std::future::pending().await,
    }
}

/// Waits until all missed output is there. Never returns if the CLI's end comes first.
async fn reached(catching_up: &mut Option<oneshot::Receiver<()>>) {
    if let Some(caught_up) = catching_up {
        let told = caught_up.await;
        *catching_up = None;
        if told.is_ok() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

impl Relay {
    pub(crate) async fn run(mut self, mut inbox: Inbox, commands: &mut mpsc::Receiver<AgentCommand>) -> Exit {
        loop {
            tokio::select! {
                command = commands.recv() => {
                    let Some(command) = command else { return self.shut_down(inbox).await };
                    self.command(command).await;
                }
                () = over(&mut self.greeting) => self.greeting = None,
                () = reached(&mut self.catching_up) => {
                    if let Err(end) = self.catch_up(&mut inbox).await {
                        return self.ended(end, inbox).await;
                    }
                }
                inbound = inbox.next() => match inbound {
                    Some(inbound) => {
                        if let Err(end) = self.hear_all(inbound, &mut inbox).await {
                            return self.ended(end, inbox).await;
                        }
                    }
                    None => return describe(&self.link.exited().await),
                }
            }
        }
    }

    /// The CLI exited, or the session does not listen to it any more.
    async fn ended(self, end: Option<tiller_agent::link::Exit>, inbox: Inbox) -> Exit {
        // The inbox is no longer read, so the CLI must not wait for it.
        drop(inbox);
        match end {
            Some(exit) => describe(&exit),
            None => describe(&self.link.kill().await),
        }
    }

    /// Sends the session everything in the inbox, and then that it has caught up.
    async fn catch_up(&mut self, inbox: &mut Inbox) -> Result<(), Option<tiller_agent::link::Exit>> {
        while let Some(inbound) = inbox.try_next() {
            self.hear_all(inbound, inbox).await?;
        }
        self.heard
            .push(PositionedEvent::without_position(AgentEvent::CaughtUp));
        self.tell_session().await.map_err(|Unheard| None)
    }

    /// Ends the CLI. Its output until then is still recorded.
    async fn shut_down(mut self, mut inbox: Inbox) -> Exit {
        // A CLI whose input ends during a turn treats that as a denial of its open question, and continues the turn. So
        // the turn is interrupted first, and a CLI that does not react is killed.
        if self.busy
            && let Some(exit) = self.interrupted(&mut inbox).await
        {
            return exit;
        }
        let (link, busy) = (self.link.clone(), self.busy);
        // In its own task: a CLI can exit by itself only while its output is read.
        tokio::spawn(async move {
            if busy {
                link.kill().await
            } else {
                link.close().await
            }
        });
        while let Some(inbound) = inbox.next().await {
            if let Inbound::Exited(exit) = inbound {
                return describe(&exit);
            }
            self.hear(inbound, &inbox).await;
            if self.tell_session().await.is_err() {
                break;
            }
        }
        drop(inbox);
        describe(&self.link.exited().await)
    }

    /// Interrupts the turn and waits a little for its end; returns the CLI's own exit, if that comes instead.
    async fn interrupted(&mut self, inbox: &mut Inbox) -> Option<Exit> {
        let deadline = tokio::time::Instant::now() + INTERRUPT_TIME;
        self.command(AgentCommand::Interrupt).await;
        while self.busy {
            match tokio::time::timeout_at(deadline, inbox.next()).await.ok()?? {
                Inbound::Exited(exit) => return Some(describe(&exit)),
                inbound => {
                    self.hear(inbound, inbox).await;
                    self.tell_session().await.ok()?;
                }
            }
        }
        None
    }

    /// An error means that the CLI has exited, which is reported separately.
    async fn command(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::Prompt {
                uuid,
                words,
                images,
                parent_tool_use_id,
                number,
            } => {
                self.busy = true;
                let mut message = UserMessage::text(words).with_uuid(uuid);
                if let Some(call) = parent_tool_use_id {
                    message = message.in_reply_to(call);
                }
                for image in images {
                    message = message.with_image(image.media_type, BASE64.encode(&image.bytes));
                }
                if self.link.send_user_once(&message, number).await.is_err() {
                    tracing::debug!("a prompt came too late");
                }
            }
            AgentCommand::Answer {
                agent_request,
                answer,
                number,
            } => self.answer(&agent_request, answer, number).await,
            AgentCommand::Forget { before } => {
                if let Some(run) = &self.run {
                    run.forget(before);
                }
            }
            AgentCommand::Configure(change) => {
                let mut options = Options::default();
                options.apply(&change);
                match change.name.as_str() {
                    MODEL => {
                        let model = Chosen(&options).model().map(str::to_owned);
                        self.configure(change, SetModel { model }, "model");
                    }
                    PERMISSION_MODE => {
                        let mode = Chosen(&options).mode();
                        self.configure(change, SetPermissionMode { mode }, "permission mode");
                    }
                    // Only these options can be changed while the CLI runs.
                    name => tracing::error!(name, "a running CLI can't change this option"),
                }
            }
            AgentCommand::Interrupt => {
                let link = self.link.clone();
                // Not awaited here: the CLI's output must be read meanwhile. The next prompt comes after it, and is not
                // affected.
                aside(async move {
                    if let Err(error) = link.request(Interrupt {}).await {
                        tracing::debug!(%error, "the CLI did not take an interrupt");
                    }
                });
            }
        }
    }

    /// Changes an option from the next prompt on at the latest. If the CLI refuses, the user is told.
    fn configure<R: ControlRequest<Answer: Send> + 'static>(
        &self,
        change: OptionChange,
        request: R,
        what: &'static str,
    ) {
        let (link, events) = (self.link.clone(), self.events.clone());
        aside(async move {
            let outcome = link.request(request).await;
            let done = outcome.is_ok();
            let mut heard = vec![PositionedEvent::without_position(AgentEvent::Configured {
                change,
                done,
            })];
            if let Err(error) = outcome {
                let text = format!("The agent did not change its {what}: {error}.");
                heard.push(PositionedEvent::without_position(AgentEvent::notice(&text)));
            }
            // A session that no longer listens does not need it.
            drop(events.send(heard).await);
        });
    }

    fn hook(&mut self, agent_request: String, hook: HookRequest) {
        let (link, events, time) = (self.link.clone(), self.events.clone(), self.hook_time);
        let id = agent_request.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                _ = link.exited() => return,
            }
            // Fails if it was answered in time.
            let goes_on = serde_json::value::to_raw_value(&json!({ "continue": true })).map(Reply::Success);
            if let Ok(goes_on) = goes_on
                && link.respond(&RequestId::from(id.clone()), goes_on).await.is_ok()
            {
                let event = AgentEvent::Withdrew { agent_request: id };
                drop(events.send(vec![PositionedEvent::without_position(event)]).await);
            }
        });
        self.tell(AgentEvent::Hook(Box::new(HookCall {
            agent_request,
            event: hook.callback_id,
            input: hook.input.into(),
            tool_use_id: hook.tool_use_id,
        })));
    }

    async fn answer(&mut self, agent_request: &str, answer: DecisionAnswer, number: u64) {
        let (id, reply) = match agent_request.strip_prefix(ELICITED) {
            Some(id) => (id, elicitation_reply(answer)),
            None => (agent_request, permission_reply(answer)),
        };
        let id = RequestId::from(id.to_owned());
        if self.attached {
            self.link.reopen(id.clone());
        }
        if let Err(error) = self.link.respond_once(&id, reply, number).await {
            tracing::debug!(%error, "an answer came too late");
        }
    }

    /// Processes what was just read from `inbox`, and everything else in it. An error is the end of the CLI or of the
    /// session.
    async fn hear_all(
        &mut self,
        first: Inbound,
        inbox: &mut Inbox,
    ) -> Result<(), Option<tiller_agent::link::Exit>> {
        let mut next = Some(first);
        let mut exit = None;
        let mut bytes = 0;
        while let Some(inbound) = next {
            if let Inbound::Exited(end) = inbound {
                exit = Some(end);
                break;
            }
            bytes += match &inbound {
                Inbound::Message(message) => message.json().len(),
                _ => 0,
            };
            self.hear(inbound, inbox).await;
            next = if self.heard.len() < TOGETHER && bytes < BYTES_TOGETHER {
                inbox.try_next()
            } else {
                None
            };
        }
        self.tell_session().await.map_err(|Unheard| None)?;
        exit.map_or(Ok(()), |exit| Err(Some(exit)))
    }

    /// Processes what was just read from `inbox`.
    async fn hear(&mut self, inbound: Inbound, inbox: &Inbox) {
        // An earlier answer of the CLI is processed before this message.
        if self
            .greeting
            .as_mut()
            .is_some_and(|greeting| greeting.now_or_never().is_some())
        {
            self.greeting = None;
        }
        self.position = self.run.is_some().then(|| inbox.position());
        match inbound {
            // Reports the progress of a prompt with an id, which only concerns the CLI and us.
            Inbound::Message(message) if message.type_name() == "command_lifecycle" => {}
            Inbound::Message(message) => {
                let raw = RawJson::checked(Arc::clone(message.shared()));
                let uuid = message.uuid().map(str::to_owned);
                let meaning = meaning(&message);
                if matches!(meaning, Meaning::TurnEnded(_)) {
                    self.busy = false;
                }
                self.tell(AgentEvent::Message { raw, uuid, meaning });
            }
            Inbound::Request(request) => self.request(request).await,
            Inbound::Cancelled(id) => {
                // A question or a hook call; the session knows which.
                for agent_request in [id.as_str().to_owned(), format!("{ELICITED}{}", id.as_str())] {
                    self.tell(AgentEvent::Withdrew { agent_request });
                }
            }
            Inbound::Malformed { line, error } => {
                self.malformed += 1;
                // The first, and then with every doubling: there may be thousands in a second.
                if self.malformed.is_power_of_two() {
                    let (so_far, length) = (self.malformed, line.len());
                    tracing::warn!(%error, length, so_far, "the CLI wrote a line that is not a message");
                }
                match error {
                    // Not JSON: most likely the output of a tool that the CLI did not catch.
                    ParseError::Json { .. } => self.notice(&format!(
                        "A line of the agent could not be read and was skipped: {error}."
                    )),
                    ParseError::Utf8 { .. } | ParseError::NotAnObject | ParseError::TooDeep => {
                        let line = UnreadableLine::new(error.reason(), &line);
                        self.tell(AgentEvent::Unreadable(Box::new(line)));
                    }
                }
            }
            Inbound::Oversized { length } => {
                self.notice(&format!(
                    "A message of {length} bytes was too long and was skipped."
                ));
            }
            // Handled by the callers, for whom it is the end.
            _ => {}
        }
    }

    async fn request(&mut self, request: InboundRequest) {
        let agent_request = request.id.as_str().to_owned();
        match request.kind {
            RequestKind::CanUseTool(asked) => {
                let always_ask = tiller_agent::message::is_for_people(&asked.tool_name)
                    || asked.requires_user_interaction.unwrap_or(false);
                let question = AgentQuestion {
                    tool_use_id: asked.tool_use_id.clone().unwrap_or_else(|| agent_request.clone()),
                    tool_name: asked.tool_name.clone(),
                    input: asked.input.clone().into(),
                    suggestions: asked.permission_suggestions.clone().map(RawJson::from),
                    description: asked.description.clone(),
                    blocked_path: asked.blocked_path.clone(),
                    always_ask,
                    agent_request,
                };
                self.tell(AgentEvent::Asked(Box::new(question)));
            }
            RequestKind::Hook(hook) => self.hook(agent_request, hook),
            RequestKind::Elicitation(asked) => {
                let Ok(input) = RawJson::of(&ElicitationInput::from(&*asked)) else {
                    return;
                };
                let agent_request = format!("{ELICITED}{agent_request}");
                let description = Some(asked.message.clone());
                self.tell(AgentEvent::Asked(Box::new(AgentQuestion {
                    tool_use_id: asked.elicitation_id.unwrap_or_else(|| agent_request.clone()),
                    tool_name: ELICITATION.to_owned(),
                    input,
                    suggestions: None,
                    description,
                    blocked_path: None,
                    always_ask: true,
                    agent_request,
                })));
            }
            _ => {
                let refusal = Reply::Error("This client does not support that.".to_owned());
                if let Err(error) = self.link.respond(&request.id, refusal).await {
                    tracing::debug!(%error, "a refusal came too late");
                }
            }
        }
    }

    fn notice(&mut self, text: &str) {
        self.tell(AgentEvent::notice(text));
    }

    fn tell(&mut self, event: AgentEvent) {
        let position = self.position;
        self.heard.push(PositionedEvent { event, position });
    }

    /// Sends a batch, so that the session is woken once.
    async fn tell_session(&mut self) -> Result<(), Unheard> {
        if self.heard.is_empty() {
            return Ok(());
        }
        let heard = std::mem::take(&mut self.heard);
        self.events.send(heard).await.map_err(|_| Unheard)
    }
}

/// The input is always included: older versions of the CLI require it.
fn permission_reply(answer: DecisionAnswer) -> Reply {
    let wire = match answer {
        DecisionAnswer::Allow { input, permissions } => PermissionReply::Allow {
            updated_input: input.as_ref().and_then(boxed),
            updated_permissions: permissions.as_ref().and_then(boxed),
        },
        DecisionAnswer::Deny { message, interrupt } => {
            let message = message.filter(|message| !message.trim().is_empty());
            let message = message.unwrap_or_else(|| "The user does not want this to be done.".to_owned());
            PermissionReply::Deny { message, interrupt }
        }
    };
    wire.into()
}

/// An elicitation as clients see it. Its schema is passed on unchanged: the order of its fields is the order of the
/// form.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ElicitationInput<'a> {
    server: &'a str,
    message: &'a str,
    mode: Option<&'a str>,
    url: Option<&'a str>,
    requested_schema: Option<&'a RawValue>,
}

impl<'a> From<&'a ElicitationRequest> for ElicitationInput<'a> {
    fn from(asked: &'a ElicitationRequest) -> Self {
        Self {
            server: &asked.mcp_server_name,
            message: &asked.message,
            mode: asked.mode.as_deref(),
            url: asked.url.as_deref(),
            requested_schema: asked.requested_schema.as_deref(),
        }
    }
}

fn elicitation_reply(answer: DecisionAnswer) -> Reply {
    match answer {
        DecisionAnswer::Allow { input, .. } => {
            let content = input.and_then(|input| serde_json::from_str(input.as_str()).ok());
            ElicitationReply::Accept { content }.into()
        }
        DecisionAnswer::Deny { .. } => ElicitationReply::Decline.into(),
    }
}

fn boxed(raw: &RawJson) -> Option<Box<RawValue>> {
    RawValue::from_string(raw.as_str().to_owned()).ok()
}

fn describe(exit: &tiller_agent::link::Exit) -> Exit {
    // An agent that ends at once counts as well: the session starts afresh, and the old conversation stays in the history.
    if exit.expired || exit.ended_early() {
        return Exit::Expired;
    }
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("The agent ended unexpectedly with exit code {code}."),
        (None, Some(signal)) => format!("The agent was ended by signal {signal}."),
        (None, None) => "The agent ended unexpectedly.".to_owned(),
    };
    let tail = exit.stderr_tail.trim();
    Exit::Ended {
        message: if tail.is_empty() {
            how
        } else {
            format!("{how}\n{tail}")
        },
    }
}

#[cfg(test)]
mod tests;
