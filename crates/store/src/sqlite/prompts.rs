//! The accepted prompts: an id runs once per owner, for the lifetime of its session.

use rusqlite::{Connection, OptionalExtension, params};
use tiller_core::{AcceptedPrompt, PromptId, SessionId, SessionRecord, StoreError};

use super::{refuse, store_error};

/// Stores that these prompts were accepted. Refused if one of them was accepted before.
pub(super) fn accept(
    connection: &Connection,
    record: &SessionRecord,
    prompts: &[PromptId],
) -> rusqlite::Result<()> {
    for prompt in prompts {
        let sql = "INSERT INTO prompts (owner, id, session_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let values = params![owner(record), prompt.to_string(), record.id.to_string()];
        if connection.prepare_cached(sql)?.execute(values)? == 0 {
            let found = find(connection, record.owner.as_deref(), *prompt).map_err(refuse)?;
            let session = found.map_or(record.id, |found| found.session);
            return Err(refuse(StoreError::Duplicate { session }));
        }
    }
    Ok(())
}

/// Stores the number of a prompt's event.
pub(super) fn begin(
    connection: &Connection,
    record: &SessionRecord,
    prompt: PromptId,
    seq: u64,
) -> rusqlite::Result<()> {
    // The id of a prompt that was copied with a fork stays with the session in which it was accepted.
    let sql = "INSERT INTO prompts (owner, id, session_id, seq) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (owner, id) DO UPDATE SET seq = ?4 WHERE session_id = ?3";
    let values = params![owner(record), prompt.to_string(), record.id.to_string(), seq];
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

pub(super) fn find(
    connection: &Connection,
    owner: Option<&str>,
    prompt: PromptId,
) -> Result<Option<AcceptedPrompt>, StoreError> {
    let sql = "SELECT session_id, seq FROM prompts WHERE owner = ?1 AND id = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let found = statement.query_row([owner.unwrap_or_default(), &prompt.to_string()], |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?))
    });
    let Some((session, seq)) = found.optional().map_err(store_error)? else {
        return Ok(None);
    };
    let session: SessionId = session
        .parse()
        .map_err(|_| StoreError::Damaged(format!("a prompt of the session {session:?}")))?;
    Ok(Some(AcceptedPrompt { session, seq }))
}

/// Empty for the person at the machine; no key has an empty id.
fn owner(record: &SessionRecord) -> &str {
    record.owner.as_deref().unwrap_or_default()
}
