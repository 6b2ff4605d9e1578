//! Sessions and their events.

use std::sync::{Arc, LazyLock};

use rusqlite::{Connection, OptionalExtension, ToSql, params};
use tiller_core::audit::AuditEntry;
use tiller_core::{
    AcceptedPrompt, Arrange, Arranged, Arrangement, Behavior, Commit, Decided, DecisionAnswer, Epoch, Event,
    EventBody, Extent, HistoryEntry, Image, ListedSession, Owners, Page, PromptId, RawJson, SessionId,
    SessionQuery, SessionRecord, Store, StoreError, StoreFuture, StoredSession, Timestamp, UnfinishedSession,
};
use tiller_message::Summary;

use super::codec::{self, Encoded, Kind};
use super::whole::make_room;
use super::{SqliteStore, arrangement, audit, listing, prompts, refuse, store_error};

/// Where the rows of session `?1` begin in `messages`. The position of a message is this plus its `seq`.
pub(super) const START: &str = "(SELECT number << 32 FROM sessions WHERE id = ?1)";

/// The number of a new session: no session has it, and no rows of a deleted session with this number are left.
pub(super) const NEXT_NUMBER: &str = "(SELECT 1 + max( \
    coalesce((SELECT max(number) FROM sessions), 0), \
    coalesce((SELECT max(number) FROM unfinished_sessions), 0)))";

/// True for rows of the session `?1` in any table, unless it is being copied or deleted.
const IS_WHOLE: &str = "EXISTS (SELECT 1 FROM sessions WHERE id = ?1)";

/// Beyond every `seq`; here the next session begins. A larger number from a client is treated as this one.
pub(super) const END: u64 = 1 << 32;

/// The epoch of a new session, which its creator owns.
const FIRST_EPOCH: Epoch = Epoch(1);

/// How many messages one statement writes.
const TOGETHER: usize = 16;

