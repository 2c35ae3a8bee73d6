//! Secrets in what is brought along: they are counted, and replaced where that is asked for.

use std::borrow::Cow;
use std::collections::HashMap;

use chorus_proto::Message;
use serde::de::IgnoredAny;

use crate::redact::Redactor;
use crate::session::import::ImportedMetadata;

/// What imports keep in `provider` that goes back to nobody.
const READ_ONLY_PROVIDERS: [&str; 2] = ["chatgpt", "goose"];

/// Looks through what somebody brings along.
#[derive(Debug, Clone, Copy)]
pub struct ImportRedactor<'a> {
    pub redactor: &'a Redactor,
    /// Replace what is found.
    pub redact: bool,
}

impl ImportRedactor<'_> {
    /// How many there are in one message.
    #[must_use]
    pub fn count_secrets(self, json: &str) -> u64 {
        self.redactor.redact_json(json).1
    }

    /// A message without its secrets, where it is to be without and had some; and how many there were. `json`: its bytes,
    /// which may have more in them than the message.
    #[must_use]
    pub fn redact_message(self, message: &Message, json: &str) -> (Option<(Message, Vec<u8>)>, u64) {
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
        // What goes back signed goes back as it came, or not at all.
        read.provider = None;
        let bytes = serde_json::to_vec(&read).unwrap_or_default();
        (Some((read, bytes)), found)
    }

    /// The same for what a session says of itself.
    pub fn redact_metadata(self, about: &mut ImportedMetadata) -> u64 {
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

/// Whether `provider` holds only what an import kept for reading.
fn is_read_only(provider: &str) -> bool {
    let fields = serde_json::from_str::<HashMap<Cow<'_, str>, IgnoredAny>>(provider);
    fields.is_ok_and(|fields| fields.keys().all(|key| READ_ONLY_PROVIDERS.contains(&key.as_ref())))
}
