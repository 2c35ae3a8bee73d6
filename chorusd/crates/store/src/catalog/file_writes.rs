//! Rows of file writes: which conversation wrote each file of a workspace that several share. Rows of a file are deleted
//! when a conversation that saw all of them writes it again.

use chorus_base::error::Result;
use rusqlite::params;
use uuid::Uuid;

use super::CatalogDb;

/// SHA-256 of a file's content.
pub type FileHash = [u8; 32];

/// The last write of a file by a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWriteRow {
    pub agent: Uuid,
    /// Relative to the workspace.
    pub path: String,
    /// The id of the conversation; that of `main` is the agent's.
    pub conversation: Uuid,
    /// The content after the write; `None` if the conversation had not seen all of it.
    pub hash: Option<FileHash>,
    /// The position in the order of writes.
    pub at: u64,
}

/// Conversations that may have changed a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHistory {
    /// At most one row per conversation, the newest first.
    pub writes: Vec<FileWriteRow>,
    /// The ids of conversations of the agent that ever ran commands in the workspace.
    pub command_users: Vec<Uuid>,
}

/// The table of file writes.
#[derive(Debug, Clone)]
pub struct FileWriteTable {
    pub(super) db: CatalogDb,
}

impl FileWriteTable {
    /// Returns the position of the newest write of all agents; 0 if there is none.
    pub async fn last_position(&self) -> Result<u64> {
        self.db
            .reader
            .submit(|conn| {
                let last = conn
                    .prepare_cached("SELECT max(at) FROM file_writes")?
                    .query_row([], |row| row.get::<_, Option<i64>>(0));
                Ok(last?.map_or(0, i64::cast_unsigned))
            })
            .await
    }

    /// Returns the conversations that may have changed a file of an agent.
    pub async fn history(&self, agent: Uuid, path: String) -> Result<FileHistory> {
        self.db
            .reader
            .submit(move |conn| {
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
            .await
    }

    /// Records a write. A row with a hash replaces those of all conversations, because its writer had seen what they
    /// wrote; one without a hash is added.
    pub fn record(&self, row: FileWriteRow) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
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

    /// Records that a conversation runs commands in the workspace.
    pub fn record_command(&self, agent: Uuid, conversation: Uuid) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
            conn.prepare_cached(
                "INSERT INTO workspace_commands (agent_id, conversation_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            )?
            .execute(params![agent.as_bytes(), conversation.as_bytes()])?;
            Ok(())
        })
    }
}
