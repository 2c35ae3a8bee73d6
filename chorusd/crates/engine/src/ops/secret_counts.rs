//! Counts the secrets of a place.

use std::collections::BTreeMap;

use chorus_proto::methods::session::SecretCount;
use chorus_redact::SecretMention;

/// The limit on messages that are named.
const MAX_MESSAGES: usize = 20;

/// Secrets, how often each occurs, and the first messages that have one.
#[derive(Debug, Default)]
pub(super) struct SecretCounts {
    counts: BTreeMap<SecretMention, u64>,
    /// Numbers of messages, from 1.
    pub messages: Vec<u64>,
}

impl SecretCounts {
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Adds what was found in a text, or in the message with this number.
    pub(super) fn add(&mut self, found: Vec<SecretMention>, message: Option<u64>) {
        if let Some(number) = message
            && !found.is_empty()
            && self.messages.len() < MAX_MESSAGES
        {
            self.messages.push(number);
        }
        for secret in found {
            *self.counts.entry(secret).or_default() += 1;
        }
    }

    /// Adds what was found in a text whose start was searched before, without what was found in that start. A secret that was cut off there
    /// was counted as another one, which it is not.
    pub(super) fn add_once(&mut self, found: Vec<SecretMention>, before: Vec<SecretMention>) {
        self.add(found, None);
        for secret in before {
            if let Some(count) = self.counts.get_mut(&secret) {
                *count = count.saturating_sub(1);
            }
        }
        self.counts.retain(|_, count| *count > 0);
    }

    /// Adds the secrets of another text.
    pub(super) fn merge(&mut self, other: Self) {
        for (secret, count) in other.counts {
            *self.counts.entry(secret).or_default() += count;
        }
    }

    /// Returns each secret once, by kind.
    pub(super) fn to_list(&self) -> Vec<SecretCount> {
        let count = |(secret, count): (&SecretMention, &u64)| SecretCount {
            kind: secret.kind.to_owned(),
            fingerprint: secret.fingerprint.clone(),
            count: *count,
        };
        self.counts.iter().map(count).collect()
    }
}
