//! Codes, sign-ins and keys.

use std::collections::HashMap;

use tiller_core::audit::{Actor, AuditEntry};
use tiller_core::credentials::{
    ApiKey, CredentialStore, RevokedSessions, SIGN_IN_LIFETIME, SecretHash, SignIn, SignInId, SignInSecrets,
};
use tiller_core::{StoreFuture, Timestamp};

use super::MemoryStore;

#[derive(Clone)]
pub(super) struct Credentials {
    instance: String,
    /// With the time at which each expires.
    codes: HashMap<SecretHash, Timestamp>,
    sign_ins: Vec<(SignIn, SignInSecrets)>,
    keys: Vec<(ApiKey, SecretHash)>,
    /// Of keys that were revoked.
    with_kept_sessions: Vec<String>,
}

impl Credentials {
    pub(super) fn new() -> Self {
        Self {
            instance: uuid::Uuid::new_v4().simple().to_string(),
            codes: HashMap::new(),
            sign_ins: Vec::new(),
            keys: Vec::new(),
            with_kept_sessions: Vec::new(),
        }
    }

    /// Those that are valid at that time.
    fn good(&self, now: Timestamp) -> impl Iterator<Item = &(SignIn, SignInSecrets)> {
        self.sign_ins
            .iter()
            .filter(move |(sign_in, _)| is_good(sign_in, now))
    }

    /// Removes the sign-ins for which `is_over` returns true. Returns whether there were any.
    fn end(&mut self, is_over: impl Fn(&SignIn, &SignInSecrets) -> bool) -> bool {
        let before = self.sign_ins.len();
        self.sign_ins
            .retain(|(sign_in, secrets)| !is_over(sign_in, secrets));
        self.sign_ins.len() < before
    }
}

fn is_good(sign_in: &SignIn, now: Timestamp) -> bool {
    let lifetime = i64::try_from(SIGN_IN_LIFETIME.as_millis()).unwrap_or(i64::MAX);
    sign_in.last_used_at.0 > now.0.saturating_sub(lifetime)
}

