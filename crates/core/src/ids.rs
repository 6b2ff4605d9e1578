//! Names of things, and the clock.

use std::fmt;
use std::str::FromStr;
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

    /// The id under which the agent gets the prompt that is event number `seq`. An agent does not take an id twice, so
    /// it must be another one if the same conversation is a session again, here after a deletion or on another server:
    /// `made` is when this one was made.
    pub(crate) fn prompt_uuid(self, made: Timestamp, seq: u64) -> String {
        self.derive(&format!("prompt:{}", made.0), seq).to_string()
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

/// Milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
