//! Connections that have not said hello: a bounded number. One more ends the oldest.

use std::collections::VecDeque;
use std::sync::Arc;

use chorus_base::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The connections. A peer needs some milliseconds for its hello, so that those who say nothing are the oldest and keep
/// it from nothing.
#[derive(Debug, Clone)]
pub(crate) struct PendingHandshakes {
    limit: usize,
    pending: Arc<Mutex<Pending>>,
}

#[derive(Debug, Default)]
struct Pending {
    next: u64,
    oldest_first: VecDeque<(u64, CancellationToken)>,
}

/// One of the connections, until it is dropped.
#[derive(Debug)]
pub(crate) struct PendingHandshake {
    number: u64,
    pending: Arc<Mutex<Pending>>,
    evicted: CancellationToken,
}

impl PendingHandshakes {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), pending: Arc::default() }
    }

    /// Adds a connection.
    pub(crate) fn add(&self) -> PendingHandshake {
        let mut pending = self.pending.lock();
        if pending.oldest_first.len() >= self.limit
            && let Some((_, oldest)) = pending.oldest_first.pop_front()
        {
            oldest.cancel();
        }
        let (number, evicted) = (pending.next, CancellationToken::new());
        pending.next += 1;
        pending.oldest_first.push_back((number, evicted.clone()));
        PendingHandshake { number, pending: self.pending.clone(), evicted }
    }
}

impl PendingHandshake {
    /// Waits until the connection has to end for another one.
    pub(crate) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }
}

impl Drop for PendingHandshake {
    fn drop(&mut self) {
        let mut pending = self.pending.lock();
        if let Ok(at) = pending.oldest_first.binary_search_by_key(&self.number, |(number, _)| *number) {
            pending.oldest_first.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_leaves_for_one_more() {
        let all = PendingHandshakes::new(2);
        let (first, second) = (all.add(), all.add());
        assert!(!first.evicted.is_cancelled());
        let third = all.add();
        assert!(first.evicted.is_cancelled() && !second.evicted.is_cancelled());
        drop(second);
        let fourth = all.add();
        assert!(!third.evicted.is_cancelled(), "another one has left");
        drop((first, third, fourth));
        assert!(all.pending.lock().oldest_first.is_empty());
    }
}