impl CredentialStore for MemoryStore {
    fn instance(&self) -> StoreFuture<'_, String> {
        self.read(|data| Ok(data.credentials.instance.clone()))
    }

    fn add_code(&self, code: SecretHash, expires: Timestamp) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            data.credentials.codes.insert(code, expires);
            Ok(())
        })
    }

    fn redeem_code(
        &self,
        code: SecretHash,
        sign_in: SignIn,
        secrets: SignInSecrets,
        now: Timestamp,
    ) -> StoreFuture<'_, bool> {
        self.write(move |data| {
            let credentials = &mut data.credentials;
            credentials.codes.retain(|_, expires| *expires > now);
            credentials.end(|sign_in, _| !is_good(sign_in, now));
            let redeemed = credentials.codes.remove(&code).is_some();
            if redeemed {
                let entry = AuditEntry::signed_in(&sign_in);
                credentials.sign_ins.push((sign_in, secrets));
                data.append(&entry);
            }
            Ok(redeemed)
        })
    }

    fn sign_in_of_page(
        &self,
        page: SecretHash,
        now: Timestamp,
    ) -> StoreFuture<'_, Option<(SignIn, SecretHash)>> {
        self.read(move |data| {
            let mut good = data.credentials.good(now);
            let found = good.find(|(_, secrets)| secrets.page == page);
            Ok(found.map(|(sign_in, secrets)| (sign_in.clone(), secrets.cookie)))
        })
    }

    fn sign_in(&self, id: SignInId, now: Timestamp) -> StoreFuture<'_, Option<SignIn>> {
        self.read(move |data| {
            let mut good = data.credentials.good(now);
            let found = good.find(|(sign_in, _)| sign_in.id == id);
            Ok(found.map(|(sign_in, _)| sign_in.clone()))
        })
    }

    fn touch_sign_in(&self, id: SignInId, now: Timestamp) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            for (sign_in, _) in &mut data.credentials.sign_ins {
                if sign_in.id == id {
                    sign_in.last_used_at = now;
                }
            }
            Ok(())
        })
    }

    fn sign_ins(&self, now: Timestamp) -> StoreFuture<'_, Vec<SignIn>> {
        self.read(move |data| {
            let good = data.credentials.good(now);
            let mut good: Vec<_> = good.map(|(sign_in, _)| sign_in.clone()).collect();
            good.sort_by(|a, b| {
                let newest_first = b.last_used_at.cmp(&a.last_used_at);
                newest_first.then_with(|| a.id.as_str().cmp(b.id.as_str()))
            });
            Ok(good)
        })
    }

    fn end_sign_in(&self, id: SignInId, by: Actor) -> StoreFuture<'_, bool> {
        self.write(move |data| {
            let ended = data.credentials.end(|sign_in, _| sign_in.id == id);
            if ended {
                data.append(&AuditEntry::signed_out(by, Some(&id)));
            }
            Ok(ended)
        })
    }

    fn end_all_sign_ins(&self, by: Actor) -> StoreFuture<'_, ()> {
        self.write(|data| {
            data.credentials.sign_ins.clear();
            // A printed link that was not used would sign in again.
            data.credentials.codes.clear();
            data.append(&AuditEntry::signed_out(by, None));
            Ok(())
        })
    }

    fn end_sign_in_of_cookie(&self, cookie: SecretHash) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            data.credentials.end(|_, secrets| secrets.cookie == cookie);
            Ok(())
        })
    }

    fn add_key(&self, key: ApiKey, hash: SecretHash, by: Actor) -> StoreFuture<'_, bool> {
        self.write(move |data| {
            let keys = &mut data.credentials.keys;
            let is_taken = |(found, found_hash): &(ApiKey, SecretHash)| {
                found.name == key.name || found.id == key.id || *found_hash == hash
            };
            if keys.iter().any(is_taken) {
                return Ok(false);
            }
            let entry = AuditEntry::key_created(by, &key);
            keys.push((key, hash));
            data.append(&entry);
            Ok(true)
        })
    }

    fn find_key(&self, hash: SecretHash) -> StoreFuture<'_, Option<ApiKey>> {
        self.read(move |data| {
            let mut keys = data.credentials.keys.iter();
            let found = keys.find(|(_, found)| *found == hash);
            Ok(found.map(|(key, _)| key.clone()))
        })
    }

    fn keys(&self) -> StoreFuture<'_, Vec<ApiKey>> {
        self.read(|data| {
            let keys = data.credentials.keys.iter();
            let mut keys: Vec<_> = keys.map(|(key, _)| key.clone()).collect();
            keys.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
            Ok(keys)
        })
    }

    fn touch_key(&self, id: String, now: Timestamp) -> StoreFuture<'_, ()> {
        self.write(move |data| {
            for (key, _) in &mut data.credentials.keys {
                if key.id == id {
                    key.last_used_at = key.last_used_at.max(Some(now));
                }
            }
            Ok(())
        })
    }

    fn revoke_key(&self, key: &str, sessions: RevokedSessions, by: Actor) -> StoreFuture<'_, bool> {
        let key = key.to_owned();
        self.write(move |data| {
            let keys = &mut data.credentials.keys;
            let place = keys.iter().position(|(found, _)| found.id == key);
            let place = place.or_else(|| keys.iter().position(|(found, _)| found.name == key));
            let Some(place) = place else {
                return Ok(false);
            };
            let (revoked, _) = keys.remove(place);
            if sessions == RevokedSessions::Keep {
                data.credentials.with_kept_sessions.push(revoked.id.clone());
            }
            data.append(&AuditEntry::key_revoked(by, &revoked.id, &revoked.name, sessions));
            Ok(true)
        })
    }

    fn keys_with_kept_sessions(&self) -> StoreFuture<'_, Vec<String>> {
        self.read(|data| {
            let mut ids = data.credentials.with_kept_sessions.clone();
            ids.sort();
            Ok(ids)
        })
    }

    fn check_writable(&self) -> StoreFuture<'_, ()> {
        self.write(|_| Ok(()))
    }
}
