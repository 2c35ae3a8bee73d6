//! Rows of approvals. Open ones are also in memory; the table records the outcome of each.

use std::fmt::Debug;

use chorus_proto::methods::approvals::{Approval, Status};
use jiff::Timestamp;
use uuid::Uuid;

use crate::{AuditDecision, CatalogRead, CatalogWrite};

/// A row of the table of approvals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    /// The fields that only a pending approval has are not stored: `details`, `patterns`, `turn_allowed`, `reason`,
    /// `directory` and `reach`. Its hash is `hash` in hex.
    pub approval: Approval,
    pub agent: Uuid,
    pub hash: [u8; 32],
    pub nonce: Uuid,
}

/// Outcome of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedApproval {
    pub id: String,
    pub status: Status,
    pub at: Timestamp,
    pub by: Option<String>,
}

/// The table of approvals.
pub trait ApprovalTable: Debug + Send + Sync {
    /// Inserts an approval, which is open; returns false if its id exists already.
    fn insert(&self, row: ApprovalRow) -> CatalogWrite<bool>;

    /// Records the outcome of an open approval, and appends `row` to the audit log, redacted, in the same commit.
    /// Returns false if the approval was not open; nothing is stored then.
    fn record_outcome(&self, decided: DecidedApproval, row: AuditDecision) -> CatalogWrite<bool>;

    /// Lists the open approvals with the ids of their agents, oldest first.
    fn list_open(&self) -> CatalogRead<'_, Vec<(Approval, Uuid)>>;

    /// Lists the open approvals of an agent, oldest first.
    fn list_open_of(&self, agent: Uuid) -> CatalogRead<'_, Vec<Approval>> {
        Box::pin(async move {
            let open = self.list_open().await?;
            Ok(open.into_iter().filter(|(_, of)| *of == agent).map(|(approval, _)| approval).collect())
        })
    }

    /// Returns the agent of an open approval of any daemon of a cluster.
    fn agent_of_open(&self, _id: String) -> CatalogRead<'_, Option<Uuid>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Lists the open approvals of agents that other daemons of a cluster have, oldest first.
    fn list_open_elsewhere(&self) -> CatalogRead<'_, Vec<Approval>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns the approval with this id.
    fn get(&self, id: String) -> CatalogRead<'_, Option<Approval>>;

    /// Returns the newest `most` decided approvals of an agent, or of all agents, oldest first.
    fn list_decided(&self, agent: Option<Uuid>, most: u32) -> CatalogRead<'_, Vec<Approval>>;
}
