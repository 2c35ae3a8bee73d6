//! Commands in the background: started by an agent in a turn, they go on without it, and the agent hears when one ends.
//!
//! [`Tasks`] is the whole face. The table `tasks` has a row for each; a file below the agent's directory has what it
//! printed.

mod log;
mod notice;
mod outside;
mod process;
mod recover;
mod run;
mod slots;
mod start;

pub use notice::Ended;
pub use outside::Outside;
pub use recover::Recovered;
pub use slots::Waited;
pub use start::Start;

use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::{BoxFuture, join_all};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use self::slots::Slots;
use crate::clock::Clock;
use crate::failure::Result;
use crate::message::Stored;
use crate::store::Store;
use crate::store::catalog::TaskRow;

/// Name of the directory of logs in that of an agent.
pub const LOGS: &str = "logs";

/// Tasks that an agent may have running.
pub const MOST_OF_ONE: usize = 8;

/// Tasks that may run at all.
pub const MOST: usize = 64;

/// All tasks of this home.
#[derive(Debug, Clone)]
pub struct Tasks {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<Store>,
    clock: Clock,
    slots: Arc<Slots>,
    outside: OnceLock<Weak<dyn Outside>>,
}

impl Tasks {
    #[must_use]
    pub fn new(store: Arc<Store>, clock: Clock) -> Self {
        Self { shared: Arc::new(Shared { store, clock, slots: Arc::default(), outside: OnceLock::new() }) }
    }

    /// Says what the rest of the daemon is.
    pub fn connect(&self, outside: Weak<dyn Outside>) {
        let _ = self.shared.outside.set(outside);
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
    pub async fn more_than(&self, id: &str, length: u64) -> Waited {
        match self.shared.slots.ear(id) {
            Some(ear) => ear.more_than(length).await,
            None => Waited::Ended,
        }
    }

    /// Ends a task, and waits for that; false where it does not run.
    pub async fn stop(&self, id: &str) -> bool {
        let Some(ear) = self.shared.slots.ask_to_stop(id) else { return false };
        ear.end().await;
        true
    }

    /// Ends all tasks of an agent that is about to go; until [`Tasks::stay`] it can start none. Those that ended, for
    /// [`Tasks::tell`].
    pub async fn leave(&self, agent: Uuid) -> Vec<Ended> {
        self.shared.slots.leave(agent).await
    }

    /// The agent is here, or gone for good: whoever has its id may start tasks again.
    pub fn stay(&self, agent: Uuid) {
        self.shared.slots.stay(agent);
    }

    /// Ends all tasks, for good. Those whose agents have not heard of it yet, for [`Tasks::tell`].
    pub async fn close(&self) -> Vec<Ended> {
        self.shared.slots.close().await
    }

    /// Tells agents that these have ended. What cannot be told now is told at the next start.
    pub async fn tell(&self, ended: Vec<Ended>) {
        // All are begun before one is waited for.
        let each: Vec<_> = ended.into_iter().map(|ended| self.shared.tell(ended)).collect();
        join_all(each).await;
    }

    /// The same by a way of the caller's.
    pub async fn tell_by(
        &self,
        ended: Vec<Ended>,
        append: impl Fn(Uuid, Stored, String) -> BoxFuture<'static, Result<()>>,
    ) {
        let each: Vec<_> = ended.into_iter().map(|ended| self.shared.tell_by(ended, &append)).collect();
        join_all(each).await;
    }
}

impl Shared {
    fn outside(&self) -> Option<Arc<dyn Outside>> {
        self.outside.get()?.upgrade()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}