impl Store for SqliteStore {
    fn unfinished(&self) -> StoreFuture<'_, Vec<UnfinishedSession>> {
        Box::pin(self.read(listing::unfinished))
    }

    fn load(&self, session: SessionId) -> StoreFuture<'_, Option<StoredSession>> {
        Box::pin(self.read(move |connection| listing::load(connection, session)))
    }

    fn acquire(&self, session: SessionId) -> StoreFuture<'_, Option<(Epoch, StoredSession)>> {
        Box::pin(self.take_ownership(session))
    }

    fn create(&self, record: SessionRecord) -> StoreFuture<'_, Epoch> {
        Box::pin(async move {
            let written = self
                .shared
                .writer
                .write(move |connection| create(connection, &record));
            written.await.map(|()| FIRST_EPOCH)
        })
    }

    fn commit(&self, commit: Commit) -> StoreFuture<'_, ()> {
        Box::pin(
            self.shared
                .writer
                .write(move |connection| write_commit(connection, &commit)),
        )
    }

    fn backfill_summary(
        &self,
        session: SessionId,
        last_seq: u64,
        summary: Arc<Summary>,
    ) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(move |connection| {
            let summary = serde_json::to_string(&*summary).map_err(cannot_encode)?;
            let sql = "UPDATE sessions SET summary = ?3 WHERE id = ?1 AND last_seq = ?2 AND summary IS NULL";
            let values = params![session.to_string(), last_seq, summary];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        }))
    }

    fn list(&self, query: SessionQuery) -> StoreFuture<'_, Vec<ListedSession>> {
        Box::pin(self.read(move |connection| listing::list(connection, &query)))
    }

    fn recent_cwds(&self, owners: Owners, limit: usize) -> StoreFuture<'_, Vec<String>> {
        Box::pin(self.read(move |connection| listing::recent_cwds(connection, &owners, limit)))
    }

    fn deletions(&self) -> StoreFuture<'_, Vec<(SessionId, Timestamp)>> {
        Box::pin(self.read(listing::deletions))
    }

    fn unused_since(
        &self,
        time: Timestamp,
        after: Option<SessionId>,
        limit: u32,
    ) -> StoreFuture<'_, Vec<SessionId>> {
        Box::pin(self.read(move |connection| listing::unused_since(connection, time, after, limit)))
    }

    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()> {
        Box::pin(self.remove(session))
    }

    fn history(&self, session: SessionId, page: Page) -> StoreFuture<'_, Vec<HistoryEntry>> {
        Box::pin(self.read(move |connection| history(connection, session, page)))
    }

    fn statuses(&self, session: SessionId, first: u64, last: u64) -> StoreFuture<'_, Vec<Event>> {
        Box::pin(self.read(move |connection| statuses(connection, session, first, last)))
    }

    fn decided(&self, session: SessionId) -> StoreFuture<'_, Vec<Decided>> {
        Box::pin(self.read(move |connection| decided(connection, session)))
    }

    fn replay(&self, session: SessionId, after: u64, limit: u32) -> StoreFuture<'_, Vec<Event>> {
        Box::pin(self.read(move |connection| replay(connection, session, after, limit)))
    }

    fn accepted_prompt(
        &self,
        owner: Option<String>,
        prompt: PromptId,
    ) -> StoreFuture<'_, Option<AcceptedPrompt>> {
        Box::pin(self.read(move |connection| prompts::find(connection, owner.as_deref(), prompt)))
    }

    fn named(&self, owner: Option<String>, name: String) -> StoreFuture<'_, Option<SessionId>> {
        Box::pin(self.read(move |connection| named(connection, owner.as_deref(), &name)))
    }

    fn claim_name(
        &self,
        owner: Option<String>,
        name: String,
        session: SessionId,
    ) -> StoreFuture<'_, SessionId> {
        Box::pin(async move {
            let claim = (
                owner.clone().unwrap_or_default(),
                name.clone(),
                session.to_string(),
            );
            let claimed = self.shared.writer.write(move |connection| {
                let sql = "INSERT INTO session_names (owner, name, session_id) VALUES (?1, ?2, ?3) \
                           ON CONFLICT (owner, name) DO NOTHING";
                let (owner, name, session) = &claim;
                connection
                    .prepare_cached(sql)?
                    .execute([owner, name, session])
                    .map(drop)
            });
            claimed.await?;
            // If the session was deleted in between, its name is free again and may be used.
            Ok(self.named(owner, name).await?.unwrap_or(session))
        })
    }

    fn note(&self, session: SessionId, key: String, value: RawJson) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(move |connection| {
            // A deleted session needs no notes.
            let sql = "INSERT INTO session_notes (session_id, key, value) \
                       SELECT id, ?2, ?3 FROM sessions WHERE id = ?1 \
                       ON CONFLICT (session_id, key) DO UPDATE SET value = ?3";
            let values = params![session.to_string(), key, value.as_str()];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        }))
    }

    fn notes(&self, prefix: String) -> StoreFuture<'_, Vec<(SessionId, String, RawJson)>> {
        Box::pin(self.read(move |connection| notes(connection, &prefix)))
    }

    fn note_of(&self, session: SessionId, key: String) -> StoreFuture<'_, Option<RawJson>> {
        Box::pin(self.read(move |connection| {
            let sql = "SELECT value FROM session_notes WHERE session_id = ?1 AND key = ?2";
            let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
            let found = statement.query_row([session.to_string(), key], |row| row.get::<_, String>(0));
            let found = found.optional().map_err(store_error)?;
            found.as_deref().map(codec::raw_json).transpose()
        }))
    }

    fn erase_notes(&self, session: SessionId, prefix: String) -> StoreFuture<'_, ()> {
        Box::pin(self.shared.writer.write(move |connection| {
            let sql = "DELETE FROM session_notes WHERE session_id = ?1 AND substr(key, 1, length(?2)) = ?2";
            let values = params![session.to_string(), prefix];
            connection.prepare_cached(sql)?.execute(values).map(drop)
        }))
    }

    fn arrangement(&self, viewer: Option<String>) -> StoreFuture<'_, Arrangement> {
        let viewer = viewer.unwrap_or_default();
        Box::pin(self.read(move |connection| arrangement::read(connection, &viewer)))
    }

    fn arrange(&self, viewer: Option<String>, change: Arrange) -> StoreFuture<'_, Option<Arranged>> {
        let viewer = viewer.unwrap_or_default();
        Box::pin(self.write_returning(move |connection| arrangement::write(connection, &viewer, &change)))
    }

    fn agent_input_since(&self, session: SessionId, since: u64) -> StoreFuture<'_, Vec<Event>> {
        Box::pin(self.read(move |connection| agent_input_since(connection, session, since)))
    }

    fn fork(&self, source: SessionId, record: SessionRecord, extent: Extent) -> StoreFuture<'_, u64> {
        Box::pin(self.copy(source, record, extent))
    }

    fn compact(&self, before: Timestamp) -> StoreFuture<'_, u64> {
        Box::pin(self.remove_pieces(before))
    }

    fn image(&self, session: SessionId, id: String) -> StoreFuture<'_, Option<Image>> {
        Box::pin(self.read(move |connection| image(connection, session, id)))
    }
}

