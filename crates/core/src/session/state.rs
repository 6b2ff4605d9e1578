//! The state of a session.

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
    /// Who answers when the agent asks for permission to use a tool.
    #[derive(Default)]
    Approval {
        /// The user.
        #[default]
        Ask = "ask",
        /// Everything is allowed, except what only a person can answer.
        Auto = "auto",
    }
);

named!(
    /// The origin of a session's title. A model's title may replace one from the prompt, but never one from a person.
    TitleSource { Prompt = "prompt", Model = "model", User = "user" }
);

/// The stored properties of a session, beside its events.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    pub id: SessionId,
    /// The id of the key that started the session; `None` for the person at the machine.
    pub owner: Option<String>,
    pub title: String,
    pub title_source: TitleSource,
    /// Archived by the user: kept, but hidden.
    pub archived: bool,
    /// The agent's id of the conversation, once the agent has reported it.
    pub conversation: Option<String>,
    /// The agent has lost the conversation: the next prompt may start a new one.
    pub expired: bool,
    /// The agent's id of the conversation that this session forks with its first prompt.
    pub fork_of: Option<String>,
    /// The agent's id of the last message that the fork copies. Later messages belong to the original only.
    pub fork_at: Option<String>,
    /// The parts of the log that the conversation no longer has, in order: it was rewound to before each of them.
    pub rewound: Vec<RewoundPart>,
    /// The totals of the whole session. `None`: the session was stored before totals were kept, and they are counted
    /// from its log when it is next used.
    pub summary: Option<Arc<Summary>>,
    /// When the session is to be deleted; until then the deletion can be cancelled.
    pub delete_at: Option<Timestamp>,
    pub status: SessionStatus,
    pub cwd: String,
    /// The backend that runs the session's agent; `None`: the server's default one.
    pub backend: Option<String>,
    pub settings: Settings,
    pub last_prompt: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// The queue: prompts that wait for the running turn to end, oldest first.
    pub queue: Vec<Prompt>,
    pub last_seq: u64,
    /// How many agents were started for the session.
    pub runs: u64,
    /// The running turn, with what the next server needs to continue it.
    pub turn: Option<TurnRecord>,
    /// The run of the agent, while there is one.
    pub run: Option<RunRecord>,
}

impl SessionRecord {
    /// What was spent in this session, in dollars.
    pub(crate) fn spent_usd(&self) -> f64 {
        self.summary.as_ref().map_or(0.0, |summary| summary.spent_usd())
    }

    /// Whether the session had no activity since `time` and nothing is pending in it.
    pub(crate) fn is_unused_since(&self, time: Timestamp, pending: &[DecisionRequest]) -> bool {
        self.updated_at < time
            && self.status != SessionStatus::Running
            && pending.is_empty()
            && self.queue.is_empty()
    }
}

impl SessionRecord {
    /// Whether the conversation still has the event with this number.
    pub fn is_kept(&self, seq: u64) -> bool {
        !self.rewound.iter().any(|part| part.contains(seq))
    }

    /// Whether the last rewind can be undone: nothing was said since.
    pub fn can_undo_rewind(&self) -> bool {
        self.rewound.last().is_some_and(|part| part.undo.is_some())
    }
}

/// A part of a session's log that its conversation no longer has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RewoundPart {
    /// The number of the last event before it.
    pub after: u64,
    /// The number of its last event.
    pub through: u64,
    /// What an undo restores. `None` once something has been said since.
    pub undo: Option<RewindUndo>,
}

impl RewoundPart {
    pub fn contains(&self, seq: u64) -> bool {
        self.after < seq && seq <= self.through
    }
}

/// What a rewind replaced in the session's record.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RewindUndo {
    pub conversation: Option<String>,
    pub expired: bool,
    pub fork_of: Option<String>,
    pub fork_at: Option<String>,
    pub last_prompt: Option<String>,
}

/// The stored properties of a turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TurnRecord {
    /// The number of its prompt's event.
    pub prompt_seq: u64,
    /// The user asked to stop the turn.
    pub stopping: bool,
    /// The prompt was not sent to an agent yet: the previous agent is being ended.
    pub undelivered: bool,
    /// How many prompts arrived after the turn was stopped.
    pub after_stop: usize,
}

/// The stored properties of an agent's run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    pub name: String,
    /// The position in the agent's output up to which events are stored.
    pub position: u64,
    /// Whether the agent was started to resume an earlier conversation.
    pub resumes: bool,
    /// The options that its process was started with.
    pub started: Options,
    /// The options that the agent has now.
    pub options: Options,
    /// The events for which the agent calls hooks.
    pub hooks: Vec<String>,
    /// The session was rewound since: the process still has the conversation from before, and gets no more prompts.
    pub stale: bool,
}

