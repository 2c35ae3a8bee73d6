//! Rows of the bundles of workspaces.

use std::collections::HashSet;

use chorus_base::error::Result;
use chorus_catalog::{CatalogRead, CatalogWrite, WorkspaceBundle, WorkspaceBundleTable, WorkspaceHandover};
use chorus_journal::{from_nanos, to_nanos};
use tokio_postgres::Row;
use uuid::Uuid;

use super::database::CatalogDb;
use crate::statement::call;

/// The table in PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresWorkspaceBundleTable {
    pub(super) db: CatalogDb,
}

impl WorkspaceBundleTable for PostgresWorkspaceBundleTable {
    fn list(&self, agent: Uuid) -> CatalogRead<'_, Vec<WorkspaceBundle>> {
        Box::pin(async move {
            let sql =
                "SELECT number, base, tip, key, sha256, bytes, at, node, handover_epoch, handover_node, newer_files
                 FROM workspace_bundles WHERE agent_id = $1 ORDER BY number";
            Ok(self.db.read(sql, &[&agent]).await?.iter().map(read_row).collect())
        })
    }

    fn insert(&self, agent: Uuid, bundle: WorkspaceBundle, replaces: Option<u64>) -> CatalogWrite<bool> {
        let WorkspaceBundle { number, base, tip, key, sha256, bytes, at, node, handover: _ } = bundle;
        let number = number.cast_signed();
        let confirm =
            call!("SELECT number FROM workspace_bundles WHERE agent_id = $1 AND key = $2", agent, key.clone());
        let insert = call!(
            "INSERT INTO workspace_bundles (agent_id, number, base, tip, key, sha256, bytes, at, node)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9
             WHERE $2 = 1 + (SELECT coalesce(max(number), 0) FROM workspace_bundles WHERE agent_id = $1)
             ON CONFLICT DO NOTHING",
            agent,
            number,
            base,
            tip,
            key.clone(),
            sha256.to_vec(),
            bytes.cast_signed(),
            to_nanos(at),
            node,
        );
        let fold = call!(
            "DELETE FROM workspace_bundles WHERE agent_id = $1 AND number >= $2 AND number < $3
                 AND EXISTS (SELECT FROM workspace_bundles WHERE agent_id = $1 AND key = $4)",
            agent,
            replaces.map_or(i64::MAX, u64::cast_signed),
            number,
            key.clone(),
        );
        let inserted = call!("SELECT number FROM workspace_bundles WHERE agent_id = $1 AND key = $2", agent, key);
        self.db.write_and_read(self.db.grant(agent), vec![insert, fold, inserted], confirm, has_row)
    }

    fn set_handover(&self, agent: Uuid, number: u64, newer_files: u64) -> CatalogWrite<()> {
        let epoch = self.db.grants.of_agent(agent).map(|grant| grant.epoch).unwrap_or_default();
        let set = call!(
            "UPDATE workspace_bundles SET handover_epoch = $3, handover_node = $4, newer_files = $5
             WHERE agent_id = $1 AND number = $2",
            agent,
            number.cast_signed(),
            epoch,
            self.db.node().0,
            newer_files.cast_signed(),
        );
        self.db.write(self.db.grant(agent), vec![set])
    }

    fn named(&self, keys: Vec<String>) -> CatalogRead<'_, HashSet<String>> {
        Box::pin(async move {
            let rows = self.db.read("SELECT key FROM workspace_bundles WHERE key = ANY ($1)", &[&keys]).await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn delete_of_agent(&self, agent: Uuid) -> CatalogWrite<()> {
        self.db.write(self.db.grant(agent), vec![call!("DELETE FROM workspace_bundles WHERE agent_id = $1", agent)])
    }
}

fn has_row(rows: &[Row]) -> Result<bool> {
    Ok(!rows.is_empty())
}

fn read_row(row: &Row) -> WorkspaceBundle {
    let handover = row.get::<_, Option<i64>>(8).map(|epoch| WorkspaceHandover {
        epoch,
        node: row.get::<_, Option<String>>(9).unwrap_or_default(),
        newer_files: row.get::<_, Option<i64>>(10).unwrap_or_default().cast_unsigned(),
    });
    WorkspaceBundle {
        number: row.get::<_, i64>(0).cast_unsigned(),
        base: row.get(1),
        tip: row.get(2),
        key: row.get(3),
        // A hash of another length is that of no object.
        sha256: row.get::<_, &[u8]>(4).try_into().unwrap_or_default(),
        bytes: row.get::<_, i64>(5).cast_unsigned(),
        at: from_nanos(row.get(6)),
        node: row.get(7),
        handover,
    }
}
