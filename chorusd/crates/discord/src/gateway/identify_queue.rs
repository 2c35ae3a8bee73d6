//! Permission to begin a new session. The gateway library asks for it before it sends IDENTIFY.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_engine::KeyedMutex;
use chorus_engine::ops::discord::{DiscordLease, LeaseClaim, SharedDiscord, identify_budget};
use chorus_runtime::SpawnTracked as _;
use jiff::Timestamp;
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};
use tokio::time::{Instant, sleep};
use twilight_gateway::queue::Queue;

use crate::app::DiscordApp;

/// Discord accepts one IDENTIFY in five seconds, measured at its end.
const IDENTIFY_INTERVAL: Duration = Duration::from_millis(5_500);

/// Time between two attempts to release a turn while the database is away.
const RELEASE_INTERVAL: Duration = Duration::from_secs(5);

/// Time between two attempts to get the turn of a bucket in which another node begins a session.
const LEASE_INTERVAL: Duration = Duration::from_millis(500);

/// Why a new session may not be begun.
#[derive(Debug)]
pub(super) enum IdentifyDenied {
    /// The budget is used up until this time.
    Until(Timestamp),
    /// The budget cannot be read or written.
    BudgetUnavailable(Error),
}

/// Counts new sessions against the budget; one for each connection.
#[derive(Debug, Clone)]
pub(super) struct IdentifyQueue {
    pub app: Arc<DiscordApp>,
    pub shard: u32,
    /// Receives the denials. The library's permission channel goes with it: if it were dropped, the library would ask
    /// again at once.
    pub denied: mpsc::Sender<(IdentifyDenied, oneshot::Sender<()>)>,
}

impl Queue for IdentifyQueue {
    fn enqueue(&self, _: u32) -> oneshot::Receiver<()> {
        let (leave, given) = oneshot::channel();
        let Self { app, shard, denied: refused } = self.clone();
        let tasks = app.tasks.clone();
        let stop = app.shards.term(shard);
        tasks.spawn_tracked(async move {
            let taken = tokio::select! {
                taken = take_identify(&app, shard, &leave) => taken,
                () = stop.cancelled() => return,
            };
            match taken {
                Ok(Ok(())) => drop(leave.send(())),
                Ok(Err(at)) => drop(refused.try_send((IdentifyDenied::Until(at), leave))),
                Err(failure) => drop(refused.try_send((IdentifyDenied::BudgetUnavailable(failure), leave))),
            }
        });
        given
    }
}

/// The turns of shards to begin a session. Discord accepts one in five seconds for each bucket, which is the shard's number
/// modulo `max_concurrency`.
#[derive(Debug, Default)]
pub(crate) struct IdentifyTurns {
    concurrency: AtomicU32,
    /// When this process took the last turn of a bucket.
    taken: Mutex<HashMap<u32, Instant>>,
    locks: KeyedMutex<u32>,
}

impl IdentifyTurns {
    /// Sets how many sessions may be begun at the same time.
    pub(super) fn set_concurrency(&self, concurrency: u32) {
        self.concurrency.store(concurrency, Ordering::Relaxed);
    }

    /// Returns how long a shard waits at most while each of the other ones, of `count` in all, begins a session.
    pub(super) fn longest_wait(&self, count: u32) -> Duration {
        let concurrency = self.concurrency.load(Ordering::Relaxed).max(1);
        IDENTIFY_INTERVAL * (count.div_ceil(concurrency).saturating_sub(1))
    }

    fn bucket(&self, shard: u32) -> u32 {
        shard % self.concurrency.load(Ordering::Relaxed).max(1)
    }

    /// Returns the time until the next turn of a bucket; `None` if this process took none yet.
    fn wait(&self, bucket: u32) -> Option<Duration> {
        let taken = self.taken.lock();
        taken.get(&bucket).map(|at| IDENTIFY_INTERVAL.saturating_sub(at.elapsed()))
    }
}

