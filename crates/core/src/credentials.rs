//! Credentials. Secrets are 256 random bits; only their hashes are stored.

mod new_key;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::audit::{Actor, AuditLog};
use crate::ids::Timestamp;
use crate::rights::Ceiling;
use crate::session::Approval;
use crate::store::{StoreError, StoreFuture};

pub use new_key::{KeyRefused, NewKey};

/// A secret in the clear: shown to its owner once, never stored, never logged.
pub struct Secret(String);

impl Secret {
    /// A new random secret. `prefix` tells people, and scanners for leaked secrets, what kind of secret it is.
    pub fn generate(prefix: &str) -> Result<Self, StoreError> {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self(format!("{prefix}{}", hex(&bytes))))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// The stored form of a secret. One round of hashing is enough: 256 random bits can't be guessed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    pub fn to_hex(self) -> String {
        hex(&self.0)
    }

    /// As [`Self::to_hex`] writes it.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0u8; 32];
        let digits = text.as_bytes();
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |index: usize| char::from(pair[index]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self(bytes))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
            text
        })
}

/// What a credential allows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Scopes {
    /// Look and watch.
    pub read: bool,
    /// Start, continue, stop, delete.
    pub run: bool,
    /// Answer decisions, and everything that grants: modes, rules, tools, hooks.
    pub approve: bool,
}

impl Scopes {
    pub const ALL: Self = Self {
        read: true,
        run: true,
        approve: true,
    };

    /// Parses comma-separated names. `None` if the list is empty or a name is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        let mut scopes = Self {
            read: false,
            run: false,
            approve: false,
        };
        for name in text.split(',').map(str::trim) {
            match name {
                "read" => scopes.read = true,
                "run" => scopes.run = true,
                "approve" => scopes.approve = true,
                _ => return None,
            }
        }
        Some(scopes)
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [("read", self.read), ("run", self.run), ("approve", self.approve)];
        let names: Vec<_> = names
            .into_iter()
            .filter_map(|(name, on)| on.then_some(name))
            .collect();
        formatter.write_str(&names.join(","))
    }
}

/// The holder of a credential: which sessions they see and what they may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Viewer {
    /// The id of a key, which sees the sessions that were started with it. `None`: the person at the machine, who sees
    /// all sessions.
    pub key: Option<String>,
    pub scopes: Scopes,
    /// The limits of the key. `None`: no limits beyond its scopes.
    pub ceiling: Option<Arc<Ceiling>>,
    /// The approval mode of sessions that they start without choosing one. `None`: the server's configuration decides.
    pub approval: Option<Approval>,
}

impl Viewer {
    /// The person at the machine.
    pub const PERSON: Self = Self {
        key: None,
        scopes: Scopes::ALL,
        approval: None,
        ceiling: None,
    };
}

/// An API key, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKey {
    /// Identifies the key. A new key with an earlier key's name has a new id and does not see the earlier key's
    /// sessions.
    pub id: String,
    pub name: String,
    pub ceiling: Ceiling,
    pub scopes: Scopes,
    /// The approval mode of sessions that are started with the key without choosing one. `None`: the server's
    /// configuration decides.
    pub approval: Option<Approval>,
    pub created_at: Timestamp,
    /// To within a few minutes. `None`: it was never used.
    pub last_used_at: Option<Timestamp>,
}

/// What becomes of the sessions of a key that is revoked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RevokedSessions {
    /// Running turns are stopped, and prompts that wait are taken out of their queues.
    #[default]
    Stop,
    /// They go on, and are the person's to steer.
    Keep,
}

impl RevokedSessions {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Keep => "keep",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Stop, Self::Keep]
            .into_iter()
            .find(|sessions| sessions.as_str() == text)
    }
}

/// How long a sign-in stays valid without being used.
pub const SIGN_IN_LIFETIME: Duration = Duration::from_hours(7 * 24);

/// How much of a browser's own description is kept.
const MAX_USER_AGENT: usize = 300;

/// The id of a sign-in. It is not secret.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SignInId(String);

impl ApiKey {
    /// A random id for a new key. It is not secret.
    pub fn new_id() -> Result<String, StoreError> {
        let mut bytes = [0u8; 8];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(format!("key_{}", hex(&bytes)))
    }
}

/// What has signed in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SignInSource {
    #[default]
    Browser,
    /// A command of this program, for as long as the command runs.
    Command,
}

impl SignInSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Command => "command",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Browser, Self::Command]
            .into_iter()
            .find(|source| source.as_str() == text)
    }

    pub(crate) fn actor(self) -> Actor {
        match self {
            Self::Browser => Actor::Person,
            Self::Command => Actor::CommandLine,
        }
    }
}

