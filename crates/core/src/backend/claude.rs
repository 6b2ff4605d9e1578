//! The Claude Code CLI as a backend, and everything that speaks like it: the demo agent does.
//!
//! The only place in the domain that knows what the CLI's messages look like.

#[cfg(target_os = "linux")]
mod driver;
mod inquiry;
mod meaning;
mod runs;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;
use tiller_agent::{
    Channel, ControlRequest, ElicitationReply, Executable, Grace, HookRequest, Inbound, InboundRequest,
    Inbox, Interrupt, Link, LinkSettings, Options, PermissionReply, Reply, RequestId, RequestKind, SetModel,
    SetPermissionMode, UserMessage,
};
use tiller_keeper::{Keeping, Run};
use tokio::sync::{mpsc, oneshot};

use self::inquiry::{LastOffers, initialize, inquire};
use self::meaning::meaning;
pub use self::runs::Runs;
use super::{
    AgentChannels, AgentCommand, AgentEvent, Attach, Backend, BackendInfo, Conversation, Driver, Exit,
    HOOK_TIME, Heard, HookCall, Inquiry, Launch, Meaning, Offers, Question,
};
use crate::ids::{SessionId, Timestamp};
use crate::json::RawJson;
use crate::session::{Answer, PermissionMode};

/// How many commands may wait for an agent that does not read.
const COMMANDS: usize = 64;

/// How many events may wait for their session. When it is full, the CLI waits.
const EVENTS: usize = 256;

/// A CLI in the middle of a turn does not end when its input does; waiting longer would only look slow.
const GRACE: Grace = Grace {
    after_input: Duration::from_millis(500),
    after_terminate: Duration::from_secs(2),
};

/// How long an interrupted turn may take to end when its agent is to end. The CLI needs about 25 ms.
const INTERRUPT_TIME: Duration = Duration::from_millis(1500);

/// How long a title that someone waits for may take. Starting the CLI is most of it.
const TITLE_TIME: Duration = Duration::from_secs(15);

/// Tools with which the agent speaks to a person, whatever the approval mode.
const FOR_PEOPLE: &[&str] = &["AskUserQuestion", "ExitPlanMode"];

/// Begins our id of an MCP server's question, which is answered in another form than the rest. It stands in the id
/// because that is all that is known of a question which an earlier server was asked.
const ELICITED: &str = "elicitation/";

/// The name under which an MCP server's question is put to the user.
const ELICITATION: &str = "Elicitation";

/// Starts one executable for every session.
pub struct ClaudeBackend {
    executable: Executable,
    claude_home: Option<PathBuf>,
    info: BackendInfo,
    /// Found out in the background: the CLI takes its time to say it.
    version: Arc<OnceLock<String>>,
    offers: LastOffers,
    /// How agents outlive us; `None`: they don't.
    keeping: Option<Keeping>,
    /// For agents that connect to us, which have no keeper. `None`: all speak over pipes.
    runs: Option<Runs>,
}

impl ClaudeBackend {
    /// `claude_home` is where the CLI keeps its settings and transcripts, if not in its usual place.
    pub fn new(executable: Executable, claude_home: Option<PathBuf>, info: BackendInfo) -> Self {
        Self {
            executable,
            claude_home,
            info,
            version: Arc::default(),
            offers: LastOffers::default(),
            keeping: None,
            runs: None,
        }
    }

    /// Lets agents connect with `--sdk-url`, which old releases of the CLI take, instead of speaking over pipes.
    #[must_use]
    pub fn connecting(mut self) -> Self {
        self.runs = Some(Runs::default());
        self
    }

    /// Gives every agent a keeper, so that it outlives this program.
    pub fn kept(mut self, keeping: Keeping) -> Self {
        self.keeping = Some(keeping);
        self
    }

    /// Begins to ask the executable for its version; [`Backend::info`] has it from when it is known.
    pub fn detect_version(&self) {
        if self.info.version.is_some() {
            return;
        }
        let (executable, version) = (self.executable.clone(), Arc::clone(&self.version));
        tokio::spawn(async move {
            match executable.version().await {
                Ok(found) => drop(version.set(found.to_string())),
                Err(error) => tracing::warn!(%error, "can't tell which version of Claude Code this is"),
            }
        });
    }
}

