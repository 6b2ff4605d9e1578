//! Copies and deletes whole sessions in steps, so that other writers wait only for milliseconds.
//!
//! Meanwhile the session has no row in `sessions` but one in `unfinished_sessions`, which keeps its number. So nobody
//! sees half of it: a copy appears with its last step, and a deleted session disappears with the first. If the process
//! dies in between, the rest is removed at the next start.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_core::{Extent, SessionId, SessionRecord, StoreError};

use super::sessions::{NEXT_NUMBER, write_session_as};
use super::{SqliteStore, store_error};

/// How much one transaction copies or deletes: this many rows, or this many bytes.
const ROWS: u32 = 2000;
const BYTES: u64 = 1 << 20;

/// The tables of which a session may have so much that it is deleted in steps.
const LARGE: [&str; 4] = ["messages", "events", "decisions", "images"];

/// A session that is not complete.
#[derive(Clone, Debug)]
struct Part {
    number: i64,
    id: String,
}

/// A session that is being copied, and how far.
#[derive(Clone)]
struct Copy {
    source: Part,
    target: Part,
    /// The position of the last message to copy.
    to: i64,
    /// What is left out: the places after which and through which.
    without: Vec<(i64, i64)>,
    /// The position of the last copied message, and how many were copied.
    copied: i64,
    count: u32,
}

impl SqliteStore {
    /// Removes what earlier processes left unfinished. For the one server that uses the file, before it writes anything
    /// itself.
    pub async fn remove_remains(&self) -> Result<(), StoreError> {
        for part in self.read(remains).await? {
            self.clear(&part).await?;
        }
        Ok(())
    }

    pub(super) async fn remove(&self, session: SessionId) -> Result<(), StoreError> {
        let removed = self
            .write_returning(move |connection| put_aside(connection, session))
            .await?;
        let Some(part) = removed else { return Ok(()) };
        let store = self.clone();
        // In its own task: the caller may be dropped meanwhile.
        let outcome = tokio::spawn(async move { store.clear(&part).await }).await;
        // No reader sees it any more, so this is not an error: the rest is removed at the next start.
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a deleted session still takes room"),
            Err(error) => tracing::warn!(%error, "a deleted session still takes room"),
        }
        Ok(())
    }

    /// The number of the copy's last event.
    pub(super) async fn copy(
        &self,
        source: SessionId,
        record: SessionRecord,
        extent: Extent,
    ) -> Result<u64, StoreError> {
        let store = self.clone();
        // In its own task: the caller may be dropped meanwhile.
        let copied = tokio::spawn(async move {
            let id = record.id;
            let copy = store
                .write_returning(move |connection| begin_copy(connection, source, id, &extent))
                .await?;
            let target = copy.target.clone();
            let copied = store.copy_all(copy, record).await;
            if copied.is_err()
                && let Err(error) = store.clear(&target).await
            {
                tracing::warn!(%error, "a session that could not be copied still takes room");
            }
            copied
        });
        copied
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))?
    }

    async fn copy_all(&self, mut copy: Copy, mut record: SessionRecord) -> Result<u64, StoreError> {
        loop {
            let stretch = copy.clone();
            let next = self
                .write_returning(move |connection| copy_messages(connection, &stretch))
                .await?;
            let Some(next) = next else { break };
            copy = next;
        }
        let mut image = Some(String::new());
        while let Some(after) = image {
            let stretch = copy.clone();
            image = self
                .write_returning(move |connection| copy_image(connection, &stretch, &after))
                .await?;
        }
        let decisions = copy.clone();
        self.write_returning(move |connection| copy_decisions(connection, &decisions))
            .await?;
        record.last_seq = u64::from(copy.count);
        let target = copy.target;
        self.write_returning(move |connection| appear(connection, &target, &record))
            .await?;
        Ok(u64::from(copy.count))
    }

    async fn clear(&self, part: &Part) -> Result<(), StoreError> {
        loop {
            let stretch = part.clone();
            if !self
                .write_returning(move |connection| clear_some(connection, &stretch))
                .await?
            {
                return Ok(());
            }
        }
    }
}

