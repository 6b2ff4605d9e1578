//! Starts the CLI for a session, reconnects to it after a restart, and runs its [`Relay`] until it exits.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tiller_agent::Options;
use tiller_agent::cli::{Channel, Executable, prepare_with};
use tiller_agent::link::{Inbox, Link, LinkSettings, connect_over};
use tiller_agent::options::Grace;
use tiller_core::SessionId;
use tiller_core::backend::{
    AgentChannels, AgentEnds, AgentEvent, Attach, ConversationStart, Exit, ForkOrigin, Launch,
};
use tiller_keeper::{AttachError, KeeperConfig, KeeperHandle};
use tiller_process::{Sandbox, Shield, is_running};
use tokio::sync::oneshot;
use tracing::Instrument;
use tracing::instrument::Instrumented;

use crate::inquiry::{Exchange, LastOffers, initialize};
use crate::lease::{self, Claims, Lease};
use crate::options::Chosen;
use crate::relay::Relay;
use crate::running::{RunPlace, Running};
use crate::runs::{self, Runs};
use crate::sandbox::{Sandboxing, host_of};

/// A CLI in the middle of a turn does not end when its input does; waiting longer would only look slow.
pub(crate) const GRACE: Grace = Grace {
    after_input: Duration::from_millis(500),
    after_terminate: Duration::from_secs(2),
};

/// Everything that is needed to start a CLI.
#[derive(Clone)]
pub(crate) struct Launcher {
    pub(crate) executable: Executable,
    /// The CLI's folder for settings and transcripts, if not the usual one.
    pub(crate) claude_home: Option<PathBuf>,
    pub(crate) offers: LastOffers,
    pub(crate) claims: Claims,
    /// How agents outlive this server. `None`: they don't.
    pub(crate) keeping: Option<KeeperConfig>,
    /// How long a hook call waits for its answer.
    pub(crate) hook_time: Duration,
    /// For agents that connect to this server, which have no keeper. `None`: all use pipes.
    pub(crate) runs: Option<Runs>,
    pub(crate) running: Running,
    pub(crate) sandboxing: Sandboxing,
}

impl Launcher {
    pub(crate) fn start(&self, launch: Launch, origin: Option<&ForkOrigin>) -> AgentChannels {
        let (channels, ends) = AgentChannels::open();
        let agent = Agent {
            ends,
            place: self.running.expect(&launch.run),
            hook_time: self.hook_time,
        };
        let sandbox = self.sandboxing.prepare(&launch.options, &launch.cwd);
        let options = options(&launch, origin, self.claude_home.clone(), sandbox);
        let claimed = self.claims.take(launch.conversation.id());
        let launcher = self.clone();
        tokio::spawn(in_session_span(async move {
            // Held for as long as the agent lives.
            let lease = match claimed {
                Some(lease) => lease,
                None => match take_lease(launch.conversation.id()).await {
                    Ok(lease) => Arc::new(lease),
                    Err(message) => return agent.exited(Exit::NotStarted { message }, None).await,
                },
            };
            // The guard of a CLI that connects to this server is kept until the CLI has ended: it may reconnect.
            let started = match &launcher.runs {
                Some(runs) => start_connecting(
                    &launcher.executable,
                    &options,
                    runs,
                    &launcher.shield(),
                    launch.session,
                )
                .map(|(started, guard)| (started, Some(guard))),
                None => launcher
                    .start_over_pipes(&options, &launch.run)
                    .await
                    .map(|started| (started, None)),
            };
            let (started, _guard) = match started {
                Ok(started) => started,
                Err(message) => return agent.exited(Exit::NotStarted { message }, None).await,
            };
            let greeting = initialize(
                &started.link,
                &launch.hooks,
                launcher.hook_time,
                launcher.offers,
                Some(agent.ends.events.clone()),
            );
            agent.relay(started, greeting, Found::New, Some(lease)).await;
        }));
        channels
    }

