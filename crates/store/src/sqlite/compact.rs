//! Removes streamed fragments that are no longer needed, in steps, so that other writers wait only for milliseconds.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_core::{StoreError, Timestamp};
use tiller_message::{PieceEntry, StreamedPieces};

use super::sessions::{END, START};
use super::{SqliteStore, store_error};

/// How many messages of a session are read at once.
const STRETCH: u32 = 2000;

/// How many sessions may fail before the failure is assumed not to concern a session.
const MOST_FAILURES: usize = 10;

/// How many pages are returned to the system in one transaction.
const PAGES: u32 = 1000;

/// A session that may have fragments to remove, and their range.
#[derive(Clone)]
struct Candidate {
    session: String,
    after: u64,
    to: u64,
}

impl SqliteStore {
    pub(super) async fn remove_pieces(&self, before: Timestamp) -> Result<u64, StoreError> {
        let candidates = self
            .read(move |connection| candidates(connection, before))
            .await?;
        let (mut removed, mut failures) = (0, Vec::new());
        for candidate in candidates {
            let session = candidate.session.clone();
            // A session that can't be read or written must not block the others, now or later.
            match self.remove_pieces_of(candidate).await {
                Ok(count) => removed += count,
                Err(error) => {
                    tracing::warn!(%error, session, "a session can't be compacted");
                    failures.push(error);
                }
            }
            if failures.len() == MOST_FAILURES {
                break;
            }
        }
        while removed > 0 && self.write_returning(give_back).await? > 0 {}
        failures.pop().map_or(Ok(removed), Err)
    }

    async fn remove_pieces_of(&self, candidate: Candidate) -> Result<u64, StoreError> {
        let Candidate { session, after, to } = candidate;
        let mut pieces = StreamedPieces::default();
        let (mut read, mut removed) = (after, 0);
        loop {
            let (id, from) = (session.clone(), read);
            let entries = self
                .read(move |connection| entries(connection, &id, from))
                .await?;
            let last = entries.last().map(|entry| entry.seq);
            for entry in entries {
                let old = entry.seq <= to;
                pieces.push(entry, old);
            }
            // Recent entries matter only for messages that begin before them.
            let undecided = pieces.first_undecided();
            let over = last.is_none_or(|last| last >= to && undecided.is_none());
            if over {
                pieces.finish();
            }
            let done = match (over, undecided) {
                (true, _) => to,
                (false, Some(undecided)) => undecided - 1,
                (false, None) => last.unwrap_or(to),
            };
            // The whole of a long message decides about very many fragments at once.
            let mut removable = pieces.take_removable();
            loop {
                let later = removable.split_off(removable.len().min(STRETCH as usize));
                let stretch = Stretch {
                    session: session.clone(),
                    done: if later.is_empty() { done } else { after },
                    removable,
                };
                let count = self
                    .write_returning(move |connection| remove_stretch(connection, &stretch))
                    .await?;
                let Some(count) = count else {
                    return Ok(removed);
                };
                removed += count;
                if later.is_empty() {
                    break;
                }
                removable = later;
            }
            match last {
                Some(last) if !over => read = last,
                _ => return Ok(removed),
            }
        }
    }
}

/// The fragments to remove from a session, and the position up to which that is then done.
struct Stretch {
    session: String,
    removable: Vec<u64>,
    done: u64,
}

/// The messages that follow `after`.
fn entries(connection: &Connection, session: &str, after: u64) -> Result<Vec<PieceEntry>, StoreError> {
    let sql = format!(
        "SELECT seq, data FROM messages \
         WHERE place > {START} + ?2 AND place < {START} + {END} ORDER BY place LIMIT ?3"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let rows = statement.query_map(params![session, after, STRETCH], |row| {
        // Not with SQLite's own JSON functions: they reject more than a thousand levels.
        let data = row.get_ref(1)?.as_bytes().unwrap_or_default();
        Ok(PieceEntry::read(row.get(0)?, data))
    });
    let all: rusqlite::Result<Vec<_>> = rows.map_err(store_error)?.collect();
    all.map_err(store_error)
}

/// Sessions without a running turn, as far as their events are older than `before`.
fn candidates(connection: &Connection, before: Timestamp) -> Result<Vec<Candidate>, StoreError> {
    let sql = "SELECT id, compacted_seq, last_old FROM \
                   (SELECT id, compacted_seq, \
                        (SELECT seq FROM messages \
                         WHERE place > (number << 32) + compacted_seq AND place <= (number << 32) + last_seq \
                           AND created_at < ?1 \
                         ORDER BY place DESC LIMIT 1) AS last_old \
                    FROM sessions WHERE status <> 'running' AND compacted_seq < last_seq) \
               WHERE last_old IS NOT NULL";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = statement.query_map([before.0], |row| {
        Ok(Candidate {
            session: row.get(0)?,
            after: row.get(1)?,
            to: row.get(2)?,
        })
    });
    let all: rusqlite::Result<Vec<_>> = rows.map_err(store_error)?.collect();
    all.map_err(store_error)
}

/// The number of removed rows. `None`: a turn has begun since, or the session was deleted; retried later.
fn remove_stretch(connection: &Connection, stretch: &Stretch) -> rusqlite::Result<Option<u64>> {
    let sql = "UPDATE sessions SET compacted_seq = max(compacted_seq, ?2) \
               WHERE id = ?1 AND status <> 'running' RETURNING number";
    let mut statement = connection.prepare_cached(sql)?;
    let rests = statement.query_row(params![stretch.session, stretch.done], |row| row.get(0));
    let Some(number) = rests.optional()? else {
        return Ok(None);
    };
    let number: i64 = number;
    let mut statement = connection.prepare_cached("DELETE FROM messages WHERE place = (?1 << 32) + ?2")?;
    let mut removed = 0;
    for seq in &stretch.removable {
        removed += statement.execute(params![number, seq])? as u64;
    }
    Ok(Some(removed))
}

/// The number of returned pages.
fn give_back(connection: &Connection) -> rusqlite::Result<u64> {
    let free = |connection: &Connection| {
        connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, u64>(0))
    };
    let before = free(connection)?;
    if before == 0 {
        return Ok(0);
    }
    // Returns one page for each row that is read from it.
    let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(before.saturating_sub(free(connection)?))
}
