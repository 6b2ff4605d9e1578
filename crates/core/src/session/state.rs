//! What a session is at one moment.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tiller_message::Summary;
use uuid::Uuid;

use crate::backend::{OptionChange, OptionRules, Options};
use crate::event::{DecisionRequest, Event};
use crate::ids::{Cause, PromptId, RequestId, SessionId, Timestamp};
use crate::json::RawJson;
use crate::prompt::Prompt;
use crate::session::settings::Settings;

/// An enum whose values have names on the wire and in the database.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum $name { $($(#[$variant_meta])* $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }
    };
}

named!(SessionStatus { Idle = "idle", Running = "running", Completed = "completed", Error = "error" });

named!(
    /// Who answers when the agent asks for a tool.
    #[derive(Default)]
    Approval {
        /// The user.
        #[default]
        Ask = "ask",
        /// Everything is allowed but what only a person can answer.
        Auto = "auto",
    }
);

named!(
    /// Where a session's title comes from. A better one may replace one from the prompt, never one from a person.
    TitleSource { Prompt = "prompt", Model = "model", User = "user" }
);

/// What is kept of a session beside its events.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    pub id: SessionId,
    /// The name of the key that it was started with; `None` for the person at the machine.
    pub owner: Option<String>,
    pub title: String,
    pub title_source: TitleSource,
    /// Put away by the user: kept, but out of sight.
    pub archived: bool,
    /// The agent's id of the conversation, once it has told it.
    pub conversation: Option<String>,
    /// The conversation was lost on the agent's side: the next message may start a new one.
    pub expired: bool,
    /// The agent's id of the conversation that this one goes on from, under an id of its own, with its first message.
    pub fork_of: Option<String>,
    /// The agent's id of the last message that the fork begins with; what came after it belongs to the other.
    pub fork_at: Option<String>,
    /// The totals of the whole session. `None`: the session was stored before totals were kept, and they are counted
    /// from its log when it is next used.
    pub summary: Option<Arc<Summary>>,
    /// When the session is to be deleted for good; until then it can be brought back.
    pub delete_at: Option<Timestamp>,
    pub status: SessionStatus,
    pub cwd: String,
    /// The name of the backend that runs its agent; `None`: the server's default one.
    pub backend: Option<String>,
    pub settings: Settings,
    pub last_prompt: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Prompts that wait for the running turn to end, oldest first.
    pub queue: Vec<Prompt>,
    pub last_seq: u64,
    /// How many agents have been started for it.
    pub runs: u64,
    /// The turn that runs, with what the next server needs to go on with it.
    pub turn: Option<TurnRecord>,
    /// The agent's process, as long as there is one.
    pub run: Option<RunRecord>,
}

impl SessionRecord {
    /// Nothing has happened in it since, and nobody waits for anything in it.
    pub(crate) fn is_unused_since(&self, time: Timestamp, pending: &[DecisionRequest]) -> bool {
        self.updated_at < time
            && self.status != SessionStatus::Running
            && pending.is_empty()
            && self.queue.is_empty()
    }
}

/// What is kept of a turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TurnRecord {
    /// The number of its prompt's event.
    pub prompt_seq: u64,
    /// The user wants it to end.
    pub stopping: bool,
    /// No agent has been given its prompt: the one before is being ended.
    pub undelivered: bool,
    /// How many prompts came after it was stopped.
    pub after_stop: usize,
}

/// What is kept of an agent's process.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    pub name: String,
    /// How much of what it said is in the log.
    pub position: u64,
    /// Whether it was started to go on with an earlier conversation.
    pub resumes: bool,
    /// The options that its process was started with.
    pub started: Options,
    /// The options that it has now.
    pub options: Options,
    /// The events that it calls back for.
    pub hooks: Vec<String>,
}

/// A session as its actor sees it.
#[derive(Clone, Debug)]
pub struct State {
    pub record: SessionRecord,
    /// What the options of the session's backend mean.
    pub rules: Arc<dyn OptionRules>,
    pub agent: AgentState,
    /// The agent has said something.
    pub agent_heard: bool,
    pub agent_pid: Option<u32>,
    /// How much the agent does in the background.
    pub background: usize,
    /// The agent was ended to save memory, and the next message wakes it.
    pub hibernated: bool,
    /// Changes of options that the agent was told and has not confirmed, in order.
    pub configuring: Vec<OptionChange>,
    /// The events that someone wants to be called back for.
    pub hooks: Vec<String>,
    /// The agent's ids of the callbacks that wait for an answer.
    pub hooks_open: Vec<String>,
    pub turn: Option<Turn>,
    /// Decisions that wait for the user.
    pub pending: Vec<DecisionRequest>,
    /// Decisions of this turn that are over, so that a second answer is told apart from a wrong one.
    pub settled: Vec<(RequestId, String)>,
    pub turns: u64,
    pub seen: RecentIds,
    /// What may not have reached an agent that an earlier server started: prompts and answers, with their numbers.
    pub unconfirmed: Vec<Event>,
    /// The command that is being carried out, if its sender wants to know what it causes.
    pub cause: Option<Cause>,
    /// The commands that brought prompts which wait, likewise.
    pub causes: HashMap<PromptId, Cause>,
}

