//! Starts the CLI for a session, finds it again after a restart, and hands it to a [`Relay`].

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tiller_agent::{Channel, Executable, Grace, Inbox, Link, LinkSettings, Options, PermissionMode};
use tiller_keeper::{Keeping, Lost, Run};
use tokio::sync::{mpsc, oneshot};

#[cfg(target_os = "linux")]
use crate::driver;
use crate::inquiry::{Exchange, LastOffers, initialize, inquire};
use crate::lease::{self, Claims, Lease};
use crate::options::{Chosen, ClaudeOptions};
use crate::relay::Relay;
use crate::runs::{self, Runs};

use tiller_core::backend::{
    Abilities, AgentChannels, AgentCommand, AgentEvent, Attach, Backend, BackendInfo, Connections,
    Conversation, Driver, Drivers, Exit, HOOK_TIME, Heard, Inquiry, Launch, Leftovers, OptionRules, Steering,
    TitleWriter,
};
use tiller_core::{SessionId, Timestamp, title_from_model};
use tiller_process::{Shield, is_running};

/// How many commands may wait for an agent that does not read.
const COMMANDS: usize = 64;

/// How often an agent may speak, each time a few things at once, before its session listens. Then the CLI waits.
const EVENTS: usize = 4;

/// A CLI in the middle of a turn does not end when its input does; waiting longer would only look slow.
const GRACE: Grace = Grace {
    after_input: Duration::from_millis(500),
    after_terminate: Duration::from_secs(2),
};

/// How the CLI says that it has done what it was asked to do. In text that a tool or a model writes the quotes would
/// have backslashes before them.
const TURN_END: &[u8] = b"\"type\":\"result\"";

/// How long a title that someone waits for may take. Starting the CLI is most of it.
const TITLE_TIME: Duration = Duration::from_secs(30);

/// Starts one executable for every session.
pub struct ClaudeBackend {
    executable: Executable,
    claude_home: Option<PathBuf>,
    info: BackendInfo,
    /// Found out in the background: the CLI takes its time to say it.
    version: Arc<OnceLock<String>>,
    offers: LastOffers,
    rules: Arc<ClaudeOptions>,
    claims: Claims,
    /// How agents outlive us; `None`: they don't.
    keeping: Option<Keeping>,
    hook_time: Duration,
    /// It ends what an earlier server has left.
    sweeps: bool,
    /// For agents that connect to us, which have no keeper. `None`: all speak over pipes.
    runs: Option<Runs>,
}

impl ClaudeBackend {
    #[cfg(target_os = "linux")]
    fn claude_home_or_default(&self) -> PathBuf {
        let usual = || Some(std::env::home_dir()?.join(".claude"));
        self.claude_home.clone().or_else(usual).unwrap_or_default()
    }