/// Removes what is left of earlier sessions with this id, all at once: another one is about to begin.
pub(super) fn make_room(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    let sql = "SELECT number FROM unfinished_sessions WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    while let Some(number) = statement.query_row([id], |row| row.get(0)).optional()? {
        let id = id.to_owned();
        let part = Part { number, id };
        while clear_some(connection, &part)? {}
    }
    Ok(())
}

fn remains(connection: &Connection) -> Result<Vec<Part>, StoreError> {
    let sql = "SELECT number, id FROM unfinished_sessions";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = statement.query_map([], |row| {
        Ok(Part {
            number: row.get(0)?,
            id: row.get(1)?,
        })
    });
    let all: rusqlite::Result<Vec<_>> = rows.map_err(store_error)?.collect();
    all.map_err(store_error)
}

/// Hides a session from all readers. `None` if it does not exist.
fn put_aside(connection: &Connection, session: SessionId) -> rusqlite::Result<Option<Part>> {
    let id = session.to_string();
    for table in tables_of_sessions(connection)? {
        if !LARGE.contains(&table.as_str()) {
            let sql = format!("DELETE FROM {table} WHERE session_id = ?1");
            connection.prepare_cached(&sql)?.execute([&id])?;
        }
    }
    let sql = "DELETE FROM sessions WHERE id = ?1 RETURNING number";
    let mut statement = connection.prepare_cached(sql)?;
    let Some(number) = statement.query_row([&id], |row| row.get(0)).optional()? else {
        return Ok(None);
    };
    let part = Part { number, id };
    set_aside(connection, &part)?;
    Ok(Some(part))
}

/// The tables whose rows belong to a session and are deleted with it.
fn tables_of_sessions(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT tables.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns \
               WHERE tables.type = 'table' AND columns.name = 'session_id'";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn set_aside(connection: &Connection, part: &Part) -> rusqlite::Result<()> {
    let sql = "INSERT INTO unfinished_sessions (number, id) VALUES (?1, ?2)";
    connection
        .prepare_cached(sql)?
        .execute(params![part.number, part.id])
        .map(drop)
}

/// Another session with that id may have begun since; then the rows in the two tables belong to it.
fn is_set_aside(connection: &Connection, part: &Part) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM unfinished_sessions WHERE number = ?1 AND id = ?2";
    connection
        .prepare_cached(sql)?
        .exists(params![part.number, part.id])
}

/// Deletes one step of it. False if that was the last one.
fn clear_some(connection: &Connection, part: &Part) -> rusqlite::Result<bool> {
    if !is_set_aside(connection, part)? {
        return Ok(false);
    }
    let start = part.number << 32;
    if let Some(last) = stretch(connection, start - 1, start + i64::from(u32::MAX))? {
        let sql = "DELETE FROM messages WHERE place >= ?1 AND place <= ?2";
        connection.prepare_cached(sql)?.execute([start, last])?;
        return Ok(true);
    }
    // Images are few and large.
    for (table, rows) in [("events", ROWS), ("decisions", ROWS), ("images", 1)] {
        let sql = format!(
            "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE session_id = ?1 LIMIT ?2)"
        );
        if connection.prepare_cached(&sql)?.execute(params![part.id, rows])? > 0 {
            return Ok(true);
        }
    }
    let sql = "DELETE FROM unfinished_sessions WHERE number = ?1";
    connection.prepare_cached(sql)?.execute([part.number])?;
    Ok(false)
}

