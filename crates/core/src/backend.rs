//! What the domain needs of an agent: start it, send it commands, receive its events.
//!
//! An agent is a pair of channels. Starting an agent never blocks and never returns an error: a failure arrives as
//! [`AgentEvent::Exited`], as a crash an hour later does. Only the implementations know a wire format.

mod abilities;
mod backends;
mod channels;
mod options;
mod sandbox;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::event::UnreadableLine;
use crate::ids::{SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Image;
use crate::session::DecisionAnswer;

pub use self::abilities::{
    Abilities, Account, Catalogue, Connection, Connections, Drivers, Fork, ForkOrigin, Hooks, Inquire,
    Leftovers, Rewind, Rewound, TitleWriter,
};
pub use self::backends::{Backends, UnknownBackend};
pub use self::channels::{AgentChannels, AgentEnds};
pub use self::options::{
    Grants, OptionChange, OptionInfo, OptionKind, OptionRefused, OptionRules, Options, Verdict,
};
pub(crate) use self::sandbox::loosens;
pub use self::sandbox::{
    SANDBOX, SANDBOX_FOLDERS, SANDBOX_HOSTS, SandboxLevel, SandboxLists, SandboxView, check_sandbox_option,
    sandbox_options,
};

/// Starts agents of one kind.
pub trait Backend: Send + Sync + 'static {
    fn info(&self) -> BackendInfo;

    /// The name by which a session chooses this backend, the same as in [`Self::info`].
    fn name(&self) -> String {
        self.info().name
    }

    /// The options of this kind of agent, and what they mean for a session.
    fn options(&self) -> Arc<dyn OptionRules>;

    /// The optional abilities of this backend.
    fn abilities(&self) -> Abilities;

    /// Begins to start an agent. Dropping [`AgentChannels::commands`] ends the agent's whole process tree.
    fn launch(&self, launch: Launch) -> AgentChannels;

    /// Reconnects to an agent that an earlier server started. The first event says whether the agent still runs.
    fn attach(&self, attach: Attach) -> AgentChannels;
}

/// A backend, as users see it, and why it was chosen.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendInfo {
    /// The name by which a session chooses the backend: `claude`, `demo`, …
    pub name: String,
    /// The agent's name for people.
    #[serde(skip)]
    pub title: String,
    pub version: Option<String>,
    /// `stdio` or `sdk-url`.
    pub transport: &'static str,
    /// Why this backend was chosen and how to get the other one, for a person.
    pub reason: String,
    /// The same reason as a code, for clients with translations of their own.
    pub why: WhyChosen,
    /// Where the agent was found on this machine.
    pub path: Option<String>,
    pub capabilities: Capabilities,
    #[serde(skip)]
    pub installed: bool,
    /// How to install the agent if it is not installed, for a person.
    #[serde(skip)]
    pub how_to_install: Option<String>,
}

impl BackendInfo {
    /// The info of a backend of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: name.to_owned(),
            version: None,
            transport: "stdio",
            reason: String::new(),
            why: WhyChosen::Found,
            path: None,
            capabilities: Capabilities::default(),
            installed: true,
            how_to_install: None,
        }
    }
}

/// Why a backend and its transport were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WhyChosen {
    /// The agent was found and uses stdio, which all versions support.
    Found,
    /// The configuration asks for stdio.
    StdioChosen,
    /// The configuration asks for `sdk-url`, and the agent's version supports it.
    Connects,
    /// The configuration asks for `sdk-url`, but the agent's version does not support it.
    CannotConnect,
    /// The configuration asks for `sdk-url`, but the agent's version is unknown.
    VersionUnknown,
    /// No agent is installed, so the demo agent is used.
    NotInstalled,
    /// The configuration asks for the demo agent.
    DemoChosen,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Capabilities {
    pub streaming: bool,
    pub permissions: bool,
    pub resume: bool,
    pub subagents: bool,
}

