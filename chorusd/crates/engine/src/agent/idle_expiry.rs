//! Expiry of idle contexts. All deadlines are in one structure, on a clock that counts while the machine sleeps and
//! does not change with the wall clock.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_clock::Clock;
use futures_util::StreamExt as _;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::command::{self, ExpiryOutcome};
use super::registry::Registry;
use crate::lifecycle::malloc_trim;

/// Maximum number of contexts that expire at once.
const MAX_CONCURRENT_EXPIRIES: usize = 384;

/// Interval after which a context that could not be saved, or was in a turn, is tried again.
pub const EXPIRY_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// After a start, a context has at least this time left, or its whole timeout if that is shorter.
pub const RESTART_GRACE: Duration = Duration::from_secs(60);

/// One deadline per id (agent or session).
#[derive(Debug, Default)]
pub struct DeadlineTimers {
    inner: Mutex<Inner>,
    changed: Notify,
    /// Number of batches of contexts that are expiring.
    running_batches: watch::Sender<usize>,
}

/// Counts a batch of expiring contexts until it is dropped.
#[derive(Debug)]
struct ExpiryBatch<'a>(&'a watch::Sender<usize>);

impl Drop for ExpiryBatch<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|batches| *batches -= 1);
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// The timers that have not fired, by time.
    queue: BTreeSet<(Ticks, Uuid)>,
    timers: HashMap<Uuid, Timer>,
}

#[derive(Debug)]
struct Timer {
    /// The deadline of the timer. It is kept while the context expires, so that setting the same deadline again starts
    /// no second timer.
    due: Ticks,
    /// When the timer fires; `None` once it has.
    fires_at: Option<Ticks>,
}

impl Inner {
    /// Sets a timer. Returns whether it is now the first to fire.
    fn schedule(&mut self, agent: Uuid, due: Ticks, rings: Ticks) -> bool {
        self.remove(agent);
        self.timers.insert(agent, Timer { due, fires_at: Some(rings) });
        self.queue.insert((rings, agent));
        self.queue.first() == Some(&(rings, agent))
    }

    fn remove(&mut self, agent: Uuid) {
        if let Some(rings) = self.timers.remove(&agent).and_then(|timer| timer.fires_at) {
            self.queue.remove(&(rings, agent));
        }
    }

    fn due(&self, agent: Uuid) -> Option<Ticks> {
        self.timers.get(&agent).map(|timer| timer.due)
    }
}

impl DeadlineTimers {
    /// Sets or removes the deadline of an agent. Setting the same deadline again changes nothing.
    pub fn set(&self, agent: Uuid, due: Option<Ticks>) {
        let mut inner = self.inner.lock();
        let first = match due {
            None => {
                inner.remove(agent);
                false
            }
            Some(due) => inner.due(agent) != Some(due) && inner.schedule(agent, due, due),
        };
        drop(inner);
        if first {
            self.changed.notify_one();
        }
    }

    /// Makes the timer of a deadline fire again at `rings`, if that is still the agent's deadline.
    pub fn rearm(&self, agent: Uuid, due: Ticks, rings: Ticks) {
        let mut inner = self.inner.lock();
        let first = inner.due(agent) == Some(due) && inner.schedule(agent, due, rings);
        drop(inner);
        if first {
            self.changed.notify_one();
        }
    }

    /// Returns the deadline of an agent.
    #[must_use]
    pub fn due(&self, agent: Uuid) -> Option<Ticks> {
        self.inner.lock().due(agent)
    }

    /// Removes the timers that are due and returns their agents, each with its deadline, in the order of their ids: both
    /// databases have indexes by agent, and neighbours in them share pages.
    #[must_use]
    pub fn take_due(&self, now: Ticks) -> Vec<(Uuid, Ticks)> {
        let mut inner = self.inner.lock();
        let mut due = Vec::new();
        while let Some((rings, agent)) = inner.queue.first().copied().filter(|(rings, _)| *rings <= now) {
            inner.queue.remove(&(rings, agent));
            if let Some(timer) = inner.timers.get_mut(&agent) {
                timer.fires_at = None;
                due.push((agent, timer.due));
            }
        }
        due.sort_unstable();
        due
    }

    fn begin_batch(&self) -> ExpiryBatch<'_> {
        self.running_batches.send_modify(|batches| *batches += 1);
        ExpiryBatch(&self.running_batches)
    }

    /// Waits until no contexts are expiring.
    pub async fn wait_until_no_expiry(&self) {
        // An error would mean that the sender is gone, but `self` owns it.
        let _ = self.running_batches.subscribe().wait_for(|batches| *batches == 0).await;
    }

    fn next_fire(&self) -> Option<Ticks> {
        self.inner.lock().queue.first().map(|(rings, _)| *rings)
    }

    /// Waits until a timer may be due.
    pub async fn wait_for_timer(&self, clock: &Clock) {
        let sleep = async {
            match self.next_fire() {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.changed.notified() => {}
            () = sleep => {}
        }
    }
}

/// Saves and clears contexts as they become due, until `stop`.
pub async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_EXPIRIES));
    loop {
        let due = registry.idle_timers.take_due(registry.clock.ticks());
        if !due.is_empty() {
            let (registry, permits) = (registry.clone(), permits.clone());
            // In a task of its own, so that the loop can go on; the permits limit all batches together.
            chorus_runtime::spawn(async move {
                let _under_way = registry.idle_timers.begin_batch();
                let put_away = async |(agent, due)| {
                    let _permit = permits.acquire().await;
                    expire_context(&registry, agent, due).await;
                };
                futures_util::stream::iter(due).for_each_concurrent(MAX_CONCURRENT_EXPIRIES, put_away).await;
                // Writing the sessions needed memory for their messages.
                malloc_trim::schedule_trim(&registry.store);
            });
            continue;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = registry.idle_timers.wait_for_timer(&registry.clock) => {}
        }
    }
}

async fn expire_context(registry: &Arc<Registry>, agent: Uuid, due: Ticks) {
    match registry.ask(agent, command::expire(due)).await {
        Ok(ExpiryOutcome::TurnRunning) => {}
        Ok(ExpiryOutcome::Settled) => return,
        Err(failure) => tracing::warn!(%agent, %failure, "cannot save an idle context; retrying"),
    }
    registry.idle_timers.rearm(agent, due, registry.clock.ticks().after(EXPIRY_RETRY_INTERVAL));
}
