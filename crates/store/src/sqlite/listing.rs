//! Finds sessions: by id, by page, by pending work. A session whose rows can't be read is found as well, marked as
//! damaged; it hides no other.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use tiller_core::{
    DamagedSession, DecisionRequest, Epoch, ListFilter, ListedSession, Owners, SessionId, SessionQuery,
    StoreError, StoredSession, Timestamp, UnfinishedSession,
};

use super::codec::{self, SESSION_COLUMNS};
use super::{SqliteStore, store_error};

/// Exactly the condition of the index `sessions_unfinished`.
const IS_UNFINISHED: &str = "status = 'running' OR run IS NOT NULL OR turn IS NOT NULL";

const DECISION_COLUMNS: &str =
    "id, agent_request_id, tool_use_id, tool_name, input, suggestions, description, blocked_path";

impl SqliteStore {
    /// Raises the session's epoch, so that later writes of an earlier owner are refused.
    pub(super) async fn take_ownership(
        &self,
        session: SessionId,
    ) -> Result<Option<(Epoch, StoredSession)>, StoreError> {
        let epoch = self
            .write_returning(move |connection| {
                let sql = "UPDATE sessions SET epoch = epoch + 1 WHERE id = ?1 RETURNING epoch";
                let mut statement = connection.prepare_cached(sql)?;
                statement
                    .query_row([session.to_string()], |row| row.get(0))
                    .optional()
            })
            .await?;
        let Some(epoch) = epoch else { return Ok(None) };
        // Earlier owners can't write to it any more, so the data that is read afterwards is final.
        let stored = self.read(move |connection| load(connection, session)).await?;
        Ok(stored.map(|stored| (Epoch(epoch), stored)))
    }
}

pub(super) fn load(connection: &Connection, session: SessionId) -> Result<Option<StoredSession>, StoreError> {
    let sql = format!("SELECT {SESSION_COLUMNS} FROM sessions WHERE id = ?1");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([session.to_string()]).map_err(store_error)?;
    let Some(row) = rows.next().map_err(store_error)? else {
        return Ok(None);
    };
    let read = codec::decode_session(row).and_then(|record| Ok((record, pending(connection, session)?)));
    match read {
        Ok((record, pending)) => Ok(Some(StoredSession::Readable {
            record: Box::new(record),
            pending,
        })),
        Err(StoreError::Damaged(reason)) => Ok(damaged(row, reason)?.map(StoredSession::Damaged)),
        Err(error) => Err(error),
    }
}

/// The pending decisions of a session.
fn pending(connection: &Connection, session: SessionId) -> Result<Vec<DecisionRequest>, StoreError> {
    let sql = format!(
        "SELECT {DECISION_COLUMNS} FROM decisions WHERE session_id = ?1 AND behavior IS NULL \
         ORDER BY asked_at, rowid"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([session.to_string()]).map_err(store_error)?;
    let mut pending = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        pending.push(codec::decode_decision(row)?);
    }
    Ok(pending)
}