impl Backend for ClaudeBackend {
    fn info(&self) -> BackendInfo {
        let mut info = self.info.clone();
        info.version = info.version.or_else(|| self.version.get().cloned());
        info
    }

    fn launch(&self, launch: Launch) -> AgentChannels {
        let (channels, ends) = channels();
        let executable = self.executable.clone();
        let options = options(&launch, self.claude_home.clone());
        let greeting = Greeting {
            conversation: match launch.conversation {
                Conversation::New(id) | Conversation::Resume(id) | Conversation::Fork { id, .. } => id,
            },
            hooks: launch.hooks,
            offers: self.offers.clone(),
        };
        let (keeping, runs) = (self.keeping.clone(), self.runs.clone());
        tokio::spawn(async move {
            // Held for as long as the agent lives.
            let lease = match take_lease(&greeting.conversation) {
                Ok(lease) => lease,
                Err(message) => return ends.exited(Exit::NotStarted { message }, None).await,
            };
            if let Some(runs) = runs {
                // The guard is kept until the agent is gone: it may connect again.
                let (started, _guard) = match start_connecting(&executable, &options, &runs, launch.session) {
                    Ok(started) => started,
                    Err(message) => return ends.exited(Exit::NotStarted { message }, None).await,
                };
                initialize(&started.link, &greeting.hooks, greeting.offers);
                return ends.relay(started, false, false, lease).await;
            }
            let exit = match start(&executable, &options, keeping.as_ref(), &launch.run).await {
                Ok(started) => {
                    initialize(&started.link, &greeting.hooks, greeting.offers);
                    return ends.relay(started, false, false, lease).await;
                }
                Err(message) => Exit::NotStarted { message },
            };
            ends.exited(exit, None).await;
        });
        channels
    }

    fn runs(&self) -> Option<Runs> {
        self.runs.clone()
    }

    fn attach(&self, attach: Attach) -> AgentChannels {
        let Some(keeping) = self.keeping.clone() else {
            return AgentChannels::of_nobody();
        };
        let (channels, ends) = channels();
        tokio::spawn(async move {
            // It is ours: whoever else has the lease has found no agent of its own.
            let lease = take_lease(&attach.conversation).unwrap_or_default();
            let Ok(kept) = tiller_keeper::attach(&keeping, &attach.run, attach.position).await else {
                return ends.exited(Exit::NeverStarted, None).await;
            };
            if let Some(last_input) = kept.last_input {
                let event = AgentEvent::Attached { last_input };
                // The session may be gone; the relay finds out.
                drop(ends.events.send(Heard::lost(event)).await);
            }
            let settings = LinkSettings {
                resumes: attach.resumes,
                ..LinkSettings::from(&Options::new().grace(GRACE))
            };
            let (link, inbox) = tiller_agent::connect_over(kept.wire, settings);
            let started = Started {
                link,
                inbox,
                run: Some(kept.run),
            };
            ends.relay(started, true, attach.busy, lease).await;
        });
        channels
    }

    fn keep_only(&self, wanted: HashSet<String>) {
        let Some(keeping) = self.keeping.clone() else {
            return;
        };
        tokio::spawn(async move {
            let runs = tiller_keeper::runs(&keeping).unwrap_or_else(|error| {
                tracing::warn!(%error, "can't look for agents that were left behind");
                Vec::new()
            });
            for run in runs.iter().filter(|run| !wanted.contains(*run)) {
                tracing::info!(run, "ending what an earlier server has left");
                tiller_keeper::remove(&keeping, run).await;
            }
        });
    }

