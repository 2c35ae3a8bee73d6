//! The conversations whose live context has changed since the search index last looked.

use std::collections::HashMap;

use chorus_base::sync::Mutex;
use chorus_session::conversation::ConversationKey;
use tokio::sync::Notify;

/// Collects conversations whose context got messages, lost some or ended.
#[derive(Debug, Default)]
pub struct LiveChanges {
    changed: Mutex<HashMap<ConversationKey, Novelty>>,
    notify: Notify,
}

/// How much the index has of a conversation that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Novelty {
    /// Nothing.
    New,
    /// The messages of before.
    Changed,
}

impl LiveChanges {
    pub(crate) fn note(&self, conversation: ConversationKey, novelty: Novelty) {
        let mut changed = self.changed.lock();
        let before = changed.insert(conversation, novelty);
        if before == Some(Novelty::New) {
            changed.insert(conversation, Novelty::New);
        }
        drop(changed);
        if before.is_none() {
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

    /// Returns how many conversations have changed, and of how many of them the index has nothing.
    pub(super) fn counts(&self) -> (u64, u64) {
        let changed = self.changed.lock();
        (changed.len() as u64, count_new(&changed))
    }

    pub(super) fn take(&self) -> HashMap<ConversationKey, Novelty> {
        std::mem::take(&mut self.changed.lock())
    }
}

/// Returns of how many conversations the index has nothing.
pub(super) fn count_new(changed: &HashMap<ConversationKey, Novelty>) -> u64 {
    changed.values().filter(|novelty| **novelty == Novelty::New).count() as u64
}
