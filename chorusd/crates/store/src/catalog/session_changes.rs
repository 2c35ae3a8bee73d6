//! Tells the search index which sessions have changed, whatever statement changed them.

use std::sync::Arc;

use chorus_catalog::{SessionChanges, SessionStamp};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::sqlite::StoreResult;

/// Returns a page of all sessions behind the row `after`, in the order of the table.
pub(super) fn stamps_after(conn: &Connection, after: i64, limit: u64) -> StoreResult<Vec<SessionStamp>> {
    let mut statement = conn.prepare_cached(
        "SELECT rowid, id, sha256, file_stamp FROM sessions WHERE rowid > ?1 ORDER BY rowid LIMIT ?2",
    )?;
    let stamps = statement.query_map(params![after, limit], |row| {
        Ok(SessionStamp {
            position: row.get(0)?,
            id: Uuid::from_bytes(row.get(1)?),
            sha256: row.get(2)?,
            file_stamp: row.get(3)?,
        })
    })?;
    Ok(stamps.collect::<rusqlite::Result<_>>()?)
}

/// Makes `conn`, which writes the catalog, note the rows that it changes. The triggers are temporary: they belong to the
/// connection, not to the file.
pub(super) fn install(conn: &Connection, changes: &Arc<SessionChanges>) -> StoreResult<()> {
    let define = |name: &str, note: fn(&SessionChanges, Uuid)| {
        let changes = changes.clone();
        conn.create_scalar_function(name, 1, FunctionFlags::SQLITE_UTF8, move |call| {
            note(&changes, Uuid::from_bytes(call.get(0)?));
            Ok(None::<i64>)
        })
    };
    define("note_session", SessionChanges::note_session)?;
    define("note_agent", SessionChanges::note_agent)?;
    conn.execute_batch(
        "
        CREATE TEMP TRIGGER note_inserted_session AFTER INSERT ON main.sessions BEGIN SELECT note_session(new.id); END;
        CREATE TEMP TRIGGER note_deleted_session AFTER DELETE ON main.sessions BEGIN SELECT note_session(old.id); END;
        CREATE TEMP TRIGGER note_updated_session
            AFTER UPDATE OF agent_id, session_id, header, sha256, file_stamp, corrupt ON main.sessions
            BEGIN SELECT note_session(new.id); END;
        CREATE TEMP TRIGGER note_inserted_agent AFTER INSERT ON main.agents BEGIN SELECT note_agent(new.id); END;
        CREATE TEMP TRIGGER note_updated_agent AFTER UPDATE OF status, dir, name ON main.agents
            WHEN (old.status, old.dir, old.name) IS NOT (new.status, new.dir, new.name)
            BEGIN SELECT note_agent(new.id); END;
        CREATE TEMP TRIGGER note_deleted_agent AFTER DELETE ON main.agents BEGIN SELECT note_agent(old.id); END;
        ",
    )?;
    Ok(())
}