/// What is known about an unreadable session. `None` if not even its id can be read.
fn damaged(row: &Row<'_>, reason: String) -> Result<Option<DamagedSession>, StoreError> {
    let text = |column: &str| -> Result<Option<String>, StoreError> {
        let value = row.get_ref(column).map_err(store_error)?;
        let bytes = value.as_bytes_or_null().unwrap_or_default();
        Ok(bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    };
    let time = |column: &str| {
        let value = row.get_ref(column).map_err(store_error)?;
        Ok::<_, StoreError>(Timestamp(value.as_i64().unwrap_or_default()))
    };
    let id = text("id")?.unwrap_or_default();
    let Ok(id) = id.parse() else {
        tracing::error!(id, "a session in the database has an invalid id");
        return Ok(None);
    };
    Ok(Some(DamagedSession {
        id,
        owner: text("owner")?,
        title: text("title")?.unwrap_or_default(),
        cwd: text("cwd")?.unwrap_or_default(),
        created_at: time("created_at")?,
        updated_at: time("updated_at")?,
        reason,
    }))
}

pub(super) fn unfinished(connection: &Connection) -> Result<Vec<UnfinishedSession>, StoreError> {
    // Both halves are found by indexes that contain nothing else.
    let sql = format!(
        "SELECT id, run FROM sessions INDEXED BY sessions_unfinished WHERE {IS_UNFINISHED} \
         UNION \
         SELECT id, run FROM sessions WHERE id IN \
             (SELECT session_id FROM decisions INDEXED BY decisions_open WHERE behavior IS NULL)"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    let mut unfinished = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        let text = |column: usize| {
            let value = row.get_ref(column).map_err(store_error)?;
            Ok::<_, StoreError>(value.as_str().unwrap_or_default().to_owned())
        };
        let id = text(0)?;
        let Ok(id) = id.parse() else {
            tracing::error!(id, "a session in the database has an invalid id");
            continue;
        };
        let run = codec::run_name(&text(1)?);
        unfinished.push(UnfinishedSession { id, run });
    }
    Ok(unfinished)
}

pub(super) fn list(connection: &Connection, query: &SessionQuery) -> Result<Vec<ListedSession>, StoreError> {
    let mut conditions = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    let is_seen = seen_by(&query.owners, &mut values);
    conditions.extend(is_seen.as_deref());
    if let Some(cwd) = &query.cwd {
        conditions.push("cwd = ?");
        values.push(cwd.clone().into());
    }
    let places = vec!["?"; query.conversations.len()].join(", ");
    let has_conversation = format!("(id IN ({places}) OR claude_session_id IN ({places}))");
    if !query.conversations.is_empty() {
        conditions.push(&has_conversation);
        for _ in 0..2 {
            values.extend(query.conversations.iter().cloned().map(Value::from));
        }
    }
    if query.without_summary {
        conditions.push("summary IS NULL");
    }
    match &query.only {
        None => {}
        Some(ListFilter::Waiting) => conditions.push(
            "id IN (SELECT session_id FROM decisions INDEXED BY decisions_open WHERE behavior IS NULL)",
        ),
        Some(ListFilter::Running) => conditions.push("status = 'running'"),
        Some(ListFilter::ArrangedBy(viewer)) => {
            conditions.push("id IN (SELECT session_id FROM placements WHERE viewer = ?)");
            values.push(viewer.clone().unwrap_or_default().into());
        }
    }
    if let Some(after) = &query.after {
        conditions.push("updated_at <= ? AND (updated_at < ? OR id > ?)");
        let time = after.updated_at.0;
        values.extend([time.into(), time.into(), after.id.to_string().into()]);
    }
    let condition = if conditions.is_empty() {
        "1".to_owned()
    } else {
        conditions.join(" AND ")
    };
    values.push(query.limit.map_or(-1, i64::from).into());
    let sql = format!(
        "SELECT {SESSION_COLUMNS}, \
             (SELECT count(*) FROM decisions WHERE session_id = sessions.id AND behavior IS NULL) AS pending \
         FROM sessions WHERE {condition} ORDER BY updated_at DESC, id LIMIT ?"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query(params_from_iter(values)).map_err(store_error)?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        match codec::decode_session(row) {
            Ok(record) => sessions.push(ListedSession::Readable {
                record: Box::new(record),
                pending: row.get("pending").map_err(store_error)?,
            }),
            Err(StoreError::Damaged(reason)) => {
                sessions.extend(damaged(row, reason)?.map(ListedSession::Damaged));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(sessions)
}

/// Stops as soon as there are enough.
pub(super) fn recent_cwds(
    connection: &Connection,
    owners: &Owners,
    limit: usize,
) -> Result<Vec<String>, StoreError> {
    let mut values = Vec::new();
    let condition = seen_by(owners, &mut values).unwrap_or_else(|| "1".to_owned());
    let sql = format!("SELECT cwd FROM sessions WHERE {condition} ORDER BY updated_at DESC, id");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query(params_from_iter(values)).map_err(store_error)?;
    let mut cwds: Vec<String> = Vec::new();
    while cwds.len() < limit
        && let Some(row) = rows.next().map_err(store_error)?
    {
        let value = row.get_ref(0).map_err(store_error)?;
        if let Ok(cwd) = value.as_str()
            && !cwds.iter().any(|known| known == cwd)
        {
            cwds.push(cwd.to_owned());
        }
    }
    Ok(cwds)
}

/// The condition that a session is one of these, with its values. `None`: all are.
fn seen_by(owners: &Owners, values: &mut Vec<Value>) -> Option<String> {
    let Owners::Seen {
        key,
        sessions,
        folders,
    } = owners
    else {
        return None;
    };
    let mut alternatives = vec!["owner = ?".to_owned()];
    values.push(key.clone().into());
    if !sessions.is_empty() {
        alternatives.push(format!("id IN ({})", vec!["?"; sessions.len()].join(", ")));
        values.extend(sessions.iter().map(|session| Value::from(session.to_string())));
    }
    for folder in folders {
        // The folder itself, and what is beneath it. Not LIKE: a folder's name may contain its signs.
        let beneath = format!("{}/", folder.trim_end_matches('/'));
        alternatives.push("cwd = ? OR substr(cwd, 1, ?) = ?".to_owned());
        let length = i64::try_from(beneath.chars().count()).unwrap_or(i64::MAX);
        values.extend([folder.clone().into(), length.into(), beneath.into()]);
    }
    Some(format!("({})", alternatives.join(" OR ")))
}

pub(super) fn deletions(connection: &Connection) -> Result<Vec<(SessionId, Timestamp)>, StoreError> {
    let sql = "SELECT id, delete_at FROM sessions WHERE delete_at IS NOT NULL ORDER BY delete_at";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)));
    let rows: rusqlite::Result<Vec<_>> = rows.map_err(store_error)?.collect();
    let sessions = rows.map_err(store_error)?.into_iter();
    Ok(sessions
        .filter_map(|(id, at)| Some((id.parse().ok()?, Timestamp(at))))
        .collect())
}

pub(super) fn unused_since(
    connection: &Connection,
    time: Timestamp,
    after: Option<SessionId>,
    limit: u32,
) -> Result<Vec<SessionId>, StoreError> {
    let sql = "SELECT id FROM sessions \
               WHERE id > ?2 AND updated_at < ?1 AND status <> 'running' AND queue = '[]' \
                   AND NOT EXISTS \
                       (SELECT 1 FROM decisions WHERE session_id = sessions.id AND behavior IS NULL) \
               ORDER BY id LIMIT ?3";
    let after = after.map_or_else(String::new, |id| id.to_string());
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let rows = statement.query_map(params![time.0, after, limit], |row| row.get::<_, String>(0));
    let rows: rusqlite::Result<Vec<_>> = rows.map_err(store_error)?.collect();
    let ids = rows.map_err(store_error)?.into_iter();
    Ok(ids.filter_map(|id| id.parse().ok()).collect())
}
