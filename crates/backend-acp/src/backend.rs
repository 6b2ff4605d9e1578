//! Starts an ACP agent for a session, and finds it again after a restart.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use tiller_core::backend::{
    Abilities, AgentChannels, AgentCommand, AgentEvent, Attach, Backend, BackendInfo, Capabilities,
    Conversation as Wanted, Exit, Heard, Launch, OptionRules, WhyChosen,
};
use tiller_keeper::{Keeping, Kept, Lost};
use tiller_process::is_running;
use tokio::sync::{mpsc, oneshot};

use crate::conversation::{Conversation, Opening, PROMPT};
use crate::options::AcpOptions;
use crate::relay::Relay;

/// How many commands may wait for an agent that does not read.
const COMMANDS: usize = 64;

/// How often an agent may speak, each time a few things at once, before its session listens. Then the agent waits.
const EVENTS: usize = 4;

/// Which program speaks the protocol, and what it is called.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AcpAgent {
    /// By which a session chooses it.
    pub name: String,
    /// For people.
    pub title: String,
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// The program was found on this machine.
    pub installed: bool,
}

/// Starts one program for every session.
pub struct AcpBackend {
    agent: AcpAgent,
    keeping: Keeping,
    rules: Arc<AcpOptions>,
}

impl AcpBackend {
    pub fn new(agent: AcpAgent, keeping: Keeping) -> Self {
        let keeping = Keeping {
            // The answer to a prompt, and nothing else that the agent says, has the id of one of ours.
            turn_end: format!("\"{PROMPT}").into_bytes(),
            ..keeping
        };
        let rules = Arc::new(AcpOptions {
            agent: agent.title.clone(),
        });
        Self {
            agent,
            keeping,
            rules,
        }
    }

    fn launch_of(&self, cwd: PathBuf) -> tiller_process::Launch {
        // The agent must not find what would let it approve its own requests.
        let is_ours = |name: &OsString| name == "CLAUDECODE" || name.to_string_lossy().starts_with("TILLER_");
        tiller_process::Launch {
            program: self.agent.program.clone(),
            args: self.agent.args.clone(),
            env: std::env::vars_os().filter(|(name, _)| !is_ours(name)).collect(),
            cwd: Some(cwd),
            // As it was checked when the session was made.
            exact_cwd: true,
            open_files: tiller_process::given_open_files(),
            sandbox: None,
        }
    }
}

impl Backend for AcpBackend {
    fn info(&self) -> BackendInfo {
        let AcpAgent {
            title,
            program,
            installed,
            ..
        } = self.agent.clone();
        BackendInfo {
            title,
            why: if installed {
                WhyChosen::Found
            } else {
                WhyChosen::NotInstalled
            },
            path: installed.then(|| program.display().to_string()),
            capabilities: Capabilities {
                streaming: true,
                permissions: true,
                resume: true,
                subagents: false,
            },
            installed,
            ..BackendInfo::named(&self.agent.name)
        }
    }

    fn options(&self) -> Arc<dyn OptionRules> {
        Arc::clone(&self.rules) as Arc<dyn OptionRules>
    }

    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    fn launch(&self, launch: Launch) -> AgentChannels {
        let (channels, ends) = channels();
        let (ours, resume) = match launch.conversation {
            Wanted::New(id) => (id, None),
            Wanted::Resume(id) => (id.clone(), Some(id)),
            Wanted::Fork { .. } => {
                let message = format!("{} can't fork a conversation.", self.agent.title);
                return AgentChannels::ended(Exit::NotStarted { message });
            }
        };
        let opening = Opening {
            cwd: launch.cwd.to_string_lossy().into_owned(),
            options: launch.options,
            resume,
        };
        let (keeping, process) = (self.keeping.clone(), self.launch_of(launch.cwd));
        tokio::spawn(async move {
            let kept = match tiller_keeper::start(&keeping, &launch.run, &process).await {
                Ok(kept) => kept,
                Err(error) => {
                    let message = format!("The agent could not be started: {error}");
                    return ends.exited(Exit::NotStarted { message }, None).await;
                }
            };
            let conversation = Conversation::new(launch.run, ours, opening);
            ends.relay(kept, conversation, Found::new()).await;
        });
        channels
    }

    fn attach(&self, attach: Attach) -> AgentChannels {
        let (channels, ends) = channels();
        let keeping = self.keeping.clone();
        tokio::spawn(async move {
            // From the beginning: what the agent said last makes sense only after what it said before.
            let first = tiller_keeper::first_kept(&keeping, &attach.run);
            let kept = match tiller_keeper::attach(&keeping, &attach.run, first).await {
                Ok(kept) => kept,
                Err(lost) => return ends.exited(not_found_again(&lost), None).await,
            };
            let opening = Opening {
                cwd: attach.cwd.to_string_lossy().into_owned(),
                options: attach.options,
                resume: attach.resumes.then(|| attach.conversation.clone()),
            };
            let mut conversation = Conversation::new(attach.run, attach.conversation, opening);
            if first > 0 {
                conversation.open_already();
            }
            let found = Found {
                known: attach.position,
                torn: first > 0,
                prompt: attach.prompt,
                again: true,
            };
            ends.relay(kept, conversation, found).await;
        });
        channels
    }
}

/// What is known of an agent that an earlier server started.
struct Found {
    known: u64,
    torn: bool,
    /// The number of the prompt that it works on.
    prompt: Option<u64>,
    again: bool,
}

impl Found {
    fn new() -> Self {
        Self {
            known: 0,
            torn: false,
            prompt: None,
            again: false,
        }
    }
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
    async fn relay(mut self, kept: Kept, conversation: Conversation, found: Found) {
        let Kept {
            wire,
            last_input,
            listens,
            caught_up,
            run,
        } = kept;
        let pid = wire.process.pid();
        // A keeper waits to be told that it may go, also when its agent has ended: that one is not there.
        let is_there = listens && pid.is_none_or(is_running);
        let mut relay = Relay {
            conversation,
            outgoing: Some(wire.outgoing),
            process: wire.process,
            events: self.events.clone(),
            run: run.clone(),
            busy: found.prompt.is_some(),
            known: found.known,
            torn: found.torn,
            settled: 0,
            catching_up: None,
        };
        // The session may be gone; the relay finds out.
        drop(
            self.events
                .send(vec![Heard::lost(AgentEvent::Runs { pid })])
                .await,
        );
        if !found.again {
            relay.begin().await;
        } else if let Some(last_input) = last_input.filter(|_| is_there) {
            let event = AgentEvent::Attached { last_input };
            drop(self.events.send(vec![Heard::lost(event)]).await);
            relay.catching_up = Some(caught_up);
        }
        let heard = |prompt: u64| last_input.is_none_or(|last_input| last_input >= prompt);
        let unheard = found.again && !is_there && found.prompt.is_some_and(|prompt| !heard(prompt));
        let exit = match relay.run(wire.incoming, &mut self.commands).await {
            // Unless the session has had enough of it by now, what it has not heard is for another.
            Exit::Ended { .. } if unheard && !self.commands.is_closed() => Exit::NeverStarted,
            exit => exit,
        };
        self.exited(exit, Some(run)).await;
    }

    async fn exited(self, exit: Exit, run: Option<tiller_keeper::Run>) {
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
