//! Codes, sign-ins and keys: hashes only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_core::audit::{Actor, AuditEntry};
use tiller_core::credentials::{
    ApiKey, CredentialStore, RevokedSessions, SIGN_IN_LIFETIME, Scopes, SecretHash, SignIn, SignInId,
    SignInSecrets, SignInSource,
};
use tiller_core::rights::Ceiling;
use tiller_core::{Approval, StoreError, StoreFuture, Timestamp};

use super::{SqliteStore, audit, store_error};

/// The columns that a key is read from.
const KEY: &str = "name, scopes, created_at, approval, id, ceiling, last_used_at";

/// The columns that a sign-in is read from.
const SIGN_IN: &str = "id, user_agent, address, created_at, last_used_at, source";

impl SqliteStore {
    /// A write that reports whether it changed anything.
    async fn change(
        &self,
        mut work: impl FnMut(&Connection) -> rusqlite::Result<bool> + Send + 'static,
    ) -> Result<bool, StoreError> {
        let changed = Arc::new(AtomicBool::new(false));
        let report = Arc::clone(&changed);
        self.shared
            .writer
            .write(move |connection| {
                report.store(work(connection)?, Ordering::Relaxed);
                Ok(())
            })
            .await?;
        Ok(changed.load(Ordering::Relaxed))
    }
}

