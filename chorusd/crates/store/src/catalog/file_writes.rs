//! Rows of file writes.

use chorus_catalog::{CatalogRead, CatalogWrite, FileHistory, FileWriteRow, FileWriteTable};
use rusqlite::params;
use uuid::Uuid;

use super::CatalogDb;

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteFileWriteTable {
    pub(super) db: CatalogDb,
}

impl FileWriteTable for SqliteFileWriteTable {
    fn last_position(&self) -> CatalogRead<'_, u64> {
        self.db.read(|conn| {
            let last = conn
                .prepare_cached("SELECT max(at) FROM file_writes")?
                .query_row([], |row| row.get::<_, Option<i64>>(0));
            Ok(last?.map_or(0, i64::cast_unsigned))
        })
    }

    fn history(&self, agent: Uuid, path: String) -> CatalogRead<'_, FileHistory> {
        self.db.read(move |conn| {
            let writes = conn
                .prepare_cached(
                    "SELECT conversation_id, hash, at FROM file_writes WHERE agent_id = ?1 AND path = ?2
                         ORDER BY at DESC",
                )?
                .query_map(params![agent.as_bytes(), path], |row| {
                    Ok(FileWriteRow {
                        agent,
                        path: path.clone(),
                        conversation: Uuid::from_bytes(row.get(0)?),
                        hash: row.get(1)?,
                        at: row.get::<_, i64>(2)?.cast_unsigned(),
                    })
                })?
                .collect::<rusqlite::Result<_>>()?;
            let command_users = conn
                .prepare_cached("SELECT conversation_id FROM workspace_commands WHERE agent_id = ?1")?
                .query_map([agent.as_bytes()], |row| Ok(Uuid::from_bytes(row.get(0)?)))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(FileHistory { writes, command_users })
        })
    }

    fn record(&self, row: FileWriteRow) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            if row.hash.is_some() {
                conn.prepare_cached("DELETE FROM file_writes WHERE agent_id = ?1 AND path = ?2")?
                    .execute(params![row.agent.as_bytes(), row.path])?;
            }
            conn.prepare_cached(
                "INSERT INTO file_writes (agent_id, path, conversation_id, hash, at) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET hash = excluded.hash, at = excluded.at",
            )?
            .execute(params![
                row.agent.as_bytes(),
                row.path,
                row.conversation.as_bytes(),
                row.hash,
                row.at.cast_signed(),
            ])?;
            Ok(())
        })
    }

    fn record_command(&self, agent: Uuid, conversation: Uuid) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached(
                "INSERT INTO workspace_commands (agent_id, conversation_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )?
            .execute(params![agent.as_bytes(), conversation.as_bytes()])?;
            Ok(())
        })
    }
}
