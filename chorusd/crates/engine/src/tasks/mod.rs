//! Background tasks: commands that an agent starts in a turn and that outlive it. The agent is notified when one ends.
//!
//! [`Tasks`] is the public interface. The table `tasks` has a row for each task; its output is in a file below the
//! agent's directory.

mod host;
mod log;
mod notice;
mod process_identity;
mod recover;
mod run;
mod running_tasks;
mod start;

use std::sync::{Arc, OnceLock, Weak};

use chorus_base::error::Result;
use chorus_catalog::TaskRow;
use chorus_clock::Clock;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use chorus_store::Store;
use futures_util::future::{BoxFuture, join_all};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use self::running_tasks::TaskSlots;
pub use host::TaskHost;
pub use notice::EndedTask;
pub use recover::RecoveredTasks;
pub use running_tasks::WaitOutcome;
pub use start::TaskSpec;

/// Name of the directory of task logs in an agent's directory.
pub const LOGS_DIR: &str = "logs";

/// Limit on the running tasks of one agent.
pub const MAX_TASKS_PER_AGENT: usize = 8;

/// Limit on the running tasks of all agents.
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

    /// Connects the tasks to the rest of the daemon. Only the first call has an effect.
    pub fn set_host(&self, outside: Weak<dyn TaskHost>) {
        let _ = self.shared.host.set(outside);
    }

    /// Returns how many tasks are running and how many have ended, of one agent or of all.
    #[must_use]
    pub fn counts(&self, agent: Option<Uuid>) -> (u64, u64) {
        self.shared.slots.counts(agent)
    }

    /// Returns the running tasks of an agent in the form of agent.json, oldest first.
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

    /// Returns the id of the oldest task that runs in a conversation.
    #[must_use]
    pub fn running_in(&self, conversation: ConversationKey) -> Option<String> {
        let running = self.shared.slots.running_of(conversation.agent);
        running.into_iter().find(|row| row.conversation_id == conversation.stored_id()).map(|row| row.id)
    }

    /// Waits until a task has printed more than `length` bytes, or has ended.
    pub async fn wait_for_output(&self, id: &str, length: u64) -> WaitOutcome {
        match self.shared.slots.watch_task(id) {
            Some(listener) => listener.wait_for_output(length).await,
            None => WaitOutcome::Ended,
        }
    }

    /// Stops a task and waits for its end; returns false if it is not running.
    pub async fn stop(&self, id: &str) -> bool {
        let Some(listener) = self.shared.slots.request_stop(id) else { return false };
        listener.wait_for_end().await;
        true
    }

    /// Stops all tasks of an agent that is about to be destroyed, and blocks new ones until [`Tasks::unblock_agent`].
    /// Returns the ended tasks, for [`Tasks::notify_agents`].
    pub async fn stop_and_block_agent(&self, agent: Uuid) -> Vec<EndedTask> {
        self.shared.slots.stop_and_block_agent(agent).await
    }

    /// Allows tasks with this agent's id again: the agent stays, or is destroyed.
    pub fn unblock_agent(&self, agent: Uuid) {
        self.shared.slots.unblock_agent(agent);
    }

    /// Ends all tasks of an agent that another daemon has taken over. Nothing is recorded, and nobody is told.
    pub fn abandon(&self, agent: Uuid) {
        self.shared.slots.abandon(agent);
    }

    /// Returns whether a task is being started or runs in this process.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.shared.slots.has(id)
    }

    /// Asks all tasks to end. Others may start.
    pub fn stop_all(&self) {
        self.shared.slots.stop_all();
    }

    /// Stops all tasks for good. Returns those whose agents were not notified yet, for [`Tasks::notify_agents`].
    pub async fn close(&self) -> Vec<EndedTask> {
        self.shared.slots.close().await
    }

    /// Notifies the agents of these tasks that they have ended. Notifications that fail are repeated at the next start.
    pub async fn notify_agents(&self, ended: Vec<EndedTask>) {
        // Send all notifications before waiting for any.
        let each: Vec<_> = ended.into_iter().map(|ended| self.shared.notify_agent(ended)).collect();
        join_all(each).await;
    }

    /// Like [`Tasks::notify_agents`], with the caller's way of appending a message.
    pub async fn notify_agents_with(
        &self,
        ended: Vec<EndedTask>,
        append: impl Fn(ConversationKey, StoredMessage, String) -> BoxFuture<'static, Result<()>>,
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