impl CredentialStore for SqliteStore {
    fn instance(&self) -> StoreFuture<'_, String> {
        Box::pin(self.read(|connection| {
            connection
                .query_row("SELECT id FROM instance", [], |row| row.get(0))
                .map_err(store_error)
        }))
    }

    fn add_code(&self, code: SecretHash, expires: Timestamp) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(move |connection| {
            let sql = "INSERT INTO login_codes (hash, expires_at) VALUES (?1, ?2)";
            connection
                .prepare_cached(sql)?
                .execute(params![code.to_hex(), expires.0])
                .map(drop)
        }))
    }

    fn redeem_code(
        &self,
        code: SecretHash,
        sign_in: SignIn,
        secrets: SignInSecrets,
        now: Timestamp,
    ) -> StoreFuture<'_, bool> {
        Box::pin(self.change(move |connection| {
            connection
                .prepare_cached("DELETE FROM login_codes WHERE expires_at <= ?1")?
                .execute([now.0])?;
            connection
                .prepare_cached("DELETE FROM sign_ins WHERE last_used_at <= ?1")?
                .execute([oldest_use(now)])?;
            let redeemed = connection
                .prepare_cached("DELETE FROM login_codes WHERE hash = ?1")?
                .execute([code.to_hex()])?
                == 1;
            if redeemed {
                let sql = "INSERT INTO sign_ins (id, cookie_hash, page_hash, user_agent, address, created_at, \
                           last_used_at, source) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let row = params![
                    sign_in.id.as_str(),
                    secrets.cookie.to_hex(),
                    secrets.page.to_hex(),
                    sign_in.user_agent,
                    sign_in.address,
                    sign_in.created_at.0,
                    sign_in.last_used_at.0,
                    sign_in.source.as_str(),
                ];
                connection.prepare_cached(sql)?.execute(row)?;
                audit::append(connection, &AuditEntry::signed_in(&sign_in))?;
            }
            Ok(redeemed)
        }))
    }

    fn sign_in_of_page(
        &self,
        page: SecretHash,
        now: Timestamp,
    ) -> StoreFuture<'_, Option<(SignIn, SecretHash)>> {
        Box::pin(self.read(move |connection| {
            let sql = format!(
                "SELECT {SIGN_IN}, cookie_hash FROM sign_ins WHERE page_hash = ?1 AND last_used_at > ?2"
            );
            let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
            statement
                .query_row(params![page.to_hex(), oldest_use(now)], |row| {
                    Ok((decode_sign_in(row)?, row.get::<_, String>(6)?))
                })
                .optional()
                .map(|found| {
                    found.and_then(|(sign_in, cookie)| Some((sign_in, SecretHash::from_hex(&cookie)?)))
                })
                .map_err(store_error)
        }))
    }

    fn sign_in(&self, id: SignInId, now: Timestamp) -> StoreFuture<'_, Option<SignIn>> {
        Box::pin(self.read(move |connection| {
            let sql = format!("SELECT {SIGN_IN} FROM sign_ins WHERE id = ?1 AND last_used_at > ?2");
            let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
            statement
                .query_row(params![id.as_str(), oldest_use(now)], decode_sign_in)
                .optional()
                .map_err(store_error)
        }))
    }

    fn touch_sign_in(&self, id: SignInId, now: Timestamp) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(move |connection| {
            let sql = "UPDATE sign_ins SET last_used_at = max(last_used_at, ?2) WHERE id = ?1";
            connection
                .prepare_cached(sql)?
                .execute(params![id.as_str(), now.0])
                .map(drop)
        }))
    }

    fn sign_ins(&self, now: Timestamp) -> StoreFuture<'_, Vec<SignIn>> {
        Box::pin(self.read(move |connection| {
            let sql = format!(
                "SELECT {SIGN_IN} FROM sign_ins WHERE last_used_at > ?1 ORDER BY last_used_at DESC, id"
            );
            let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
            let rows = statement
                .query_map([oldest_use(now)], decode_sign_in)
                .map_err(store_error)?;
            rows.collect::<Result<_, _>>().map_err(store_error)
        }))
    }

    fn end_sign_in(&self, id: SignInId, by: Actor) -> StoreFuture<'_, bool> {
        Box::pin(self.change(move |connection| {
            let sql = "DELETE FROM sign_ins WHERE id = ?1";
            let ended = connection.prepare_cached(sql)?.execute([id.as_str()])? == 1;
            if ended {
                audit::append(connection, &AuditEntry::signed_out(by.clone(), Some(&id)))?;
            }
            Ok(ended)
        }))
    }

    fn end_all_sign_ins(&self, by: Actor) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(move |connection| {
            // Printed links that were not used would sign in again.
            connection.execute("DELETE FROM login_codes", [])?;
            connection.execute("DELETE FROM sign_ins", [])?;
            audit::append(connection, &AuditEntry::signed_out(by.clone(), None))
        }))
    }

    fn end_sign_in_of_cookie(&self, cookie: SecretHash) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(move |connection| {
            connection
                .prepare_cached("DELETE FROM sign_ins WHERE cookie_hash = ?1")?
                .execute([cookie.to_hex()])
                .map(drop)
        }))
    }

    fn add_key(&self, key: ApiKey, hash: SecretHash, by: Actor) -> StoreFuture<'_, bool> {
        let ceiling = match serde_json::to_string(&key.ceiling) {
            Ok(ceiling) => ceiling,
            Err(error) => {
                let error = StoreError::Unavailable(error.to_string());
                return Box::pin(std::future::ready(Err(error)));
            }
        };
        Box::pin(self.change(move |connection| {
            let sql = "INSERT OR IGNORE INTO api_keys (name, hash, scopes, created_at, approval, id, ceiling) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let row = params![
                key.name,
                hash.to_hex(),
                key.scopes.to_string(),
                key.created_at.0,
                key.approval.map(Approval::as_str),
                key.id,
                ceiling,
            ];
            let added = connection.prepare_cached(sql)?.execute(row)? == 1;
            if added {
                audit::append(connection, &AuditEntry::key_created(by.clone(), &key))?;
            }
            Ok(added)
        }))
    }

    fn find_key(&self, hash: SecretHash) -> StoreFuture<'_, Option<ApiKey>> {
        Box::pin(self.read(move |connection| {
            let sql = format!("SELECT {KEY} FROM api_keys WHERE hash = ?1");
            let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
            statement
                .query_row([hash.to_hex()], decode_key)
                .optional()
                .map_err(store_error)
        }))
    }

    fn keys(&self) -> StoreFuture<'_, Vec<ApiKey>> {
        Box::pin(self.read(|connection| {
            let sql = format!("SELECT {KEY} FROM api_keys ORDER BY created_at, name");
            let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
            let rows = statement.query_map([], decode_key).map_err(store_error)?;
            rows.collect::<Result<_, _>>().map_err(store_error)
        }))
    }

    fn touch_key(&self, id: String, now: Timestamp) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(move |connection| {
            let sql = "UPDATE api_keys SET last_used_at = max(coalesce(last_used_at, 0), ?2) WHERE id = ?1";
            connection
                .prepare_cached(sql)?
                .execute(params![id, now.0])
                .map(drop)
        }))
    }

    fn revoke_key(&self, key: &str, sessions: RevokedSessions, by: Actor) -> StoreFuture<'_, bool> {
        let key = key.to_owned();
        Box::pin(self.change(move |connection| {
            // An id that someone gave another key as its name means the key with the id.
            let sql = "DELETE FROM api_keys WHERE id = coalesce( \
                       (SELECT id FROM api_keys WHERE id = ?1), (SELECT id FROM api_keys WHERE name = ?1)) \
                       RETURNING id, name";
            let revoked: Option<(String, String)> = connection
                .prepare_cached(sql)?
                .query_row([&key], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((id, name)) = revoked else {
                return Ok(false);
            };
            if sessions == RevokedSessions::Keep {
                let sql = "INSERT OR IGNORE INTO keys_with_kept_sessions (id) VALUES (?1)";
                connection.prepare_cached(sql)?.execute([&id])?;
            }
            audit::append(
                connection,
                &AuditEntry::key_revoked(by.clone(), &id, &name, sessions),
            )?;
            Ok(true)
        }))
    }

    fn keys_with_kept_sessions(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(self.read(|connection| {
            let sql = "SELECT id FROM keys_with_kept_sessions ORDER BY id";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            let rows = statement.query_map([], |row| row.get(0)).map_err(store_error)?;
            rows.collect::<Result<_, _>>().map_err(store_error)
        }))
    }

    fn check_writable(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(|connection| {
            // The same value: a page is written all the same, and nothing is to be taken back.
            connection
                .prepare_cached("UPDATE instance SET id = id")?
                .execute([])
                .map(drop)
        }))
    }
}