/// Where the next step of messages ends that begins after `after` and goes no further than `to`.
fn stretch(connection: &Connection, after: i64, to: i64) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT place, octet_length(data) FROM messages WHERE place > ?1 AND place <= ?2 \
               ORDER BY place LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![after, to, ROWS])?;
    let (mut last, mut bytes) = (None, 0);
    while let Some(row) = rows.next()? {
        last = Some(row.get(0)?);
        bytes += row.get::<_, u64>(1)?;
        if bytes >= BYTES {
            break;
        }
    }
    Ok(last)
}

fn begin_copy(
    connection: &Connection,
    source: SessionId,
    id: SessionId,
    extent: &Extent,
) -> rusqlite::Result<Copy> {
    let target = id.to_string();
    make_room(connection, &target)?;
    let number = connection.query_row(&format!("SELECT {NEXT_NUMBER}"), [], |row| row.get(0))?;
    let target = Part { number, id: target };
    set_aside(connection, &target)?;
    let id = source.to_string();
    let sql = "SELECT number, last_seq FROM sessions WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([&id], |row| Ok((row.get(0)?, row.get(1)?)));
    let (number, last_seq): (i64, i64) = found.optional()?.unwrap_or_default();
    let place = |seq: u64| (number << 32) + i64::try_from(seq).unwrap_or(last_seq).min(last_seq);
    let without = extent.without.iter();
    Ok(Copy {
        source: Part { number, id },
        target,
        // The current state; later messages are not part of it.
        to: place(extent.through.unwrap_or(u64::MAX)),
        without: without
            .map(|part| (place(part.after), place(part.through)))
            .collect(),
        copied: number << 32,
        count: 0,
    })
}

/// How far it is copied then. `None` if it was already complete.
fn copy_messages(connection: &Connection, copy: &Copy) -> rusqlite::Result<Option<Copy>> {
    let Copy {
        source,
        target,
        to,
        without,
        copied,
        count,
    } = copy;
    if copied == to {
        return Ok(None);
    }
    let sql = "SELECT 1 FROM sessions WHERE number = ?1 AND id = ?2";
    let is_whole = connection
        .prepare_cached(sql)?
        .exists(params![source.number, source.id])?;
    if !is_whole || !is_set_aside(connection, target)? {
        return Err(gone());
    }
    let Some(last) = stretch(connection, *copied, *to)? else {
        return Ok(None);
    };
    let parts = without.iter();
    let left_out: Vec<_> = parts
        .map(|(after, through)| format!(" AND NOT (place > {after} AND place <= {through})"))
        .collect();
    let left_out = left_out.concat();
    let sql = format!(
        "INSERT INTO messages (kind, id, session_id, data, created_at, place) \
         SELECT kind, id, ?1, data, created_at, ?2 + row_number() OVER (ORDER BY place) FROM messages \
         WHERE place > ?3 AND place <= ?4{left_out}"
    );
    let place = (target.number << 32) + i64::from(*count);
    let more = connection
        .prepare_cached(&sql)?
        .execute(params![target.id, place, copied, last])?;
    Ok(Some(Copy {
        copied: last,
        count: count + u32::try_from(more).unwrap_or(u32::MAX),
        ..copy.clone()
    }))
}

/// Copies the next image after that one and returns its id. `None` if there are no more.
fn copy_image(connection: &Connection, copy: &Copy, after: &str) -> rusqlite::Result<Option<String>> {
    if !is_set_aside(connection, &copy.target)? {
        return Err(gone());
    }
    let sql = "INSERT INTO images (session_id, id, media_type, data) \
               SELECT ?2, id, media_type, data FROM images WHERE session_id = ?1 AND id > ?3 ORDER BY id LIMIT 1 \
               RETURNING id";
    connection
        .prepare_cached(sql)?
        .query_row(params![copy.source.id, copy.target.id, after], |row| row.get(0))
        .optional()
}

