//! Housekeeping in the background after the start.

use std::sync::Arc;

use chorus_config::DurabilityMode;
use chorus_engine::lifecycle::{malloc_trim, unclean_stop};
use chorus_engine::ops;
use chorus_engine::ops::Ops;
use chorus_engine::tasks::RecoveredTasks;
use tokio_util::sync::CancellationToken;

use super::context_saves::save_contexts;

/// Reports the background tasks that the previous daemon left running.
pub(super) async fn announce_recovered_tasks(ops: Arc<Ops>, recovered: RecoveredTasks) {
    if let Err(failure) = ops::tasks::running_tasks_sync::mark_outdated(&ops).await {
        tracing::warn!(%failure, "cannot find agents with outdated task lists");
    }
    ops.tasks.notify_recovered(recovered).await;
}

/// Does the housekeeping after the start, and with `durability = "interval"` syncs the journal from then on.
pub(super) async fn run_maintenance(ops: Arc<Ops>, stop: CancellationToken) {
    let store = &ops.store;
    if let Err(failure) = ops::trash::recovery::recover_all(&ops.trash).await {
        tracing::warn!(%failure, "cannot read the trash");
    }
    let trimmed = async { store.journal.trim(store.journal.ended_contexts().await?).await };
    if let Err(failure) = trimmed.await {
        tracing::warn!(%failure, "cannot trim the journal");
    }
    if let Err(failure) = store.journal.prune_keys(ops.clock.now()).await {
        tracing::warn!(%failure, "cannot delete old idempotency keys");
    }
    if let Err(failure) = store.catalog.discord.claims.prune(ops.clock.now()).await {
        tracing::warn!(%failure, "cannot delete old channel messages");
    }
    match store.is_purge_due().await {
        Ok(false) => {}
        Ok(true) => _ = ops::session::purge::erase_purged(store).await,
        Err(failure) => tracing::warn!(%failure, "cannot check for data to purge"),
    }
    for entry in ops.agents.all() {
        ops.catalog_sync.try_sync_sessions(&entry.settings).await;
    }
    malloc_trim::schedule_trim(store);
    if let Some(bodies) = store.bodies.clone() {
        let stop = stop.clone();
        chorus_runtime::spawn(async move { stop.run_until_cancelled(bodies.run_upkeep()).await });
    }
    // After the scan, which indexes sessions that the last stop wrote but could not index.
    if unclean_stop::is_marked(&ops.home) {
        tracing::info!("the last stop was not clean");
        if save_contexts(&ops).await {
            unclean_stop::clear_marker(&ops.home);
        }
    }
    chorus_runtime::spawn(ops.summaries.clone().backfill());
    // After the scan as well, since a session that it finds counts as used now.
    chorus_runtime::spawn(ops::session::expire::run_daily(
        ops.session_trash.clone(),
        ops.effective_config.clone(),
        stop.clone(),
    ));
    chorus_runtime::spawn(ops::session::compression::run_daily(
        ops.session_trash.clone(),
        ops.effective_config.clone(),
        stop,
    ));
    if ops.config.durability == DurabilityMode::Interval {
        let mut interval = tokio::time::interval(ops.config.autosave_interval);
        loop {
            interval.tick().await;
            if let Err(failure) = store.escalate_fatal(store.journal.flush().await) {
                tracing::error!(%failure, "cannot write the journal to disk");
            }
        }
    }
}
