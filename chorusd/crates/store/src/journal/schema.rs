//! Schema of `db/live.db`.

use rusqlite::Connection;

use crate::sqlite::{Migrations, StoreResult};

/// Times are nanoseconds since 1970 in UTC, ids the 16 bytes of a UUID.
pub(crate) const MIGRATIONS: Migrations = &[
    "
    CREATE TABLE contexts (
        id               INTEGER PRIMARY KEY,
        agent_id         BLOB NOT NULL,
        started_at       INTEGER NOT NULL,
        last_activity_at INTEGER NOT NULL,
        idle_deadline_at INTEGER,
        messages         INTEGER NOT NULL DEFAULT 0,
        queries          INTEGER NOT NULL DEFAULT 0,
        chars            INTEGER NOT NULL DEFAULT 0,
        parent_id        BLOB,
        saved_messages   INTEGER NOT NULL DEFAULT 0,
        saved_session    BLOB,
        base_session     BLOB
    );
    CREATE INDEX contexts_agent ON contexts (agent_id);
    -- key: number of the context in the high 32 bits, number of the record in the low.
    CREATE TABLE records (key INTEGER PRIMARY KEY, envelope BLOB NOT NULL);
    CREATE TABLE append_keys (
        agent_id BLOB NOT NULL,
        key      TEXT NOT NULL,
        appended INTEGER NOT NULL,
        messages INTEGER NOT NULL,
        at       INTEGER NOT NULL,
        PRIMARY KEY (agent_id, key)
    ) WITHOUT ROWID;
    CREATE INDEX append_keys_at ON append_keys (at);
",
    "
    CREATE TABLE events (
        seq   INTEGER PRIMARY KEY AUTOINCREMENT,
        at    INTEGER NOT NULL,
        type  TEXT NOT NULL,
        agent TEXT,
        data  TEXT NOT NULL
    );
",
    // Records in the order of arrival, each with the previous one of its context: everything appended in one commit
    // fills the same few pages, for all contexts together. Clustered by context, each append dirtied a page or two of
    // its own.
    "
    CREATE TABLE log (
        id       INTEGER PRIMARY KEY,
        before   INTEGER,
        number   INTEGER NOT NULL,
        envelope BLOB NOT NULL
    );
    ALTER TABLE contexts ADD COLUMN last_record INTEGER;
    -- Of a context that has ended only the records that are not trimmed yet are left.
    ALTER TABLE contexts ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
    INSERT INTO log (id, before, number, envelope)
        SELECT id, lag(id) OVER (PARTITION BY key >> 32 ORDER BY key), key & 0xFFFFFFFF, envelope
        FROM (SELECT row_number() OVER (ORDER BY key) AS id, key, envelope FROM records
              WHERE key >> 32 IN (SELECT id FROM contexts));
    UPDATE contexts SET last_record = ends.id
        FROM (SELECT key >> 32 AS context, max(id) AS id
              FROM (SELECT row_number() OVER (ORDER BY key) AS id, key FROM records
                    WHERE key >> 32 IN (SELECT id FROM contexts)) GROUP BY context) AS ends
        WHERE ends.context = contexts.id;
    DROP TABLE records;
    ALTER TABLE log RENAME TO records;
    -- The newest event is never deleted, so that the next number needs no table of its own.
    CREATE TABLE numbered (
        seq   INTEGER PRIMARY KEY,
        at    INTEGER NOT NULL,
        type  TEXT NOT NULL,
        agent TEXT,
        data  TEXT NOT NULL
    );
    INSERT INTO numbered SELECT seq, at, type, agent, data FROM events;
    DROP TABLE events;
    ALTER TABLE numbered RENAME TO events;
",
    // The turn that a context is in, so that a start detects what a crash interrupted; and the answers to keys of
    // turns.
    "
    ALTER TABLE contexts ADD COLUMN turn BLOB;
    CREATE TABLE turn_keys (
        agent_id BLOB NOT NULL,
        key      TEXT NOT NULL,
        turn     BLOB NOT NULL,
        answer   TEXT,
        at       INTEGER NOT NULL,
        PRIMARY KEY (agent_id, key)
    ) WITHOUT ROWID;
    CREATE INDEX turn_keys_at ON turn_keys (at);
",
    // Introduces records of compactions and of resumed contexts, which older releases cannot read.
    "SELECT 1;",
    // Named values, such as the newest row of the audit log, which is in the other database.
    "CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
    // Cost of resuming, for lists; the record of it is read only with the messages. Older contexts get it once they are
    // read.
    "
    ALTER TABLE contexts ADD COLUMN restored_input INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE contexts ADD COLUMN restored_output INTEGER NOT NULL DEFAULT 0;
",
    // Introduces records with checksums, which older releases cannot read.
    "SELECT 1;",
    // Conversations beside the one that every agent has, which is called `main` and has no row: a context without an id
    // of a conversation is its context. Keys of requests are those of a conversation; for `main`, its id is the agent's.
    "
    CREATE TABLE conversations (
        id         BLOB PRIMARY KEY,
        agent_id   BLOB NOT NULL,
        name       TEXT NOT NULL,
        -- what made it, such as a thread; NULL: a person by name
        origin     TEXT,
        title      TEXT,
        created_at INTEGER NOT NULL,
        closed_at  INTEGER,
        selected   INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX conversations_by_name ON conversations (agent_id, name);
    CREATE UNIQUE INDEX conversations_by_origin ON conversations (agent_id, origin) WHERE origin IS NOT NULL;
    ALTER TABLE contexts ADD COLUMN conversation_id BLOB;
    ALTER TABLE append_keys RENAME COLUMN agent_id TO conversation_id;
    ALTER TABLE turn_keys RENAME COLUMN agent_id TO conversation_id;
    -- its name at that time; NULL: `main`
    ALTER TABLE events ADD COLUMN conversation TEXT;
",
    // The name of the git worktree that a conversation has, and of its branch; NULL: none.
    "ALTER TABLE conversations ADD COLUMN worktree TEXT;",
    // Introduces compressed session files, which older releases cannot read: contexts may refer to them. Such a release would also
    // make a new catalog without them.
    "SELECT 1;",
];

/// The highest number of a context.
pub(super) fn last_context(conn: &Connection) -> StoreResult<i64> {
    Ok(conn.query_row("SELECT coalesce(max(id), 0) FROM contexts", [], |row| row.get(0))?)
}
