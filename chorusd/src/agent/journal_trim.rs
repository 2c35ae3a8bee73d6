//! What ended contexts left in the journal goes many at a time, once no idle contexts are being put away: when thousands
//! fall due, appends need not wait for the trimming as well.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chorus_proto::ErrorKind;
use tokio::time::timeout;

use super::registry::Registry;
use crate::message::ContextNo;

/// Contexts that are handed to the journal together.
const BATCH_SIZE: usize = 256;

/// The longest wait for a calm moment, and the wait after a failure.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Contexts that wait, and whether somebody sees to them.
#[derive(Debug, Default)]
pub(super) struct TrimQueue(Mutex<(Vec<ContextNo>, bool)>);

impl TrimQueue {
    /// Adds one; true where [`run`] is to be called.
    pub fn push(&self, context: ContextNo) -> bool {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0.push(context);
        !std::mem::replace(&mut inner.1, true)
    }

    fn requeue(&self, contexts: Vec<ContextNo>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.extend(contexts);
    }

    /// Some that wait; with none, whoever asked is done.
    fn pop_batch(&self) -> Option<Vec<ContextNo>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = inner.0.len().saturating_sub(BATCH_SIZE);
        let some = inner.0.split_off(rest);
        inner.1 = !some.is_empty();
        inner.1.then_some(some)
    }
}

/// Trims until nothing waits.
pub(super) async fn run(registry: Arc<Registry>) {
    loop {
        // Where it is never calm, there is room for it all the same.
        let _ = timeout(MAX_WAIT, registry.idle_timers.wait_until_no_expiry()).await;
        let Some(contexts) = registry.trim_queue.pop_batch() else { return };
        let Err(failure) = registry.store.journal.trim(contexts.clone()).await else { continue };
        // What ends the daemon leaves it to the next start.
        if failure.fatal || failure.kind == ErrorKind::Stopping {
            return;
        }
        tracing::warn!(%failure, "cannot trim the journal; it is tried again");
        registry.trim_queue.requeue(contexts);
        tokio::time::sleep(MAX_WAIT).await;
    }
}
