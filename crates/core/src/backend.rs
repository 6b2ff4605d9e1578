//! What the domain needs of an agent: start it, talk to it, hear from it.
//!
//! An agent is a pair of channels. Starting one never blocks and never fails on the spot: whatever goes wrong arrives
//! as [`AgentEvent::Exited`], the same way as a crash an hour later. Only the implementations know a wire format.

mod abilities;
mod backends;
mod channels;
mod options;

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

/// Starts agents of one kind.
pub trait Backend: Send + Sync + 'static {
    fn info(&self) -> BackendInfo;

    /// The name by which a session chooses it, the same as in [`Self::info`].
    fn name(&self) -> String {
        self.info().name
    }

    /// What can be chosen for an agent of this kind, and what that means for a session.
    fn options(&self) -> Arc<dyn OptionRules>;

    /// What this backend can do beside running agents.
    fn abilities(&self) -> Abilities;

    /// Begins to start an agent. Dropping [`AgentChannels::commands`] ends it, the whole process tree.
    fn launch(&self, launch: Launch) -> AgentChannels;

    /// Goes on with an agent that an earlier server started. The first event says how it stands, or that it is gone.
    fn attach(&self, attach: Attach) -> AgentChannels;
}

/// Which agent runs here, and why.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendInfo {
    /// By which a session chooses it: `claude`, `demo`, …
    pub name: String,
    /// Its name for people.
    #[serde(skip)]
    pub title: String,
    pub version: Option<String>,
    /// `stdio` or `sdk-url`.
    pub transport: &'static str,
    /// Why this one was chosen and how to get the other, for a person.
    pub reason: String,
    /// The same for whoever says it in words of their own.
    pub why: WhyChosen,
    /// Where it was found on this machine.
    pub path: Option<String>,
    pub capabilities: Capabilities,
    #[serde(skip)]
    pub installed: bool,
    /// How to get it where it is not installed, for a person.
    #[serde(skip)]
    pub how_to_install: Option<String>,
}

impl BackendInfo {
    /// One of that name about which nothing else is known.
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

/// Why an agent, and the way it is spoken with, was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WhyChosen {
    /// It was found, and is spoken with over stdio as all versions are.
    Found,
    /// Stdio was asked for.
    StdioChosen,
    /// It was asked to connect to us, and can.
    Connects,
    /// It was asked to connect to us, and its version can't.
    CannotConnect,
    /// It was asked to connect to us, and nobody knows whether it can.
    VersionUnknown,
    /// There is none but the demo agent.
    NotInstalled,
    /// The demo agent was asked for.
    DemoChosen,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Capabilities {
    pub streaming: bool,
    pub permissions: bool,
    pub resume: bool,
    pub subagents: bool,
}

/// What to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub session: SessionId,
    pub cwd: PathBuf,
    /// The name of the agent's run, by which it can be found again. Never used twice.
    pub run: String,
    pub options: Options,
    pub conversation: ConversationStart,
    /// The events that the agent calls back for. Empty where the backend does not have the ability [`Hooks`].
    pub hooks: Vec<String>,
}

/// Which conversation the agent opens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ConversationStart {
    /// A new one, under this id (a UUID).
    New(String),
    /// The one that the agent knows under this id.
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

/// What to go on with.
#[derive(Clone, Debug, PartialEq)]
pub struct Attach {
    pub session: SessionId,
    pub run: String,
    /// The agent's id of the conversation.
    pub conversation: String,
    pub cwd: PathBuf,
    /// The options that it has.
    pub options: Options,
    /// How much of what it said is known.
    pub position: u64,
    /// Whether it was started to go on with an earlier conversation.
    pub resumes: bool,
    /// The number of the prompt that it works on, as far as is known.
    pub prompt: Option<u64>,
}

impl Attach {
    /// Whether an agent whose last input has this number never got the prompt. An agent of which no input is known may
    /// have got anything.
    pub fn missed_prompt(&self, last_input: Option<u64>) -> bool {
        let unheard = |prompt: u64| last_input.is_some_and(|last_input| last_input < prompt);
        self.prompt.is_some_and(unheard)
    }
}

/// What an agent says, and how far it can be read again.
#[derive(Clone, Debug)]
pub struct PositionedEvent {
    pub event: AgentEvent,
    /// Where in the agent's output this ends. After a crash the next server reads on from the last position that is on
    /// record, and hears the same again. `None`: what is not on record then is lost.
    pub position: Option<u64>,
}

