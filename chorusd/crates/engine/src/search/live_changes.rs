//! The conversations whose live context has changed since the search index last looked.

use std::collections::HashSet;

use chorus_base::sync::Mutex;
use chorus_session::conversation::ConversationKey;
use tokio::sync::Notify;

/// Collects conversations whose context got messages, lost some or ended.
#[derive(Debug, Default)]
pub struct LiveChanges {
    changed: Mutex<HashSet<ConversationKey>>,
    notify: Notify,
}

impl LiveChanges {
    pub(crate) fn note(&self, conversation: ConversationKey) {
        if self.changed.lock().insert(conversation) {
            self.notify.notify_one();
        }
    }

    /// Returns once something has changed since the last [`take`](Self::take). Safe to cancel.
    pub(super) async fn wait(&self) {
        loop {
            let notified = self.notify.notified();
            if !self.changed.lock().is_empty() {
                return;
            }
            notified.await;
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.changed.lock().len() as u64
    }

    pub(super) fn take(&self) -> HashSet<ConversationKey> {
        std::mem::take(&mut self.changed.lock())
    }
}
