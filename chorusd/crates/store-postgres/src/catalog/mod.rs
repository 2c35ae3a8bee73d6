//! The tables of the catalog in PostgreSQL.

mod agents;
mod approvals;
mod audit;
mod audit_pages;
mod db;
mod file_writes;
mod imported_usage;
mod memories;
mod settings;
mod tasks;
mod usage;

use std::sync::Arc;

use chorus_catalog::{
    AgentTable, ApprovalTable, AuditLog, FileWriteTable, ImportedUsageTable, MemoryTable, SessionChanges, SettingTable,
    TaskTable, UsageTable,
};
use chorus_redact::Redactor;

use self::agents::PostgresAgentTable;
use self::approvals::PostgresApprovalTable;
use self::audit::PostgresAuditLog;
use self::db::CatalogDb;
use self::file_writes::PostgresFileWriteTable;
use self::imported_usage::PostgresImportedUsageTable;
use self::memories::PostgresMemoryTable;
use self::settings::PostgresSettingTable;
use self::tasks::PostgresTaskTable;
use self::usage::PostgresUsageTable;
use crate::PostgresJournal;

/// The tables of agents and of what is kept of them besides sessions, as one node of the cluster writes them.
#[derive(Debug, Clone)]
pub struct AgentTables {
    pub agents: Arc<dyn AgentTable>,
    pub settings: Arc<dyn SettingTable>,
    pub approvals: Arc<dyn ApprovalTable>,
    pub audit: Arc<dyn AuditLog>,
    pub usage: Arc<dyn UsageTable>,
    pub imported_usage: Arc<dyn ImportedUsageTable>,
    pub tasks: Arc<dyn TaskTable>,
    pub memories: Arc<dyn MemoryTable>,
    pub file_writes: Arc<dyn FileWriteTable>,
}

impl AgentTables {
    /// Makes the tables for the node of `journal`. `redactor` keeps secrets out of the audit log; `changes` is told of the
    /// agents that this node changes.
    #[must_use]
    pub fn new(journal: &PostgresJournal, redactor: Arc<Redactor>, changes: Arc<SessionChanges>) -> Self {
        let db = CatalogDb::new(journal);
        let audit = PostgresAuditLog { db: db.clone(), redactor };
        Self {
            agents: Arc::new(PostgresAgentTable { db: db.clone(), changes }),
            settings: Arc::new(PostgresSettingTable { db: db.clone(), audit: audit.clone() }),
            approvals: Arc::new(PostgresApprovalTable { db: db.clone(), audit: audit.clone() }),
            audit: Arc::new(audit),
            usage: Arc::new(PostgresUsageTable { db: db.clone() }),
            imported_usage: Arc::new(PostgresImportedUsageTable { db: db.clone() }),
            tasks: Arc::new(PostgresTaskTable { db: db.clone() }),
            memories: Arc::new(PostgresMemoryTable { db: db.clone() }),
            file_writes: Arc::new(PostgresFileWriteTable { db }),
        }
    }
}
