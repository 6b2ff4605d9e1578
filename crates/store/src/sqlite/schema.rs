//! The tables, and the migrations of older files.

use rusqlite::{Connection, TransactionBehavior};
use tiller_core::StoreError;

use super::store_error;

/// Each entry raises the schema by one version. Released entries are never changed; new ones are added.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE sessions (
        id                TEXT PRIMARY KEY,
        title             TEXT NOT NULL,
        claude_session_id TEXT,
        status            TEXT NOT NULL CHECK (status IN ('idle', 'running', 'completed', 'error')),
        cwd               TEXT NOT NULL,
        allowed_tools     TEXT,
        last_prompt       TEXT,
        created_at        INTEGER NOT NULL,
        updated_at        INTEGER NOT NULL,
        model             TEXT,
        permission_mode   TEXT NOT NULL,
        approval          TEXT NOT NULL,
        owner             TEXT,
        expired           INTEGER NOT NULL DEFAULT 0,
        queue             TEXT NOT NULL DEFAULT '[]',
        last_seq          INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    -- What was said: the user's prompts and the agent's messages, as they came.
    CREATE TABLE messages (
        id         TEXT NOT NULL,
        session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        data       TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        seq        INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX messages_by_seq ON messages (session_id, seq);

    -- What happened beside it: changes of status, decisions asked for and answered. One numbering for both tables.
    CREATE TABLE events (
        session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        seq        INTEGER NOT NULL,
        kind       TEXT NOT NULL,
        data       TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX events_by_seq ON events (session_id, seq);

    -- Every decision that was put to the user: what was shown, and how it ended.
    CREATE TABLE decisions (
        id               TEXT PRIMARY KEY,
        session_id       TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        agent_request_id TEXT NOT NULL,
        tool_use_id      TEXT NOT NULL,
        tool_name        TEXT NOT NULL,
        input            TEXT NOT NULL,
        suggestions      TEXT,
        description      TEXT,
        asked_at         INTEGER NOT NULL,
        behavior         TEXT,
        resolved_at      INTEGER
    ) STRICT;
    CREATE INDEX decisions_by_session ON decisions (session_id, asked_at);

    CREATE TABLE login_codes (
        hash       TEXT PRIMARY KEY,
        expires_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE cookies (
        hash       TEXT PRIMARY KEY,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE api_keys (
        name       TEXT PRIMARY KEY,
        hash       TEXT NOT NULL UNIQUE,
        scopes     TEXT NOT NULL,
        created_at INTEGER NOT NULL
    ) STRICT;
",
    "
    ALTER TABLE sessions ADD COLUMN tools TEXT;
    ALTER TABLE sessions ADD COLUMN max_turns INTEGER;
",
    "
    -- What clients call their sessions. The owner is a key's name, empty for the person at the machine. A name is
    -- given before its session is begun, so there may be none yet.
    CREATE TABLE session_names (
        owner      TEXT NOT NULL,
        name       TEXT NOT NULL,
        session_id TEXT NOT NULL,
        PRIMARY KEY (owner, name)
    ) STRICT;
    CREATE INDEX session_names_by_session ON session_names (session_id);
",
    "
    ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN title_source TEXT NOT NULL DEFAULT 'prompt';
    ALTER TABLE sessions ADD COLUMN effort TEXT;
    ALTER TABLE sessions ADD COLUMN max_budget_usd REAL;
    ALTER TABLE sessions ADD COLUMN fork_of TEXT;
    ALTER TABLE sessions ADD COLUMN delete_at INTEGER;

    -- Images that were sent with prompts, each once in a session. The id is the SHA-256 of the bytes.
    CREATE TABLE images (
        session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        id         TEXT NOT NULL,
        media_type TEXT NOT NULL,
        data       BLOB NOT NULL,
        PRIMARY KEY (session_id, id)
    ) STRICT;
",
    "
    -- Up to which event the pieces of streamed messages have been removed.
    ALTER TABLE sessions ADD COLUMN compacted_seq INTEGER NOT NULL DEFAULT 0;
",
    "
    -- What the next server needs to go on with a turn and with an agent that runs.
    ALTER TABLE sessions ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN turn TEXT;
    ALTER TABLE sessions ADD COLUMN run TEXT;
    ALTER TABLE sessions ADD COLUMN run_position INTEGER;
",
    "
    ALTER TABLE sessions ADD COLUMN fork_at TEXT;
",
    "
    ALTER TABLE decisions ADD COLUMN blocked_path TEXT;

    -- What a front door has to remember about a session: time limits, answers to some of several questions.
    CREATE TABLE session_notes (
        session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        key        TEXT NOT NULL,
        value      TEXT NOT NULL,
        PRIMARY KEY (session_id, key)
    ) STRICT;
",
    "
    -- A session's messages stand together, in their order, and need no index beside them, which would cost half of
    -- writing them: `place` is the session's number and, in its low 32 bits, `seq`.
    ALTER TABLE sessions ADD COLUMN number INTEGER;
    UPDATE sessions SET number = rowid;
    CREATE UNIQUE INDEX sessions_by_number ON sessions (number);

    ALTER TABLE messages RENAME TO messages_before;
    CREATE TABLE messages (
        id         TEXT NOT NULL,
        session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        data       TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        place      INTEGER PRIMARY KEY,
        seq        INTEGER NOT NULL GENERATED ALWAYS AS (place & 4294967295) VIRTUAL
    ) STRICT;
    INSERT INTO messages (id, session_id, data, created_at, place)
        SELECT before.id, session_id, data, before.created_at, (number << 32) + seq
        FROM messages_before AS before JOIN sessions ON sessions.id = session_id
        ORDER BY number, seq;
    DROP TABLE messages_before;
",
    "
    -- Who answered: a key by its name, or 'person'. `answer` is what was said beside yes or no: the input, where it was
    -- changed, or why not. `rules` is what was allowed from then on.
    ALTER TABLE decisions ADD COLUMN answered_by TEXT;
    ALTER TABLE decisions ADD COLUMN answer TEXT;
    ALTER TABLE decisions ADD COLUMN rules TEXT;
",
    "
    -- Sessions of which not everything is there, with their numbers: they are being copied or removed.
    CREATE TABLE unfinished_sessions (
        number INTEGER PRIMARY KEY,
        id     TEXT NOT NULL
    ) STRICT;
",
    r#"
    -- What a row is: 'prompt' or 'message'. Until now the text said it, which an agent can imitate. A prompt of ours has
    -- exactly this beginning, its own id, and the start of a turn right before it, unless it was copied with a fork,
    -- which copies no such event.
    ALTER TABLE messages ADD COLUMN kind TEXT NOT NULL DEFAULT 'message';
    UPDATE messages SET kind = 'prompt'
    WHERE CASE
        WHEN substr(data, 1, 31) <> '{"type":"user_prompt","prompt":' THEN 0
        WHEN NOT json_valid(data) THEN 0
        ELSE json_type(data, '$.prompt') = 'text'
            AND coalesce(json_extract(data, '$.uuid'), id) = id
            AND (
                NOT EXISTS (
                    SELECT 1 FROM events
                    WHERE events.session_id = messages.session_id AND events.seq < messages.seq)
                OR EXISTS (
                    SELECT 1 FROM events
                    WHERE events.session_id = messages.session_id AND events.seq = messages.seq - 1
                        AND events.kind = 'session.status' AND substr(events.data, 1, 19) = '{"status":"running"'))
        END;
"#,
    "
    -- Prompts that were accepted, so that none runs twice. The owner is a key's id, empty for the person at the machine.
    -- `seq` is the number of the prompt's event; null: it waits, or was taken out of the queue.
    CREATE TABLE prompts (
        owner      TEXT NOT NULL,
        id         TEXT NOT NULL,
        session_id TEXT NOT NULL,
        seq        INTEGER,
        PRIMARY KEY (owner, id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX prompts_by_session ON prompts (session_id);
    -- A fork has the ids of the session that it was copied from, whose number is lower: they stay with that.
    INSERT OR IGNORE INTO prompts (owner, id, session_id, seq)
        SELECT coalesce(sessions.owner, ''), messages.id, session_id, seq
        FROM messages JOIN sessions ON sessions.id = session_id
        WHERE kind = 'prompt' ORDER BY place;
    -- Until now a prompt had its id under another name, and the oldest had it in their row only.
    UPDATE messages SET data = json_set(data, '$.promptId', id, '$.uuid', id) WHERE kind = 'prompt';
",
    "
    -- Browsers that are signed in. The cookie is worth nothing without the page's own secret, so the cookies of before,
    -- which had none, are good no longer.
    DROP TABLE cookies;
    CREATE TABLE sign_ins (
        id           TEXT PRIMARY KEY,
        cookie_hash  TEXT NOT NULL UNIQUE,
        page_hash    TEXT NOT NULL UNIQUE,
        user_agent   TEXT NOT NULL,
        address      TEXT NOT NULL,
        created_at   INTEGER NOT NULL,
        last_used_at INTEGER NOT NULL
    ) STRICT;

    -- What tells this data folder from others.
    CREATE TABLE instance (id TEXT NOT NULL) STRICT;
    INSERT INTO instance (id) VALUES (lower(hex(randomblob(4))));
",
    r#"
    -- The failed result of a turn that the user stopped is not shown as a failure; what stands for it has it whole. Only a
    -- stop ends a turn in 'idle'.
    UPDATE messages SET data = '{"type":"system","subtype":"turn_stopped","duration_ms":'
        || coalesce(data -> '$.duration_ms', 'null') || ',"usage":' || coalesce(data -> '$.usage', 'null')
        || ',"total_cost_usd":' || coalesce(data -> '$.total_cost_usd', 'null') || ',"result":' || data || '}'
    WHERE CASE
        WHEN kind <> 'message' OR substr(data, 1, 16) <> '{"type":"result"' THEN 0
        WHEN NOT json_valid(data) THEN 0
        ELSE (json_extract(data, '$.is_error') = 1 OR json_extract(data, '$.subtype') <> 'success')
            AND EXISTS (
                SELECT 1 FROM events
                WHERE events.session_id = messages.session_id AND events.seq = messages.seq + 1
                    AND events.kind = 'session.status' AND substr(events.data, 1, 16) = '{"status":"idle"')
        END;
"#,
    "
    -- Who answers in sessions that the key starts without saying so. Null: as the server is configured.
    ALTER TABLE api_keys ADD COLUMN approval TEXT;
",
    "
    -- Which agent a session has, and what was chosen for it: a JSON object that only the agent's backend understands.
    -- Without a backend it is the server's default one. `allowed_tools` stays, as a copy.
    ALTER TABLE sessions ADD COLUMN backend TEXT;
    ALTER TABLE sessions ADD COLUMN options TEXT NOT NULL DEFAULT '{}';
    UPDATE sessions SET options = json_patch('{}', json_object(
        'allowedTools', allowed_tools, 'tools', json(tools), 'model', model,
        'permissionMode', nullif(permission_mode, 'default'), 'effort', effort,
        'maxTurns', max_turns, 'maxBudgetUsd', max_budget_usd));
    UPDATE sessions SET run = json_object(
        'name', run ->> 'name', 'resumes', json(run -> 'resumes'), 'hooks', json(run -> 'hooks'),
        'options', json_patch('{}', json_object(
            'allowedTools', run ->> 'allowed_tools', 'tools', json(run -> 'tools'), 'model', run ->> 'model',
            'permissionMode', nullif(run ->> 'permission_mode', 'default'), 'effort', run ->> 'effort',
            'maxTurns', run ->> 'max_turns', 'maxBudgetUsd', run ->> 'max_budget_usd')),
        'started', json_patch('{}', json_object(
            'allowedTools', run ->> 'allowed_tools', 'tools', json(run -> 'tools'), 'model', run ->> 'model',
            'permissionMode', iif(run ->> 'may_bypass', 'bypassPermissions', nullif(run ->> 'permission_mode', 'default')),
            'effort', run ->> 'effort',
            'maxTurns', run ->> 'max_turns', 'maxBudgetUsd', run ->> 'max_budget_usd')))
        WHERE run IS NOT NULL;
    ALTER TABLE sessions DROP COLUMN tools;
    ALTER TABLE sessions DROP COLUMN model;
    ALTER TABLE sessions DROP COLUMN permission_mode;
    ALTER TABLE sessions DROP COLUMN effort;
    ALTER TABLE sessions DROP COLUMN max_turns;
    ALTER TABLE sessions DROP COLUMN max_budget_usd;
",
    "
    -- How often the session was acquired. Whoever acquired it last owns it, and nobody else writes to it.
    ALTER TABLE sessions ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;

    -- A server loads only what it needs: what was left unfinished, a page of the list, one session.
    CREATE INDEX sessions_unfinished ON sessions (id)
        WHERE status = 'running' OR run IS NOT NULL OR turn IS NOT NULL;
    CREATE INDEX decisions_open ON decisions (session_id) WHERE behavior IS NULL;
    CREATE INDEX sessions_by_update ON sessions (updated_at DESC, id);
    CREATE INDEX sessions_by_owner ON sessions (owner, updated_at DESC, id) WHERE owner IS NOT NULL;
    CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at DESC, id);
    CREATE INDEX sessions_by_conversation ON sessions (claude_session_id) WHERE claude_session_id IS NOT NULL;
    CREATE INDEX sessions_to_delete ON sessions (delete_at) WHERE delete_at IS NOT NULL;
",
    "
    -- A key is known by its id: a new one of an old name has nothing of the old one's. What was started with keys that are
    -- gone keeps a name, which is nobody's id.
    ALTER TABLE api_keys ADD COLUMN id TEXT NOT NULL DEFAULT '';
    ALTER TABLE api_keys ADD COLUMN ceiling TEXT NOT NULL DEFAULT '{}';
    UPDATE api_keys SET id = 'key_' || lower(hex(randomblob(8)));
    CREATE UNIQUE INDEX api_keys_by_id ON api_keys (id);
    UPDATE sessions SET owner = (SELECT id FROM api_keys WHERE name = owner)
        WHERE owner IN (SELECT name FROM api_keys);
    UPDATE session_names SET owner = (SELECT id FROM api_keys WHERE name = owner)
        WHERE owner IN (SELECT name FROM api_keys);
    UPDATE prompts SET owner = (SELECT id FROM api_keys WHERE name = owner)
        WHERE owner IN (SELECT name FROM api_keys);
",
    "
    -- The totals of the session, as of its last event. Null: to be counted from the log.
    ALTER TABLE sessions ADD COLUMN summary TEXT;
",
    "
    -- How viewers have arranged their sessions: a viewer is a key's id, empty for the person at the machine. `tags` is a JSON
    -- list.
    CREATE TABLE placements (
        viewer     TEXT NOT NULL,
        session_id TEXT NOT NULL,
        pinned     REAL,
        group_id   TEXT,
        place      REAL,
        tags       TEXT NOT NULL DEFAULT '[]',
        PRIMARY KEY (viewer, session_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX placements_by_session ON placements (session_id);
    CREATE TABLE session_groups (
        viewer TEXT NOT NULL,
        id     TEXT NOT NULL,
        name   TEXT NOT NULL,
        place  REAL NOT NULL,
        PRIMARY KEY (viewer, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE arrangements (
        viewer  TEXT PRIMARY KEY,
        sorting TEXT NOT NULL
    ) STRICT;
",
    "
    -- The parts of the log that the conversation no longer has: a JSON array. Null: it has all of it.
    ALTER TABLE sessions ADD COLUMN rewound TEXT;
",
    "
    -- When a key was last used, to within a few minutes. Null: never, or by an earlier version.
    ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;
    -- Keys whose sessions went on when they were revoked.
    CREATE TABLE keys_with_kept_sessions (id TEXT PRIMARY KEY) STRICT;
    -- 'browser', or 'command' for a command of this program.
    ALTER TABLE sign_ins ADD COLUMN source TEXT NOT NULL DEFAULT 'browser';

    -- The audit log. Each hash covers the entry and the hash before it.
    CREATE TABLE audit (
        seq        INTEGER PRIMARY KEY,
        at         INTEGER NOT NULL,
        actor      TEXT NOT NULL,
        action     TEXT NOT NULL,
        session_id TEXT,
        detail     TEXT NOT NULL,
        hash       TEXT NOT NULL
    ) STRICT;
",
];

/// The schema of [`BASELINE_VERSION`], for new files.
const BASELINE: &str = include_str!("baseline.sql");
const BASELINE_VERSION: usize = 20;

pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let version = |connection: &Connection| {
        connection
            .pragma_query_value(None, "user_version", |row| row.get::<_, usize>(0))
            .map_err(store_error)
    };
    if version(connection)? == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(store_error)?;
    // Read again: another process may have been first.
    let found = version(&transaction)?;
    let Some(missing) = MIGRATIONS.get(found..) else {
        return Err(StoreError::Unavailable(format!(
            "it was made by a newer version of Tiller (schema {found}; this one knows {}). Use that version.",
            MIGRATIONS.len()
        )));
    };
    let missing = if found == 0 {
        transaction.execute_batch(BASELINE).map_err(store_error)?;
        &MIGRATIONS[BASELINE_VERSION..]
    } else {
        missing
    };
    for migration in missing {
        transaction.execute_batch(migration).map_err(store_error)?;
    }
    transaction
        .pragma_update(None, "user_version", MIGRATIONS.len())
        .map_err(store_error)?;
    transaction.commit().map_err(store_error)
}

#[cfg(test)]
mod tests {
    use tiller_core::{AcceptedPrompt, Commit, EventBody, Page, Store, StoredSession};

    use super::super::{SqliteStore, configure, make_shrinkable};
    use super::*;

    /// The last schema in which messages were found by an index.
    const BEFORE_PLACES: usize = 8;

    /// The last schema in which sessions were copied and removed all at once.
    const BEFORE_STRETCHES: usize = 10;

    /// The last schema in which the text of a row said what it is.
    const BEFORE_KINDS: usize = 11;

    /// The last schema in which prompts had no ids until their turns began.
    const BEFORE_PROMPTS: usize = 12;

    /// The last schema in which the result of a stopped turn looked like a failure.
    const BEFORE_STOPS: usize = 14;

    /// The last schema in which the options of one kind of agent were columns.
    const BEFORE_OPTIONS: usize = 16;

    #[tokio::test]
    async fn what_was_chosen_in_an_older_file_becomes_options() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let [plain, full] = [
            "00000000-0000-4000-8000-00000000000a",
            "00000000-0000-4000-8000-00000000000b",
        ];
        let older = older_file(&path, BEFORE_OPTIONS, &[plain, full]);
        let run = serde_json::json!({
            "name": "r", "resumes": true, "may_bypass": true, "hooks": ["Stop"], "allowed_tools": null,
            "tools": [], "model": null, "permission_mode": "plan", "approval": "ask", "effort": null,
            "max_turns": null, "max_budget_usd": 0.5,
        });
        let sql = "UPDATE sessions SET allowed_tools = 'Read', tools = '[\"Bash\"]', model = 'opus', \
                   permission_mode = 'acceptEdits', effort = 'high', max_turns = 3, max_budget_usd = 1.5, \
                   claude_session_id = 'c', run = ?2, run_position = 9 WHERE id = ?1";
        older.execute(sql, (full, run.to_string())).unwrap();
        drop(older);

        let store = SqliteStore::open(&path).unwrap();
        let mut found = Vec::new();
        for session in store.list(tiller_core::SessionQuery::default()).await.unwrap() {
            match session {
                tiller_core::ListedSession::Readable { record, .. } => found.push(record),
                tiller_core::ListedSession::Damaged(damaged) => panic!("{damaged:?}"),
            }
        }
        let of = |id: &str| found.iter().find(|record| record.id.to_string() == id).unwrap();
        assert_eq!(of(plain).settings, tiller_core::Settings::default());
        assert_eq!(of(plain).run, None);
        let options = |json: serde_json::Value| serde_json::from_value::<tiller_core::Options>(json).unwrap();
        let record = of(full);
        assert_eq!(
            (record.backend.as_deref(), record.conversation.as_deref()),
            (None, Some("c"))
        );
        assert_eq!(
            record.settings.options,
            options(serde_json::json!({
                "allowedTools": "Read", "tools": ["Bash"], "model": "opus", "permissionMode": "acceptEdits",
                "effort": "high", "maxTurns": 3, "maxBudgetUsd": 1.5,
            }))
        );
        let run = record.run.as_ref().unwrap();
        assert_eq!((run.name.as_str(), run.position, run.resumes), ("r", 9, true));
        assert_eq!(run.hooks, ["Stop"]);
        let kept = |mode: &str| {
            options(serde_json::json!({ "tools": [], "permissionMode": mode, "maxBudgetUsd": 0.5 }))
        };
        assert_eq!(
            (&run.options, &run.started),
            (&kept("plan"), &kept("bypassPermissions"))
        );
    }

    #[test]
    fn a_new_file_has_the_schema_that_the_migrations_lead_to() {
        let schema = |statements: &[&str]| -> Vec<(String, String)> {
            let connection = Connection::open_in_memory().unwrap();
            for statement in statements {
                connection.execute_batch(statement).unwrap();
            }
            let sql = "SELECT name, coalesce(sql, '') FROM sqlite_master ORDER BY name";
            let mut rows = connection.prepare(sql).unwrap();
            let rows = rows.query_map([], |row| {
                let (name, sql): (String, String) = (row.get(0)?, row.get(1)?);
                Ok((name, sql.split_whitespace().collect::<String>()))
            });
            rows.unwrap().collect::<Result<_, _>>().unwrap()
        };
        assert_eq!(schema(&[BASELINE]), schema(&MIGRATIONS[..BASELINE_VERSION]));
    }

    /// A file with a session each, with this schema.
    fn older_file(path: &std::path::Path, version: usize, ids: &[&str]) -> Connection {
        let older = Connection::open(path).unwrap();
        configure(&older).unwrap();
        make_shrinkable(&older).unwrap();
        for migration in &MIGRATIONS[..version] {
            older.execute_batch(migration).unwrap();
        }
        older.pragma_update(None, "user_version", version).unwrap();
        for id in ids {
            let sql = "INSERT INTO sessions (id, title, status, cwd, created_at, updated_at, permission_mode, \
                       approval, last_seq) VALUES (?1, 't', 'idle', '/', 1, 1, 'default', 'ask', 3)";
            older.execute(sql, [id]).unwrap();
        }
        older
    }

    #[tokio::test]
    async fn sessions_of_an_older_file_are_copied_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let id = "00000000-0000-4000-8000-00000000000a";
        let older = older_file(&path, BEFORE_STRETCHES, &[id]);
        older.execute("UPDATE sessions SET number = 7", []).unwrap();
        let sql =
            "INSERT INTO messages (id, session_id, data, created_at, place) VALUES ('m', ?1, '{}', 5, ?2)";
        older.execute(sql, (id, (7_i64 << 32) + 3)).unwrap();
        drop(older);

        let store = SqliteStore::open(&path).unwrap();
        store.remove_remains().await.unwrap();
        let listed = async || {
            let query = tiller_core::SessionQuery::default();
            store.list(query).await.unwrap()
        };
        let tiller_core::ListedSession::Readable { record: source, .. } = listed().await.remove(0) else {
            panic!("the session can't be read");
        };
        let fork = tiller_core::SessionRecord {
            id: tiller_core::SessionId::random(),
            ..(*source).clone()
        };
        assert_eq!(
            store
                .fork(source.id, fork.clone(), tiller_core::Extent::default())
                .await
                .unwrap(),
            1
        );
        store.delete(source.id).await.unwrap();
        assert_eq!(store.history(source.id, Page::All).await.unwrap(), []);
        assert_eq!(store.history(fork.id, Page::All).await.unwrap().len(), 1);
        assert_eq!(listed().await.len(), 1);
    }

    #[tokio::test]
    async fn messages_of_an_older_file_keep_their_session_and_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let ids = [
            "00000000-0000-4000-8000-00000000000a",
            "00000000-0000-4000-8000-00000000000b",
        ];
        // The second was begun first, and they were written in turns.
        let older = older_file(&path, BEFORE_PLACES, &[ids[1], ids[0]]);
        for seq in [1, 3] {
            for id in ids {
                let sql =
                    "INSERT INTO messages (id, session_id, data, created_at, seq) VALUES (?1, ?2, ?3, 5, ?4)";
                let data = format!(r#"{{"of":"{id}","seq":{seq}}}"#);
                older
                    .execute(sql, (format!("{id}-{seq}"), id, data, seq))
                    .unwrap();
            }
        }
        drop(older);

        let store = SqliteStore::open(&path).unwrap();
        for id in ids {
            let page = store.history(id.parse().unwrap(), Page::All).await.unwrap();
            let found: Vec<_> = page
                .iter()
                .map(|entry| (entry.seq, entry.json.as_str().to_owned()))
                .collect();
            let told = |seq| (seq, format!(r#"{{"of":"{id}","seq":{seq}}}"#));
            assert_eq!(found, [told(1), told(3)]);
        }
        let uncounted = tiller_core::SessionQuery {
            without_summary: true,
            ..tiller_core::SessionQuery::default()
        };
        let listed = store.list(uncounted).await;
        assert_eq!(listed.unwrap().len(), 2, "their totals are yet to be counted");
    }

    #[tokio::test]
    async fn prompts_of_an_older_file_are_told_from_messages_that_look_like_them() {
        const P1: &str = "00000000-0000-4000-8000-0000000000b1";
        const P2: &str = "00000000-0000-4000-8000-0000000000b2";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let [session, fork] = [
            "00000000-0000-4000-8000-00000000000a",
            "00000000-0000-4000-8000-00000000000b",
        ];
        let older = older_file(&path, BEFORE_KINDS, &[session, fork]);
        older.execute("UPDATE sessions SET number = rowid", []).unwrap();
        let running = r#"{"status":"running","title":"t"}"#;
        let deep = format!(
            r#"{{"type":"user_prompt","prompt":"p","x":{}{}}}"#,
            "[".repeat(3000),
            "]".repeat(3000)
        );
        // The session, its number, `seq`, the row's id, the text, and whether it is a prompt.
        let said = [
            (
                session,
                1,
                2,
                P1,
                r#"{"type":"user_prompt","prompt":"one","uuid":"00000000-0000-4000-8000-0000000000b1"}"#,
                true,
            ),
            (session, 1, 3, "m1", r#"{"type":"user_prompt","x":1}"#, false),
            (
                session,
                1,
                4,
                "m2",
                r#"{"type":"user_prompt","prompt":"two","uuid":"m2"}"#,
                false,
            ),
            (session, 1, 5, "m3", r#"{"type":"user_prompt","prompt":7}"#, false),
            (session, 1, 6, "m4", &deep, false),
            (
                session,
                1,
                7,
                "m5",
                r#"{"type":"user_prompt","prompt":"cut"#,
                false,
            ),
            (
                session,
                1,
                9,
                P2,
                r#"{"type":"user_prompt","prompt":"older"}"#,
                true,
            ),
            (
                session,
                1,
                11,
                "m6",
                r#"{"type":"user_prompt","prompt":"x","uuid":"y"}"#,
                false,
            ),
            (
                fork,
                2,
                1,
                P1,
                r#"{"type":"user_prompt","prompt":"one","uuid":"00000000-0000-4000-8000-0000000000b1"}"#,
                true,
            ),
            (fork, 2, 2, "m1", r#"{"type":"user_prompt","x":1}"#, false),
        ];
        for (session, number, seq, id, data, _) in said {
            let sql =
                "INSERT INTO messages (id, session_id, data, created_at, place) VALUES (?1, ?2, ?3, 5, ?4)";
            older
                .execute(sql, (id, session, data, (i64::from(number) << 32) + seq))
                .unwrap();
        }
        for seq in [1, 8, 10] {
            let sql = "INSERT INTO events (session_id, seq, kind, data, created_at) \
                       VALUES (?1, ?2, 'session.status', ?3, 5)";
            older.execute(sql, (session, seq, running)).unwrap();
        }
        drop(older);

        let store = SqliteStore::open(&path).unwrap();
        for (session, _, seq, id, data, is_prompt) in said {
            let after = seq.unsigned_abs() - 1;
            let event = store.replay(session.parse().unwrap(), after, 1).await.unwrap();
            let cut = serde_json::from_str::<serde::de::IgnoredAny>(data).is_err();
            match &event[0].body {
                EventBody::UserPrompt { prompt } => {
                    assert!(is_prompt && prompt.id.to_string() == id, "{data}");
                }
                EventBody::Message { raw, .. } if cut => assert!(raw.as_str().contains("damaged"), "{raw:?}"),
                EventBody::Message { raw, .. } => assert!(!is_prompt && raw.as_str() == data, "{data}"),
                other => panic!("{other:?}"),
            }
        }
        // The ids of older prompts are known, in the session that had them first, and stand in the history.
        for (id, seq) in [(P1, 2), (P2, 9)] {
            let found = store.accepted_prompt(None, id.parse().unwrap()).await.unwrap();
            let session = session.parse().unwrap();
            assert_eq!(
                found,
                Some(AcceptedPrompt {
                    session,
                    seq: Some(seq)
                })
            );
            let page = Page::After {
                seq: seq - 1,
                limit: 1,
            };
            let entry = store.history(session, page).await.unwrap().remove(0);
            let raw: serde_json::Value = serde_json::from_str(entry.json.as_str()).unwrap();
            assert_eq!((&raw["promptId"], &raw["uuid"]), (&id.into(), &id.into()));
        }
    }

    #[tokio::test]
    async fn stopped_turns_of_an_older_file_are_no_failures() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let session = "00000000-0000-4000-8000-00000000000a";
        let older = older_file(&path, BEFORE_STOPS, &[session]);
        older.execute("UPDATE sessions SET number = 1", []).unwrap();
        let failed = r#"{"type":"result","subtype":"error_during_execution","duration_ms":5,"usage":{"a":1},"total_cost_usd":0.50}"#;
        let fine = r#"{"type":"result","subtype":"success","is_error":false}"#;
        for (seq, data, status) in [(1, failed, "idle"), (3, failed, "error"), (5, fine, "idle")] {
            let sql =
                "INSERT INTO messages (id, session_id, data, created_at, place) VALUES ('m', ?1, ?2, 5, ?3)";
            older.execute(sql, (session, data, (1_i64 << 32) + seq)).unwrap();
            let sql = "INSERT INTO events (session_id, seq, kind, data, created_at) \
                       VALUES (?1, ?2, 'session.status', ?3, 5)";
            let status = format!(r#"{{"status":"{status}"}}"#);
            older.execute(sql, (session, seq + 1, status)).unwrap();
        }
        drop(older);
        let store = SqliteStore::open(&path).unwrap();
        let page = store.history(session.parse().unwrap(), Page::All).await.unwrap();
        let found: Vec<_> = page.iter().map(|entry| entry.json.as_str()).collect();
        let stopped = format!(
            r#"{{"type":"system","subtype":"turn_stopped","duration_ms":5,"usage":{{"a":1}},"total_cost_usd":0.50,"result":{failed}}}"#
        );
        assert_eq!(found, [stopped.as_str(), failed, fine]);
    }

    #[tokio::test]
    async fn prompts_that_waited_without_ids_get_the_same_one_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let older = older_file(&path, BEFORE_PROMPTS, &["00000000-0000-4000-8000-00000000000a"]);
        let queue = r#"["same","same",{"prompt":"look","parent_tool_use_id":"t1"}]"#;
        older
            .execute("UPDATE sessions SET queue = ?1, number = 1", [queue])
            .unwrap();
        drop(older);
        let store = SqliteStore::open(&path).unwrap();
        let id = "00000000-0000-4000-8000-00000000000a".parse().unwrap();
        let read = async || match store.load(id).await.unwrap() {
            Some(StoredSession::Readable { record, .. }) => record,
            other => panic!("{other:?}"),
        };
        let (first, again) = (read().await, read().await);
        assert_eq!(first.queue, again.queue);
        let texts: Vec<_> = first.queue.iter().map(|prompt| prompt.text.as_str()).collect();
        assert_eq!(texts, ["same", "same", "look"]);
        assert_ne!(first.queue[0].id, first.queue[1].id);
        let commit = Commit {
            epoch: store.acquire(id).await.unwrap().unwrap().0,
            expected_last_seq: first.last_seq,
            record: (*first).clone(),
            events: Vec::new(),
            images: Vec::new(),
            prompts: Vec::new(),
        };
        store.commit(commit).await.unwrap();
        assert_eq!(read().await.queue, first.queue);
    }
}