/// The turn of a bucket. When it is dropped, the next shard of the bucket may begin a session, here or at another node.
struct Turn {
    app: Arc<DiscordApp>,
    bucket: u32,
    /// Time until then.
    held: Duration,
    one_at_a_time: Option<OwnedMutexGuard<()>>,
}

impl Turn {
    /// Waits for the turn of a bucket.
    async fn wait(app: &Arc<DiscordApp>, bucket: u32) -> Result<Self> {
        let one_at_a_time = Some(app.shards.identify_turns.locks.lock(bucket).await);
        let turn = Self { app: app.clone(), bucket, held: Duration::ZERO, one_at_a_time };
        if let Some(shared) = &app.tables.shared {
            while !matches!(shared.claim(DiscordLease::Identify(bucket)).await?, LeaseClaim::Granted { .. }) {
                sleep(LEASE_INTERVAL).await;
            }
        }
        Ok(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(shared) = self.app.tables.shared.clone() else { return };
        let (stop, lease, held) = (self.app.stop.clone(), DiscordLease::Identify(self.bucket), self.held);
        let one_at_a_time = self.one_at_a_time.take();
        self.app.tasks.spawn_tracked(async move {
            tokio::select! {
                () = sleep(held) => {}
                // The next daemon asks the budget.
                () = stop.cancelled() => {}
            }
            // Until nobody has it, or another node: the others wait for as long as this node has it and lives.
            while let Err(failure) = release(&*shared, lease).await {
                tracing::debug!(%failure, "cannot let another node start a session");
                tokio::select! {
                    () = sleep(RELEASE_INTERVAL) => {}
                    () = stop.cancelled() => break,
                }
            }
            drop(one_at_a_time);
        });
    }
}

/// Releases a lease. It may be this node's though its claim was not answered, or though the node was silent since.
async fn release(shared: &dyn SharedDiscord, lease: DiscordLease) -> Result<()> {
    if shared.holds(lease) || matches!(shared.claim(lease).await?, LeaseClaim::Granted { .. }) {
        shared.release(lease).await?;
    }
    Ok(())
}

/// Takes one identify from the budget; it is on disk when this returns. The inner error is the time at which the budget
/// allows one again.
async fn take_identify(
    app: &Arc<DiscordApp>,
    shard: u32,
    leave: &oneshot::Sender<()>,
) -> Result<Result<(), Timestamp>> {
    let turns = &app.shards.identify_turns;
    let bucket = turns.bucket(shard);
    let mut turn = Turn::wait(app, bucket).await?;
    let taken = take_turn(app, bucket, leave).await?;
    if taken.is_ok() {
        turns.taken.lock().insert(bucket, Instant::now());
        turn.held = IDENTIFY_INTERVAL;
    }
    Ok(taken)
}

async fn take_turn(app: &DiscordApp, bucket: u32, leave: &oneshot::Sender<()>) -> Result<Result<(), Timestamp>> {
    let ops = &app.ops;
    let is_alone = app.shards.identify_turns.concurrency.load(Ordering::Relaxed) <= 1;
    // Of other buckets the budget does not tell them apart; a process asks it for the last one of the process before it.
    let own = app.shards.identify_turns.wait(bucket).filter(|_| !is_alone);
    let left = match own {
        Some(left) => Some(left),
        None => {
            let newest = identify_budget::read_budget(ops).await?.last_at;
            let since = newest.and_then(|newest| Duration::try_from(ops.clock.now().duration_since(newest)).ok());
            since.and_then(|since| IDENTIFY_INTERVAL.checked_sub(since)).filter(|_| is_alone || bucket == 0)
        }
    };
    // Wait once, and do not look at the clock again: it may stand still.
    if let Some(left) = left {
        sleep(left).await;
    }
    if leave.is_closed() {
        return Err(Error::internal("the connection was closed"));
    }
    identify_budget::spend(ops).await
}
