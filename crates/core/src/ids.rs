//! Ids, and the clock.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The id of a session. Unless the session was forked or started afresh, the agent's id of the conversation is the
/// same.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, serde::Deserialize, serde::Serialize)]
pub struct SessionId(Uuid);

impl SessionId {
    /// The id of no session.
    pub const NOBODY: Self = Self(Uuid::nil());

    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id as text, written into `text` without an allocation.
    pub fn in_text(self, text: &mut [u8; Hyphenated::LENGTH]) -> &str {
        self.0.hyphenated().encode_lower(text)
    }

    /// An id that derives from this session and the event number `seq`. A server that reads the agent's output again
    /// after a crash must create the same ids.
    fn derive(self, purpose: &str, seq: u64) -> Uuid {
        Uuid::new_v5(&self.0, format!("{purpose}:{seq}").as_bytes())
    }

    /// The name of the agent's run that is started at `seq`.
    pub(crate) fn run_name(self, made: Timestamp, seq: u64) -> String {
        self.derive(&format!("run:{}", made.0), seq).to_string()
    }

    /// The agent's id for a conversation that goes on from an earlier one of the same session, in its run of that number.
    pub(crate) fn branched_conversation(self, made: Timestamp, run: u64) -> String {
        self.derive(&format!("branch:{}", made.0), run).to_string()
    }

    /// The agent's id for a conversation that starts afresh at `seq`.
    pub(crate) fn fresh_conversation(self, made: Timestamp, seq: u64) -> String {
        self.derive(&format!("conversation:{}", made.0), seq).to_string()
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for SessionId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::from_str(text).map(Self)
    }
}

/// The id of a decision. It is ours and not the agent's, so that ids of different agents can't collide.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(Uuid);

impl RequestId {
    /// The id of the decision that event number `seq` of a session requests.
    pub fn of(session: SessionId, seq: u64) -> Self {
        Self(session.derive("decision", seq))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for RequestId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::from_str(text).map(Self)
    }
}

/// The id of a prompt, from its acceptance on: the same in the queue, in its event, in the history, and as the uuid
/// that the agent gets. The client or the server chooses it. An agent accepts an id once.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PromptId(Uuid);

impl PromptId {
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id of a prompt that was queued before prompts had ids: the same each time the queue is read. `made` is the
    /// session's creation time, `place` the prompt's index in the queue.
    pub fn of_queued(session: SessionId, made: Timestamp, place: usize) -> Self {
        Self(session.derive(&format!("queued:{}", made.0), place as u64))
    }

    /// The id of the prompt of event number `seq`, if the stored id can't be read.
    pub fn of_event(session: SessionId, seq: u64) -> Self {
        Self(session.derive("prompt", seq))
    }
}

impl fmt::Display for PromptId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for PromptId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::from_str(text).map(Self)
    }
}

/// Identifies a command of a client within this process. It accompanies the command's effects, so that the client's
/// connection can relate them to the command. Never stored.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cause(NonZeroU64);

impl Cause {
    /// A new one, unique in this process.
    pub fn unique() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // Zero comes after 2^64 commands.
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }
}

/// Milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