fn named(connection: &Connection, owner: Option<&str>, name: &str) -> Result<Option<SessionId>, StoreError> {
    let sql = "SELECT session_id FROM session_names WHERE owner = ?1 AND name = ?2";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let found = statement.query_row([owner.unwrap_or_default(), name], |row| row.get::<_, String>(0));
    let found = found.optional().map_err(store_error)?;
    found
        .map(|id| {
            id.parse()
                .map_err(|_| StoreError::Damaged(format!("a name for the session {id:?}")))
        })
        .transpose()
}

fn notes(connection: &Connection, prefix: &str) -> Result<Vec<(SessionId, String, RawJson)>, StoreError> {
    let sql = "SELECT session_id, key, value FROM session_notes WHERE substr(key, 1, length(?1)) = ?1 \
               ORDER BY session_id, key";
    let mut statement = connection.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([prefix]).map_err(store_error)?;
    let mut notes = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        let text = |column: usize| row.get::<_, String>(column).map_err(store_error);
        let session = text(0)?;
        let session = session
            .parse()
            .map_err(|_| StoreError::Damaged(format!("a note of the session {session:?}")))?;
        notes.push((session, text(1)?, codec::raw_json(&text(2)?)?));
    }
    Ok(notes)
}

/// Writes a new session.
fn create(connection: &Connection, record: &SessionRecord) -> rusqlite::Result<()> {
    let id = record.id.to_string();
    make_room(connection, &id)?;
    let exists = connection
        .prepare_cached("SELECT 1 FROM sessions WHERE id = ?1")?
        .exists([&id])?;
    if exists {
        return Err(refuse(StoreError::Stale));
    }
    write_session_as(connection, record, None)?;
    let sql = "UPDATE sessions SET epoch = ?2 WHERE id = ?1";
    connection
        .prepare_cached(sql)?
        .execute(params![id, FIRST_EPOCH.0])
        .map(drop)
}

/// Refuses a commit of a stale owner, or one that does not follow the stored events.
fn check_owner(connection: &Connection, commit: &Commit) -> rusqlite::Result<()> {
    let sql = "SELECT 1 FROM sessions WHERE id = ?1 AND epoch = ?2 AND last_seq = ?3";
    let values = params![
        commit.record.id.to_string(),
        commit.epoch.0,
        commit.expected_last_seq
    ];
    if connection.prepare_cached(sql)?.exists(values)? {
        Ok(())
    } else {
        Err(refuse(StoreError::Stale))
    }
}

fn write_commit(connection: &Connection, commit: &Commit) -> rusqlite::Result<()> {
    check_owner(connection, commit)?;
    let owner = write_session_as(connection, &commit.record, None)?;
    prompts::accept(connection, &commit.record, &commit.prompts)?;
    let session = &owner.id;
    for image in &commit.images {
        let sql = "INSERT OR IGNORE INTO images (session_id, id, media_type, data) VALUES (?1, ?2, ?3, ?4)";
        connection.prepare_cached(sql)?.execute(params![
            session,
            image.id,
            image.media_type,
            &image.bytes[..]
        ])?;
    }
    // The order of rows is that of `seq`, whichever is written first.
    let is_message = |event: &&Arc<Event>| matches!(event.body, EventBody::Message { .. });
    let (messages, others): (Vec<_>, Vec<_>) = commit.events.iter().partition(is_message);
    let mut groups = messages.chunks_exact(TOGETHER);
    for group in &mut groups {
        write_messages(connection, &owner, group)?;
        // Events that were published long ago are not urgent; those about to be published may need this processor.
        std::thread::yield_now();
    }
    for event in groups.remainder().iter().chain(&others) {
        write_event(connection, &owner, event)?;
        if let EventBody::UserPrompt { prompt } = &event.body {
            prompts::begin(connection, &commit.record, prompt.id, event.seq)?;
        }
    }
    Ok(())
}