/// Copies how decisions ended that were not simply allowed: what ran is not what the copied messages say. There are few of
/// them, since people made them. Their ids are those of the source, made different.
fn copy_decisions(connection: &Connection, copy: &Copy) -> rusqlite::Result<()> {
    if !is_set_aside(connection, &copy.target)? {
        return Err(gone());
    }
    let sql = "INSERT INTO decisions (id, session_id, agent_request_id, tool_use_id, tool_name, input, suggestions, \
                   description, asked_at, behavior, resolved_at, blocked_path, answered_by, answer, rules) \
               SELECT ?2 || '/' || id, ?2, agent_request_id, tool_use_id, tool_name, input, suggestions, \
                   description, asked_at, behavior, resolved_at, blocked_path, answered_by, answer, rules \
               FROM decisions WHERE session_id = ?1 AND (behavior <> 'allow' OR answer IS NOT NULL) ORDER BY rowid";
    connection
        .prepare_cached(sql)?
        .execute([&copy.source.id, &copy.target.id])
        .map(drop)
}

/// From now on the session exists.
fn appear(connection: &Connection, part: &Part, record: &SessionRecord) -> rusqlite::Result<()> {
    let sql = "DELETE FROM unfinished_sessions WHERE number = ?1 AND id = ?2";
    let was_set_aside = connection
        .prepare_cached(sql)?
        .execute(params![part.number, part.id])?;
    let owner = write_session_as(connection, record, Some(part.number))?;
    if was_set_aside == 0 || owner.number != part.number {
        return Err(gone());
    }
    Ok(())
}

