//! Trims ended contexts from the journal in batches, once no idle contexts are expiring. When thousands expire at the
//! same time, appends then do not also have to wait for the trimming.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::sync::Mutex;
use chorus_proto::ErrorKind;
use chorus_session::stored_message::ContextNo;
use tokio::time::timeout;

use super::registry::Registry;

/// Contexts per batch.
const BATCH_SIZE: usize = 256;

/// The longest wait for a moment without expiries, and the wait after a failure.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The contexts to trim, and whether [`run`] is running.
#[derive(Debug, Default)]
pub(super) struct TrimQueue(Mutex<(Vec<ContextNo>, bool)>);

impl TrimQueue {
    /// Adds a context. Returns true if the caller must call [`run`].
    pub(super) fn push(&self, context: ContextNo) -> bool {
        let mut inner = self.0.lock();
        inner.0.push(context);
        !std::mem::replace(&mut inner.1, true)
    }

    fn requeue(&self, contexts: Vec<ContextNo>) {
        self.0.lock().0.extend(contexts);
    }

    /// Removes a batch. If there is none, marks [`run`] as ended.
    fn pop_batch(&self) -> Option<Vec<ContextNo>> {
        let mut inner = self.0.lock();
        let rest = inner.0.len().saturating_sub(BATCH_SIZE);
        let some = inner.0.split_off(rest);
        inner.1 = !some.is_empty();
        inner.1.then_some(some)
    }
}

/// Trims until the queue is empty.
pub(super) async fn run(registry: Arc<Registry>) {
    loop {
        // If expiries never pause, trim nevertheless.
        let _ = timeout(MAX_WAIT, registry.idle_timers.wait_until_no_expiry()).await;
        let Some(contexts) = registry.trim_queue.pop_batch() else { return };
        let Err(failure) = registry.store.journal.trim(contexts.clone()).await else { continue };
        // If the daemon is ending, the next start trims.
        if failure.fatal || failure.kind == ErrorKind::Stopping {
            return;
        }
        tracing::warn!(%failure, "cannot trim the journal; retrying");
        registry.trim_queue.requeue(contexts);
        tokio::time::sleep(MAX_WAIT).await;
    }
}