    fn title(&self, prompt: String, cwd: PathBuf) -> BoxFuture<'static, Option<String>> {
        let executable = self.executable.clone();
        let mut options = Options::new()
            .cwd(cwd)
            .persist(false)
            .strict_mcp(true)
            .tools([""; 0])
            .grace(GRACE)
            .env_remove_prefix("TILLER_");
        if let Some(home) = &self.claude_home {
            options = options.claude_home(home);
        }
        Box::pin(async move {
            // Nothing is lost with it, so it needs no keeper.
            let (link, mut inbox) = match start(&executable, &options, None, "").await {
                Ok(started) => (started.link, started.inbox),
                Err(error) => {
                    tracing::debug!(%error, "no agent for a title");
                    return None;
                }
            };
            initialize(&link, &[], LastOffers::default());
            let asked = inquire(&link, Inquiry::Title { prompt });
            // What it says beside the answer is read, so that it does not wait for a reader.
            let reading = async { while inbox.next().await.is_some() {} };
            let answer = tokio::select! {
                answer = tokio::time::timeout(TITLE_TIME, asked) => answer.ok()?.ok(),
                () = reading => None,
            };
            link.kill().await;
            crate::title::title_from_model(answer?.as_str())
        })
    }

    #[cfg(target_os = "linux")]
    fn driver(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>> {
        let home = self.claude_home.clone().or_else(|| {
            let home = std::env::home_dir()?;
            Some(home.join(".claude"))
        });
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || {
                driver::find(&driver::Wanted {
                    conversation: &conversation,
                    cwd: &cwd,
                    since,
                    claude_home: &home.unwrap_or_default(),
                })
            });
            found.await.ok().flatten()
        })
    }

    #[cfg(target_os = "linux")]
    fn end_driver(&self, driver: Driver) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { driver::end(&driver).await })
    }

    fn offers(&self) -> Option<Arc<Offers>> {
        self.offers.get()
    }
}

fn options(launch: &Launch, claude_home: Option<PathBuf>) -> Options {
    let settings = &launch.settings;
    let mut options = Options::new()
        .cwd(&launch.cwd)
        .partial_messages(true)
        .ask_permission(true)
        .permission_mode(cli_mode(settings.permission_mode))
        // So that files can be rewound to any prompt.
        .file_checkpointing(true)
        .grace(GRACE)
        // The agent must not find what would let it approve its own requests.
        .env_remove_prefix("TILLER_");
    if let Some(home) = claude_home {
        options = options.claude_home(home);
    }
    if let Some(model) = &settings.model {
        options = options.model(model);
    }
    let mut granted = settings
        .allowed_tools
        .as_deref()
        .map(split_rules)
        .unwrap_or_default();
    if let Some(tools) = &settings.tools {
        options = options
            .tools(tools)
            // The CLI's list is of its own tools; those of MCP servers would come beside it.
            .strict_mcp(!tools.iter().any(|tool| tool.starts_with("mcp__")));
        granted.extend(tools.iter().cloned());
    }
    options = options.allowed_tools(granted);
    if let Some(effort) = &settings.effort {
        options = options.effort(effort);
    }
    if let Some(budget) = settings.max_budget_usd {
        options = options.max_budget_usd(budget);
    }
    if let Some(turns) = settings.max_turns {
        options = options.max_turns(turns);
    }
    if settings.permission_mode == PermissionMode::BypassPermissions && is_root() {
        // As root the CLI wants to be told that someone has thought about it. The user has: they chose the mode.
        options = options.env("IS_SANDBOX", "1");
    }
    match &launch.conversation {
        Conversation::New(id) => options.session_id(id),
        Conversation::Resume(id) => options.resume(id),
        Conversation::Fork { from, at, id } => {
            let options = options
                .resume(from)
                .fork(true)
                .extra_arg("session-id", Some(id.clone()));
            match at {
                Some(message) => options.resume_at(message),
                None => options,
            }
        }
    }
}

fn cli_mode(mode: PermissionMode) -> tiller_agent::PermissionMode {
    match mode {
        PermissionMode::Default => tiller_agent::PermissionMode::Default,
        PermissionMode::AcceptEdits => tiller_agent::PermissionMode::AcceptEdits,
        PermissionMode::Plan => tiller_agent::PermissionMode::Plan,
        PermissionMode::BypassPermissions => tiller_agent::PermissionMode::BypassPermissions,
    }
}

