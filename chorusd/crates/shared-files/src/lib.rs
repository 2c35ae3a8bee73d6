//! The files that agents have besides their sessions and workspaces, above all their docs/, as rows that several daemons
//! share. Those on this machine are copies: a claim makes them of the rows, and what somebody edits here becomes rows.
//!
//! [`SharedAgentFiles`] compares three things for each file: what is here, what its row has, and what was the same in both
//! when this daemon looked last (`known_files`). Invariants: what somebody wrote is never overwritten, it is moved to another
//! name; nothing is read or written through a symbolic link, whatever a row has as its path. See docs/design/agent-files.md.

#![warn(unreachable_pub)]

mod conflict_name;
mod decision;
mod file_path;
mod known_files;
mod listing;
mod local_changes;
mod open_dir;
mod plan;
mod sync;

use std::path::PathBuf;
use std::sync::Arc;

use chorus_base::error::Result;
use chorus_catalog::AgentFileTable;
use chorus_clock::Clock;
use chorus_store::{AgentDir, SharedFiles};
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use uuid::Uuid;

/// Locks that keep two requests from comparing the files of one agent; those of several agents may be the same.
const AGENT_LOCKS: usize = 64;

/// The files of the agents that this daemon shares with others.
#[derive(Debug)]
pub struct SharedAgentFiles {
    table: Arc<dyn AgentFileTable>,
    /// The name of this node, for the names of copies.
    node: String,
    /// The directory with what was known of each agent.
    known: PathBuf,
    clock: Clock,
    locks: [Mutex<()>; AGENT_LOCKS],
}

impl SharedAgentFiles {
    /// Makes the files of `table` for the node called `node`. `known` is a directory that only this daemon uses; it need not
    /// exist.
    #[must_use]
    pub fn new(table: Arc<dyn AgentFileTable>, node: String, known: PathBuf, clock: Clock) -> Self {
        Self { table, node, known, clock, locks: std::array::from_fn(|_| Mutex::default()) }
    }

    fn lock_of(&self, agent: Uuid) -> &Mutex<()> {
        &self.locks[usize::from(agent.as_bytes()[15]) % AGENT_LOCKS]
    }
}

impl SharedFiles for SharedAgentFiles {
    fn take_on(&self, of: AgentDir, is_new_here: bool) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let _alone = self.lock_of(of.agent).lock().await;
            self.sync(&of, sync::Occasion::Claim { is_new_here }).await
        })
    }

    fn store_edits(&self, of: AgentDir) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let _alone = self.lock_of(of.agent).lock().await;
            self.sync(&of, sync::Occasion::Edit).await
        })
    }

    fn delete_of_agent(&self, agent: Uuid) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let _alone = self.lock_of(agent).lock().await;
            self.table.delete_of_agent(agent).await?;
            self.forget(agent).await
        })
    }
}
