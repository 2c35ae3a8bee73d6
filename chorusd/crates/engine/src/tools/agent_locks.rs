//! A mutex for each agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as Lock, OwnedMutexGuard};
use uuid::Uuid;

/// Maps agents to their mutexes; unused ones are removed.
#[derive(Debug, Default)]
pub struct AgentLocks(Mutex<HashMap<Uuid, Weak<Lock<()>>>>);

impl AgentLocks {
    /// Locks the mutex of an agent.
    pub async fn lock(&self, agent: Uuid) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let known = locks.get(&agent).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let lock = Arc::<Lock<()>>::default();
                locks.insert(agent, Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }
}