/// A session, as its rows refer to it.
pub(super) struct Owner {
    id: String,
    pub(super) number: i64,
}

impl Owner {
    /// The position of a message.
    fn place(&self, seq: u64) -> rusqlite::Result<i64> {
        let seq =
            u32::try_from(seq).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok((self.number << 32) + i64::from(seq))
    }
}

/// `TOGETHER` messages of the agent in one statement, which is most of what is ever written: the cost of a statement is
/// paid once for all of them.
fn write_messages(connection: &Connection, session: &Owner, events: &[&Arc<Event>]) -> rusqlite::Result<()> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let rows = vec!["(?, ?, ?, ?, ?, ?)"; TOGETHER].join(", ");
        // A failure rolls back the whole transaction, so a partial statement need not be undone: SQLite would have to
        // copy every page that it touches.
        format!("INSERT OR FAIL INTO messages (kind, id, session_id, data, created_at, place) VALUES {rows}")
    });
    let mut statement = connection.prepare_cached(&SQL)?;
    let mut column = 0;
    let mut bind = |value: &dyn ToSql| {
        column += 1;
        statement.raw_bind_parameter(column, value)
    };
    for event in events {
        if let EventBody::Message { raw, uuid } = &event.body {
            bind(&Kind::Message.as_str())?;
            bind(&codec::message_id(uuid.as_deref()))?;
            bind(&session.id)?;
            bind(&raw.as_str())?;
            bind(&event.at.0)?;
            bind(&session.place(event.seq)?)?;
        }
    }
    statement.raw_execute()?;
    Ok(())
}

/// Writes a session. A new one gets this number, or else the next free one.
pub(super) fn write_session_as(
    connection: &Connection,
    record: &SessionRecord,
    number: Option<i64>,
) -> rusqlite::Result<Owner> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "INSERT INTO sessions (id, title, claude_session_id, status, cwd, allowed_tools, last_prompt, \
                   created_at, updated_at, backend, options, approval, expired, queue, last_seq, owner, \
                   archived, title_source, fork_of, delete_at, \
                   runs, turn, run, run_position, fork_at, number, summary, rewound) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, \
                   ?21, ?22, ?23, ?24, ?25, \
                   coalesce(?26, {NEXT_NUMBER}), ?27, ?28) \
               ON CONFLICT (id) DO UPDATE SET title = ?2, claude_session_id = ?3, status = ?4, cwd = ?5, \
                   allowed_tools = ?6, last_prompt = ?7, updated_at = ?9, backend = ?10, options = ?11, \
                   approval = ?12, expired = ?13, queue = ?14, last_seq = ?15, \
                   archived = ?17, title_source = ?18, fork_of = ?19, \
                   delete_at = ?20, runs = ?21, turn = ?22, run = ?23, run_position = ?24, fork_at = ?25, \
                   summary = ?27, rewound = ?28 \
               RETURNING number"
        )
    });
    let settings = &record.settings;
    let id = record.id.to_string();
    let values = params![
        id,
        record.title,
        record.conversation,
        record.status.as_str(),
        record.cwd,
        // A copy for other readers of the file: the session's options have it, too.
        settings.options.text("allowedTools"),
        record.last_prompt,
        record.created_at.0,
        record.updated_at.0,
        record.backend,
        serde_json::to_string(&settings.options).map_err(cannot_encode)?,
        settings.approval.as_str(),
        record.expired,
        codec::encode_queue(&record.queue).map_err(cannot_encode)?,
        record.last_seq,
        record.owner,
        record.archived,
        record.title_source.as_str(),
        record.fork_of,
        record.delete_at.map(|at| at.0),
        record.runs,
        record
            .turn
            .map(codec::encode_turn)
            .transpose()
            .map_err(cannot_encode)?,
        record
            .run
            .as_ref()
            .map(codec::encode_run)
            .transpose()
            .map_err(cannot_encode)?,
        record.run.as_ref().map(|run| run.position),
        record.fork_at,
        number,
        record
            .summary
            .as_deref()
            .map(serde_json::to_string)
            .transpose()
            .map_err(cannot_encode)?,
        codec::encode_rewound(&record.rewound).map_err(cannot_encode)?,
    ];
    let number = connection
        .prepare_cached(&SQL)?
        .query_row(values, |row| row.get(0))?;
    Ok(Owner { id, number })
}