/// A request to start an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub session: SessionId,
    pub cwd: PathBuf,
    /// The name of the agent's run, by which the next server finds the agent. Never used twice.
    pub run: String,
    pub options: Options,
    /// What the session has spent before, in dollars. A budget among the options is for the whole session.
    pub spent_usd: f64,
    pub conversation: ConversationStart,
    /// The events for which the agent calls hooks. Empty if the backend does not have the ability [`Hooks`].
    pub hooks: Vec<String>,
}

/// The conversation that an agent opens at its start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ConversationStart {
    /// A new conversation under this id (a UUID).
    New(String),
    /// An existing conversation, by the agent's id.
    Resume(String),
}

impl ConversationStart {
    /// The conversation's id.
    pub fn id(&self) -> &str {
        match self {
            Self::New(id) | Self::Resume(id) => id,
        }
    }
}

/// A request to reconnect to an agent that an earlier server started.
#[derive(Clone, Debug, PartialEq)]
pub struct Attach {
    pub session: SessionId,
    pub run: String,
    /// The agent's id of the conversation.
    pub conversation: String,
    pub cwd: PathBuf,
    /// The options that the agent has now.
    pub options: Options,
    /// The position in the agent's output up to which events are recorded.
    pub position: u64,
    /// Whether the agent was started to resume an earlier conversation.
    pub resumes: bool,
    /// The number of the prompt that the agent works on, if known.
    pub prompt: Option<u64>,
}

impl Attach {
    /// Whether the agent never got its prompt, judged by the number of its last input. If the last input is unknown,
    /// the agent may have got the prompt.
    pub fn missed_prompt(&self, last_input: Option<u64>) -> bool {
        let unheard = |prompt: u64| last_input.is_some_and(|last_input| last_input < prompt);
        self.prompt.is_some_and(unheard)
    }
}

/// An event of an agent, with its position in the agent's output.
#[derive(Clone, Debug)]
pub struct PositionedEvent {
    pub event: AgentEvent,
    /// Where in the agent's output this event ends. After a crash the next server reads on from the last recorded
    /// position and receives the later events again. `None`: the event can't be read again after a crash.
    pub position: Option<u64>,
}

impl PositionedEvent {
    /// An event that can't be read again after a crash.
    pub fn without_position(event: AgentEvent) -> Self {
        Self {
            event,
            position: None,
        }
    }
}

/// A command to an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentCommand {
    /// `uuid` is chosen by us; an agent ignores a prompt with a uuid that it knows.
    Prompt {
        uuid: String,
        words: String,
        images: Vec<Image>,
        /// The tool call that the prompt replies to.
        parent_tool_use_id: Option<String>,
        number: u64,
    },
    /// A numbered answer reaches the agent once, even if it is sent again. Numbers rise; 0 means unnumbered.
    Answer {
        agent_request: String,
        answer: DecisionAnswer,
        number: u64,
    },
    /// The output before this position is recorded, so the keeper may discard it.
    Forget {
        before: u64,
    },
    Interrupt,
    /// Changes an option now. [`AgentEvent::Configured`] reports the outcome.
    Configure(OptionChange),
}

/// A question about a running agent, asked with the ability [`Inquire`] beside the agent's work.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Inquiry {
    ContextUsage,
    McpStatus,
    FileSuggestions { query: String },
    Commands,
    Models,
    PermissionRules,
    Hooks,
    Usage,
    Settings,
}

/// Why an inquiry failed.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InquiryFailed {
    #[error("No agent is running in this session. Send a message to start it.")]
    NoAgent,
    #[error("The installed version of the agent does not support this question.")]
    Unsupported,
    #[error("The agent did not answer: {0}")]
    Failed(String),
}

/// A process that drives a conversation and was not started by this server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Driver {
    pub pid: u32,
    /// The beginning of its command line.
    pub command: String,
    pub since: Timestamp,
    /// The process's start time in the kernel's units. Together with the pid it identifies the process.
    pub started: u64,
}

/// What the agents of a backend offer, as an agent last reported it.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// The models that can be chosen, by name.
    pub models: Vec<String>,
    /// The levels of effort that any of the models supports. Empty if the agent does not report any.
    pub efforts: Vec<String>,
    /// The agent's own lists of models and of commands.
    pub model_list: Option<RawJson>,
    pub commands: Option<RawJson>,
}