fn is_root() -> bool {
    #[cfg(unix)]
    {
        rustix::process::geteuid().is_root()
    }
    #[cfg(not(unix))]
    {
        false
    }
}

/// Splits `Read,Bash(git log, git diff)` at the commas outside of parentheses.
fn split_rules(rules: &str) -> Vec<String> {
    let mut depth = 0usize;
    let parts = rules.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts
        .map(|rule| rule.trim().to_owned())
        .filter(|rule| !rule.is_empty())
        .collect()
}

/// What a CLI is told first, and where its answer goes.
struct Greeting {
    conversation: String,
    hooks: Vec<String>,
    offers: LastOffers,
}

#[cfg(target_os = "linux")]
use self::driver::Lease;

#[cfg(not(target_os = "linux"))]
struct Lease;

/// Makes sure that no other Tiller of this user drives the conversation. `None`: this system has no leases.
fn take_lease(conversation: &str) -> Result<Option<Lease>, String> {
    #[cfg(target_os = "linux")]
    {
        let refused = "Another Tiller of yours drives this conversation. Stop it there, or fork the session.";
        Lease::take(conversation).map(Some).ok_or(refused.to_owned())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = conversation;
        Ok(None)
    }
}

/// Our ends of a session's channels.
struct Ends {
    commands: mpsc::Receiver<AgentCommand>,
    events: mpsc::Sender<Heard>,
    settled: oneshot::Receiver<()>,
}

fn channels() -> (AgentChannels, Ends) {
    let (commands, command_inbox) = mpsc::channel(COMMANDS);
    let (event_outbox, events) = mpsc::channel(EVENTS);
    let (settled, is_settled) = oneshot::channel();
    let channels = AgentChannels {
        commands,
        events,
        settled,
    };
    let ends = Ends {
        commands: command_inbox,
        events: event_outbox,
        settled: is_settled,
    };
    (channels, ends)
}

impl Ends {
    async fn relay(mut self, started: Started, attached: bool, busy: bool, lease: Option<Lease>) {
        let Started { link, inbox, run } = started;
        let runs = AgentEvent::Runs { pid: link.pid() };
        // The session may be gone; the relay finds out.
        drop(self.events.send(Heard::lost(runs)).await);
        let relay = Relay {
            link,
            attached,
            events: self.events.clone(),
            busy,
            run: run.clone(),
            position: None,
        };
        let exit = relay.run(inbox, &mut self.commands).await;
        // Before anyone hears of the end, and starts the next one.
        drop(lease);
        self.exited(exit, run).await;
    }

    async fn exited(self, exit: Exit, run: Option<Run>) {
        // The session may be gone; then nobody needs to know.
        drop(self.events.send(Heard::lost(AgentEvent::Exited(exit))).await);
        if let (Ok(()), Some(run)) = (self.settled.await, run) {
            run.finish().await;
        }
    }
}

/// A CLI that runs.
struct Started {
    link: Link,
    inbox: Inbox,
    /// Its keeper, if it has one.
    run: Option<Run>,
}

async fn start(
    executable: &Executable,
    options: &Options,
    keeping: Option<&Keeping>,
    run: &str,
) -> Result<Started, String> {
    let launch = tiller_agent::Launch::with_executable(executable, options, Channel::Stdio)
        .map_err(|error| error.to_string())?;
    let not_started = |error: std::io::Error| format!("The agent could not be started: {error}");
    let (wire, run) = if let Some(keeping) = keeping {
        let kept = tiller_keeper::start(keeping, run, &launch).await;
        let kept = kept.map_err(not_started)?;
        (kept.wire, Some(kept.run))
    } else {
        let spawned = tiller_agent::spawn(&launch, None).map_err(not_started)?;
        (tiller_agent::stdio(spawned), None)
    };
    let (link, inbox) = tiller_agent::connect_over(wire, LinkSettings::from(options));
    Ok(Started { link, inbox, run })
}

