-- The schema of version 20 in one piece. A new file starts from here, because altering tables step by step takes most of the
-- time that a first start has. Later versions are added as migrations; a test compares this file with the migrations.

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
    approval          TEXT NOT NULL,
    owner             TEXT,
    expired           INTEGER NOT NULL DEFAULT 0,
    queue             TEXT NOT NULL DEFAULT '[]',
    last_seq          INTEGER NOT NULL DEFAULT 0,
    archived          INTEGER NOT NULL DEFAULT 0,
    title_source      TEXT NOT NULL DEFAULT 'prompt',
    fork_of           TEXT,
    delete_at         INTEGER,
    compacted_seq     INTEGER NOT NULL DEFAULT 0,
    runs              INTEGER NOT NULL DEFAULT 0,
    turn              TEXT,
    run               TEXT,
    run_position      INTEGER,
    fork_at           TEXT,
    number            INTEGER,
    backend           TEXT,
    options           TEXT NOT NULL DEFAULT '{}',
    epoch             INTEGER NOT NULL DEFAULT 0,
    summary           TEXT
) STRICT;
CREATE UNIQUE INDEX sessions_by_number ON sessions (number);
CREATE INDEX sessions_unfinished ON sessions (id) WHERE status = 'running' OR run IS NOT NULL OR turn IS NOT NULL;
CREATE INDEX sessions_by_update ON sessions (updated_at DESC, id);
CREATE INDEX sessions_by_owner ON sessions (owner, updated_at DESC, id) WHERE owner IS NOT NULL;
CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at DESC, id);
CREATE INDEX sessions_by_conversation ON sessions (claude_session_id) WHERE claude_session_id IS NOT NULL;
CREATE INDEX sessions_to_delete ON sessions (delete_at) WHERE delete_at IS NOT NULL;

-- The prompts of people and the messages of agents, as they came. `place` is the session's number and, in its low 32 bits,
-- `seq`: a session's messages stand together and need no index beside them.
CREATE TABLE messages (
    id         TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    data       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    place      INTEGER PRIMARY KEY,
    seq        INTEGER NOT NULL GENERATED ALWAYS AS (place & 4294967295) VIRTUAL,
    kind       TEXT NOT NULL DEFAULT 'message'
) STRICT;

-- Everything else in a session's log: changes of status, decisions asked for and answered. One numbering for both tables.
CREATE TABLE events (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    data       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_seq ON events (session_id, seq);

-- Every decision: what was shown, who answered, and how.
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
    resolved_at      INTEGER,
    blocked_path     TEXT,
    answered_by      TEXT,
    answer           TEXT,
    rules            TEXT
) STRICT;
CREATE INDEX decisions_by_session ON decisions (session_id, asked_at);
CREATE INDEX decisions_open ON decisions (session_id) WHERE behavior IS NULL;

-- Accepted prompts, so that none runs twice. Without a `seq` a prompt waits, or was taken out of the queue.
CREATE TABLE prompts (
    owner      TEXT NOT NULL,
    id         TEXT NOT NULL,
    session_id TEXT NOT NULL,
    seq        INTEGER,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX prompts_by_session ON prompts (session_id);

-- Images that were sent with prompts, each once in a session. The id is the SHA-256 of the bytes.
CREATE TABLE images (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id         TEXT NOT NULL,
    media_type TEXT NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (session_id, id)
) STRICT;

-- The names that clients give to their sessions, per owner: a key's id, empty for the person. The session may not exist yet.
CREATE TABLE session_names (
    owner      TEXT NOT NULL,
    name       TEXT NOT NULL,
    session_id TEXT NOT NULL,
    PRIMARY KEY (owner, name)
) STRICT;
CREATE INDEX session_names_by_session ON session_names (session_id);

-- What a front door stores about a session.
CREATE TABLE session_notes (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    key        TEXT NOT NULL,
    value      TEXT NOT NULL,
    PRIMARY KEY (session_id, key)
) STRICT;

-- Sessions that are being copied or removed, with their numbers.
CREATE TABLE unfinished_sessions (
    number INTEGER PRIMARY KEY,
    id     TEXT NOT NULL
) STRICT;

CREATE TABLE api_keys (
    name       TEXT PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    approval   TEXT,
    id         TEXT NOT NULL DEFAULT '',
    ceiling    TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE UNIQUE INDEX api_keys_by_id ON api_keys (id);

-- Browsers that are signed in.
CREATE TABLE sign_ins (
    id           TEXT PRIMARY KEY,
    cookie_hash  TEXT NOT NULL UNIQUE,
    page_hash    TEXT NOT NULL UNIQUE,
    user_agent   TEXT NOT NULL,
    address      TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL
) STRICT;

CREATE TABLE login_codes (
    hash       TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT;

-- The id of this data folder.
CREATE TABLE instance (id TEXT NOT NULL) STRICT;
INSERT INTO instance (id) VALUES (lower(hex(randomblob(4))));
