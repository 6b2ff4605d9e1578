//! Starts an ACP agent for a session, and reconnects to it after a restart.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tiller_core::backend::{
    Abilities, Account, AgentChannels, AgentEnds, AgentEvent, Attach, Backend, BackendInfo, Capabilities,
    ConversationStart, Exit, Launch, OptionRules, SandboxLists, WhyChosen,
};
use tiller_keeper::{AttachError, KeeperConfig, KeptAgent, Signs};
use tiller_process::{Sandbox, find_program, is_running};
use tracing::Instrument;
use tracing::instrument::Instrumented;

use crate::conversation::{Conversation, Opening, PROMPT};
use crate::known::LastKnown;
use crate::options::AcpOptions;
use crate::relay::Relay;

/// A program with the protocol, and its names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AcpAgent {
    /// The name by which a session chooses it.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// A path, or the name of a program in `PATH`. It is searched at every start, so it may be installed at any time.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// What to do if the program is not installed, for people.
    pub how_to_install: String,
    /// What its sandboxes have beside the working directory: where it keeps its own files, and whom it speaks to.
    pub sandbox: SandboxLists,
}

/// Starts one program for every session.
pub struct AcpBackend {
    agent: AcpAgent,
    keeping: KeeperConfig,
    rules: Arc<AcpOptions>,
    known: LastKnown,
}

impl AcpBackend {
    pub fn new(agent: AcpAgent, keeping: KeeperConfig) -> Self {
        let keeping = KeeperConfig {
            // Of everything that the agent sends, only the answer to a prompt has a prompt's id.
            signs: Signs {
                turn_end: format!("\"{PROMPT}").into_bytes(),
                asks: br#""method":"session/request_permission""#.to_vec(),
                withdraws: Vec::new(),
                answers: br#""outcome":{"#.to_vec(),
            },
            ..keeping
        };
        let known = LastKnown::default();
        let rules = Arc::new(AcpOptions {
            agent: agent.title.clone(),
            known: known.clone(),
            sandbox: agent.sandbox.clone(),
        });
        Self {
            agent,
            keeping,
            rules,
            known,
        }
    }

    fn opening(
        &self,
        cwd: &std::path::Path,
        options: tiller_core::Options,
        resume: Option<String>,
    ) -> Opening {
        Opening {
            agent: self.agent.title.clone(),
            cwd: cwd.to_string_lossy().into_owned(),
            options,
            resume,
        }
    }
}

impl Backend for AcpBackend {
    fn info(&self) -> BackendInfo {
        let found = find_program(&self.agent.program);
        let known = self.known.get();
        BackendInfo {
            title: self.agent.title.clone(),
            version: known.version,
            why: if found.is_some() {
                WhyChosen::Found
            } else {
                WhyChosen::NotInstalled
            },
            installed: found.is_some(),
            path: found.map(|program| program.display().to_string()),
            capabilities: Capabilities {
                streaming: true,
                permissions: true,
                resume: true,
                subagents: false,
            },
            how_to_install: Some(self.agent.how_to_install.clone()),
            ..BackendInfo::named(&self.agent.name)
        }
    }

    fn name(&self) -> String {
        self.agent.name.clone()
    }