/// Starts an agent that connects to us.
fn start_connecting(
    executable: &Executable,
    options: &Options,
    runs: &Runs,
    session: SessionId,
) -> Result<(Started, runs::Guard), String> {
    let run = runs.expect(session).map_err(|error| error.to_string())?;
    let launch = tiller_agent::Launch::with_executable(executable, options, Channel::SdkUrl(&run.url))
        .map_err(|error| error.to_string())?;
    let spawned = tiller_agent::spawn(&launch, None)
        .map_err(|error| format!("The agent could not be started: {error}"))?;
    let wire = tiller_agent::websocket(spawned, run.sockets);
    let (link, inbox) = tiller_agent::connect_over(wire, LinkSettings::from(options));
    let started = Started {
        link,
        inbox,
        run: None,
    };
    Ok((started, run.guard))
}

/// Carries words both ways between a session and a running CLI.
struct Relay {
    link: Link,
    /// An earlier server has started the CLI, and may have been asked what we are to answer.
    attached: bool,
    events: mpsc::Sender<Heard>,
    /// A turn is running, as far as we know.
    busy: bool,
    run: Option<Run>,
    /// Where what the CLI said last ends, if it can be read again.
    position: Option<u64>,
}

/// Nobody listens to the agent any more.
struct Unheard;

impl Relay {
    async fn run(mut self, mut inbox: Inbox, commands: &mut mpsc::Receiver<AgentCommand>) -> Exit {
        loop {
            tokio::select! {
                command = commands.recv() => {
                    let Some(command) = command else { return self.last_words(inbox).await };
                    self.command(command).await;
                }
                inbound = inbox.next() => match inbound {
                    Some(Inbound::Exited(exit)) => return describe(&exit),
                    Some(inbound) => {
                        if self.hear(inbound, &inbox).await.is_err() {
                            return describe(&self.link.kill().await);
                        }
                    }
                    None => return describe(&self.link.exited().await),
                }
            }
        }
    }

