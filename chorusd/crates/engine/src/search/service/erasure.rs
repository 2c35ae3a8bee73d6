//! Deleted sessions, whose texts have to leave the files of the index.

use std::time::Duration;

use chorus_base::sync::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use uuid::Uuid;

use super::{SearchService, State};

/// The erasure that somebody waits for.
#[derive(Debug, Default)]
pub(super) struct Erasure {
    requested: Mutex<Requested>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Requested {
    /// True until a round begins.
    is_awaited: bool,
    /// Deleted sessions that leave the index before anything else is indexed.
    sessions: Vec<Uuid>,
}

impl SearchService {
    /// Notes that the index is compared with the catalog, which finds all changes.
    pub(in crate::search) fn begin_comparison(&self) {
        self.rounds.lock().taken = Some(Instant::now());
    }

    /// Notes that no file of the index holds texts whose deletion was taken.
    pub(in crate::search) fn note_erased(&self) {
        let mut rounds = self.rounds.lock();
        rounds.erased = rounds.taken;
    }

    /// Waits until an erasure is waited for. Safe to cancel.
    pub(in crate::search) async fn wait_until_erasure(&self) {
        loop {
            let notified = self.erasure.notify.notified();
            if self.erasure.requested.lock().is_awaited {
                return;
            }
            notified.await;
        }
    }

    /// Notes that a round takes the changes, and takes the sessions that have to leave the index. Under one lock with the requests: each is
    /// either older than the round, or makes another one begin.
    pub(super) fn take_erasure(&self) -> Vec<Uuid> {
        let mut requested = self.erasure.requested.lock();
        self.rounds.lock().taken = Some(Instant::now());
        std::mem::take(&mut *requested).sessions
    }

    /// Requests a round, and returns the time that it has to be begun after.
    fn request_erasure(&self, session: Option<Uuid>) -> Instant {
        let mut requested = self.erasure.requested.lock();
        requested.is_awaited = true;
        requested.sessions.extend(session);
        let begun = Instant::now();
        drop(requested);
        self.erasure.notify.notify_one();
        begun
    }

    /// Removes a deleted session from the index, and waits for `limit` at most until no file of the index holds its texts, except those
    /// that other conversations have, too. Returns false if one may still hold them.
    pub async fn erase(&self, session: Uuid, limit: Duration) -> bool {
        if !self.is_enabled() {
            return true;
        }
        self.wait_for_erasure(self.request_erasure(Some(session)), limit).await
    }

    /// Waits for `limit` at most until no file of the index holds texts that were deleted and whose deletion the index has taken. Returns
    /// false if one may.
    pub async fn wait_until_erased(&self, limit: Duration) -> bool {
        if !self.is_enabled() {
            return true;
        }
        self.wait_for_erasure(self.request_erasure(None), limit).await
    }

    async fn wait_for_erasure(&self, begun: Instant, limit: Duration) -> bool {
        let is_erasing = || match self.state.read().0 {
            State::Starting | State::Open(_) => self.rounds.lock().erased < Some(begun),
            State::Failed(_) | State::Off => false,
        };
        let is_in_time = tokio::time::timeout(limit, self.wait_while(is_erasing)).await.is_ok();
        is_in_time && !matches!(self.state.read().0, State::Failed(_))
    }
}
