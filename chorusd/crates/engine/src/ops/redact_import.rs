//! Finds secrets in imported data: they are counted, and replaced if the import asks for it.

use std::borrow::Cow;
use std::collections::HashMap;

use chorus_proto::Message;
use chorus_redact::Redactor;
use chorus_session::import::ImportedMetadata;
use serde::de::IgnoredAny;

/// Keys that imports add to `provider` for reading only; they are never sent to a provider.
const READ_ONLY_PROVIDERS: [&str; 2] = ["chatgpt", "goose"];

/// Finds secrets in imported data.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportRedactor<'a> {
    pub redactor: &'a Redactor,
    /// Replace secrets, instead of only counting them.
    pub redact: bool,
}

impl ImportRedactor<'_> {
    /// Returns the number of secrets in one message.
    #[must_use]
    pub(super) fn count_secrets(self, json: &str) -> u64 {
        self.redactor.redact_json(json).1
    }

    /// Redacts a message. Returns the redacted message and its bytes if there was something to replace, and the number
    /// of secrets. `json` has the message's own bytes, which may contain more fields than `message`.
    #[must_use]
    pub(super) fn redact_message(self, message: &Message, json: &str) -> (Option<(Message, Vec<u8>)>, u64) {
        let (clean, found) = self.redactor.redact_json(json);
        let Cow::Owned(clean) = clean else { return (None, found) };
        if !self.redact {
            return (None, found);
        }
        let Ok(mut read) = serde_json::from_str::<Message>(&clean) else { return (None, found) };
        let signed = message
            .provider
            .as_ref()
            .is_some_and(|blocks| !is_read_only(blocks.get()) && self.redactor.redact_json(blocks.get()).1 > 0);
        if !signed {
            return (Some((read, clean.into_bytes())), found);
        }
        // Signed blocks must go back to the provider unchanged or not at all.
        read.provider = None;
        let bytes = serde_json::to_vec(&read).unwrap_or_default();
        (Some((read, bytes)), found)
    }

    /// Redacts the metadata of a session; returns the number of secrets.
    pub(super) fn redact_metadata(self, about: &mut ImportedMetadata) -> u64 {
        let mut found = 0;
        for text in [&mut about.description, &mut about.summary].into_iter().flatten() {
            found += self.redactor.count_secrets(text);
            if self.redact {
                *text = self.redactor.redact_text(text).into_owned();
            }
        }
        if let Some(set) = &mut about.working_set {
            let json = serde_json::to_string(set).unwrap_or_default();
            let (clean, count) = self.redactor.redact_json(&json);
            found += count;
            if self.redact
                && count > 0
                && let Ok(clean) = serde_json::from_str(&clean)
            {
                *set = clean;
            }
        }
        found
    }
}

/// Returns true if `provider` holds only what an import keeps for reading.
fn is_read_only(provider: &str) -> bool {
    let fields = serde_json::from_str::<HashMap<Cow<'_, str>, IgnoredAny>>(provider);
    fields.is_ok_and(|fields| fields.keys().all(|key| READ_ONLY_PROVIDERS.contains(&key.as_ref())))
}
