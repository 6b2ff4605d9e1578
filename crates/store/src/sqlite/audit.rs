//! The audit log, one row for each entry.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_core::audit::{AuditEntry, AuditLog, AuditRecord, Head};
use tiller_core::{StoreFuture, Timestamp};

use super::{SqliteStore, store_error};

impl AuditLog for SqliteStore {
    fn audit(&self, entry: AuditEntry) -> StoreFuture<'_, ()> {
        Box::pin(
            self.shared
                .writer
                .write(move |connection| append(connection, &entry)),
        )
    }

    fn audit_page(&self, after: u64, limit: u32) -> StoreFuture<'_, Vec<AuditRecord>> {
        Box::pin(self.read(move |connection| {
            let sql = "SELECT seq, at, actor, action, session_id, detail, hash FROM audit \
                       WHERE seq > ?1 ORDER BY seq LIMIT ?2";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            // What does not fit is beyond every entry.
            let after = i64::try_from(after).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![after, limit], |row| {
                Ok(AuditRecord {
                    seq: row.get(0)?,
                    at: Timestamp(row.get(1)?),
                    actor: row.get(2)?,
                    action: row.get(3)?,
                    session: row.get(4)?,
                    detail: row.get(5)?,
                    hash: row.get(6)?,
                })
            });
            let rows = rows.map_err(store_error)?;
            rows.collect::<Result<_, _>>().map_err(store_error)
        }))
    }
}

/// Adds an entry in the transaction of what it is about. Writers of all processes take turns, so the last row is the last.
pub(super) fn append(connection: &Connection, entry: &AuditEntry) -> rusqlite::Result<()> {
    let sql = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1";
    let last = connection
        .prepare_cached(sql)?
        .query_row([], |row| {
            Ok(Head {
                seq: row.get(0)?,
                hash: row.get(1)?,
            })
        })
        .optional()?;
    let record = AuditRecord::after(&last.unwrap_or_default(), entry);
    let sql = "INSERT INTO audit (seq, at, actor, action, session_id, detail, hash) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let values = params![
        record.seq,
        record.at.0,
        record.actor,
        record.action,
        record.session,
        record.detail,
        record.hash
    ];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}
