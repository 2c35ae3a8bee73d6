//! Compresses the files of sessions that were not used for long, once a day if the configuration says so. That is background
//! work: it takes a fraction of one core, and gives way to whoever uses sessions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chorus_base::error::Result;
use chorus_config::{Config, format_days};
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use chorus_store::session_compression::stage_compressed;
use chorus_store::session_files::path_of;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::SessionTrash;
use super::daily::repeat_daily;
use super::expire::find_unused;
use crate::ops::settings::EffectiveConfig;

/// The pause after a session, as a multiple of the time that it took, and at least.
const PAUSE_FACTOR: u32 = 3;
const MIN_PAUSE: Duration = Duration::from_millis(20);

/// Sessions that need no work after which there is a pause nevertheless.
const UNPAUSED: usize = 64;

/// How often the locks are tried, and in what intervals. Nobody waits behind the compression for a lock that others hold for long.
const MAX_LOCK_ATTEMPTS: u32 = 50;
const LOCK_RETRY: Duration = Duration::from_millis(100);

/// The result of a run.
#[derive(Debug, Default)]
struct RunTotals {
    sessions: u64,
    plain_bytes: u64,
    saved_bytes: u64,
    failed: u64,
}

/// Runs now and once a day until `stop` is cancelled; does nothing without a configured age, or if session files are only copies.
pub async fn run_daily(trash: Arc<SessionTrash>, config: Arc<EffectiveConfig>, stop: CancellationToken) {
    if !trash.store.may_compress() {
        return;
    }
    let age = |config: &Config| config.sessions_compressed_after;
    repeat_daily(&trash.clock, &config, &stop, age, |age, stop| {
        let trash = &trash;
        Box::pin(async move { compress_all(trash, age, &stop).await })
    })
    .await;
}

/// Compresses all sessions that were not used for `age`. Those that cannot be compressed are tried again by the next run.
async fn compress_all(trash: &SessionTrash, age: Duration, stop: &CancellationToken) {
    let due = match find_unused(trash, None, age).await {
        Ok(due) => due,
        Err(failure) => {
            tracing::warn!(%failure, "cannot find the unused sessions");
            return;
        }
    };
    let (mut totals, mut why) = (RunTotals::default(), None);
    let in_use = trash.registry.sessions_in_use();
    for (number, id) in due.ids.into_iter().enumerate() {
        let begun = Instant::now();
        if in_use.contains(&id) {
            continue;
        }
        match compress_session(trash, id, due.before, stop).await {
            Ok(Some((plain_bytes, saved_bytes))) => {
                totals.sessions += 1;
                totals.plain_bytes += plain_bytes;
                totals.saved_bytes += saved_bytes;
            }
            Ok(None) => {}
            Err(failure) => {
                totals.failed += 1;
                let is_full = failure.kind == ErrorKind::DiskFull;
                why.get_or_insert(failure);
                if is_full {
                    break;
                }
            }
        }
        let worked = begun.elapsed();
        if worked >= MIN_PAUSE / PAUSE_FACTOR || number % UNPAUSED == UNPAUSED - 1 {
            let pause = tokio::time::sleep((worked * PAUSE_FACTOR).max(MIN_PAUSE));
            stop.run_until_cancelled(pause).await;
        }
        if stop.is_cancelled() {
            break;
        }
    }
    let RunTotals { sessions, plain_bytes, saved_bytes, failed } = totals;
    if let Some(failure) = why {
        tracing::warn!(failed, %failure, "cannot compress unused sessions; retrying tomorrow");
    }
    if sessions > 0 {
        tracing::info!(sessions, plain_bytes, saved_bytes, unused_for = format_days(age), "compressed unused sessions");
    }
}

/// Compresses a session, unless it was used meanwhile, has no plain file, or would not become smaller. Returns the bytes of the
/// plain file, and those that became free.
async fn compress_session(
    trash: &SessionTrash,
    id: Uuid,
    before: Timestamp,
    stop: &CancellationToken,
) -> Result<Option<(u64, u64)>> {
    let is_in_use = || trash.registry.sessions_in_use().contains(&id);
    let Some(row) = trash.store.catalog.sessions.get_unused_since(id, before).await? else { return Ok(None) };
    let Some(agent) = trash.agents.by_id(row.header.agent_id) else { return Ok(None) };
    if row.corrupt.is_some() {
        return Ok(None);
    }
    let (path, stopping) = (path_of(&agent.settings.dir, &row.header.session_id), stop.clone());
    let staged = run_blocking(move || stage_compressed(&path, &|| stopping.is_cancelled())).await?;
    let Some(staged) = staged else { return Ok(None) };
    for _ in 0..MAX_LOCK_ATTEMPTS {
        if let Ok(_no_restores) = trash.sessions_lock.try_write()
            && let Ok(_no_changes) = trash.store.files.change_lock.try_lock()
        {
            let Some(row) = trash.store.catalog.sessions.get_unused_since(id, before).await? else { return Ok(None) };
            if is_in_use() {
                return Ok(None);
            }
            let bytes = (staged.plain_bytes, staged.saved_bytes);
            let name = row.header.session_id.clone();
            let is_replaced = trash.store.replace_with_compressed(row, staged).await?;
            tracing::debug!(agent = %agent.settings.name, session = %name, is_replaced, "session compressed");
            return Ok(is_replaced.then_some(bytes));
        }
        if stop.run_until_cancelled(tokio::time::sleep(LOCK_RETRY)).await.is_none() {
            return Ok(None);
        }
    }
    Ok(None)
}