/// An event of an agent, as its backend reports it.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// An agent that an earlier server started is still running and has got every input up to this number. The output
    /// that it wrote in the meantime follows.
    Attached { last_input: u64 },
    /// All output that the agent wrote in the meantime was delivered; from now on events are live.
    CaughtUp,
    /// The agent's process started. `None`: its process id is unknown.
    ProcessStarted { pid: Option<u32> },
    Message {
        raw: RawJson,
        uuid: Option<String>,
        meaning: Meaning,
    },
    /// A line that can't be read as a message.
    Unreadable(Box<UnreadableLine>),
    /// The agent wants to use a tool or asks the user something, and waits for the answer.
    Asked(Box<AgentQuestion>),
    /// An event occurred for which a hook is registered, and the agent waits for the answer.
    Hook(Box<HookCall>),
    /// The agent no longer waits for an answer to this request.
    Withdrew { agent_request: String },
    /// Whether the agent made a requested change.
    Configured { change: OptionChange, done: bool },
    /// What the conversation has cost when the agent's process began, by the agent's own account. The sums that the
    /// agent reports later include it.
    CountsFrom { usd: f64 },
    /// The agent ended. Always the last event, and exactly one.
    Exited(Exit),
}

impl AgentEvent {
    /// A message of the backend itself, which warns the user about a problem.
    pub fn notice(text: &str) -> Self {
        let notice =
            serde_json::json!({ "type": "system", "subtype": "notice", "level": "warning", "message": text });
        Self::Message {
            // A value that was just built can always be serialized.
            raw: RawJson::of(&notice).unwrap_or_else(|_| RawJson::checked("null".into())),
            uuid: None,
            meaning: Meaning::Nothing,
        }
    }
}

/// What a message means for the state of its session.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// The conversation's id, reported at the start of each turn.
    Init {
        conversation: String,
    },
    /// The agent changed one of its options, by itself or because it was told to.
    Option(OptionChange),
    /// The turn is over.
    TurnEnded(TurnEnd),
    /// The number of tasks that run in the background.
    Background {
        running: usize,
    },
    Nothing,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TurnEnd {
    Success,
    Failure {
        message: String,
    },
    /// The conversation that was to be resumed no longer exists; the agent ends.
    Expired,
}

/// A request of an agent that needs a decision: a tool, a question, a plan, a form.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentQuestion {
    /// The agent's own id of the request.
    pub agent_request: String,
    pub tool_use_id: String,
    pub tool_name: String,
    pub input: RawJson,
    pub suggestions: Option<RawJson>,
    pub description: Option<String>,
    pub blocked_path: Option<String>,
    /// Only a person can answer, whatever the approval mode: questions, plans and forms.
    pub always_ask: bool,
}

/// A hook call that the agent waits for. After [`HOOK_TIME`] without an answer the agent continues without a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct HookCall {
    /// The agent's own id of the request, by which it is answered.
    pub agent_request: String,
    /// The agent's name for the event.
    pub event: String,
    /// The event's data, in the agent's own format.
    pub input: RawJson,
    pub tool_use_id: Option<String>,
}

/// How long an agent waits for the answer to a hook call, unless the backend is told otherwise.
pub const HOOK_TIME: Duration = Duration::from_mins(1);

/// How an agent ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Exit {
    /// The agent could not be started.
    NotStarted { message: String },
    /// An earlier server was to start the agent or send it the prompt, but did not.
    NeverStarted,
    /// The conversation that the agent was to resume no longer exists.
    Expired,
    /// The agent ended, by itself or on request.
    Ended { message: String },
}

impl Exit {
    /// The exit of an agent that should be running but can't be reached.
    pub fn unreachable(reason: impl std::fmt::Display) -> Self {
        Self::Ended {
            message: format!(
                "The agent could not be reached again: {reason}. It may still be at work; look for it before you send \
                 the next message."
            ),
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::NotStarted { message } | Self::Ended { message } => message,
            Self::NeverStarted => "The agent was not started. Send a message to try again.",
            Self::Expired => {
                "The conversation is no longer known to the agent. The next message starts afresh, without its context."
            }
        }
    }
}
