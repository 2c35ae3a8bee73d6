//! Which summaries are on their way, and waiting for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::idle::IdleTimers;
use crate::clock::{Clock, Ticks};

/// The sessions whose summary is on its way.
#[derive(Default)]
pub struct UnderWay {
    sessions: Mutex<HashMap<Uuid, Signs>>,
    /// How long somebody waits for which: thousands may, and each timer of its own would cost a descriptor.
    patience: IdleTimers,
}

#[derive(Clone, Default)]
struct Signs {
    /// The summary is there, or will not come.
    done: CancellationToken,
    /// It was waited for long enough.
    late: CancellationToken,
}

/// A summary on its way; it is no longer when this is dropped.
pub struct OnItsWay {
    pub session: Uuid,
    all: Arc<UnderWay>,
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let signs = self.all.sessions().remove(&self.session);
        self.all.patience.set(self.session, None);
        signs.inspect(|signs| signs.done.cancel());
    }
}

impl UnderWay {
    /// Notes that it is on its way; `None` where it is already.
    pub fn enter(self: &Arc<Self>, session: Uuid) -> Option<OnItsWay> {
        let mut sessions = self.sessions();
        if sessions.contains_key(&session) {
            return None;
        }
        sessions.insert(session, Signs::default());
        Some(OnItsWay { session, all: self.clone() })
    }

    /// Whether it is on its way.
    pub fn has(&self, session: Uuid) -> bool {
        self.sessions().contains_key(&session)
    }

    /// Waits until it is not, or until `late`; whether it was.
    pub async fn settled(&self, session: Uuid, late: Ticks) -> bool {
        let signs = {
            // Under the lock: a timer that nobody will take away is not set.
            let sessions = self.sessions();
            let Some(signs) = sessions.get(&session).cloned() else { return false };
            self.patience.set(session, Some(late));
            signs
        };
        tokio::select! {
            () = signs.done.cancelled() => {}
            () = signs.late.cancelled() => {}
        }
        true
    }

    /// Lets those go who have waited long enough, for ever.
    pub async fn keep_time(&self, clock: &Clock) {
        loop {
            self.patience.wait(clock).await;
            for (session, _) in self.patience.ring(clock.ticks()) {
                let signs = self.sessions().get(&session).cloned();
                signs.inspect(|signs| signs.late.cancel());
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Uuid, Signs>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
