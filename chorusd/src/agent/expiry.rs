//! When contexts are put away: one structure for all deadlines, on a clock that counts sleep and that no change of the
//! wall clock moves.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::actor::CommandReply;
use super::event::{AgentCommand, CommandOutcome};
use super::registry::Registry;
use crate::clock::{Clock, Ticks};
use crate::malloc_trim;

/// Contexts that are put away at once.
const MAX_CONCURRENT_EXPIRIES: usize = 384;

/// A context that could not be put away, or was in a turn, is tried again after this.
pub const EXPIRY_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// After a start, a context has at least this left, or its whole timeout where that is less.
pub const RESTART_GRACE: Duration = Duration::from_secs(60);

/// A deadline for each agent that has one.
#[derive(Debug, Default)]
pub struct DeadlineTimers {
    inner: Mutex<Inner>,
    changed: Notify,
    /// How many batches of contexts are being put away.
    running_batches: watch::Sender<usize>,
}

/// A batch that is put away, until it is dropped.
#[derive(Debug)]
struct ExpiryBatch<'a>(&'a watch::Sender<usize>);

impl Drop for ExpiryBatch<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|batches| *batches -= 1);
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// What will ring, and when.
    queue: BTreeSet<(Ticks, Uuid)>,
    timers: HashMap<Uuid, Timer>,
}

#[derive(Debug)]
struct Timer {
    /// The deadline it is for. It is kept while the context is put away: hearing of it again starts nothing.
    due: Ticks,
    /// When it rings, unless it has.
    fires_at: Option<Ticks>,
}

impl Inner {
    /// Whether it is now the first to ring.
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
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the deadline of an agent; the same one again changes nothing.
    pub fn set(&self, agent: Uuid, due: Option<Ticks>) {
        let mut inner = self.inner();
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

    /// Lets the timer of a deadline ring again at `rings`, where that deadline still holds.
    pub fn rearm(&self, agent: Uuid, due: Ticks, rings: Ticks) {
        let mut inner = self.inner();
        let first = inner.due(agent) == Some(due) && inner.schedule(agent, due, rings);
        drop(inner);
        if first {
            self.changed.notify_one();
        }
    }

    /// The deadline of an agent.
    #[must_use]
    pub fn due(&self, agent: Uuid) -> Option<Ticks> {
        self.inner().due(agent)
    }

    /// Agents whose timer rings, each with the deadline it was for.
    #[must_use]
    pub fn take_due(&self, now: Ticks) -> Vec<(Uuid, Ticks)> {
        let mut inner = self.inner();
        let mut due = Vec::new();
        while let Some((rings, agent)) = inner.queue.first().copied().filter(|(rings, _)| *rings <= now) {
            inner.queue.remove(&(rings, agent));
            if let Some(timer) = inner.timers.get_mut(&agent) {
                timer.fires_at = None;
                due.push((agent, timer.due));
            }
        }
        due
    }

    fn begin_batch(&self) -> ExpiryBatch<'_> {
        self.running_batches.send_modify(|batches| *batches += 1);
        ExpiryBatch(&self.running_batches)
    }

    /// Waits until no contexts are being put away.
    pub async fn wait_until_no_expiry(&self) {
        // It ends with an error where the sender is gone, and that is this one.
        let _ = self.running_batches.subscribe().wait_for(|batches| *batches == 0).await;
    }

    fn next_fire(&self) -> Option<Ticks> {
        self.inner().queue.first().map(|(rings, _)| *rings)
    }

    /// Waits until a timer may ring.
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

/// Puts contexts away as they fall due, until `stop`.
pub async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_EXPIRIES));
    loop {
        let due = registry.idle_timers.take_due(registry.clock.ticks());
        if !due.is_empty() {
            let (registry, permits) = (registry.clone(), permits.clone());
            // Beside the loop: those that ring next hold nothing up, and wait for a permit of all.
            tokio::spawn(async move {
                let _under_way = registry.idle_timers.begin_batch();
                let put_away = async |(agent, due)| {
                    let _permit = permits.acquire().await;
                    expire_context(&registry, agent, due).await;
                };
                futures_util::stream::iter(due).for_each_concurrent(MAX_CONCURRENT_EXPIRIES, put_away).await;
                // Their messages were in memory to be written.
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
    match registry.ask(agent, AgentCommand::Expire { due }).await {
        Ok(CommandReply { reply: CommandOutcome::TurnRunning, .. }) => {}
        Ok(_) => return,
        Err(failure) => tracing::warn!(%agent, %failure, "an idle context was not put away; it is tried again"),
    }
    registry.idle_timers.rearm(agent, due, registry.clock.ticks().after(EXPIRY_RETRY_INTERVAL));
}
