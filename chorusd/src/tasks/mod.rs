//! Commands in the background: started by an agent in a turn, they go on without it, and the agent hears when one ends.
//!
//! [`Tasks`] is the whole face. The table `tasks` has a row for each; a file below the agent's directory has what it
//! printed.

mod host;
mod log;
mod notice;
mod process;
mod recover;
mod run;
mod slots;
mod start;

pub use host::TaskHost;
pub use notice::EndedTask;
pub use recover::RecoveredTasks;
pub use slots::WaitOutcome;
pub use start::TaskSpec;

use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::{BoxFuture, join_all};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use self::slots::TaskSlots;
use crate::clock::Clock;
use crate::error::Result;
use crate::message::StoredMessage;
use crate::store::Store;
use crate::store::catalog::TaskRow;

/// Name of the directory of logs in that of an agent.
pub const LOGS_DIR: &str = "logs";

/// Tasks that an agent may have running.
pub const MAX_TASKS_PER_AGENT: usize = 8;

/// Tasks that may run at all.
pub const MAX_TASKS: usize = 64;

/// All tasks of this home.
#[derive(Debug, Clone)]
pub struct Tasks {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<Store>,
    clock: Clock,
    slots: Arc<TaskSlots>,
    host: OnceLock<Weak<dyn TaskHost>>,
}

impl Tasks {
    #[must_use]
    pub fn new(store: Arc<Store>, clock: Clock) -> Self {
        Self { shared: Arc::new(Shared { store, clock, slots: Arc::default(), host: OnceLock::new() }) }
    }

    /// Says what the rest of the daemon is.
    pub fn set_host(&self, outside: Weak<dyn TaskHost>) {
        let _ = self.shared.host.set(outside);
    }

    /// How many run and have ended; of one agent, or of all.
    #[must_use]
    pub fn counts(&self, agent: Option<Uuid>) -> (u64, u64) {
        self.shared.slots.counts(agent)
    }

    /// Those of an agent that run, as agent.json lists them; the oldest first.
    #[must_use]
    pub fn running_of(&self, agent: Uuid) -> Vec<Value> {
        let listed = |row: &TaskRow| {
            json!({
                "id": row.id,
                "command": row.command,
                "started_at": row.started_at,
                "pid": row.pid,
                "status": row.status,
            })
        };
        self.shared.slots.running_of(agent).iter().map(listed).collect()
    }

    /// Waits until a task has printed more than `length` bytes, or has ended.
    pub async fn wait_for_output(&self, id: &str, length: u64) -> WaitOutcome {
        match self.shared.slots.watch_task(id) {
            Some(ear) => ear.wait_for_output(length).await,
            None => WaitOutcome::Ended,
        }
    }

    /// Ends a task, and waits for that; false where it does not run.
    pub async fn stop(&self, id: &str) -> bool {
        let Some(ear) = self.shared.slots.request_stop(id) else { return false };
        ear.wait_for_end().await;
        true
    }

    /// Ends all tasks of an agent that is about to go; until [`Tasks::stay`] it can start none. Those that ended, for
    /// [`Tasks::tell`].
    pub async fn stop_and_block_agent(&self, agent: Uuid) -> Vec<EndedTask> {
        self.shared.slots.stop_and_block_agent(agent).await
    }

    /// The agent is here, or gone for good: whoever has its id may start tasks again.
    pub fn unblock_agent(&self, agent: Uuid) {
        self.shared.slots.unblock_agent(agent);
    }

    /// Ends all tasks, for good. Those whose agents have not heard of it yet, for [`Tasks::tell`].
    pub async fn close(&self) -> Vec<EndedTask> {
        self.shared.slots.close().await
    }

    /// Tells agents that these have ended. What cannot be told now is told at the next start.
    pub async fn notify_agents(&self, ended: Vec<EndedTask>) {
        // All are begun before one is waited for.
        let each: Vec<_> = ended.into_iter().map(|ended| self.shared.notify_agent(ended)).collect();
        join_all(each).await;
    }

    /// The same by a way of the caller's.
    pub async fn notify_agents_with(
        &self,
        ended: Vec<EndedTask>,
        append: impl Fn(Uuid, StoredMessage, String) -> BoxFuture<'static, Result<()>>,
    ) {
        let each: Vec<_> = ended.into_iter().map(|ended| self.shared.notify_agent_with(ended, &append)).collect();
        join_all(each).await;
    }
}

impl Shared {
    fn host(&self) -> Option<Arc<dyn TaskHost>> {
        self.host.get()?.upgrade()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
