//! The catalog as the daemon sees it, whatever database keeps it: agents, the index of their sessions, and everything else
//! that is kept in rows.
//!
//! Each table is a trait. Its rows and queries are plain values, and what can be computed from them without a database is a
//! function here, so that every database has the same results.

#![warn(unreachable_pub)]

mod agent_files;
mod agents;
mod approvals;
mod audit;
mod audit_chain;
mod capture;
mod daily_usage;
pub mod discord;
mod file_writes;
mod header_fields;
mod imported_usage;
mod lineage;
pub mod memories;
mod project_filter;
mod schedules;
mod session_changes;
mod session_query;
mod session_row;
mod sessions;
mod settings;
mod short_ids;
mod summary_queue;
mod tasks;
mod tool_exports;
mod usage;
mod workspace_bundles;

use std::sync::Arc;

use chorus_base::error::Result;
use futures_util::future::BoxFuture;

pub use agent_files::{
    AgentFileContent, AgentFileRow, AgentFileTable, MAX_AGENT_FILE_BYTES, MAX_AGENT_FILES, MAX_AGENT_FILES_BYTES,
};
pub use agents::{AgentRow, AgentTable, confine_to_home, name_taken_error};
pub use approvals::{ApprovalRow, ApprovalTable, DecidedApproval};
pub use audit::{AuditDecision, AuditEntry, AuditFilter, AuditLog, MAX_AUDIT_PAGE_BYTES, MAX_AUDIT_PAGE_ROWS};
pub use audit_chain::{AuditHead, CHANGED_AUDIT_HINT, ChainVerifier};
pub use capture::{CaptureTable, CapturedFile, SkippedLine};
pub use daily_usage::{DailyUsage, DailyUsageRow};
pub use file_writes::{FileHash, FileHistory, FileWriteRow, FileWriteTable};
pub use header_fields::{HeaderFields, has_words};
pub use imported_usage::{
    ImportedCallRow, ImportedDivision, ImportedSums, ImportedUsage, ImportedUsageFilter, ImportedUsageRow,
    ImportedUsageTable,
};
pub use lineage::{LineageRow, LineageSource, SessionName};
pub use memories::{MemoryRow, MemoryScope, MemoryTable, RememberOutcome};
pub use project_filter::ProjectFilter;
pub use schedules::{
    MAX_DONE_SCHEDULES, PendingKey, ScheduleInsertion, ScheduleProgress, ScheduleRow, ScheduleRule, ScheduleState,
    ScheduleTable, runs_from_json, runs_to_json,
};
pub use session_changes::{ChangedRows, SessionChanges};
pub use session_query::SessionQuery;
pub use session_row::{
    BodyRow, DeletedSession, NewSession, SessionPlacement, SessionRow, SessionStamp, UnusedSession, place_of,
};
pub use sessions::{MAX_MATCHES, MAX_REVISIONS, MAX_SESSIONS_SEARCHED, SessionTable};
pub use settings::{SettingTable, is_node_setting};
pub use short_ids::{ShortId, uuid_range};
pub use summary_queue::{PendingSummary, SummaryQueue};
pub use tasks::{TaskRow, TaskTable, TasksAtStart};
pub use tool_exports::{ToolExport, ToolExportTable};
pub use usage::{CallKind, QUARTER_HOUR_NANOS, Spending, UsageFilter, UsageRow, UsageTable, UsageTotals};
pub use workspace_bundles::{WorkspaceBundle, WorkspaceBundleTable, WorkspaceHandover};

/// A write. The call queues it, and the future waits for the commit: dropping the future does not undo the write. Writes
/// are carried out in the order of the calls.
pub type CatalogWrite<T> = BoxFuture<'static, Result<T>>;

/// A read. It sees every write whose future has ended.
pub type CatalogRead<'a, T> = BoxFuture<'a, Result<T>>;

/// The catalog with its tables. Code that needs one table takes that table, not the catalog. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Catalog {
    pub agents: Arc<dyn AgentTable>,
    pub sessions: Arc<dyn SessionTable>,
    pub summary_queue: Arc<dyn SummaryQueue>,
    pub memories: Arc<dyn MemoryTable>,
    pub tasks: Arc<dyn TaskTable>,
    pub file_writes: Arc<dyn FileWriteTable>,
    pub approvals: Arc<dyn ApprovalTable>,
    pub audit: Arc<dyn AuditLog>,
    pub usage: Arc<dyn UsageTable>,
    pub imported_usage: Arc<dyn ImportedUsageTable>,
    pub settings: Arc<dyn SettingTable>,
    pub capture: Arc<dyn CaptureTable>,
    pub tool_exports: Arc<dyn ToolExportTable>,
    pub schedules: Arc<dyn ScheduleTable>,
    pub discord: discord::DiscordTables,
}