    pub(crate) fn attach(&self, attach: Attach) -> AgentChannels {
        let Some(keeping) = self.keeping.clone() else {
            return AgentChannels::of_ended_agent();
        };
        let (channels, ends) = AgentChannels::open();
        let agent = Agent {
            ends,
            place: self.running.expect(&attach.run),
            hook_time: self.hook_time,
        };
        tokio::spawn(in_session_span(async move {
            // The agent is ours, so another holder of the lease has no agent of its own.
            let lease = Lease::take(&attach.conversation, lease::NO_PATIENCE).await;
            let kept = match tiller_keeper::attach(&keeping, &attach.run, attach.position).await {
                Ok(kept) => kept,
                Err(AttachError::NeverStarted) => return agent.exited(Exit::NeverStarted, None).await,
                Err(AttachError::Unknown(error)) => {
                    return agent.exited(Exit::unreachable(error), None).await;
                }
            };
            let (last_input, listens) = (kept.last_input, kept.listens);
            let settings = LinkSettings {
                resumes: attach.resumes,
                ..LinkSettings::from(&Options::new().grace(GRACE))
            };
            let (link, inbox) = connect_over(kept.wire, settings);
            // A keeper stays until it is dismissed, even if its agent has exited: then there is no agent.
            let is_there = listens && link.pid().is_none_or(is_running);
            let mut caught_up = None;
            if let Some(last_input) = last_input.filter(|_| is_there) {
                agent.ends.tell(AgentEvent::Attached { last_input }).await;
                caught_up = Some(kept.caught_up);
            }
            let found = Found::Again {
                busy: attach.prompt.is_some(),
                unheard: !is_there && attach.missed_prompt(last_input),
                caught_up,
            };
            let started = Started {
                link,
                inbox,
                run: Some(kept.run),
            };
            agent.relay(started, None, found, lease.map(Arc::new)).await;
        }));
        channels
    }

    /// The shield of agents without a keeper.
    pub(crate) fn shield(&self) -> Shield {
        let kept = self.keeping.as_ref();
        kept.map_or_else(Shield::none, |keeping| keeping.shield.clone())
    }

    async fn start_over_pipes(&self, options: &Options, run: &str) -> Result<Started, String> {
        let Some(keeping) = &self.keeping else {
            let (link, inbox) = start_unkept(&self.executable, options, &self.shield())?;
            return Ok(Started {
                link,
                inbox,
                run: None,
            });
        };
        let launch =
            prepare_with(&self.executable, options, Channel::Stdio).map_err(|error| error.to_string())?;
        let kept = tiller_keeper::start(keeping, run, &launch).await;
        let kept = kept.map_err(|error| not_started(&error))?;
        let (link, inbox) = connect_over(kept.wire, LinkSettings::from(options));
        Ok(Started {
            link,
            inbox,
            run: Some(kept.run),
        })
    }
}

/// Starts a CLI that ends with this server.
pub(crate) fn start_unkept(
    executable: &Executable,
    options: &Options,
    shield: &Shield,
) -> Result<(Link, Inbox), String> {
    let launch = prepare_with(executable, options, Channel::Stdio).map_err(|error| error.to_string())?;
    let spawned = spawn_shielded(&launch, shield)?;
    let wire = tiller_process::stdio(spawned);
    Ok(connect_over(wire, LinkSettings::from(options)))
}

/// Starts a process that has no keeper.
fn spawn_shielded(
    launch: &tiller_process::Launch,
    shield: &Shield,
) -> Result<tiller_process::Spawned, String> {
    shield
        .wrap(launch)
        .and_then(|launch| tiller_process::spawn(&launch, None))
        .map_err(|error| not_started(&error))
}

fn not_started(error: &std::io::Error) -> String {
    format!("The agent could not be started: {error}")
}

