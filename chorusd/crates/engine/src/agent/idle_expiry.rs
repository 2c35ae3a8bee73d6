//! Expiry of idle contexts. All deadlines are in one structure, on a clock that counts while the machine sleeps and
//! does not change with the wall clock.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_clock::Clock;
use chorus_session::conversation::ConversationKey;
use futures_util::StreamExt as _;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::command::{self, ExpiryOutcome};
use super::registry::Registry;
use crate::lifecycle::malloc_trim;

/// Maximum number of contexts that expire at once.
const MAX_CONCURRENT_EXPIRIES: usize = 384;

/// Interval after which a context that could not be saved, or was in a turn, is tried again.
pub const EXPIRY_RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// After a start, a context has at least this time left, or its whole timeout if that is shorter.
pub const RESTART_GRACE: Duration = Duration::from_secs(60);

/// One deadline per key (a conversation or a session).
#[derive(Debug)]
pub struct DeadlineTimers<K> {
    inner: Mutex<Inner<K>>,
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

#[derive(Debug)]
struct Inner<K> {
    /// The timers that have not fired, by time.
    queue: BTreeSet<(Ticks, K)>,
    timers: HashMap<K, Timer>,
    /// Until when the loop that fires the timers waits. Only an earlier timer wakes it: each append moves a deadline back,
    /// and the loop looks again when the old one comes.
    waits_until: Option<Ticks>,
}

#[derive(Debug)]
struct Timer {
    /// The deadline of the timer. It is kept while the context expires, so that setting the same deadline again starts
    /// no second timer.
    due: Ticks,
    /// When the timer fires; `None` once it has.
    fires_at: Option<Ticks>,
}

impl<K: Copy + Ord + Hash> Inner<K> {
    /// Sets a timer. Returns whether it fires before the loop looks again.
    fn schedule(&mut self, key: K, due: Ticks, rings: Ticks) -> bool {
        self.remove(key);
        self.timers.insert(key, Timer { due, fires_at: Some(rings) });
        self.queue.insert((rings, key));
        self.waits_until.is_some_and(|until| rings < until)
    }

    fn remove(&mut self, key: K) {
        if let Some(rings) = self.timers.remove(&key).and_then(|timer| timer.fires_at) {
            self.queue.remove(&(rings, key));
        }
    }

    fn due(&self, key: K) -> Option<Ticks> {
        self.timers.get(&key).map(|timer| timer.due)
    }
}

/// Returns the memory of a map that has room for more than four times its entries.
pub(super) fn shrink_if_sparse<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.capacity() / 4 > map.len() {
        map.shrink_to(map.len() * 2);
    }
}

impl<K> Default for DeadlineTimers<K> {
    fn default() -> Self {
        let inner = Inner { queue: BTreeSet::new(), timers: HashMap::new(), waits_until: None };
        Self { inner: Mutex::new(inner), changed: Notify::new(), running_batches: watch::Sender::default() }
    }
}

impl<K: Copy + Ord + Hash> DeadlineTimers<K> {
    /// Sets or removes a deadline. Setting the same deadline again changes nothing.
    pub fn set(&self, key: K, due: Option<Ticks>) {
        let mut inner = self.inner.lock();
        let wakes = match due {
            None => {
                inner.remove(key);
                false
            }
            Some(due) => inner.due(key) != Some(due) && inner.schedule(key, due, due),
        };
        drop(inner);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Makes the timer of a deadline fire again at `rings`, if that is still the deadline of the key.
    pub fn rearm(&self, key: K, due: Ticks, rings: Ticks) {
        let mut inner = self.inner.lock();
        let wakes = inner.due(key) == Some(due) && inner.schedule(key, due, rings);
        drop(inner);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Moves the queue to other memory if at least half of its contexts have just been evicted; see
    /// [`ConversationIndex::relocate`](super::conversation_index::ConversationIndex::relocate). Returns the room of timers
    /// that are gone.
    pub fn relocate(&self, evicted: usize) {
        let mut inner = self.inner.lock();
        shrink_if_sparse(&mut inner.timers);
        if evicted * 2 >= inner.queue.len() {
            inner.queue = inner.queue.clone();
        }
    }

    /// Returns the deadline of a key.
    #[must_use]
    pub fn due(&self, key: K) -> Option<Ticks> {
        self.inner.lock().due(key)
    }

    /// Removes the timers that are due and returns their keys, each with its deadline, in order: both
    /// databases have indexes by agent, and neighbours in them share pages.
    #[must_use]
    pub fn take_due(&self, now: Ticks) -> Vec<(K, Ticks)> {
        let mut inner = self.inner.lock();
        let mut due = Vec::new();
        while let Some((rings, key)) = inner.queue.first().copied().filter(|(rings, _)| *rings <= now) {
            inner.queue.remove(&(rings, key));
            if let Some(timer) = inner.timers.get_mut(&key) {
                timer.fires_at = None;
                due.push((key, timer.due));
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

    /// Returns when the first timer fires, until which the caller waits.
    fn next_fire(&self) -> Option<Ticks> {
        let mut inner = self.inner.lock();
        let first = inner.queue.first().map(|(rings, _)| *rings);
        inner.waits_until = Some(first.unwrap_or(Ticks(i64::MAX)));
        first
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
                let put_away = async |(conversation, due)| {
                    let _permit = permits.acquire().await;
                    expire_context(&registry, conversation, due).await;
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

async fn expire_context(registry: &Arc<Registry>, conversation: ConversationKey, due: Ticks) {
    match registry.ask(conversation, command::expire(due)).await {
        Ok(ExpiryOutcome::TurnRunning) => {}
        Ok(ExpiryOutcome::Settled) => return,
        Err(failure) => tracing::warn!(agent = %conversation.agent, %failure, "cannot save an idle context; retrying"),
    }
    registry.idle_timers.rearm(conversation, due, registry.clock.ticks().after(EXPIRY_RETRY_INTERVAL));
}