    /// `claude_home` is where the CLI keeps its settings and transcripts, if not in its usual place.
    pub fn new(executable: Executable, claude_home: Option<PathBuf>, info: BackendInfo) -> Self {
        let offers = LastOffers::default();
        Self {
            executable,
            claude_home,
            info,
            version: Arc::default(),
            rules: Arc::new(ClaudeOptions::new(offers.clone())),
            offers,
            claims: Claims::default(),
            keeping: None,
            hook_time: HOOK_TIME,
            sweeps: false,
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
        self.keeping = Some(Keeping {
            turn_end: TURN_END.to_vec(),
            ..keeping
        });
        self
    }

    /// What agents that have no keeper are shielded with.
    fn shield(&self) -> Shield {
        let kept = self.keeping.as_ref();
        kept.map_or_else(Shield::none, |keeping| keeping.shield.clone())
    }

    /// Ends what an earlier server has left behind. For one of the backends that share a folder of runs.
    #[must_use]
    pub fn sweeping(mut self) -> Self {
        self.sweeps = true;
        self
    }

    /// How long an agent waits for the answer to a callback, if not for [`HOOK_TIME`].
    #[must_use]
    pub fn waiting_for_hooks(mut self, time: Duration) -> Self {
        self.hook_time = time;
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

    fn options(&self) -> Arc<dyn OptionRules> {
        Arc::clone(&self.rules) as Arc<dyn OptionRules>
    }

    fn abilities(&self) -> Abilities {
        let titles = Titles {
            executable: self.executable.clone(),
            claude_home: self.claude_home.clone(),
            shield: self.shield(),
        };
        #[cfg(target_os = "linux")]
        let drivers: Option<Arc<dyn Drivers>> = Some(Arc::new(FoundDrivers {
            claims: self.claims.clone(),
            home: self.claude_home_or_default(),
        }));
        #[cfg(not(target_os = "linux"))]
        let drivers = None;
        let connections = self.runs.clone();
        let sweeps = self.sweeps.then(|| Swept(self.keeping.clone()));
        Abilities {
            titles: Some(Arc::new(titles)),
            drivers,
            connections: connections.map(|runs| Arc::new(runs) as Arc<dyn Connections>),
            catalogue: Some(Arc::new(self.offers.clone())),
            leftovers: sweeps.map(|swept| Arc::new(swept) as Arc<dyn Leftovers>),
            steering: Steering {
                fork: true,
                rewind: true,
                hooks: true,
                inquire: true,
            },
        }
    }

    fn launch(&self, launch: Launch) -> AgentChannels {
        let (channels, ends) = channels(self.hook_time);
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
        let shield = self.shield();
        let claimed = self.claims.take(&greeting.conversation);
        tokio::spawn(async move {
            // Held for as long as the agent lives.
            let lease = match claimed {
                Some(lease) => Some(lease),
                None => match take_lease(&greeting.conversation).await {
                    Ok(lease) => Some(Arc::new(lease)),
                    Err(message) => return ends.exited(Exit::NotStarted { message }, None).await,
                },
            };
            if let Some(runs) = runs {
                // The guard is kept until the agent is gone: it may connect again.
                let (started, _guard) =
                    match start_connecting(&executable, &options, &runs, &shield, launch.session) {
                        Ok(started) => started,
                        Err(message) => return ends.exited(Exit::NotStarted { message }, None).await,
                    };
                let asked = initialize(&started.link, &greeting.hooks, ends.hook_time, greeting.offers);
                return ends.relay(started, asked, Found::New, lease).await;
            }
            let place = keeping
                .as_ref()
                .map_or(Place::Here(&shield), |keeping| Place::Kept(keeping, &launch.run));
            let exit = match start(&executable, &options, place).await {
                Ok(started) => {
                    let asked = initialize(&started.link, &greeting.hooks, ends.hook_time, greeting.offers);
                    return ends.relay(started, asked, Found::New, lease).await;
                }
                Err(message) => Exit::NotStarted { message },
            };
            ends.exited(exit, None).await;
        });
        channels
    }

    fn attach(&self, attach: Attach) -> AgentChannels {
        let Some(keeping) = self.keeping.clone() else {
            return AgentChannels::of_nobody();
        };
        let (channels, ends) = channels(self.hook_time);
        tokio::spawn(async move {
            // It is ours: whoever else has the lease has found no agent of its own.
            let lease = Lease::take(&attach.conversation, lease::NO_PATIENCE).await;
            let lease = lease.map(Arc::new);
            let kept = match tiller_keeper::attach(&keeping, &attach.run, attach.position).await {
                Ok(kept) => kept,
                Err(lost) => return ends.exited(not_found_again(&lost), None).await,
            };
            let (last_input, listens) = (kept.last_input, kept.listens);
            let settings = LinkSettings {
                resumes: attach.resumes,
                ..LinkSettings::from(&Options::new().grace(GRACE))
            };
            let (link, inbox) = tiller_agent::connect_over(kept.wire, settings);
            // A keeper waits to be told that it may go, also when its agent has ended: that one is not there.
            let is_there = listens && link.pid().is_none_or(is_running);
            let mut caught_up = None;
            if let Some(last_input) = last_input.filter(|_| is_there) {
                let event = AgentEvent::Attached { last_input };
                // The session may be gone; the relay finds out.
                drop(ends.events.send(vec![Heard::lost(event)]).await);
                caught_up = Some(kept.caught_up);
            }
            let started = Started {
                link,
                inbox,
                run: Some(kept.run),
            };
            let heard = |prompt: u64| last_input.is_none_or(|last_input| last_input >= prompt);
            let found = Found::Again {
                busy: attach.prompt.is_some(),
                unheard: !is_there && attach.prompt.is_some_and(|prompt| !heard(prompt)),
                caught_up,
            };
            ends.relay(started, None, found, lease).await;
        });
        channels
    }
}

/// Ends what an earlier server has left behind: runs that nobody goes on with, and leases.
struct Swept(Option<Keeping>);

impl Leftovers for Swept {
    fn keep_only(&self, wanted: HashSet<String>) {
        tokio::task::spawn_blocking(Lease::sweep);
        let Some(keeping) = self.0.clone() else {
            return;
        };
        // Listed now: what is launched from here on is not among those that are wanted, and is not left by anyone.
        let mut left = tiller_keeper::runs(&keeping).unwrap_or_else(|error| {
            tracing::warn!(%error, "can't look for agents that were left behind");
            Vec::new()
        });
        left.retain(|run| !wanted.contains(run));
        tokio::spawn(async move {
            for run in &left {
                tracing::info!(run, "ending what an earlier server has left");
                tiller_keeper::remove(&keeping, run).await;
            }
        });
    }
}

/// Asks a CLI that is started for nothing else.
struct Titles {
    executable: Executable,
    claude_home: Option<PathBuf>,
    shield: Shield,
}

impl TitleWriter for Titles {
    fn title(&self, prompt: String, cwd: PathBuf) -> BoxFuture<'static, Option<String>> {
        let (executable, shield) = (self.executable.clone(), self.shield.clone());
        let mut options = Options::new()
            .cwd(cwd)
            .exact_cwd(true)
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
            let (link, mut inbox) = match start(&executable, &options, Place::Here(&shield)).await {
                Ok(started) => (started.link, started.inbox),
                Err(error) => {
                    tracing::debug!(%error, "no agent for a title");
                    return None;
                }
            };
            let _in_line = initialize(&link, &[], HOOK_TIME, LastOffers::default());
            let asked = inquire(&link, Inquiry::Title { prompt });
            // What it says beside the answer is read, so that it does not wait for a reader.
            let reading = async { while inbox.next().await.is_some() {} };
            let answer = tokio::select! {
                answer = tokio::time::timeout(TITLE_TIME, asked) => answer.ok()?.ok(),
                () = reading => None,
            };
            link.kill().await;
            title_from_model(answer?.as_str())
        })
    }
}

