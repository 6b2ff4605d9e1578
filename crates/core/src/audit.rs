//! The audit log: who decided, signed in, made a key, granted something or was refused. Each entry's hash covers the entry and
//! the hash before it, so that an entry that was changed, removed or put in between is noticed.
//!
//! A chain can't tell that its end was cut off or that all of it was written anew: for that, someone keeps a [`Head`] elsewhere
//! and compares it ([`Chain::expect`]).

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::credentials::{ApiKey, RevokedSessions, SecretHash, SignIn, SignInId};
use crate::event::{Behavior, Event, EventBody};
use crate::ids::{SessionId, Timestamp};
use crate::session::DecisionAnswer;
use crate::store::StoreFuture;

/// Whose doing an entry is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Actor {
    /// The person at the machine, in a browser or with `TILLER_API_KEY`.
    Person,
    /// A command of this program, which may read the data folder.
    CommandLine,
    /// The key with this id.
    Key(String),
    /// Someone without a valid credential.
    Nobody,
}

impl Actor {
    /// `key` is a viewer's.
    pub fn of(key: Option<&str>) -> Self {
        key.map_or(Self::Person, |key| Self::Key(key.to_owned()))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Person => "person",
            Self::CommandLine => "command-line",
            Self::Key(id) => id,
            Self::Nobody => "nobody",
        })
    }
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    SignIn,
    SignOut,
    KeyCreated,
    KeyRevoked,
    /// A decision was answered.
    Decision,
    /// A session may do more unasked than before.
    Grant,
    /// Something was refused for lack of a right or of a credential.
    Refused,
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SignIn => "sign_in",
            Self::SignOut => "sign_out",
            Self::KeyCreated => "key_created",
            Self::KeyRevoked => "key_revoked",
            Self::Decision => "decision",
            Self::Grant => "grant",
            Self::Refused => "refused",
        }
    }
}

/// What is to be written. Never contains a secret or the content of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    pub at: Timestamp,
    pub actor: Actor,
    pub action: Action,
    pub session: Option<SessionId>,
    pub detail: Map<String, Value>,
}

impl AuditEntry {
    pub fn new(actor: Actor, action: Action, at: Timestamp) -> Self {
        Self {
            at,
            actor,
            action,
            session: None,
            detail: Map::new(),
        }
    }

    #[must_use]
    pub fn in_session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }

    pub fn signed_in(sign_in: &SignIn) -> Self {
        Self::new(sign_in.source.actor(), Action::SignIn, sign_in.created_at)
            .with("signIn", sign_in.id.as_str())
            .with("address", sign_in.address.as_str())
            .with("userAgent", sign_in.user_agent.as_str())
    }

    /// `None`: every sign-in.
    pub fn signed_out(actor: Actor, sign_in: Option<&SignInId>) -> Self {
        let which = sign_in.map_or("all", SignInId::as_str);
        Self::new(actor, Action::SignOut, Timestamp::now()).with("signIn", which)
    }

    pub fn key_created(actor: Actor, key: &ApiKey) -> Self {
        // What can't be written as JSON is no limit that a key can have.
        let ceiling = serde_json::to_value(&key.ceiling).unwrap_or_default();
        Self::new(actor, Action::KeyCreated, key.created_at)
            .with("key", key.id.as_str())
            .with("name", key.name.as_str())
            .with("scopes", key.scopes.to_string())
            .with("ceiling", ceiling)
    }

    pub fn key_revoked(actor: Actor, id: &str, name: &str, sessions: RevokedSessions) -> Self {
        Self::new(actor, Action::KeyRevoked, Timestamp::now())
            .with("key", id)
            .with("name", name)
            .with("sessions", sessions.as_str())
    }

    /// The end of a decision; `None` if nobody answered it. The input itself stays in the session's log: here is its
    /// SHA-256, as far as the request is known.
    pub fn decided(event: &Event, asked: Option<(&str, &str)>) -> Option<Self> {
        let EventBody::DecisionResolved {
            request,
            behavior,
            reply: Some(reply),
            ..
        } = &event.body
        else {
            return None;
        };
        if *behavior == Behavior::Withdrawn {
            return None;
        }
        let keeps_rules = matches!(
            &reply.answer,
            DecisionAnswer::Allow {
                permissions: Some(_),
                ..
            }
        );
        let mut entry = Self::new(Actor::of(reply.by.as_deref()), Action::Decision, event.at)
            .in_session(event.session)
            .with("request", request.to_string())
            .with("behavior", behavior.as_str());
        if let Some((tool, input)) = asked {
            entry = entry
                .with("tool", tool)
                .with("inputSha256", SecretHash::of(input).to_hex());
        }
        if keeps_rules {
            entry = entry.with("rules", true);
        }
        Some(entry)
    }
}

/// An entry as it is stored. Texts, because a chain that a newer version has written must be verifiable, too.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuditRecord {
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub session: Option<String>,
    /// A JSON object.
    pub detail: String,
    /// Of this entry and the hash before it, in hex.
    pub hash: String,
}

impl AuditRecord {
    /// The entry that comes after `last`.
    pub fn after(last: &Head, entry: &AuditEntry) -> Self {
        let mut record = Self {
            seq: last.seq + 1,
            at: entry.at,
            actor: entry.actor.to_string(),
            action: entry.action.as_str().to_owned(),
            session: entry.session.map(|session| session.to_string()),
            detail: Value::from(entry.detail.clone()).to_string(),
            hash: String::new(),
        };
        record.hash = record.hash_after(&last.hash);
        record
    }

