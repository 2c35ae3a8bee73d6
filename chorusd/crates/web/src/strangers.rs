//! Connections that have not shown a session yet. They are few and short, so that another user of the machine cannot hold all of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chorus_base::sync::Mutex;
use tokio::sync::Notify;

/// The limit on such connections; a new one ends the oldest.
const MAX_STRANGERS: usize = 64;
/// How long such a connection may stay open.
pub(crate) const STRANGER_TIME: Duration = Duration::from_secs(15);

/// A connection.
#[derive(Debug, Default)]
pub(crate) struct Visitor {
    is_known: AtomicBool,
    is_over: AtomicBool,
    end: Notify,
}

impl Visitor {
    /// Notes that a request of the connection had the cookie of a session.
    pub(crate) fn know(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    fn is_stranger(&self) -> bool {
        !self.is_known() && !self.is_over.load(Ordering::Relaxed)
    }

    /// Notes that the connection is closed.
    pub(crate) fn leave(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns when a newer connection takes the place of this one.
    pub(crate) async fn ended(&self) {
        loop {
            self.end.notified().await;
            if !self.is_known() {
                return;
            }
        }
    }
}

/// The connections without a session, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<VecDeque<Arc<Visitor>>>);

impl Strangers {
    /// Adds a connection.
    pub(crate) fn enter(&self) -> Arc<Visitor> {
        let visitor = Arc::new(Visitor::default());
        let mut all = self.0.lock();
        all.retain(|visitor| visitor.is_stranger());
        if all.len() == MAX_STRANGERS
            && let Some(oldest) = all.pop_front()
        {
            oldest.end.notify_one();
        }
        all.push_back(visitor.clone());
        visitor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stranger_makes_room() {
        let strangers = Strangers::default();
        let all: Vec<_> = (0..MAX_STRANGERS).map(|_| strangers.enter()).collect();
        all[0].know();
        let _ = strangers.enter();
        assert!(strangers.0.lock().iter().any(|visitor| Arc::ptr_eq(visitor, &all[1])), "there was room");
        let _ = strangers.enter();
        assert!(!strangers.0.lock().iter().any(|visitor| Arc::ptr_eq(visitor, &all[1])), "the oldest stays");
        assert!(strangers.0.lock().iter().any(|visitor| Arc::ptr_eq(visitor, &all[2])));
    }
}
