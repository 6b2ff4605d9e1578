//! Codes, sign-ins and keys: hashes only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_core::credentials::{
    ApiKey, CredentialStore, SIGN_IN_LIFETIME, Scopes, SecretHash, SignIn, SignInId, SignInSecrets,
};
use tiller_core::rights::Ceiling;
use tiller_core::{Approval, StoreError, StoreFuture, Timestamp};

use super::{SqliteStore, store_error};

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
                           last_used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
                let row = params![
                    sign_in.id.as_str(),
                    secrets.cookie.to_hex(),
                    secrets.page.to_hex(),
                    sign_in.user_agent,
                    sign_in.address,
                    sign_in.created_at.0,
                    sign_in.last_used_at.0,
                ];
                connection.prepare_cached(sql)?.execute(row)?;
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
            let sql = "SELECT id, user_agent, address, created_at, last_used_at, cookie_hash FROM sign_ins \
                       WHERE page_hash = ?1 AND last_used_at > ?2";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            statement
                .query_row(params![page.to_hex(), oldest_use(now)], |row| {
                    Ok((decode_sign_in(row)?, row.get::<_, String>(5)?))
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
            let sql = "SELECT id, user_agent, address, created_at, last_used_at FROM sign_ins \
                       WHERE id = ?1 AND last_used_at > ?2";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
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
            let sql = "SELECT id, user_agent, address, created_at, last_used_at FROM sign_ins \
                       WHERE last_used_at > ?1 ORDER BY last_used_at DESC, id";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            let rows = statement
                .query_map([oldest_use(now)], decode_sign_in)
                .map_err(store_error)?;
            rows.collect::<Result<_, _>>().map_err(store_error)
        }))
    }

    fn end_sign_in(&self, id: SignInId) -> StoreFuture<'_, bool> {
        Box::pin(self.change(move |connection| {
            let sql = "DELETE FROM sign_ins WHERE id = ?1";
            Ok(connection.prepare_cached(sql)?.execute([id.as_str()])? == 1)
        }))
    }

    fn end_all_sign_ins(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(|connection| {
            // Printed links that were not used would sign in again.
            connection.execute("DELETE FROM login_codes", [])?;
            connection.execute("DELETE FROM sign_ins", []).map(drop)
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

    fn add_key(&self, key: ApiKey, hash: SecretHash) -> StoreFuture<'_, bool> {
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
            Ok(connection.prepare_cached(sql)?.execute(row)? == 1)
        }))
    }

    fn find_key(&self, hash: SecretHash) -> StoreFuture<'_, Option<ApiKey>> {
        Box::pin(self.read(move |connection| {
            let sql = "SELECT name, scopes, created_at, approval, id, ceiling FROM api_keys WHERE hash = ?1";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            statement
                .query_row([hash.to_hex()], decode_key)
                .optional()
                .map_err(store_error)
        }))
    }

    fn keys(&self) -> StoreFuture<'_, Vec<ApiKey>> {
        Box::pin(self.read(|connection| {
            let sql = "SELECT name, scopes, created_at, approval, id, ceiling FROM api_keys ORDER BY created_at, name";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            let rows = statement.query_map([], decode_key).map_err(store_error)?;
            rows.collect::<Result<_, _>>().map_err(store_error)
        }))
    }

    fn revoke_key(&self, key: &str) -> StoreFuture<'_, bool> {
        let key = key.to_owned();
        Box::pin(self.change(move |connection| {
            Ok(connection
                .prepare_cached("DELETE FROM api_keys WHERE name = ?1 OR id = ?1")?
                .execute([&key])?
                == 1)
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
        // An unknown value means `ask`.
        approval: row
            .get::<_, Option<String>>(3)?
            .map(|name| Approval::parse(&name).unwrap_or(Approval::Ask)),
    })
}
