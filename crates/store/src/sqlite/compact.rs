//! Takes out what nobody needs any more, a little at a time, so that whoever writes waits for milliseconds only.

use rusqlite::{Connection, params};
use tiller_core::{StoreError, Timestamp};

use super::sessions::START;
use super::{SqliteStore, store_error};

/// How many events of a session are looked at in one transaction.
const STRETCH: u64 = 2000;

/// How many pages are given back to the system in one transaction.
const PAGES: u32 = 1000;

/// A session that may have something to take out, and from where to where.
struct Stretch {
    session: String,
    after: u64,
    to: u64,
}

impl SqliteStore {
    pub(super) async fn take_out_pieces(&self, before: Timestamp) -> Result<u64, StoreError> {
        let candidates = self
            .read(move |connection| candidates(connection, before))
            .await?;
        let mut removed = 0;
        for whole in candidates {
            let mut after = whole.after;
            while after < whole.to {
                let to = whole.to.min(after + STRETCH);
                let stretch = Stretch {
                    session: whole.session.clone(),
                    after,
                    to,
                };
                let count = self
                    .write_returning(move |connection| take_out(connection, &stretch))
                    .await?;
                removed += count;
                after = to;
            }
        }
        while removed > 0 && self.write_returning(give_back).await? > 0 {}
        Ok(removed)
    }
}

/// Sessions without a running turn, as far as their events are older than `before`.
fn candidates(connection: &Connection, before: Timestamp) -> Result<Vec<Stretch>, StoreError> {
    let sql = "SELECT id, compacted_seq, \
                   coalesce((SELECT seq FROM messages \
                       WHERE place > (number << 32) + compacted_seq AND place <= (number << 32) + last_seq \
                         AND created_at < ?1 \
                       ORDER BY place DESC LIMIT 1), 0) \
               FROM sessions WHERE status <> 'running' AND compacted_seq < last_seq";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = statement.query_map([before.0], |row| {
        Ok(Stretch {
            session: row.get(0)?,
            after: row.get(1)?,
            to: row.get(2)?,
        })
    });
    let all: rusqlite::Result<Vec<_>> = rows.map_err(store_error)?.collect();
    all.map_err(store_error)
}

fn take_out(connection: &Connection, stretch: &Stretch) -> rusqlite::Result<u64> {
    let Stretch { session, after, to } = stretch;
    // A turn may have begun since; then another time.
    let sql = format!(
        "DELETE FROM messages WHERE place > {START} + ?2 AND place <= {START} + ?3 \
           AND data ->> '$.type' = 'stream_event' \
           AND (SELECT status FROM sessions WHERE id = ?1) <> 'running'"
    );
    let removed = connection
        .prepare_cached(&sql)?
        .execute(params![session, after, to])?;
    let sql = "UPDATE sessions SET compacted_seq = ?2 WHERE id = ?1 AND status <> 'running'";
    connection.prepare_cached(sql)?.execute(params![session, to])?;
    Ok(removed as u64)
}

/// How many pages were given back.
fn give_back(connection: &Connection) -> rusqlite::Result<u64> {
    let free = |connection: &Connection| {
        connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, u64>(0))
    };
    let before = free(connection)?;
    if before == 0 {
        return Ok(0);
    }
    // Gives back a page for each row that is asked of it.
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(before.saturating_sub(free(connection)?))
}
