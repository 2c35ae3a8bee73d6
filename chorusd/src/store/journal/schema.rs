//! Tables of `db/live.db`.

use rusqlite::{Connection, OptionalExtension as _};

use super::of_key;
use crate::failure::Result;
use crate::message::ContextNo;
use crate::store::sqlite::Migrations;

/// Times are nanoseconds since 1970 in UTC, ids the 16 bytes of a UUID.
pub const MIGRATIONS: Migrations = &[
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
];

/// The highest number that any context has, in heads or in records.
pub fn last_context(conn: &Connection) -> Result<i64> {
    let head: Option<i64> = conn.query_row("SELECT max(id) FROM contexts", [], |row| row.get(0))?;
    let key: Option<i64> = conn.query_row("SELECT max(key) FROM records", [], |row| row.get(0))?;
    Ok(head.unwrap_or(0).max(key.map_or(0, |key| of_key(key).0)))
}

/// Contexts that have records and no head. One seek a context, not a scan.
pub fn headless(conn: &Connection) -> Result<Vec<ContextNo>> {
    let mut first = conn.prepare("SELECT key FROM records WHERE key >= ?1 ORDER BY key LIMIT 1")?;
    let mut has_head = conn.prepare("SELECT 1 FROM contexts WHERE id = ?1")?;
    let mut found = Vec::new();
    let mut from = 0_i64;
    while let Some(key) = first.query_row([from], |row| row.get::<_, i64>(0)).optional()? {
        let context = of_key(key);
        if !has_head.exists([context.0])? {
            found.push(context);
        }
        from = (context.0 + 1) << 32;
    }
    Ok(found)
}
