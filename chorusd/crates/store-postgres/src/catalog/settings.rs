//! Settings: named values.

use chorus_catalog::{AuditDecision, CatalogRead, CatalogWrite, SettingTable, is_node_setting};

use super::audit::PostgresAuditLog;
use super::database::{CatalogDb, refuse_nul};
use crate::statement::{Call, call};

/// The table in PostgreSQL.
#[derive(Debug, Clone)]
pub(crate) struct PostgresSettingTable {
    pub(super) db: CatalogDb,
    pub(super) audit: PostgresAuditLog,
}

impl SettingTable for PostgresSettingTable {
    fn get(&self, key: &'static str) -> CatalogRead<'_, Option<String>> {
        Box::pin(async move {
            let sql = "SELECT value FROM settings WHERE node = $1 AND key = $2";
            let rows = self.db.read(sql, &[&self.node_of(key), &key]).await?;
            Ok(rows.first().map(|row| row.get(0)))
        })
    }

    fn set(&self, key: &'static str, value: Option<String>) -> CatalogWrite<()> {
        let grant = refuse_nul(value.as_deref()).map(|()| None);
        self.db.write(grant, vec![self.upsert(key, value)])
    }

    fn set_audited(&self, key: &'static str, row: AuditDecision) -> CatalogWrite<()> {
        let grant = refuse_nul(row.new.as_deref()).and_then(|()| self.audit.grant(&row));
        let calls = vec![self.upsert(key, row.new.clone()), self.audit.append_call(row)];
        self.db.write(grant, calls)
    }
}

impl PostgresSettingTable {
    /// The node in the key of a setting; empty if all share it.
    fn node_of(&self, key: &str) -> &str {
        if is_node_setting(key) { &self.db.node.id } else { "" }
    }

    /// The call that sets or removes a setting.
    fn upsert(&self, key: &'static str, value: Option<String>) -> Call {
        let node = self.node_of(key).to_owned();
        match value {
            Some(value) => call!(
                "INSERT INTO settings (node, key, value) VALUES ($1, $2, $3)
                 ON CONFLICT (node, key) DO UPDATE SET value = $3",
                node,
                key.to_owned(),
                value,
            ),
            None => call!("DELETE FROM settings WHERE node = $1 AND key = $2", node, key.to_owned()),
        }
    }
}
