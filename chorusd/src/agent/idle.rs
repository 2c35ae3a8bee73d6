//! When contexts are put away: one structure for all deadlines, on a clock that counts sleep and that no change of the
//! wall clock moves.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::event::Verb;
use super::registry::Registry;
use crate::clock::{Clock, Ticks};

/// Contexts that are put away at once.
const AT_ONCE: usize = 64;

/// A context that could not be put away is tried again after this.
const RETRY: Duration = Duration::from_secs(60);

/// After a start, a context has at least this left, or its whole timeout where that is less.
pub const GRACE: Duration = Duration::from_secs(60);

/// The deadlines of all live contexts.
#[derive(Debug, Default)]
pub struct IdleTimers {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    queue: BTreeSet<(Ticks, Uuid)>,
    /// Of each agent: when it is due, and the wall-clock deadline that names this deadline.
    due: HashMap<Uuid, (Ticks, Timestamp)>,
}

impl Inner {
    fn put(&mut self, agent: Uuid, at: Ticks, deadline: Timestamp) -> bool {
        self.remove(agent);
        self.due.insert(agent, (at, deadline));
        self.queue.insert((at, agent));
        self.queue.first() == Some(&(at, agent))
    }

    fn remove(&mut self, agent: Uuid) {
        if let Some((at, _)) = self.due.remove(&agent) {
            self.queue.remove(&(at, agent));
        }
    }
}

impl IdleTimers {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the deadline of an agent; the same one again changes nothing.
    pub fn set(&self, agent: Uuid, deadline: Option<Timestamp>, clock: &Clock) {
        let mut inner = self.inner();
        let Some(deadline) = deadline else {
            inner.remove(agent);
            return;
        };
        if inner.due.get(&agent).is_some_and(|(_, known)| *known == deadline) {
            return;
        }
        let left = Duration::try_from(deadline.duration_since(clock.now())).unwrap_or_default();
        if inner.put(agent, clock.ticks().after(left), deadline) {
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Sets a deadline that is `left` away, whatever it says.
    pub fn set_in(&self, agent: Uuid, deadline: Timestamp, left: Duration, clock: &Clock) {
        if self.inner().put(agent, clock.ticks().after(left), deadline) {
            self.changed.notify_one();
        }
    }

    /// Takes out what is due.
    fn take_due(&self, now: Ticks) -> Vec<(Uuid, Timestamp)> {
        let mut inner = self.inner();
        let mut due = Vec::new();
        while let Some((at, agent)) = inner.queue.first().copied().filter(|(at, _)| *at <= now) {
            inner.queue.remove(&(at, agent));
            if let Some((_, deadline)) = inner.due.remove(&agent) {
                due.push((agent, deadline));
            }
        }
        due
    }

    fn next(&self) -> Option<Ticks> {
        self.inner().queue.first().map(|(at, _)| *at)
    }
}

/// Puts contexts away as they fall due, until `stop`.
pub async fn run(registry: Arc<Registry>, stop: CancellationToken) {
    loop {
        let due = registry.idle.take_due(registry.clock.ticks());
        if !due.is_empty() {
            let registry = registry.clone();
            // Beside the loop: a slow disk delays these, not the next ones.
            tokio::spawn(async move {
                let registry = &registry;
                futures_util::stream::iter(due)
                    .for_each_concurrent(AT_ONCE, |(agent, deadline)| put_away(registry, agent, deadline))
                    .await;
            });
            continue;
        }
        let next = registry.idle.next();
        let sleep = async {
            match next {
                Some(at) => registry.clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = registry.idle.changed.notified() => {}
            () = sleep => {}
        }
    }
}

async fn put_away(registry: &Arc<Registry>, agent: Uuid, deadline: Timestamp) {
    if let Err(failure) = registry.ask(agent, Verb::Idle { deadline }).await {
        tracing::warn!(%agent, %failure, "an idle context was not put away; it is tried again");
        registry.idle.set_in(agent, deadline, RETRY, &registry.clock);
    }
}