    /// Ends the CLI. What it says until then belongs to the session.
    async fn last_words(mut self, mut inbox: Inbox) -> Exit {
        // A CLI whose input ends in the middle of a turn takes that for a 'no' to whatever it was asking, and goes on
        // with the turn. So the turn is interrupted first, and a CLI that does not listen is killed.
        if self.busy
            && let Some(exit) = self.interrupted(&mut inbox).await
        {
            return exit;
        }
        let (link, busy) = (self.link.clone(), self.busy);
        // Not waited for here: a CLI whose output nobody reads can't end by itself.
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
            if self.hear(inbound, &inbox).await.is_err() {
                break;
            }
        }
        describe(&self.link.exited().await)
    }

    /// Interrupts the turn and waits a little for its end; the CLI's own end, if that comes instead.
    async fn interrupted(&mut self, inbox: &mut Inbox) -> Option<Exit> {
        let deadline = tokio::time::Instant::now() + INTERRUPT_TIME;
        self.command(AgentCommand::Interrupt).await;
        while self.busy {
            match tokio::time::timeout_at(deadline, inbox.next()).await.ok()?? {
                Inbound::Exited(exit) => return Some(describe(&exit)),
                inbound => self.hear(inbound, inbox).await.ok()?,
            }
        }
        None
    }

    /// An error means that the CLI is gone, and its end says so.
    async fn command(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::Prompt {
                uuid,
                words,
                images,
                number,
            } => {
                self.busy = true;
                let mut message = UserMessage::text(words).with_uuid(uuid);
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
            AgentCommand::SetModel(model) => self.switch(SetModel { model }, "model"),
            AgentCommand::SetPermissionMode(mode) => {
                self.switch(SetPermissionMode { mode: cli_mode(mode) }, "permission mode");
            }
            AgentCommand::AnswerHook {
                agent_request,
                output,
            } => {
                let Some(output) = boxed(&output) else { return };
                let reply = Reply::Success(output);
                if let Err(error) = self.link.respond(&RequestId::from(agent_request), reply).await {
                    tracing::debug!(%error, "the answer to a callback came too late");
                }
            }
            AgentCommand::Inquire(inquiry, reply) => {
                let link = self.link.clone();
                // Not waited for here, as with everything that is asked of the CLI.
                tokio::spawn(async move { reply.send(inquire(&link, inquiry).await) });
            }
            AgentCommand::Interrupt => {
                let link = self.link.clone();
                // Not waited for here: what the CLI says meanwhile must be read.
                tokio::spawn(async move {
                    if let Err(error) = link.request(Interrupt {}).await {
                        tracing::debug!(%error, "the CLI did not take an interrupt");
                    }
                });
            }
        }
    }

    /// Changes how the CLI works from now on. If it won't, people are told.
    fn switch<R: ControlRequest<Answer: Send> + 'static>(&self, request: R, what: &'static str) {
        let (link, events) = (self.link.clone(), self.events.clone());
        tokio::spawn(async move {
            if let Err(error) = link.request(request).await {
                let text = format!("The agent did not change its {what}: {error}.");
                if let Some(notice) = notice(&text) {
                    // Nobody listens any more: then nobody needs it.
                    drop(events.send(Heard::lost(notice)).await);
                }
            }
        });
    }

    async fn hook(&mut self, agent_request: String, hook: HookRequest) -> Result<(), Unheard> {
        let (link, events) = (self.link.clone(), self.events.clone());
        let id = agent_request.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(HOOK_TIME) => {}
                _ = link.exited() => return,
            }
            // Fails if it was answered in time.
            let goes_on = serde_json::value::to_raw_value(&json!({ "continue": true })).map(Reply::Success);
            if let Ok(goes_on) = goes_on
                && link.respond(&RequestId::from(id.clone()), goes_on).await.is_ok()
            {
                let event = AgentEvent::TakesBack { agent_request: id };
                drop(events.send(Heard::lost(event)).await);
            }
        });
        self.tell(AgentEvent::Hook(HookCall {
            agent_request,
            event: hook.callback_id,
            input: hook.input.into(),
            tool_use_id: hook.tool_use_id,
        }))
        .await
    }

    async fn answer(&mut self, agent_request: &str, answer: Answer, number: u64) {
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

    /// Takes what was just read from `inbox`.
    async fn hear(&mut self, inbound: Inbound, inbox: &Inbox) -> Result<(), Unheard> {
        self.position = self.run.is_some().then(|| inbox.position());
        self.inbound(inbound).await
    }

    async fn inbound(&mut self, inbound: Inbound) -> Result<(), Unheard> {
        match inbound {
            // Says what becomes of a prompt that has an id, which is between the CLI and us.
            Inbound::Message(message) if message.type_name() == "command_lifecycle" => Ok(()),
            Inbound::Message(message) => {
                let Ok(raw) = RawJson::parse(message.json()) else {
                    return Ok(());
                };
                let uuid = message.uuid().map(str::to_owned);
                let meaning = meaning(&message);
                if matches!(meaning, Meaning::TurnEnded(_)) {
                    self.busy = false;
                }
                self.tell(AgentEvent::Message { raw, uuid, meaning }).await
            }
            Inbound::Request(request) => self.request(request).await,
            Inbound::Cancelled(id) => {
                // Whichever of the two it was; the session knows the one it has.
                for agent_request in [id.as_str().to_owned(), format!("{ELICITED}{}", id.as_str())] {
                    self.tell(AgentEvent::TakesBack { agent_request }).await?;
                }
                Ok(())
            }
            Inbound::Malformed { line, error } => {
                tracing::warn!(%error, length = line.len(), "the CLI wrote a line that is no message");
                self.notice(&format!(
                    "A line of the agent's was not understood and left out: {error}."
                ))
                .await
            }
            Inbound::Oversized { length } => {
                self.notice(&format!("A message of {length} bytes was too long and left out."))
                    .await
            }
            // Handled by the callers, for whom it is the end.
            Inbound::Exited(_) => Ok(()),
        }
    }

    async fn request(&mut self, request: InboundRequest) -> Result<(), Unheard> {
        let agent_request = request.id.as_str().to_owned();
        match request.kind {
            RequestKind::CanUseTool(asked) => {
                let always_ask = FOR_PEOPLE.contains(&asked.tool_name.as_str())
                    || asked.requires_user_interaction.unwrap_or(false);
                let question = Question {
                    tool_use_id: asked.tool_use_id.clone().unwrap_or_else(|| agent_request.clone()),
                    tool_name: asked.tool_name.clone(),
                    input: asked.input.clone().into(),
                    suggestions: asked.permission_suggestions.clone().map(RawJson::from),
                    description: asked.description.clone(),
                    always_ask,
                    agent_request,
                };
                self.tell(AgentEvent::Asks(question)).await
            }
            RequestKind::Hook(hook) => self.hook(agent_request, hook).await,
            RequestKind::Elicitation(asked) => {
                let input = json!({
                    "server": asked.mcp_server_name, "message": asked.message, "mode": asked.mode, "url": asked.url,
                    "requestedSchema": asked.requested_schema,
                });
                let Ok(input) = RawJson::of(&input) else {
                    return Ok(());
                };
                let agent_request = format!("{ELICITED}{agent_request}");
                let description = Some(asked.message.clone());
                self.tell(AgentEvent::Asks(Question {
                    tool_use_id: asked.elicitation_id.unwrap_or_else(|| agent_request.clone()),
                    tool_name: ELICITATION.to_owned(),
                    input,
                    suggestions: None,
                    description,
                    always_ask: true,
                    agent_request,
                }))
                .await
            }
            _ => {
                let refusal = Reply::Error("This client does not offer that.".to_owned());
                if let Err(error) = self.link.respond(&request.id, refusal).await {
                    tracing::debug!(%error, "a refusal came too late");
                }
                Ok(())
            }
        }
    }

    async fn notice(&self, text: &str) -> Result<(), Unheard> {
        match notice(text) {
            Some(notice) => self.tell(notice).await,
            None => Ok(()),
        }
    }

    async fn tell(&self, event: AgentEvent) -> Result<(), Unheard> {
        let position = self.position;
        self.events
            .send(Heard { event, position })
            .await
            .map_err(|_| Unheard)
    }
}

