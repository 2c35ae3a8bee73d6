//! Rows of file writes.

use chorus_catalog::{CatalogRead, CatalogWrite, FileHistory, FileWriteRow, FileWriteTable};
use uuid::Uuid;

use super::database::{CatalogDb, is_storable, refuse_nul};
use crate::statement::call;

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresFileWriteTable {
    pub(super) db: CatalogDb,
}

impl FileWriteTable for PostgresFileWriteTable {
    fn last_position(&self) -> CatalogRead<'_, u64> {
        Box::pin(async move {
            let rows = self.db.read("SELECT max(at) FROM file_writes", &[]).await?;
            Ok(rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map_or(0, i64::cast_unsigned))
        })
    }

    fn history(&self, agent: Uuid, path: String) -> CatalogRead<'_, FileHistory> {
        Box::pin(async move {
            let sql = "SELECT conversation_id, hash, at FROM file_writes WHERE agent_id = $1 AND path = $2
                 UNION ALL SELECT conversation_id, NULL, NULL FROM workspace_commands WHERE agent_id = $1
                 ORDER BY at DESC NULLS LAST, conversation_id";
            // No row has such a path.
            let asked = if is_storable(&path) { &path } else { "" };
            let mut history = FileHistory::default();
            for row in self.db.read(sql, &[&agent, &asked]).await? {
                let conversation = row.get(0);
                match row.get::<_, Option<i64>>(2) {
                    None => history.command_users.push(conversation),
                    Some(at) => history.writes.push(FileWriteRow {
                        agent,
                        path: path.clone(),
                        conversation,
                        hash: row.get::<_, Option<&[u8]>>(1).and_then(|hash| hash.try_into().ok()),
                        at: at.cast_unsigned(),
                    }),
                }
            }
            Ok(history)
        })
    }

    fn record(&self, row: FileWriteRow) -> CatalogWrite<()> {
        let grant = refuse_nul([&*row.path]).and_then(|()| self.db.grant(row.agent));
        let mut calls = Vec::new();
        if row.hash.is_some() {
            calls.push(call!("DELETE FROM file_writes WHERE agent_id = $1 AND path = $2", row.agent, row.path.clone()));
        }
        calls.push(call!(
            "INSERT INTO file_writes (agent_id, path, conversation_id, hash, at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (agent_id, path, conversation_id) DO UPDATE SET hash = $4, at = $5",
            row.agent,
            row.path,
            row.conversation,
            row.hash.map(Vec::from),
            row.at.cast_signed(),
        ));
        self.db.write(grant, calls)
    }

    fn record_command(&self, agent: Uuid, conversation: Uuid) -> CatalogWrite<()> {
        let sql = "INSERT INTO workspace_commands (agent_id, conversation_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        self.db.write(self.db.grant(agent), vec![call!(sql, agent, conversation)])
    }
}