fn write_event(connection: &Connection, session: &Owner, event: &Event) -> rusqlite::Result<()> {
    match codec::encode(&event.body).map_err(cannot_encode)? {
        Encoded::Message { kind, id, data } => {
            let sql = "INSERT INTO messages (id, session_id, data, created_at, place, kind) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let place = session.place(event.seq)?;
            connection.prepare_cached(sql)?.execute(params![
                id,
                session.id,
                data,
                event.at.0,
                place,
                kind.as_str()
            ])?;
        }
        Encoded::Event { kind, data } => {
            let sql =
                "INSERT INTO events (session_id, seq, kind, data, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
            connection.prepare_cached(sql)?.execute(params![
                session.id,
                event.seq,
                kind.as_str(),
                data,
                event.at.0
            ])?;
        }
    }
    match &event.body {
        EventBody::DecisionRequested(request) => {
            let sql = "INSERT INTO decisions (id, session_id, agent_request_id, tool_use_id, tool_name, input, \
                           suggestions, description, asked_at, blocked_path) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
            connection.prepare_cached(sql)?.execute(params![
                request.id.to_string(),
                session.id,
                request.agent_request,
                request.tool_use_id,
                request.tool_name,
                request.input.as_str(),
                request.suggestions.as_ref().map(RawJson::as_str),
                request.description,
                event.at.0,
                request.blocked_path,
            ])?;
        }
        EventBody::DecisionResolved {
            request,
            behavior,
            reply,
            ..
        } => {
            let reply = reply.as_deref().filter(|_| *behavior != Behavior::Withdrawn);
            let (answer, rules) = match reply.map(|reply| &reply.answer) {
                Some(DecisionAnswer::Allow { input, permissions }) => (
                    input.as_ref().map(RawJson::as_str),
                    permissions.as_ref().map(RawJson::as_str),
                ),
                Some(DecisionAnswer::Deny { message, .. }) => (message.as_deref(), None),
                None => (None, None),
            };
            let sql = "UPDATE decisions SET behavior = ?2, resolved_at = ?3, answered_by = ?4, \
                       answer = nullif(?5, input), rules = ?6 WHERE id = ?1";
            connection.prepare_cached(sql)?.execute(params![
                request.to_string(),
                behavior.as_str(),
                event.at.0,
                reply.map(|reply| reply.by.as_deref().unwrap_or("person")),
                answer,
                rules,
            ])?;
            let sql = "SELECT tool_name, input FROM decisions WHERE id = ?1";
            let asked: Option<(String, String)> = connection
                .prepare_cached(sql)?
                .query_row([request.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let asked = asked
                .as_ref()
                .map(|(tool, input)| (tool.as_str(), input.as_str()));
            if let Some(entry) = AuditEntry::decided(event, asked) {
                audit::append(connection, &entry)?;
            }
        }
        EventBody::Status(_)
        | EventBody::UserPrompt { .. }
        | EventBody::Message { .. }
        | EventBody::Unreadable(_) => {}
    }
    Ok(())
}

fn history(connection: &Connection, session: SessionId, page: Page) -> Result<Vec<HistoryEntry>, StoreError> {
    let (after, before, limit, newest_first) = match page {
        Page::All => (0, END, -1, false),
        Page::After { seq, limit } => (seq, END, i64::from(limit), false),
        Page::Before { seq, limit } => (0, seq, i64::from(limit), true),
        Page::Last { limit } => (0, END, i64::from(limit), true),
    };
    let order = if newest_first { "DESC" } else { "ASC" };
    let sql = format!(
        "SELECT seq, kind, data, created_at FROM messages WHERE place > {START} + ?2 AND place < {START} + ?3 \
         ORDER BY place {order} LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement
        .query(params![
            session.to_string(),
            after.min(END),
            before.min(END),
            limit
        ])
        .map_err(store_error)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        entries.push(codec::history_entry(row)?);
    }
    if newest_first {
        entries.reverse();
    }
    Ok(entries)
}

fn statuses(
    connection: &Connection,
    session: SessionId,
    first: u64,
    last: u64,
) -> Result<Vec<Event>, StoreError> {
    let sql = format!(
        "SELECT seq, created_at, kind, NULL, data FROM events \
         WHERE session_id = ?1 AND seq BETWEEN ?2 AND ?3 AND kind = ?4 AND {IS_WHOLE} ORDER BY seq"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let kind = Kind::Status.as_str();
    let mut rows = statement
        .query(params![session.to_string(), first.min(END), last.min(END), kind])
        .map_err(store_error)?;
    let mut events = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        // One that can't be read says nothing; a replay shows that it is there.
        if let Ok(event) = codec::decode_event(session, row) {
            events.push(event);
        }
    }
    Ok(events)
}

fn decided(connection: &Connection, session: SessionId) -> Result<Vec<Decided>, StoreError> {
    let sql = format!(
        "SELECT tool_use_id, behavior, input, answer FROM decisions \
         WHERE session_id = ?1 AND (behavior <> ?2 OR answer IS NOT NULL) AND {IS_WHOLE} ORDER BY asked_at, rowid"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement
        .query([session.to_string().as_str(), Behavior::Allow.as_str()])
        .map_err(store_error)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        if let Ok(Some(decided)) = codec::decode_decided(row) {
            all.push(decided);
        }
    }
    Ok(all)
}

fn replay(
    connection: &Connection,
    session: SessionId,
    after: u64,
    limit: u32,
) -> Result<Vec<Event>, StoreError> {
    let said = format!(
        "SELECT seq, created_at, kind, id, data FROM messages \
         WHERE place > {START} + ?2 AND place < {START} + {END} ORDER BY place LIMIT ?3"
    );
    let beside = format!(
        "SELECT seq, created_at, kind, NULL, data FROM events \
         WHERE session_id = ?1 AND seq > ?2 AND {IS_WHOLE} ORDER BY seq LIMIT ?3"
    );
    let mut events = Vec::new();
    for sql in [said, beside] {
        let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
        let mut rows = statement
            .query(params![session.to_string(), after.min(END), limit])
            .map_err(store_error)?;
        while let Some(row) = rows.next().map_err(store_error)? {
            events.push(codec::decode_event_or_damage(session, row)?);
        }
    }
    // Two sorted runs, which this merges.
    events.sort_by_key(|event| event.seq);
    events.truncate(limit as usize);
    Ok(events)
}

fn image(connection: &Connection, session: SessionId, id: String) -> Result<Option<Image>, StoreError> {
    let sql = format!("SELECT media_type, data FROM images WHERE session_id = ?1 AND id = ?2 AND {IS_WHOLE}");
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let found = statement
        .query_row(params![session.to_string(), id], |row| {
            Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?))
        })
        .optional()
        .map_err(store_error)?;
    Ok(found.map(|(media_type, bytes)| Image {
        id,
        media_type,
        bytes: bytes.into(),
    }))
}

fn agent_input_since(
    connection: &Connection,
    session: SessionId,
    since: u64,
) -> Result<Vec<Event>, StoreError> {
    let sql = format!(
        "SELECT seq, created_at, kind, id, data FROM messages WHERE place = {START} + ?2 \
         UNION ALL \
         SELECT seq, created_at, kind, NULL, data FROM events WHERE session_id = ?1 AND seq > ?2 AND kind = ?3 \
           AND {IS_WHOLE} \
         ORDER BY 1"
    );
    let mut statement = connection.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement
        .query(params![session.to_string(), since, Kind::Resolved.as_str()])
        .map_err(store_error)?;
    let mut events = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        events.push(codec::decode_event(session, row)?);
    }
    Ok(events)
}

fn cannot_encode(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