impl State {
    /// A session without an agent, with the decisions that were left open.
    pub fn new(record: SessionRecord, pending: Vec<DecisionRequest>, rules: Arc<dyn OptionRules>) -> Self {
        Self {
            record,
            rules,
            agent: AgentState::Absent,
            agent_heard: false,
            agent_pid: None,
            background: 0,
            hibernated: false,
            configuring: Vec::new(),
            hooks: Vec::new(),
            hooks_open: Vec::new(),
            turn: None,
            pending,
            settled: Vec::new(),
            turns: 0,
            seen: RecentIds::default(),
            unconfirmed: Vec::new(),
            cause: None,
            causes: HashMap::new(),
        }
    }
}

impl State {
    /// An agent that does nothing and waits for nobody.
    pub fn may_hibernate(&self) -> bool {
        self.agent == AgentState::Live
            && self.turn.is_none()
            && self.pending.is_empty()
            && self.hooks_open.is_empty()
            && self.unconfirmed.is_empty()
            && self.background == 0
            // Without it the conversation could not be gone on with.
            && self.record.conversation.is_some()
    }

    /// How the agent looks from outside.
    pub fn agent_status(&self) -> AgentStatus {
        match self.agent {
            AgentState::Absent if self.hibernated => AgentStatus::Hibernated,
            AgentState::Absent => AgentStatus::Absent,
            _ if !self.agent_heard => AgentStatus::Starting,
            _ if self.turn.is_some() => AgentStatus::Running,
            AgentState::Attaching | AgentState::Live | AgentState::Ending => AgentStatus::Idle,
        }
    }
}

named!(
    /// Where a session's agent stands, for people.
    AgentStatus {
        Absent = "absent",
        /// It has been started and has not said anything yet.
        Starting = "starting",
        Running = "running",
        Idle = "idle",
        /// Ended to save memory; the next message wakes it.
        Hibernated = "hibernated",
    }
);

/// The ids of the agent's latest messages, so that a doubled line is taken once.
#[derive(Clone, Debug, Default)]
pub struct RecentIds {
    order: VecDeque<u128>,
    known: HashSet<u128>,
}

impl RecentIds {
    /// A doubled line follows its twin closely; a longer memory would only cost.
    const CAPACITY: usize = 512;

    /// False if `id` has been here before.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        // Most agents use UUIDs as ids. Another text becomes a UUID, the same every time.
        let id = Uuid::try_parse(id).unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()));
        let id = id.as_u128();
        if !self.known.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > Self::CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

/// Where the agent's process stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentState {
    Absent,
    /// An earlier server has started it; whether it is still there, or all that it has said, is not known yet. What is
    /// asked of the session waits.
    Attaching,
    Live,
    /// Told to end. Nothing is started before it is gone: two processes on one conversation would fork it.
    Ending,
}

/// A prompt on its way to the agent. The agent takes a prompt with an id that it knows only once.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// That of the prompt's event.
    pub number: u64,
    pub prompt: Prompt,
}

/// The turn that runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Turn {
    pub number: u64,
    /// The number of its prompt's event.
    pub prompt_seq: u64,
    /// The prompt, as long as no agent has been given it.
    pub undelivered: Option<Delivery>,
    pub stopping: bool,
    /// How many prompts came after it was stopped. They are the first in the queue.
    pub after_stop: usize,
    /// The agent is being ended under it, for this reason.
    pub closing: Option<&'static str>,
}

impl Turn {
    /// Where in the queue another prompt belongs. Whoever speaks after a stop is heard next; what waited before stays
    /// where it is.
    pub(super) fn place_in(&self, queue: &[Prompt]) -> usize {
        if self.stopping {
            self.after_stop.min(queue.len())
        } else {
            queue.len()
        }
    }
}

/// How a client names a decision.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DecisionRef {
    Request(RequestId),
    ToolUse(String),
    /// Both, which must belong together.
    Both {
        request: RequestId,
        tool_use: String,
    },
}

impl DecisionRef {
    pub(crate) fn names(&self, id: RequestId, tool_use_id: &str) -> bool {
        match self {
            Self::Request(request) => *request == id,
            Self::ToolUse(tool_use) => tool_use == tool_use_id,
            Self::Both { request, tool_use } => *request == id && tool_use == tool_use_id,
        }
    }
}

/// What the user decided.
#[derive(Clone, Debug, PartialEq)]
pub enum DecisionAnswer {
    Allow {
        /// Absent: the input that was shown.
        input: Option<RawJson>,
        /// Rules to keep.
        permissions: Option<RawJson>,
    },
    Deny {
        message: Option<String>,
        interrupt: bool,
    },
}

impl DecisionAnswer {
    /// The answer to a question about this input: what runs is what was shown, unless the user changed it.
    pub(super) fn to(self, shown: RawJson) -> Self {
        match self {
            Self::Allow { input, permissions } => Self::Allow {
                input: Some(input.unwrap_or(shown)),
                permissions,
            },
            deny @ Self::Deny { .. } => deny,
        }
    }
}