/// The state of a session, as its actor holds it.
#[derive(Clone, Debug)]
pub struct State {
    pub record: SessionRecord,
    /// The rules of the options of the session's backend.
    pub rules: Arc<dyn OptionRules>,
    pub agent: AgentState,
    /// The agent has sent a message.
    pub agent_heard: bool,
    pub agent_pid: Option<u32>,
    /// How many tasks the agent runs in the background.
    pub background: usize,
    /// The agent hibernates: it was ended to save memory, and the next prompt starts it again.
    pub hibernated: bool,
    /// Changes of options that were sent to the agent and are not confirmed yet, in order.
    pub configuring: Vec<OptionChange>,
    /// The events for which hooks are registered.
    pub hooks: Vec<String>,
    /// The agent's ids of the hook calls that wait for an answer.
    pub hooks_open: Vec<String>,
    pub turn: Option<Turn>,
    /// The pending decisions.
    pub pending: Vec<DecisionRequest>,
    /// The settled decisions of this turn, to tell a second answer from a wrong one.
    pub settled: Vec<(RequestId, String)>,
    pub turns: u64,
    pub seen: RecentIds,
    /// Prompts and answers, with their numbers, that may not have reached an agent which an earlier server started.
    pub unconfirmed: Vec<Event>,
    /// The command that is being executed, if its sender wants to be told about its effects.
    pub cause: Option<Cause>,
    /// The commands that queued each prompt, likewise.
    pub causes: HashMap<PromptId, Cause>,
}

impl State {
    /// A session without an agent, with the decisions that are pending.
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
    /// Whether the agent is idle and nothing waits for it.
    pub fn may_hibernate(&self) -> bool {
        self.agent == AgentState::Live
            && self.turn.is_none()
            && self.pending.is_empty()
            && self.hooks_open.is_empty()
            && self.unconfirmed.is_empty()
            && self.background == 0
            // Without its id the conversation could not be resumed.
            && self.record.conversation.is_some()
    }

    /// The state of the agent, for clients.
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
    /// The state of a session's agent, for clients.
    AgentStatus {
        Absent = "absent",
        /// The agent was started and has not sent a message yet.
        Starting = "starting",
        Running = "running",
        Idle = "idle",
        /// The agent was ended to save memory; the next prompt starts it again.
        Hibernated = "hibernated",
    }
);

/// The ids of the agent's latest messages, to drop duplicate lines.
#[derive(Clone, Debug, Default)]
pub struct RecentIds {
    order: VecDeque<u128>,
    known: HashSet<u128>,
}

impl RecentIds {
    /// A duplicate line follows its original closely; a longer memory would only cost.
    const CAPACITY: usize = 512;

    /// False if `id` was inserted before.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        // Most agents use UUIDs. Other ids are hashed to a UUID.
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

/// The state of the agent's process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AgentState {
    Absent,
    /// A reconnect to an earlier server's agent is in progress: whether it still runs, and what it wrote in the
    /// meantime, is not known yet. Commands wait.
    Attaching,
    Live,
    /// The agent was told to end. No agent is started before it has ended: two processes would fork the conversation.
    Ending,
}

/// A prompt on its way to the agent, which ignores a prompt with an id that it knows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Delivery {
    /// The number of the prompt's event.
    pub number: u64,
    pub prompt: Prompt,
}

/// The running turn.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Turn {
    pub number: u64,
    /// The number of its prompt's event.
    pub prompt_seq: u64,
    /// The prompt, until it is sent to an agent.
    pub undelivered: Option<Delivery>,
    pub stopping: bool,
    /// The agent was told to stop, though that could not be stored: if the turn then fails, it ends as one that the user
    /// stopped, unless another server has to end it.
    pub interrupted: bool,
    /// How many prompts arrived after the turn was stopped. They are the first in the queue.
    pub after_stop: usize,
    /// The agent is being ended during the turn, for this reason.
    pub closing: Option<&'static str>,
}

impl Turn {
    /// The index in the queue at which a new prompt is inserted. Prompts that arrive after a stop run next; earlier
    /// ones keep their order.
    pub(super) fn place_in(&self, queue: &[Prompt]) -> usize {
        if self.stopping {
            self.after_stop.min(queue.len())
        } else {
            queue.len()
        }
    }
}

/// How a client refers to a decision.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DecisionRef {
    Request(RequestId),
    ToolUse(String),
    /// Both ids, which must belong together.
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

/// A person's answer to a decision.
#[derive(Clone, Debug, PartialEq)]
pub enum DecisionAnswer {
    Allow {
        /// `None`: the input that was shown.
        input: Option<RawJson>,
        /// Permission rules to keep.
        permissions: Option<RawJson>,
    },
    Deny {
        message: Option<String>,
        interrupt: bool,
    },
}

impl DecisionAnswer {
    /// Completes an answer to a decision about this input: the shown input runs, unless the user changed it.
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
