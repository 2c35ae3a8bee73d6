//! Rows of the files of agents.

use chorus_base::error::Result;
use chorus_catalog::{
    AgentFileContent, AgentFileRow, AgentFileTable, CatalogRead, CatalogWrite, MAX_AGENT_FILE_BYTES, MAX_AGENT_FILES,
};
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::{CatalogDb, refuse_nul};
use crate::statement::call;

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresAgentFileTable {
    pub(super) db: CatalogDb,
}

impl AgentFileTable for PostgresAgentFileTable {
    fn list(&self, agent: Uuid) -> CatalogRead<'_, Vec<AgentFileRow>> {
        Box::pin(async move {
            let sql = "SELECT path, version, sha256, octet_length(content) FROM agent_files WHERE agent_id = $1
                 ORDER BY path LIMIT $2";
            let limit = i64::try_from(MAX_AGENT_FILES).unwrap_or(i64::MAX);
            Ok(self.db.read(sql, &[&agent, &limit]).await?.iter().map(read_row).collect())
        })
    }

    fn read(&self, agent: Uuid, paths: Vec<String>) -> CatalogRead<'_, Vec<AgentFileContent>> {
        Box::pin(async move {
            let sql = "SELECT path, sha256, content FROM agent_files
                 WHERE agent_id = $1 AND path = ANY ($2) AND octet_length(content) <= $3::bigint";
            let limit = MAX_AGENT_FILE_BYTES.cast_signed();
            let rows = self.db.read(sql, &[&agent, &paths, &limit]).await?;
            Ok(rows.iter().map(read_content).collect())
        })
    }

    fn put(&self, agent: Uuid, file: AgentFileContent, follows: u64) -> CatalogWrite<bool> {
        let AgentFileContent { path, sha256, content } = file;
        let grant = refuse_nul([&*path]).and_then(|()| self.db.grant(agent));
        let (sha256, node) = (sha256.to_vec(), self.db.node().0);
        let confirm = call!(
            "SELECT version FROM agent_files WHERE agent_id = $1 AND path = $2 AND version = $3 AND sha256 = $4",
            agent,
            path.clone(),
            follows.cast_signed() + 1,
            sha256.clone(),
        );
        let write = match follows {
            0 => call!(
                "INSERT INTO agent_files (agent_id, path, version, sha256, content, node) VALUES ($1, $2, 1, $3, $4, $5)
                 ON CONFLICT DO NOTHING RETURNING version",
                agent,
                path,
                sha256,
                content,
                node,
            ),
            _ => call!(
                "UPDATE agent_files SET version = version + 1, sha256 = $3, content = $4, node = $5
                 WHERE agent_id = $1 AND path = $2 AND version = $6 RETURNING version",
                agent,
                path,
                sha256,
                content,
                node,
                follows.cast_signed(),
            ),
        };
        self.db.write_and_read(grant, vec![write], confirm, has_row)
    }

    fn delete(&self, agent: Uuid, path: String, follows: u64) -> CatalogWrite<bool> {
        let grant = refuse_nul([&*path]).and_then(|()| self.db.grant(agent));
        let sql = "DELETE FROM agent_files WHERE agent_id = $1 AND path = $2 AND version = $3";
        let delete = call!(sql, agent, path.clone(), follows.cast_signed());
        let is_gone = || {
            let sql = "SELECT 1 WHERE NOT EXISTS (SELECT FROM agent_files WHERE agent_id = $1 AND path = $2)";
            call!(sql, agent, path.clone())
        };
        self.db.write_and_read(grant, vec![delete, is_gone()], is_gone(), has_row)
    }

    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()> {
        self.db.write(self.db.grant(agent), vec![call!("DELETE FROM agent_files WHERE agent_id = $1", agent)])
    }
}

fn has_row(rows: &[Row]) -> Result<bool> {
    Ok(!rows.is_empty())
}

fn read_row(row: &Row) -> AgentFileRow {
    AgentFileRow {
        path: row.get(0),
        version: row.get::<_, i64>(1).cast_unsigned(),
        sha256: hash(row, 2),
        bytes: u64::try_from(row.get::<_, i32>(3)).unwrap_or_default(),
    }
}

fn read_content(row: &Row) -> AgentFileContent {
    AgentFileContent { path: row.get(0), sha256: hash(row, 1), content: row.get(2) }
}

/// Reads a hash. One of another length is that of no file.
fn hash(row: &Row, column: usize) -> [u8; 32] {
    row.get::<_, &[u8]>(column).try_into().unwrap_or_default()
}
