//! The tables of the catalog in PostgreSQL.

mod agent_files;
mod agents;
mod approvals;
mod audit;
mod audit_pages;
mod capture;
mod database;
mod discord;
mod file_writes;
mod imported_usage;
mod memories;
mod results;
mod schedules;
mod session_filter;
mod session_listing;
mod session_lookup;
mod session_names;
mod session_rows;
mod session_sources;
mod session_writes;
mod sessions;
mod settings;
mod summary_queue;
mod tasks;
mod text_prefix;
mod tool_exports;
mod usage;
mod workspace_bundles;

use std::sync::Arc;

use chorus_catalog::{
    AgentFileTable, AgentTable, ApprovalTable, AuditLog, CaptureTable, Catalog, FileWriteTable, ImportedUsageTable,
    MemoryTable, ScheduleTable, SessionChanges, SessionTable, SettingTable, SummaryQueue, TaskTable, ToolExportTable,
    UsageTable, WorkspaceBundleTable,
};
use chorus_redact::Redactor;

use self::agent_files::PostgresAgentFileTable;
use self::agents::PostgresAgentTable;
use self::approvals::PostgresApprovalTable;
use self::audit::PostgresAuditLog;
use self::capture::PostgresCaptureTable;
use self::database::CatalogDb;
pub use self::discord::{DiscordLease, DiscordLeases, PostgresDiscord};
use self::file_writes::PostgresFileWriteTable;
use self::imported_usage::PostgresImportedUsageTable;
use self::memories::PostgresMemoryTable;
use self::schedules::PostgresScheduleTable;
use self::sessions::PostgresSessionTable;
use self::settings::PostgresSettingTable;
use self::summary_queue::PostgresSummaryQueue;
use self::tasks::PostgresTaskTable;
use self::tool_exports::PostgresToolExportTable;
use self::usage::PostgresUsageTable;
use self::workspace_bundles::PostgresWorkspaceBundleTable;
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
    /// Makes the tables for the node of `journal`. `redactor` keeps secrets out of the audit log. The agents that
    /// this node changes are noted in `changes`.
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

impl PostgresJournal {
    /// Returns the table of sessions. Its writes are in one order with those of the journal. What this process writes to it
    /// is noted in `changes`.
    #[must_use]
    pub fn session_table(&self, changes: Arc<SessionChanges>) -> Arc<dyn SessionTable> {
        Arc::new(PostgresSessionTable { db: CatalogDb::new(self), changes })
    }

    /// Returns the queue of sessions that wait for a summary.
    #[must_use]
    pub fn summary_queue(&self) -> Arc<dyn SummaryQueue> {
        Arc::new(PostgresSummaryQueue { db: CatalogDb::new(self) })
    }

    /// Returns the tables of the connection to Discord, and the leases that their writes need. Agents that are written with
    /// their channels are noted in `changes`. To be called once: another handle does not know the leases of this one.
    #[must_use]
    pub fn discord(&self, changes: Arc<SessionChanges>) -> PostgresDiscord {
        PostgresDiscord::new(&CatalogDb::new(self), changes)
    }

    /// Returns the table of the files of agents.
    #[must_use]
    pub fn agent_file_table(&self) -> Arc<dyn AgentFileTable> {
        Arc::new(PostgresAgentFileTable { db: CatalogDb::new(self) })
    }

    /// Returns the table of the bundles of workspaces.
    #[must_use]
    pub fn workspace_bundle_table(&self) -> Arc<dyn WorkspaceBundleTable> {
        Arc::new(PostgresWorkspaceBundleTable { db: CatalogDb::new(self) })
    }

    /// Returns the table of the transcripts that this node captures.
    #[must_use]
    pub fn capture_table(&self) -> Arc<dyn CaptureTable> {
        Arc::new(PostgresCaptureTable { db: CatalogDb::new(self) })
    }

    /// Returns the table of exports.
    #[must_use]
    pub fn tool_export_table(&self) -> Arc<dyn ToolExportTable> {
        Arc::new(PostgresToolExportTable { db: CatalogDb::new(self) })
    }

    /// Returns the table of schedules.
    #[must_use]
    pub fn schedule_table(&self) -> Arc<dyn ScheduleTable> {
        Arc::new(PostgresScheduleTable { db: CatalogDb::new(self) })
    }

    /// Returns the whole catalog. `redactor` keeps secrets out of the audit log.
    #[must_use]
    pub fn catalog(&self, redactor: Arc<Redactor>) -> Catalog {
        let changes = Arc::<SessionChanges>::default();
        let AgentTables { agents, settings, approvals, audit, usage, imported_usage, tasks, memories, file_writes } =
            AgentTables::new(self, redactor, changes.clone());
        Catalog {
            agents,
            sessions: self.session_table(changes.clone()),
            summary_queue: self.summary_queue(),
            memories,
            tasks,
            file_writes,
            approvals,
            audit,
            usage,
            imported_usage,
            settings,
            capture: self.capture_table(),
            tool_exports: self.tool_export_table(),
            schedules: self.schedule_table(),
            discord: self.discord(changes).tables,
        }
    }
}