impl SignInId {
    pub fn generate() -> Result<Self, StoreError> {
        let mut bytes = [0u8; 8];
        getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self(hex(&bytes)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for SignInId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

/// A browser, or a command of this program, that is signed in as the person at the machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SignIn {
    pub id: SignInId,
    pub source: SignInSource,
    /// The browser's `User-Agent`.
    pub user_agent: String,
    /// The address from which it signed in.
    pub address: String,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
}

impl SignIn {
    pub fn new(user_agent: &str, address: impl Into<String>, now: Timestamp) -> Result<Self, StoreError> {
        let visible = user_agent.chars().filter(|character| !character.is_control());
        Ok(Self {
            id: SignInId::generate()?,
            source: SignInSource::Browser,
            user_agent: visible.take(MAX_USER_AGENT).collect(),
            address: address.into(),
            created_at: now,
            last_used_at: now,
        })
    }
}

/// The two halves of a sign-in. The browser sends the cookie to every port of the host; the page's secret never leaves
/// the page's origin. Each half is useless without the other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SignInSecrets {
    pub cookie: SecretHash,
    pub page: SecretHash,
}

/// Stores credentials. Other commands of the program write here while a server runs. What is created, used or ended here is in
/// the audit log when a method returns.
pub trait CredentialStore: AuditLog {
    /// A random id of this data folder, created with it. It distinguishes the cookies of several servers on one host.
    fn instance(&self) -> StoreFuture<'_, String>;

    fn add_code(&self, code: SecretHash, expires: Timestamp) -> StoreFuture<'_, ()>;

    /// Exchanges a code, once, for a sign-in. False if the code is unknown, used or too old.
    fn redeem_code(
        &self,
        code: SecretHash,
        sign_in: SignIn,
        secrets: SignInSecrets,
        now: Timestamp,
    ) -> StoreFuture<'_, bool>;

    /// The sign-in that a page's secret belongs to, with the hash of its cookie.
    fn sign_in_of_page(
        &self,
        page: SecretHash,
        now: Timestamp,
    ) -> StoreFuture<'_, Option<(SignIn, SecretHash)>>;

    /// `None` if the sign-in has ended.
    fn sign_in(&self, id: SignInId, now: Timestamp) -> StoreFuture<'_, Option<SignIn>>;

    /// Records that a sign-in was used. A sign-in ends [`SIGN_IN_LIFETIME`] after its last use.
    fn touch_sign_in(&self, id: SignInId, now: Timestamp) -> StoreFuture<'_, ()>;

    /// All valid sign-ins, the most recently used first.
    fn sign_ins(&self, now: Timestamp) -> StoreFuture<'_, Vec<SignIn>>;

    /// False if no sign-in has that id.
    fn end_sign_in(&self, id: SignInId, by: Actor) -> StoreFuture<'_, bool>;

    fn end_all_sign_ins(&self, by: Actor) -> StoreFuture<'_, ()>;

    /// Ends the sign-in with this cookie, if there is one.
    fn end_sign_in_of_cookie(&self, cookie: SecretHash) -> StoreFuture<'_, ()>;

    /// False if a key with this name exists.
    fn add_key(&self, key: ApiKey, hash: SecretHash, by: Actor) -> StoreFuture<'_, bool>;

    fn find_key(&self, hash: SecretHash) -> StoreFuture<'_, Option<ApiKey>>;

    fn keys(&self) -> StoreFuture<'_, Vec<ApiKey>>;

    /// Notes that a key was used.
    fn touch_key(&self, id: String, now: Timestamp) -> StoreFuture<'_, ()>;

    /// Revokes a key by name or id. False if there is no such key.
    fn revoke_key(&self, key: &str, sessions: RevokedSessions, by: Actor) -> StoreFuture<'_, bool>;

    /// The ids of the keys that were revoked with [`RevokedSessions::Keep`].
    fn keys_with_kept_sessions(&self) -> StoreFuture<'_, Vec<String>>;

    /// Whether the store can be written to right now.
    fn check_writable(&self) -> StoreFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_hash_to_the_same_each_time() {
        let (one, other) = (
            Secret::generate("tiller_").unwrap(),
            Secret::generate("tiller_").unwrap(),
        );
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), "tiller_".len() + 64);
        assert_eq!(one.hash(), SecretHash::of(one.expose()));
        assert_eq!(SecretHash::from_hex(&one.hash().to_hex()), Some(one.hash()));
        assert_eq!(SecretHash::from_hex("zz"), None);
        assert_eq!(format!("{one:?}"), "Secret(…)");
    }

    #[test]
    fn scopes_are_read_as_they_are_written() {
        assert_eq!(
            Scopes::parse("read, run"),
            Some(Scopes {
                read: true,
                run: true,
                approve: false
            })
        );
        assert_eq!(Scopes::ALL.to_string(), "read,run,approve");
        assert_eq!(Scopes::parse("admin"), None);
        assert_eq!(Scopes::parse(""), None);
    }
}