fn gone() -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure("the session was deleted while it was copied".into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use tiller_core::{
        Commit, Event, EventBody, Image, Page, RawJson, SessionStatus, Settings, Store, Timestamp,
        TitleSource,
    };

    use super::*;

    fn record(id: SessionId) -> SessionRecord {
        SessionRecord {
            id,
            owner: None,
            title: "t".to_owned(),
            title_source: TitleSource::Prompt,
            archived: false,
            conversation: None,
            expired: false,
            fork_of: None,
            fork_at: None,
            rewound: Vec::new(),
            summary: None,
            delete_at: None,
            status: SessionStatus::Idle,
            cwd: "/".to_owned(),
            backend: None,
            settings: Settings::default(),
            last_prompt: None,
            created_at: Timestamp(1),
            updated_at: Timestamp(1),
            queue: Vec::new(),
            last_seq: 0,
            runs: 0,
            turn: None,
            run: None,
        }
    }

    fn open(folder: &Path) -> SqliteStore {
        SqliteStore::open(&folder.join("sessions.db")).unwrap()
    }

    /// A session with more than one step of everything that can be long.
    async fn long(store: &SqliteStore, id: SessionId, text: &str) -> SessionRecord {
        let mut record = record(id);
        let mut events = Vec::new();
        for _ in 0..=ROWS {
            let raw = RawJson::parse(&format!(r#"{{"type":"assistant","text":"{text}"}}"#)).unwrap();
            let status = tiller_core::StatusChange {
                status: SessionStatus::Idle,
                title: None,
                cwd: None,
                error: None,
                turn: None,
                cause: None,
            };
            for body in [
                EventBody::Message { raw, uuid: None },
                EventBody::Status(Box::new(status)),
            ] {
                record.last_seq += 1;
                events.push(Arc::new(Event {
                    session: id,
                    seq: record.last_seq,
                    at: Timestamp(1),
                    body,
                }));
            }
        }
        let images = ["a", "b"].map(|id| Image {
            id: id.to_owned(),
            media_type: "image/png".to_owned(),
            bytes: vec![1, 2, 3].into(),
        });
        let first = SessionRecord {
            last_seq: 0,
            ..record.clone()
        };
        let commit = Commit {
            epoch: store.create(first).await.unwrap(),
            expected_last_seq: 0,
            record: record.clone(),
            events,
            images: images.to_vec(),
            prompts: Vec::new(),
        };
        store.commit(commit).await.unwrap();
        record
    }

    async fn rows(store: &SqliteStore) -> Vec<u32> {
        let counted = store.read(|connection| {
            let tables = ["sessions", "unfinished_sessions"]
                .iter()
                .chain(&LARGE)
                .map(|table| {
                    let sql = format!("SELECT count(*) FROM {table}");
                    connection.query_row(&sql, [], |row| row.get(0))
                });
            tables.collect::<rusqlite::Result<Vec<_>>>().map_err(store_error)
        });
        counted.await.unwrap()
    }

    /// Neither is visible, and nothing of either is left after the next start.
    async fn is_finished_by_the_next(folder: &Path, lost: SessionId, whole: &[u32]) {
        let store = open(folder);
        assert_ne!(rows(&store).await, whole);
        assert!(store.load(lost).await.unwrap().is_none());
        assert_eq!(store.history(lost, Page::All).await.unwrap(), []);
        assert_eq!(store.replay(lost, 0, 10).await.unwrap(), []);
        assert_eq!(store.agent_input_since(lost, 0).await.unwrap(), []);
        assert_eq!(store.image(lost, "a".to_owned()).await.unwrap(), None);
        store.remove_remains().await.unwrap();
        assert_eq!(rows(&store).await, whole);
    }

    #[tokio::test]
    async fn what_a_dying_server_was_removing_is_removed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (lost, kept) = (SessionId::random(), SessionId::random());
        let store = open(folder.path());
        long(&store, kept, "kept").await;
        let whole = rows(&store).await;
        long(&store, lost, "lost").await;
        let work = move |connection: &Connection| {
            let part = put_aside(connection, lost)?.unwrap();
            clear_some(connection, &part)
        };
        assert!(store.write_returning(work).await.unwrap());
        drop(store);
        is_finished_by_the_next(folder.path(), lost, &whole).await;
    }

    #[tokio::test]
    async fn what_a_dying_server_was_copying_is_removed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (lost, kept) = (SessionId::random(), SessionId::random());
        let store = open(folder.path());
        long(&store, kept, "kept").await;
        let whole = rows(&store).await;
        let work = move |connection: &Connection| {
            let copy = begin_copy(connection, kept, lost, &Extent::default())?;
            let copy = copy_messages(connection, &copy)?.unwrap();
            copy_image(connection, &copy, "")
        };
        assert_eq!(store.write_returning(work).await.unwrap().as_deref(), Some("a"));
        drop(store);
        is_finished_by_the_next(folder.path(), lost, &whole).await;
    }

    #[tokio::test]
    async fn a_session_that_begins_again_has_nothing_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let id = SessionId::random();
        let store = open(folder.path());
        long(&store, id, "before").await;
        let work = move |connection: &Connection| put_aside(connection, id);
        let before = store.write_returning(work).await.unwrap().unwrap();
        let again = long(&store, id, "again").await;
        // The task that was deleting it continues.
        store.clear(&before).await.unwrap();
        let found = store.history(id, Page::All).await.unwrap();
        assert_eq!(found.len(), ROWS as usize + 1);
        assert!(found.iter().all(|entry| entry.json.as_str().contains("again")));
        assert_eq!(
            store.replay(id, 0, u32::MAX).await.unwrap().len() as u64,
            again.last_seq
        );
        assert!(store.image(id, "b".to_owned()).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_copy_of_a_session_that_is_deleted_meanwhile_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (SessionId::random(), SessionId::random());
        let store = open(folder.path());
        let nothing = rows(&store).await;
        long(&store, source, "source").await;
        let work = move |connection: &Connection| {
            let copy = begin_copy(connection, source, target, &Extent::default())?;
            copy_messages(connection, &copy)
        };
        let copy = store.write_returning(work).await.unwrap().unwrap();
        store.delete(source).await.unwrap();
        let part = copy.target.clone();
        assert!(store.copy_all(copy, record(target)).await.is_err());
        store.clear(&part).await.unwrap();
        assert_eq!(rows(&store).await, nothing);
    }
}