/// Finds CLIs that were started elsewhere.
#[cfg(target_os = "linux")]
struct FoundDrivers {
    claims: Claims,
    home: PathBuf,
}

#[cfg(target_os = "linux")]
impl Drivers for FoundDrivers {
    fn driver(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>> {
        Box::pin(found_driver(conversation, cwd, since, self.home.clone()))
    }

    fn claim(
        &self,
        conversation: String,
        cwd: PathBuf,
        since: Timestamp,
    ) -> BoxFuture<'static, Option<Driver>> {
        let (claims, home) = (self.claims.clone(), self.home.clone());
        Box::pin(async move {
            let deadline = tokio::time::Instant::now() + lease::PATIENCE;
            // Someone who has the lease has an agent, or is about to have one: then we are told who that is.
            while !claims.make(&conversation).await {
                let (conversation, cwd, home) = (conversation.clone(), cwd.clone(), home.clone());
                if let Some(driver) = found_driver(conversation, cwd, since, home).await {
                    return Some(driver);
                }
                if tokio::time::Instant::now() > deadline {
                    return None;
                }
            }
            // Or someone in a terminal, who knows of no lease.
            let driver = found_driver(conversation.clone(), cwd, since, home).await;
            if driver.is_some() {
                drop(claims.take(&conversation));
            }
            driver
        })
    }

    fn drivers(
        &self,
        conversations: Vec<(String, PathBuf)>,
    ) -> BoxFuture<'static, Option<HashMap<String, Driver>>> {
        let home = self.home.clone();
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || driver::find_all(&conversations, &home));
            found.await.ok()
        })
    }

    fn rivals(&self, agents: Vec<(String, u32)>) -> BoxFuture<'static, HashMap<String, Driver>> {
        let home = self.home.clone();
        Box::pin(async move {
            let found = tokio::task::spawn_blocking(move || driver::find_rivals(&agents, &home));
            found.await.unwrap_or_default()
        })
    }

    fn end_driver(&self, driver: Driver) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move { driver::end(&driver).await })
    }
}

