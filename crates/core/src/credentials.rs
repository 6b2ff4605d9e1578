//! Who may come in. Secrets are 256 random bits; only their hashes are kept.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::ids::Timestamp;
use crate::store::{StoreError, StoreFuture};

/// A secret in the clear: shown to its owner once, never stored, never logged.
pub struct Secret(String);

impl Secret {
    /// A new one. `prefix` tells a person, and scanners for leaked secrets, what it is.
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

/// What is kept of a secret. One round is enough: there is nothing to guess in 256 random bits.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    pub fn to_hex(self) -> String {
        hex(&self.0)
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
    /// Answer decisions.
    pub approve: bool,
}

impl Scopes {
    pub const ALL: Self = Self {
        read: true,
        run: true,
        approve: true,
    };

    /// Comma-separated names; `None` if one of them is unknown or there is none.
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

/// Someone who has come in: what they see and what they may do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Viewer {
    /// A key sees the sessions that were started with it. `None` is the person at the machine, who sees all.
    pub key: Option<String>,
    pub scopes: Scopes,
}

impl Viewer {
    /// The person at the machine.
    pub const PERSON: Self = Self {
        key: None,
        scopes: Scopes::ALL,
    };

    pub fn may_see(&self, owner: Option<&str>) -> bool {
        match &self.key {
            None => true,
            Some(key) => owner == Some(key),
        }
    }
}

/// A key for programs, as it is kept.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApiKey {
    pub name: String,
    pub scopes: Scopes,
    pub created_at: Timestamp,
}

/// Keeps credentials. The program's other commands write here while a server runs.
pub trait CredentialStore: Send + Sync + 'static {
    fn add_code(&self, code: SecretHash, expires: Timestamp) -> StoreFuture<'_, ()>;

    /// Exchanges a code, once, for a cookie. False if the code is unknown, used or too old.
    fn redeem_code(
        &self,
        code: SecretHash,
        cookie: SecretHash,
        cookie_expires: Timestamp,
        now: Timestamp,
    ) -> StoreFuture<'_, bool>;

    fn cookie_is_valid(&self, cookie: SecretHash, now: Timestamp) -> StoreFuture<'_, bool>;

    /// False if there is a key of that name.
    fn add_key(&self, key: ApiKey, hash: SecretHash) -> StoreFuture<'_, bool>;

    fn find_key(&self, hash: SecretHash) -> StoreFuture<'_, Option<ApiKey>>;

    fn keys(&self) -> StoreFuture<'_, Vec<ApiKey>>;

    /// False if there is no key of that name.
    fn revoke_key(&self, name: &str) -> StoreFuture<'_, bool>;
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