fn options(
    launch: &Launch,
    origin: Option<&ForkOrigin>,
    claude_home: Option<PathBuf>,
    sandbox: Option<Sandbox>,
) -> Options {
    let mut options = Options::new()
        .cwd(&launch.cwd)
        .exact_cwd(true)
        .partial_messages(true)
        .ask_permission(true)
        // So that files can be rewound to any prompt.
        .file_checkpointing(true)
        // Every version has the to-do list that clients show.
        .todos(true)
        .grace(GRACE)
        // The agent must not find anything that would let it approve its own requests.
        .env_remove_prefix("TILLER_");
    if let Some(sandbox) = sandbox {
        options = options.confine(sandbox);
    }
    if let Some(home) = claude_home {
        options = options.claude_home(home);
    }
    let options = Chosen(&launch.options).applied_to(options, launch.spent_usd);
    match (&launch.conversation, origin) {
        (ConversationStart::Resume(id), _) => options.resume(id),
        (ConversationStart::New(id), None) => options.session_id(id),
        (ConversationStart::New(id), Some(origin)) => {
            let options = options
                .resume(&origin.conversation)
                .fork(true)
                .extra_arg("session-id", Some(id.clone()));
            match &origin.at {
                Some(message) => options.resume_at(message),
                None => options,
            }
        }
    }
}

/// Makes sure that no other Tiller of this user drives the conversation.
async fn take_lease(conversation: &str) -> Result<Lease, String> {
    let refused = "Another Tiller of yours is using this conversation. Stop it there, or fork the session.";
    let lease = Lease::take(conversation, lease::PATIENCE).await;
    lease.ok_or(refused.to_owned())
}

/// What a session's agent needs while it runs.
struct Agent {
    ends: AgentEnds,
    place: RunPlace,
    hook_time: Duration,
}

impl Agent {
    async fn relay(
        mut self,
        started: Started,
        greeting: Option<Exchange>,
        found: Found,
        lease: Option<Arc<Lease>>,
    ) {
        let Started { link, inbox, run } = started;
        self.place.connected(&link);
        self.ends
            .tell(AgentEvent::ProcessStarted { pid: link.pid() })
            .await;
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
            events: self.ends.events.clone(),
            heard: Vec::new(),
            busy,
            run: run.clone(),
            position: None,
            hook_time: self.hook_time,
            malformed: 0,
        };
        let exit = relay.run(inbox, &mut self.ends.commands).await;
        // Before the session learns of the exit and starts the next agent.
        drop(lease);
        let exit = match exit {
            // The prompt goes to another agent, unless the session has ended this one by now.
            Exit::Ended { .. } if unheard && !self.ends.commands.is_closed() => Exit::NeverStarted,
            exit => exit,
        };
        self.exited(exit, run).await;
    }

    async fn exited(self, exit: Exit, run: Option<KeeperHandle>) {
        drop(self.place);
        let remove = async {
            if let Some(run) = run {
                run.finish().await;
            }
        };
        self.ends.exited(exit, remove).await;
    }
}

/// Whether a CLI was just started, or by an earlier server.
enum Found {
    New,
    Again {
        busy: bool,
        /// It never got the prompt of the session's turn, and won't get it.
        unheard: bool,
        /// Sent when all output that it wrote without a server is in the inbox. `None`: it has exited.
        caught_up: Option<oneshot::Receiver<()>>,
    },
}

/// A running CLI.
struct Started {
    link: Link,
    inbox: Inbox,
    /// Its keeper, if it has one.
    run: Option<KeeperHandle>,
}

/// Starts an agent that connects to this server.
fn start_connecting(
    executable: &Executable,
    options: &Options,
    runs: &Runs,
    shield: &Shield,
    session: SessionId,
) -> Result<(Started, runs::Guard), String> {
    let run = runs.expect(session).map_err(|error| error.to_string())?;
    let mut launch =
        prepare_with(executable, options, Channel::SdkUrl(&run.url)).map_err(|error| error.to_string())?;
    if let Some(hosts) = launch.sandbox.as_mut().and_then(|sandbox| sandbox.hosts.as_mut()) {
        hosts.extend(host_of(&run.url).and_then(|host| host.parse().ok()));
    }
    let spawned = spawn_shielded(&launch, shield)?;
    let wire = tiller_process::websocket(spawned, run.sockets);
    let (link, inbox) = connect_over(wire, LinkSettings::from(options));
    let started = Started {
        link,
        inbox,
        run: None,
    };
    Ok((started, run.guard))
}

/// What is logged in this task carries the session's id.
fn in_session_span<F: Future>(work: F) -> Instrumented<F> {
    work.in_current_span()
}