fn options(launch: &Launch, claude_home: Option<PathBuf>) -> Options {
    let chosen = Chosen(&launch.options);
    let mut options = Options::new()
        .cwd(&launch.cwd)
        .exact_cwd(true)
        .partial_messages(true)
        .ask_permission(true)
        .permission_mode(chosen.mode())
        // So that files can be rewound to any prompt.
        .file_checkpointing(true)
        .grace(GRACE)
        // The agent must not find what would let it approve its own requests.
        .env_remove_prefix("TILLER_");
    if let Some(home) = claude_home {
        options = options.claude_home(home);
    }
    if let Some(model) = chosen.model() {
        options = options.model(model);
    }
    let mut granted = chosen.allowed_tools();
    if let Some(tools) = chosen.tools() {
        options = options
            .tools(&tools)
            // The CLI's list is of its own tools; those of MCP servers would come beside it.
            .strict_mcp(!tools.iter().any(|tool| tool.starts_with("mcp__")));
        granted.extend(tools);
    }
    options = options.allowed_tools(granted);
    if let Some(effort) = chosen.effort() {
        options = options.effort(effort);
    }
    if let Some(budget) = chosen.max_budget_usd() {
        options = options.max_budget_usd(budget);
    }
    if let Some(turns) = chosen.max_turns() {
        options = options.max_turns(turns);
    }
    if chosen.mode() == PermissionMode::BypassPermissions && is_root() {
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

/// What a CLI is told first, and where its answer goes.
struct Greeting {
    conversation: String,
    hooks: Vec<String>,
    offers: LastOffers,
}

/// Who drives the conversation, if that is a process which nobody here has started.
#[cfg(target_os = "linux")]
async fn found_driver(
    conversation: String,
    cwd: PathBuf,
    since: Timestamp,
    claude_home: PathBuf,
) -> Option<Driver> {
    let found = tokio::task::spawn_blocking(move || {
        driver::find(&driver::Wanted {
            conversation: &conversation,
            cwd: &cwd,
            since,
            claude_home: &claude_home,
        })
    });
    found.await.ok().flatten()
}

/// Makes sure that no other Tiller of this user drives the conversation.
async fn take_lease(conversation: &str) -> Result<Lease, String> {
    let refused = "Another Tiller of yours drives this conversation. Stop it there, or fork the session.";
    let lease = Lease::take(conversation, lease::PATIENCE).await;
    lease.ok_or(refused.to_owned())
}

/// What is told of an agent that should have been there. Only of one that has heard nothing may another be told the same.
fn not_found_again(lost: &Lost) -> Exit {
    match lost {
        Lost::NeverStarted => Exit::NeverStarted,
        Lost::Unknown(error) => Exit::Ended {
            message: format!(
                "The agent could not be reached again: {error}. It may still be at work; look for it before you send \
                 the next message."
            ),
        },
    }
}

/// Our ends of a session's channels.
struct Ends {
    commands: mpsc::Receiver<AgentCommand>,
    events: mpsc::Sender<Vec<Heard>>,
    settled: oneshot::Receiver<()>,
    hook_time: Duration,
}

fn channels(hook_time: Duration) -> (AgentChannels, Ends) {
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
        hook_time,
    };
    (channels, ends)
}

impl Ends {
    async fn relay(
        mut self,
        started: Started,
        greeting: Option<Exchange>,
        found: Found,
        lease: Option<Arc<Lease>>,
    ) {
        let Started { link, inbox, run } = started;
        let runs = AgentEvent::Runs { pid: link.pid() };
        // The session may be gone; the relay finds out.
        drop(self.events.send(vec![Heard::lost(runs)]).await);
        let attached = matches!(found, Found::Again { .. });
        let (busy, unheard, catching_up) = match found {
            Found::New => (false, false, None),
            Found::Again {
                busy,
                unheard,
                caught_up,
            } => (busy, unheard, caught_up),
        };
        let relay = Relay {
            link,
            greeting,
            attached,
            catching_up,
            events: self.events.clone(),
            heard: Vec::new(),
            busy,
            run: run.clone(),
            position: None,
            hook_time: self.hook_time,
            malformed: 0,
        };
        let exit = relay.run(inbox, &mut self.commands).await;
        // Before anyone hears of the end, and starts the next one.
        drop(lease);
        let exit = match exit {
            // Unless the session has had enough of it by now, what it has not heard is for another.
            Exit::Ended { .. } if unheard && !self.commands.is_closed() => Exit::NeverStarted,
            exit => exit,
        };
        self.exited(exit, run).await;
    }

    async fn exited(self, exit: Exit, run: Option<Run>) {
        // The session may be gone; then nobody needs to know.
        drop(
            self.events
                .send(vec![Heard::lost(AgentEvent::Exited(exit))])
                .await,
        );
        if let (Ok(()), Some(run)) = (self.settled.await, run) {
            run.finish().await;
        }
    }
}

/// Whether a CLI was started just now, or by an earlier server.
enum Found {
    New,
    Again {
        busy: bool,
        /// It has not been told the prompt of the session's turn, and won't be.
        unheard: bool,
        /// Told when what it has said meanwhile is in the inbox; of one that is gone, the end is told.
        caught_up: Option<oneshot::Receiver<()>>,
    },
}

/// A CLI that runs.
struct Started {
    link: Link,
    inbox: Inbox,
    /// Its keeper, if it has one.
    run: Option<Run>,
}

/// Who starts a CLI.
enum Place<'a> {
    /// A keeper, under the name of the run.
    Kept(&'a Keeping, &'a str),
    /// This process.
    Here(&'a Shield),
}

async fn start(executable: &Executable, options: &Options, place: Place<'_>) -> Result<Started, String> {
    let launch =
        tiller_agent::prepare_with(executable, options, Channel::Stdio).map_err(|error| error.to_string())?;
    let not_started = |error: std::io::Error| format!("The agent could not be started: {error}");
    let (wire, run) = match place {
        Place::Kept(keeping, run) => {
            let kept = tiller_keeper::start(keeping, run, &launch).await;
            let kept = kept.map_err(not_started)?;
            (kept.wire, Some(kept.run))
        }
        Place::Here(shield) => {
            let launch = shield.wrap(&launch).map_err(not_started)?;
            let spawned = tiller_agent::spawn(&launch, None).map_err(not_started)?;
            (tiller_agent::stdio(spawned), None)
        }
    };
    let (link, inbox) = tiller_agent::connect_over(wire, LinkSettings::from(options));
    Ok(Started { link, inbox, run })
}

/// Starts an agent that connects to us.
fn start_connecting(
    executable: &Executable,
    options: &Options,
    runs: &Runs,
    shield: &Shield,
    session: SessionId,
) -> Result<(Started, runs::Guard), String> {
    let run = runs.expect(session).map_err(|error| error.to_string())?;
    let launch = tiller_agent::prepare_with(executable, options, Channel::SdkUrl(&run.url))
        .map_err(|error| error.to_string())?;
    let spawned = shield
        .wrap(&launch)
        .and_then(|launch| tiller_agent::spawn(&launch, None))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_launched_after_the_last_server_is_not_taken_for_something_that_it_left() {
        let folder = tempfile::tempdir().unwrap();
        let run = |name: &str| folder.path().join(name);
        let executable = Executable {
            path: "claude".into(),
            runtime: None,
        };
        let backend = ClaudeBackend::new(executable, None, BackendInfo::named("claude"))
            .sweeping()
            .kept(Keeping {
                folder: folder.path().to_owned(),
                program: "keeper".into(),
                args: Vec::new(),
                grace: Duration::ZERO,
                turn_end: Vec::new(),
                shield: Shield::none(),
            });
        for name in ["left", "wanted"] {
            std::fs::create_dir(run(name)).unwrap();
        }
        let leftovers = backend.abilities().leftovers.unwrap();
        leftovers.keep_only(HashSet::from(["wanted".to_owned()]));
        std::fs::create_dir(run("new")).unwrap();
        while run("left").exists() {
            tokio::task::yield_now().await;
        }
        // Those that are removed are removed in turn, and a little later.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(run("wanted").exists() && run("new").exists());
    }
}