impl PositionedEvent {
    /// Nobody can read it again.
    pub fn without_position(event: AgentEvent) -> Self {
        Self {
            event,
            position: None,
        }
    }
}

/// What we tell an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentCommand {
    /// `uuid` is ours: an agent that knows it already does not take the prompt again.
    Prompt {
        uuid: String,
        words: String,
        images: Vec<Image>,
        /// The call that it is a reply to.
        parent_tool_use_id: Option<String>,
        number: u64,
    },
    /// What is numbered reaches the agent once, however often it is sent. Numbers rise; 0 is none.
    Answer {
        agent_request: String,
        answer: DecisionAnswer,
        number: u64,
    },
    /// What it said before this position is on record.
    Forget {
        before: u64,
    },
    Interrupt,
    /// Change an option now. [`AgentEvent::Configured`] tells the outcome.
    Configure(OptionChange),
}

/// What can be asked of a running agent beside its work, with the ability [`Inquire`].
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

/// Why an inquiry has no answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum InquiryFailed {
    #[error("No agent is running in this session. Send a message to start it.")]
    NoAgent,
    #[error("The installed version of the agent can't tell this.")]
    Unsupported,
    #[error("The agent did not answer: {0}")]
    Failed(String),
}

/// A process that drives a conversation and that nobody here has started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Driver {
    pub pid: u32,
    /// The beginning of its command line.
    pub command: String,
    pub since: Timestamp,
    /// Its start as the system counts: with the pid, this names it for good.
    pub started: u64,
}

/// What the agents of a backend offer, as one of them has told last.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// The names by which a model may be chosen.
    pub models: Vec<String>,
    /// The levels of effort that any of its models takes; none if it does not say.
    pub efforts: Vec<String>,
    /// The agent's own list of models, and of commands.
    pub model_list: Option<RawJson>,
    pub commands: Option<RawJson>,
}

/// What an agent tells us.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// An agent that an earlier server started is still there, and was given everything up to this number. What it has
    /// said meanwhile follows.
    Attached { last_input: u64 },
    /// That was all of it: from now on it speaks to us.
    CaughtUp,
    /// Which process it is, where that is known.
    ProcessStarted { pid: Option<u32> },
    Message {
        raw: RawJson,
        uuid: Option<String>,
        meaning: Meaning,
    },
    /// A line that is no message.
    Unreadable(Box<UnreadableLine>),
    /// The agent wants to use a tool, or asks the user something, and waits.
    Asked(Box<AgentQuestion>),
    /// One of the events has happened that someone wants to be called back for, and the agent waits.
    Hook(Box<HookCall>),
    /// The agent no longer waits for an answer to this.
    Withdrew { agent_request: String },
    /// Whether it made a change that it was asked for.
    Configured { change: OptionChange, done: bool },
    /// The agent is gone. Always the last event, always exactly one.
    Exited(Exit),
}

impl AgentEvent {
    /// A message of the backend's own that tells the user of something that went wrong beside the agent's work.
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

/// What a message means for the life of the session. Everything else in it is for the reader.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// The conversation's id, at the start of each turn.
    Init {
        conversation: String,
    },
    /// The agent has changed one of its options, by itself or because it was told to.
    Option(OptionChange),
    /// The turn is over.
    TurnEnded(TurnEnd),
    /// How much goes on in the background.
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
    /// The conversation that was to go on does not exist any more; the agent ends.
    Expired,
}

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
    /// Questions, plans and elicitations: for a person, whatever the approval mode.
    pub always_ask: bool,
}

/// A callback that the agent waits for. Unanswered, it goes on without a decision after [`HOOK_TIME`].
#[derive(Clone, Debug, PartialEq)]
pub struct HookCall {
    /// The agent's own id of the request, by which it is answered.
    pub agent_request: String,
    /// The agent's name of the event.
    pub event: String,
    /// What has happened, in the agent's own form.
    pub input: RawJson,
    pub tool_use_id: Option<String>,
}

/// How long an agent waits for the answer to a callback, unless the backend is told otherwise.
pub const HOOK_TIME: Duration = Duration::from_mins(1);

/// How an agent ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Exit {
    /// It could not be started.
    NotStarted { message: String },
    /// An earlier server was to start it, or to tell it the prompt, and did not get round to it.
    NeverStarted,
    /// The conversation that it was to resume does not exist any more.
    Expired,
    /// It ended, by itself or because we asked.
    Ended { message: String },
}

impl Exit {
    /// An agent that should be running can't be reached, for this reason.
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