/// Words of ours in the agent's stream.
fn notice(text: &str) -> Option<AgentEvent> {
    let notice = json!({ "type": "system", "subtype": "notice", "level": "warning", "message": text });
    Some(AgentEvent::Message {
        raw: RawJson::of(&notice).ok()?,
        uuid: None,
        meaning: Meaning::Nothing,
    })
}

/// What runs is always named: older versions of the CLI insist on it.
fn permission_reply(answer: Answer) -> Reply {
    let wire = match answer {
        Answer::Allow { input, permissions } => PermissionReply::Allow {
            updated_input: input.as_ref().and_then(boxed),
            updated_permissions: permissions.as_ref().and_then(boxed),
        },
        Answer::Deny { message, interrupt } => {
            let message = message.filter(|message| !message.trim().is_empty());
            let message = message.unwrap_or_else(|| "The user does not want this to be done.".to_owned());
            PermissionReply::Deny { message, interrupt }
        }
    };
    wire.into()
}

fn elicitation_reply(answer: Answer) -> Reply {
    match answer {
        Answer::Allow { input, .. } => {
            let content = input.and_then(|input| serde_json::from_str(input.as_str()).ok());
            ElicitationReply::Accept { content }.into()
        }
        Answer::Deny { .. } => ElicitationReply::Decline.into(),
    }
}

fn boxed(raw: &RawJson) -> Option<Box<RawValue>> {
    RawValue::from_string(raw.as_str().to_owned()).ok()
}

fn describe(exit: &tiller_agent::Exit) -> Exit {
    if exit.expired {
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
mod tests {
    use super::split_rules;

    #[test]
    fn rules_are_split_outside_of_parentheses() {
        assert_eq!(split_rules("Read, Edit,Bash"), ["Read", "Edit", "Bash"]);
        assert_eq!(
            split_rules("Bash(git log, git diff),Read"),
            ["Bash(git log, git diff)", "Read"]
        );
        assert_eq!(split_rules(" , "), [""; 0]);
    }
}