    fn hash_after(&self, before: &str) -> String {
        // As JSON, so that no two different entries are the same text.
        let fields = serde_json::json!([
            before,
            self.seq,
            self.at.0,
            self.actor,
            self.action,
            self.session,
            self.detail
        ]);
        SecretHash::of(&fields.to_string()).to_hex()
    }

    /// What stands in `detail`; a text if that is no JSON.
    pub fn detail_json(&self) -> Value {
        serde_json::from_str(&self.detail).unwrap_or_else(|_| self.detail.as_str().into())
    }

    /// As it is exported: one JSON object.
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "seq": self.seq,
            "at": self.at.0,
            "actor": self.actor,
            "action": self.action,
            "sessionId": self.session,
            "detail": self.detail_json(),
            "hash": self.hash,
        })
    }
}

/// The end of a chain: the number and the hash of its last entry. Written as `SEQ:HASH`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Head {
    /// 0: there is no entry.
    pub seq: u64,
    pub hash: String,
}

impl fmt::Display for Head {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || "a head is written as SEQ:HASH, as `tiller audit verify` prints it".to_owned();
        let (seq, hash) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Self {
            seq: seq.parse().map_err(|_| wrong())?,
            hash: SecretHash::from_hex(hash).ok_or_else(wrong)?.to_hex(),
        })
    }
}

/// The chain is not what was written.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Broken {
    #[error("entry {0} is missing")]
    Missing(u64),
    #[error("entry {0} was changed, or an entry before it")]
    Changed(u64),
    #[error("entry {0} is not the one that was noted: the log was written anew or cut off since")]
    NotAsNoted(u64),
}

/// Checks a log from its beginning, entry by entry.
#[derive(Debug, Default)]
pub struct Chain {
    head: Head,
    noted: Option<Head>,
}

impl Chain {
    /// The log must contain this entry, which was noted earlier.
    #[must_use]
    pub fn expect(mut self, noted: Option<Head>) -> Self {
        self.noted = noted.filter(|noted| noted.seq > 0);
        self
    }

    pub fn check(&mut self, record: &AuditRecord) -> Result<(), Broken> {
        if record.seq != self.head.seq + 1 {
            return Err(Broken::Missing(self.head.seq + 1));
        }
        if record.hash != record.hash_after(&self.head.hash) {
            return Err(Broken::Changed(record.seq));
        }
        self.head = Head {
            seq: record.seq,
            hash: record.hash.clone(),
        };
        match &self.noted {
            Some(noted) if noted.seq == record.seq && noted.hash != record.hash => {
                Err(Broken::NotAsNoted(record.seq))
            }
            _ => Ok(()),
        }
    }

    /// After the last entry.
    pub fn finish(self) -> Result<Head, Broken> {
        match self.noted {
            Some(noted) if noted.seq > self.head.seq => Err(Broken::NotAsNoted(noted.seq)),
            _ => Ok(self.head),
        }
    }
}

/// Keeps the log. A store adds entries about credentials and decisions by itself, together with what they are about.
pub trait AuditLog: Send + Sync + 'static {
    fn audit(&self, entry: AuditEntry) -> StoreFuture<'_, ()>;

    /// The first `limit` entries after the one with this number, in order.
    fn audit_page(&self, after: u64, limit: u32) -> StoreFuture<'_, Vec<AuditRecord>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Vec<AuditRecord> {
        let mut head = Head::default();
        let mut log = Vec::new();
        for number in 0..4 {
            let entry = AuditEntry::new(Actor::Nobody, Action::Refused, Timestamp(number)).with("n", number);
            let record = AuditRecord::after(&head, &entry);
            head = Head {
                seq: record.seq,
                hash: record.hash.clone(),
            };
            log.push(record);
        }
        log
    }

    fn checked(log: &[AuditRecord], noted: Option<Head>) -> Result<Head, Broken> {
        let mut chain = Chain::default().expect(noted);
        for record in log {
            chain.check(record)?;
        }
        chain.finish()
    }

    #[test]
    fn whatever_is_done_to_an_entry_is_noticed() {
        let whole = log();
        let head = checked(&whole, None).unwrap();
        assert_eq!(head.seq, 4);
        assert_eq!(head.to_string().parse(), Ok(head.clone()));

        let changes: [fn(&mut AuditRecord); 6] = [
            |record| record.at = Timestamp(99),
            |record| record.actor = "person".to_owned(),
            |record| record.action = "grant".to_owned(),
            |record| record.session = Some("s".to_owned()),
            |record| record.detail = "{}".to_owned(),
            |record| record.hash = "00".repeat(32),
        ];
        for change in changes {
            let mut log = whole.clone();
            change(&mut log[1]);
            assert_eq!(checked(&log, None), Err(Broken::Changed(2)));
        }
        let mut removed = whole.clone();
        removed.remove(1);
        assert_eq!(checked(&removed, None), Err(Broken::Missing(2)));

        // The end is noticed only by those who have noted it.
        assert!(checked(&whole[..3], None).is_ok());
        assert_eq!(
            checked(&whole[..3], Some(head.clone())),
            Err(Broken::NotAsNoted(4))
        );
        assert_eq!(checked(&whole, Some(head.clone())), Ok(head));
        let other = Head {
            seq: 2,
            hash: "00".repeat(32),
        };
        assert_eq!(checked(&whole, Some(other)), Err(Broken::NotAsNoted(2)));
    }
}
