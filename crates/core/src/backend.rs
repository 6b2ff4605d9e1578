//! What the domain needs of an agent: start it, talk to it, hear from it.
//!
//! An agent is a pair of channels. Starting one never blocks and never fails on the spot: whatever goes wrong arrives
//! as [`AgentEvent::Exited`], the same way as a crash an hour later. Only the implementations know a wire format.

pub mod claude;

use std::path::PathBuf;

use serde::Serialize;
use tokio::sync::mpsc;

use crate::ids::SessionId;
use crate::json::RawJson;
use crate::session::{Answer, Settings};

/// Starts agents of one kind.
pub trait Backend: Send + Sync + 'static {
    fn info(&self) -> BackendInfo;

    /// Begins to start an agent. Dropping [`AgentChannels::commands`] ends it, the whole process tree.
    fn launch(&self, launch: Launch) -> AgentChannels;
}

/// Which agent runs here, and why.
#[derive(Clone, Debug, Serialize)]
pub struct BackendInfo {
    /// `claude` or `demo`.
    pub name: &'static str,
    pub version: Option<String>,
    /// `stdio` or `sdk-url`.
    pub transport: &'static str,
    /// Why this one was chosen and how to get the other, for a person.
    pub reason: String,
    pub capabilities: Capabilities,
}

#[derive(Clone, Copy, Debug, Serialize)]
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
    pub settings: Settings,
    pub conversation: Conversation,
}

/// Which conversation the agent opens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Conversation {
    /// A new one, under this id (a UUID).
    New(String),
    /// The one that the agent knows under this id.
    Resume(String),
}

#[derive(Debug)]
pub struct AgentChannels {
    pub commands: mpsc::Sender<AgentCommand>,
    pub events: mpsc::Receiver<AgentEvent>,
}

/// What we tell an agent.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentCommand {
    Prompt(String),
    Answer { agent_request: String, answer: Answer },
    Interrupt,
}

/// What an agent tells us.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    Message {
        raw: RawJson,
        uuid: Option<String>,
        meaning: Meaning,
    },
    /// The agent wants to use a tool, or asks the user something, and waits.
    Asks(Question),
    /// The agent no longer waits for an answer to this.
    TakesBack { agent_request: String },
    /// The agent is gone. Always the last event, always exactly one.
    Exited(Exit),
}

/// What a message means for the life of the session. Everything else in it is for the reader.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Meaning {
    /// The conversation's id, at the start of each turn.
    Init {
        conversation: String,
    },
    /// The turn is over.
    TurnEnded(TurnEnd),
    Nothing,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TurnEnd {
    Success,
    Failure { message: String },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The agent's own id of the request.
    pub agent_request: String,
    pub tool_use_id: String,
    pub tool_name: String,
    pub input: RawJson,
    pub suggestions: Option<RawJson>,
    pub description: Option<String>,
    /// Questions, plans and elicitations: for a person, whatever the approval mode.
    pub always_ask: bool,
}

/// How an agent ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Exit {
    /// It could not be started.
    NotStarted { message: String },
    /// The conversation that it was to resume does not exist any more.
    Expired,
    /// It ended, by itself or because we asked.
    Ended { message: String },
}

impl Exit {
    pub fn message(&self) -> &str {
        match self {
            Self::NotStarted { message } | Self::Ended { message } => message,
            Self::Expired => {
                "The conversation is no longer known to the agent. The next message starts afresh, without its context."
            }
        }
    }
}
