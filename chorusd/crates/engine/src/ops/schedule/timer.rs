//! The timer that waits for the next schedule that is due.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_base::sync::Mutex;
use chorus_proto::{AgentStatus, ErrorKind};
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Schedules;
use super::firing::Fired;
use super::turn::{RunPermit, run_pending};
use crate::ops::Ops;

/// Limit of the runs at a time, not counting those that wait for approvals. The others are claimed when one of these has ended.
const MAX_RUNNING: usize = 128;

/// Number of schedules that are read at a time.
const PAGE: u32 = 64;

/// Longest sleep: the time of day may be set in between.
const MAX_SLEEP: Duration = Duration::from_secs(60);

/// Time between two looks for schedules of agents that this node has taken on.
const CLUSTER_INTERVAL: Duration = Duration::from_secs(15);

/// Time until the next attempt after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Runs the schedules that are due until `stop`.
pub async fn run(ops: Arc<Ops>, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_RUNNING));
    tokio::select! {
        () = stop.cancelled() => {}
        () = watch(&ops, &permits, &stop) => {}
    }
}

async fn watch(ops: &Arc<Ops>, permits: &Arc<Semaphore>, stop: &CancellationToken) {
    let schedules = &ops.schedules;
    let is_shared = ops.store.ownership.is_some();
    loop {
        match run_due(ops, permits, stop).await {
            Ok(first) => schedules.wait_until(first, is_shared).await,
            Err(failure) => {
                tracing::warn!(%failure, "cannot run schedules; retrying");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

impl Schedules {
    /// Waits until the time of day is `first`, or a schedule has changed. Asks the store nothing in between.
    async fn wait_until(&self, first: Option<Timestamp>, is_shared: bool) {
        loop {
            // In this order: what passes in between makes the sleep shorter, not longer.
            let ticks = self.clock.ticks();
            let left =
                first.map(|first| Duration::try_from(first.duration_since(self.clock.now())).unwrap_or_default());
            if left.is_some_and(|left| left.is_zero()) {
                return;
            }
            let most = if is_shared { CLUSTER_INTERVAL } else { MAX_SLEEP };
            let sleep = async {
                match left {
                    None if !is_shared => std::future::pending().await,
                    left => self.clock.sleep_until(ticks.after(left.unwrap_or(most).min(most))).await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => return,
                () = sleep => {}
            }
            if is_shared {
                return;
            }
        }
    }
}

/// Starts the runs that are pending, and those of the schedules that are due. Returns when the next one is due.
async fn run_due(ops: &Arc<Ops>, permits: &Arc<Semaphore>, stop: &CancellationToken) -> Result<Option<Timestamp>> {
    let schedules = &ops.schedules;
    let mut after = None;
    loop {
        let page = schedules.table.pending(after, PAGE).await?;
        after = page.last().and_then(|row| row.progress.pending_at.map(|due| (due, row.id)));
        for row in &page {
            if !schedules.running.lock().contains(&row.id) {
                spawn_run(ops, row.id, acquire(permits).await?, stop);
            }
        }
        if page.len() < PAGE as usize {
            break;
        }
    }
    loop {
        let due = schedules.table.due(schedules.clock.now(), PAGE).await?;
        if due.is_empty() {
            return schedules.table.first_due().await;
        }
        let mut has_moved = false;
        for row in due {
            // Before the claim, so that what waits is not claimed yet.
            let permit = acquire(permits).await?;
            match schedules.fire(row.id, has_agent(ops, row.agent).await?).await {
                Ok(Fired::Moved { runs }) => {
                    has_moved = true;
                    if runs {
                        spawn_run(ops, row.id, permit, stop);
                    }
                }
                Ok(Fired::Unchanged) => {}
                // The others are due all the same.
                Err(failure) => tracing::warn!(schedule = row.name, %failure, "cannot claim a run of a schedule"),
            }
        }
        if !has_moved {
            return Err(Error::new(ErrorKind::Busy, "schedules are being changed elsewhere"));
        }
    }
}

/// Returns true if the agent exists, even if its configuration cannot be used.
async fn has_agent(ops: &Ops, agent: Uuid) -> Result<bool> {
    if ops.agents.by_id(agent).is_some() {
        return Ok(true);
    }
    let rows = ops.store.catalog.agents.list_by_id(vec![agent]).await?;
    Ok(rows.iter().any(|row| row.status == AgentStatus::Active))
}

/// Waits until one more run may work.
async fn acquire(permits: &Arc<Semaphore>) -> Result<RunPermit> {
    let permit = permits.clone().acquire_owned().await.map_err(|e| Error::internal(e.to_string()))?;
    Ok(RunPermit { permits: permits.clone(), permit: Arc::new(Mutex::new(Some(permit))) })
}

/// Carries out the pending run of a schedule, unless this process does so already.
fn spawn_run(ops: &Arc<Ops>, id: Uuid, permit: RunPermit, stop: &CancellationToken) {
    if !ops.schedules.running.lock().insert(id) {
        return;
    }
    let (ops, stop) = (ops.clone(), stop.clone());
    chorus_runtime::spawn(async move {
        if !stop.is_cancelled() {
            let has_ended = run_pending(&ops, id, &permit, &stop).await.unwrap_or_else(|failure| {
                tracing::warn!(schedule = %id, %failure, "cannot record a run of a schedule");
                false
            });
            if !has_ended {
                stop.run_until_cancelled(tokio::time::sleep(RETRY_INTERVAL)).await;
            }
        }
        ops.schedules.running.lock().remove(&id);
        // What was claimed between the last look at the row and here.
        ops.schedules.changed.notify_one();
    });
}
