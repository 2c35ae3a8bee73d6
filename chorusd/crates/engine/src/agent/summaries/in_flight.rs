//! Tracks which summaries are in flight, and lets callers wait for them.

use std::collections::HashMap;
use std::sync::Arc;

use chorus_base::Ticks;
use chorus_base::sync::Mutex;
use chorus_clock::Clock;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::idle_expiry::DeadlineTimers;

/// The sessions whose summary is in flight.
#[derive(Default)]
pub(super) struct InFlightSummaries {
    sessions: Mutex<HashMap<Uuid, Signals>>,
    /// Time limits of those who wait. Thousands may wait at once, and a timer for each would cost a file descriptor.
    wait_timers: DeadlineTimers<Uuid>,
}

#[derive(Clone, Default)]
struct Signals {
    /// The summary is there, or will not come.
    done: CancellationToken,
    /// The time limit has passed.
    timed_out: CancellationToken,
}

/// Marks a summary as in flight until it is dropped.
pub(super) struct InFlightGuard {
    pub session: Uuid,
    all: Arc<InFlightSummaries>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let signs = self.all.sessions.lock().remove(&self.session);
        self.all.wait_timers.set(self.session, None);
        signs.inspect(|signs| signs.done.cancel());
    }
}

impl InFlightSummaries {
    /// Marks a summary as in flight. Returns `None` if it is already.
    pub(super) fn begin(self: &Arc<Self>, session: Uuid) -> Option<InFlightGuard> {
        let mut sessions = self.sessions.lock();
        if sessions.contains_key(&session) {
            return None;
        }
        sessions.insert(session, Signals::default());
        Some(InFlightGuard { session, all: self.clone() })
    }

    /// Whether the summary of a session is in flight.
    pub(super) fn contains(&self, session: Uuid) -> bool {
        self.sessions.lock().contains_key(&session)
    }

    /// Waits until it is no longer in flight, or until `late`. Returns whether it was in flight.
    pub(super) async fn wait_until_done(&self, session: Uuid, late: Ticks) -> bool {
        let signs = {
            // Under the lock: after the guard is dropped, nothing would remove the timer again.
            let sessions = self.sessions.lock();
            let Some(signs) = sessions.get(&session).cloned() else { return false };
            self.wait_timers.set(session, Some(late));
            signs
        };
        tokio::select! {
            () = signs.done.cancelled() => {}
            () = signs.timed_out.cancelled() => {}
        }
        true
    }

    /// Ends waits whose time is up; runs forever.
    pub(super) async fn run_timers(&self, clock: &Clock) {
        loop {
            self.wait_timers.wait_for_timer(clock).await;
            for (session, _) in self.wait_timers.take_due(clock.ticks()) {
                let signs = self.sessions.lock().get(&session).cloned();
                signs.inspect(|signs| signs.timed_out.cancel());
            }
        }
    }
}