    fn options(&self) -> Arc<dyn OptionRules> {
        Arc::clone(&self.rules) as Arc<dyn OptionRules>
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            account: Some(Arc::new(self.known.clone())),
            ..Abilities::default()
        }
    }

    fn launch(&self, launch: Launch) -> AgentChannels {
        let Some(program) = find_program(&self.agent.program) else {
            let message = format!(
                "{} is not installed. {}",
                self.agent.title, self.agent.how_to_install
            );
            return AgentChannels::ended(Exit::NotStarted { message });
        };
        let (channels, ends) = AgentChannels::open();
        let agent = Agent {
            ends,
            known: self.known.clone(),
        };
        let resume = match &launch.conversation {
            ConversationStart::New(_) => None,
            ConversationStart::Resume(id) => Some(id.clone()),
        };
        let sandbox = self.rules.sandbox(&launch.options).map(|view| {
            let own = view.folders.into_iter().filter(|folder| folder.exists());
            Sandbox {
                writable: std::iter::once(launch.cwd.clone()).chain(own).collect(),
                protected: Vec::new(),
                hosts: view.hosts,
            }
        });
        let opening = self.opening(&launch.cwd, launch.options, resume);
        let process = tiller_process::Launch {
            program,
            args: self.agent.args.clone(),
            env: tiller_process::inherited_environment(),
            cwd: Some(launch.cwd),
            // In the folder that was checked when the session was created.
            exact_cwd: true,
            open_files: tiller_process::given_open_files(),
            sandbox,
        };
        let keeping = self.keeping.clone();
        tokio::spawn(in_session_span(async move {
            let kept = match tiller_keeper::start(&keeping, &launch.run, &process).await {
                Ok(kept) => kept,
                Err(error) => {
                    let message = format!("The agent could not be started: {error}");
                    return agent.exited(Exit::NotStarted { message }, None).await;
                }
            };
            let conversation = Conversation::new(launch.run, launch.conversation.id().to_owned(), opening);
            agent.relay(kept, conversation, Found::New).await;
        }));
        channels
    }

    fn attach(&self, attach: Attach) -> AgentChannels {
        let (channels, ends) = AgentChannels::open();
        let agent = Agent {
            ends,
            known: self.known.clone(),
        };
        let resume = attach.resumes.then(|| attach.conversation.clone());
        let opening = self.opening(&attach.cwd, attach.options.clone(), resume);
        let keeping = self.keeping.clone();
        tokio::spawn(in_session_span(async move {
            // From the beginning: the agent's last messages make sense only after its earlier ones.
            let first = tiller_keeper::first_kept(&keeping, &attach.run);
            let kept = match tiller_keeper::attach(&keeping, &attach.run, first).await {
                Ok(kept) => kept,
                Err(AttachError::NeverStarted) => return agent.exited(Exit::NeverStarted, None).await,
                Err(AttachError::Unknown(error)) => {
                    return agent.exited(Exit::unreachable(error), None).await;
                }
            };
            let mut conversation =
                Conversation::new(attach.run.clone(), attach.conversation.clone(), opening);
            if first > 0 {
                conversation.open_already();
            }
            agent
                .relay(kept, conversation, Found::Again { attach, first })
                .await;
        }));
        channels
    }
}

/// Whether an agent was just started, or by an earlier server.
enum Found {
    New,
    Again {
        attach: Attach,
        /// The beginning of its kept output.
        first: u64,
    },
}

/// What a session's agent needs while it runs.
struct Agent {
    ends: AgentEnds,
    known: LastKnown,
}

impl Agent {
    async fn relay(mut self, kept: KeptAgent, conversation: Conversation, found: Found) {
        let KeptAgent {
            wire,
            last_input,
            listens,
            caught_up,
            run,
        } = kept;
        let pid = wire.process.pid();
        let mut relay = Relay {
            conversation,
            outgoing: Some(wire.outgoing),
            process: wire.process,
            events: self.ends.events.clone(),
            run: run.clone(),
            busy: false,
            known_until: 0,
            torn: false,
            settled: 0,
            catching_up: None,
            last_known: self.known.clone(),
        };
        self.ends.tell(AgentEvent::ProcessStarted { pid }).await;
        let unheard = match found {
            Found::New => {
                relay.begin().await;
                false
            }
            Found::Again { attach, first } => {
                relay.busy = attach.prompt.is_some();
                relay.known_until = attach.position;
                relay.torn = first > 0;
                // A keeper stays until it is dismissed, even if its agent has exited: then there is no agent.
                let is_there = listens && pid.is_none_or(is_running);
                if let Some(last_input) = last_input.filter(|_| is_there) {
                    self.ends.tell(AgentEvent::Attached { last_input }).await;
                    relay.catching_up = Some(caught_up);
                }
                !is_there && attach.missed_prompt(last_input)
            }
        };
        let exit = match relay.run(wire.incoming, &mut self.ends.commands).await {
            // The prompt goes to another agent, unless the session has ended this one by now.
            Exit::Ended { .. } if unheard && !self.ends.commands.is_closed() => Exit::NeverStarted,
            exit => exit,
        };
        self.exited(exit, Some(run)).await;
    }

    async fn exited(self, exit: Exit, run: Option<tiller_keeper::KeeperHandle>) {
        let remove = async {
            if let Some(run) = run {
                run.finish().await;
            }
        };
        self.ends.exited(exit, remove).await;
    }
}

impl Account for LastKnown {
    fn signed_in(&self) -> BoxFuture<'static, Option<bool>> {
        Box::pin(std::future::ready(self.get().signed_in))
    }
}

/// What is logged in this task carries the session's id.
fn in_session_span<F: Future>(work: F) -> Instrumented<F> {
    work.in_current_span()
}