/// A sign-in that was last used then, or before, has ended.
fn oldest_use(now: Timestamp) -> i64 {
    now.0
        .saturating_sub(i64::try_from(SIGN_IN_LIFETIME.as_millis()).unwrap_or(i64::MAX))
}

fn decode_sign_in(row: &Row<'_>) -> rusqlite::Result<SignIn> {
    Ok(SignIn {
        id: SignInId::from(row.get::<_, String>(0)?),
        user_agent: row.get(1)?,
        address: row.get(2)?,
        created_at: Timestamp(row.get(3)?),
        last_used_at: Timestamp(row.get(4)?),
        // A kind that this version does not know is announced like a browser.
        source: SignInSource::parse(&row.get::<_, String>(5)?).unwrap_or_default(),
    })
}

fn decode_key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let (scopes, ceiling): (String, String) = (row.get(1)?, row.get(5)?);
    // A scope or a limit that this version does not know allows nothing.
    let nothing = Scopes {
        read: false,
        run: false,
        approve: false,
    };
    let (scopes, ceiling) = match (Scopes::parse(&scopes), serde_json::from_str(&ceiling)) {
        (Some(scopes), Ok(ceiling)) => (scopes, ceiling),
        _ => (nothing, Ceiling::default()),
    };
    Ok(ApiKey {
        id: row.get(4)?,
        name: row.get(0)?,
        scopes,
        ceiling,
        created_at: Timestamp(row.get(2)?),
        last_used_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
        // An unknown value means `ask`.
        approval: row
            .get::<_, Option<String>>(3)?
            .map(|name| Approval::parse(&name).unwrap_or(Approval::Ask)),
    })
}
