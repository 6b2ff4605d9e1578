//! Names of things, and the clock.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// A session of ours. For a session that was neither forked nor started afresh it is the agent's own id too.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SessionId(Uuid);

impl SessionId {
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Its text, without memory of its own.
    pub fn in_text(self, text: &mut [u8; Hyphenated::LENGTH]) -> &str {
        self.0.hyphenated().encode_lower(text)
    }

    /// An id that belongs to this session's event number `seq`, the same whenever it is asked for. Whoever reads the
    /// agent's words again after a crash must arrive at the same ids.
    fn derive(self, purpose: &str, seq: u64) -> Uuid {
        Uuid::new_v5(&self.0, format!("{purpose}:{seq}").as_bytes())
    }

    /// The name of the agent's run that is started at `seq`.
    pub(crate) fn run_name(self, made: Timestamp, seq: u64) -> String {
        self.derive(&format!("run:{}", made.0), seq).to_string()
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

/// A decision's id: ours, never the agent's, so that two agents can't collide.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(Uuid);

impl RequestId {
    /// The decision that is asked for with event number `seq` of a session.
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

/// A prompt's id, from its acceptance on: in the queue, in its event, in the history, and the uuid under which the agent
/// gets it. The client chooses it, or we do. An agent takes an id once.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PromptId(Uuid);

impl PromptId {
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id of a prompt that was queued before prompts had ids: the same whenever the queue is read. `made` is when the
    /// session was made, and `place` the prompt's place in the queue.
    pub fn of_queued(session: SessionId, made: Timestamp, place: usize) -> Self {
        Self(session.derive(&format!("queued:{}", made.0), place as u64))
    }

    /// The id of a prompt whose event is number `seq` and whose own id can't be read.
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

/// A command of a client, as long as this process lives. It travels with what the command causes, so that the client's
/// connection can say which of its commands that was. Never stored.
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
