//! Tells the search index which sessions have changed, whatever changed them.

use std::collections::HashSet;

use chorus_base::sync::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

/// Sessions and agents whose rows were inserted, updated or deleted since they were last taken.
///
/// In a cluster, these are the rows that this process has changed, all of agents that it owns.
///
/// Rows of sessions count if their agent, name, header, hash, stamp or corruption changed, and those of agents if the status,
/// the directory or the name did.
#[derive(Debug, Default)]
pub struct SessionChanges {
    changed: Mutex<ChangedRows>,
    notify: Notify,
}

/// Ids of changed rows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ChangedRows {
    pub sessions: HashSet<Uuid>,
    /// Agents that were destroyed, moved or came back, which concerns all of their sessions.
    pub agents: HashSet<Uuid>,
}

impl ChangedRows {
    /// Returns true if nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.agents.is_empty()
    }
}

impl SessionChanges {
    /// Returns once something has changed since the last [`take`](Self::take). Safe to cancel.
    pub async fn wait(&self) {
        loop {
            let notified = self.notify.notified();
            if !self.changed.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }

    /// Returns how many sessions and agents have changed since they were last taken.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let changed = self.changed.lock();
        (changed.sessions.len() as u64, changed.agents.len() as u64)
    }

    /// Takes the changes. A row may not be committed yet:
    /// [`SessionTable::commit_changes`](crate::SessionTable::commit_changes) waits for that.
    #[must_use]
    pub fn take(&self) -> ChangedRows {
        std::mem::take(&mut self.changed.lock())
    }

    /// Notes that the row of a session has changed.
    pub fn note_session(&self, id: Uuid) {
        self.changed.lock().sessions.insert(id);
        self.notify.notify_one();
    }

    /// Notes that the row of an agent has changed.
    pub fn note_agent(&self, id: Uuid) {
        self.changed.lock().agents.insert(id);
        self.notify.notify_one();
    }
}
