//! Codes, cookies and keys: hashes only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OptionalExtension, Row, params};
use tiller_core::credentials::{ApiKey, CredentialStore, Scopes, SecretHash};
use tiller_core::{StoreError, StoreFuture, Timestamp};

use super::{SqliteStore, store_error};

impl SqliteStore {
    /// A write that tells whether it changed anything.
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
        cookie: SecretHash,
        cookie_expires: Timestamp,
        now: Timestamp,
    ) -> StoreFuture<'_, bool> {
        Box::pin(self.change(move |connection| {
            connection
                .prepare_cached("DELETE FROM login_codes WHERE expires_at <= ?1")?
                .execute([now.0])?;
            connection
                .prepare_cached("DELETE FROM cookies WHERE expires_at <= ?1")?
                .execute([now.0])?;
            let redeemed = connection
                .prepare_cached("DELETE FROM login_codes WHERE hash = ?1")?
                .execute([code.to_hex()])?
                == 1;
            if redeemed {
                let sql = "INSERT INTO cookies (hash, created_at, expires_at) VALUES (?1, ?2, ?3)";
                connection
                    .prepare_cached(sql)?
                    .execute(params![cookie.to_hex(), now.0, cookie_expires.0])?;
            }
            Ok(redeemed)
        }))
    }

    fn cookie_is_valid(&self, cookie: SecretHash, now: Timestamp) -> StoreFuture<'_, bool> {
        Box::pin(self.read(move |connection| {
            let sql = "SELECT 1 FROM cookies WHERE hash = ?1 AND expires_at > ?2";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            statement
                .exists(params![cookie.to_hex(), now.0])
                .map_err(store_error)
        }))
    }

    fn add_key(&self, key: ApiKey, hash: SecretHash) -> StoreFuture<'_, bool> {
        Box::pin(self.change(move |connection| {
            let sql =
                "INSERT OR IGNORE INTO api_keys (name, hash, scopes, created_at) VALUES (?1, ?2, ?3, ?4)";
            let row = params![key.name, hash.to_hex(), key.scopes.to_string(), key.created_at.0];
            Ok(connection.prepare_cached(sql)?.execute(row)? == 1)
        }))
    }

    fn find_key(&self, hash: SecretHash) -> StoreFuture<'_, Option<ApiKey>> {
        Box::pin(self.read(move |connection| {
            let sql = "SELECT name, scopes, created_at FROM api_keys WHERE hash = ?1";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            statement
                .query_row([hash.to_hex()], decode_key)
                .optional()
                .map_err(store_error)
        }))
    }

    fn keys(&self) -> StoreFuture<'_, Vec<ApiKey>> {
        Box::pin(self.read(|connection| {
            let sql = "SELECT name, scopes, created_at FROM api_keys ORDER BY created_at, name";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            let rows = statement.query_map([], decode_key).map_err(store_error)?;
            rows.collect::<Result<_, _>>().map_err(store_error)
        }))
    }

    fn revoke_key(&self, name: &str) -> StoreFuture<'_, bool> {
        let name = name.to_owned();
        Box::pin(self.change(move |connection| {
            Ok(connection
                .prepare_cached("DELETE FROM api_keys WHERE name = ?1")?
                .execute([&name])?
                == 1)
        }))
    }
}

fn decode_key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let scopes: String = row.get(1)?;
    Ok(ApiKey {
        name: row.get(0)?,
        // A scope that this version does not know allows nothing.
        scopes: Scopes::parse(&scopes).unwrap_or(Scopes {
            read: false,
            run: false,
            approve: false,
        }),
        created_at: Timestamp(row.get(2)?),
    })
}
