//! The redactor, which finds and replaces secrets.

use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use chorus_base::Secret;
use chorus_base::sync::RwLock;
use sha2::{Digest as _, Sha256};

use super::normalized_text::View;
use super::own_key_encodings::MIN_KEY_BYTES;
use super::scanner::{Automaton, FoundSecret, ScanResult};
use super::stream::StreamRedactor;

/// The key of fingerprints: random, and different for each home.
pub type FingerprintKey = [u8; 32];

/// Largest number of own keys that are remembered, so that a key file that changes all the time cannot exhaust resident
/// memory.
const MAX_OWN_KEYS: usize = 64;

/// A secret as it may be named: without its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretMention {
    /// As in docs/SECRETS.md, for example `github-token`.
    pub kind: &'static str,
    /// Eight hexadecimal digits, the same wherever the secret is.
    pub fingerprint: String,
}

/// Finds the daemon's own keys and secrets of others that match a pattern.
pub struct Redactor {
    automaton: RwLock<Arc<Automaton>>,
    fingerprint_key: LazyLock<FingerprintKey, Box<dyn FnOnce() -> FingerprintKey + Send>>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Creates a redactor. `key` is called when the first secret is found.
    #[must_use]
    pub fn new(key: impl FnOnce() -> FingerprintKey + Send + 'static) -> Self {
        Self {
            automaton: RwLock::new(Arc::new(Automaton::new(Vec::new()))),
            fingerprint_key: LazyLock::new(Box::new(key)),
        }
    }

    /// Adds one of the daemon's own keys. A very short one is ignored, since it is only a word.
    pub fn add_own_key(&self, secret: &Secret) {
        let key = secret.expose();
        if key.len() < MIN_KEY_BYTES || self.automaton().keys().iter().any(|known| known == key) {
            return;
        }
        let mut needles = self.automaton.write();
        let mut keys = needles.keys().to_vec();
        if keys.iter().any(|known| known == key) {
            return;
        }
        if keys.len() >= MAX_OWN_KEYS {
            keys.remove(0);
        }
        keys.push(key.to_owned());
        *needles = Arc::new(Automaton::new(keys));
    }

    pub(super) fn automaton(&self) -> Arc<Automaton> {
        self.automaton.read().clone()
    }

    /// Replaces the secrets in `text`.
    #[must_use]
    pub fn redact_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_and_count(text.as_bytes(), false).0 {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(into_string_lossy(bytes)),
        }
    }

    /// As [`Redactor::redact_text`], for a truncated text: also replaces a partial secret at its end.
    #[must_use]
    pub fn redact_truncated(&self, text: String) -> String {
        match self.redact_and_count(text.as_bytes(), true).0 {
            Cow::Borrowed(_) => text,
            Cow::Owned(bytes) => into_string_lossy(bytes),
        }
    }

    /// Replaces the secrets in a message to a user. If it ends with `…`, it was truncated there, perhaps inside a
    /// secret.
    #[must_use]
    pub fn redact_message(&self, message: &str) -> String {
        match message.strip_suffix('…') {
            Some(cut) => self.redact_truncated(cut.to_owned()) + "…",
            None => self.redact_text(message).into_owned(),
        }
    }

    /// Replaces the secrets in a line, which need not be valid UTF-8.
    #[must_use]
    pub fn redact_bytes<'a>(&self, line: &'a [u8]) -> Cow<'a, [u8]> {
        self.redact_and_count(line, false).0
    }

    /// Names the secrets in `text`, in their order.
    #[must_use]
    pub fn find_secrets(&self, text: &[u8]) -> Vec<SecretMention> {
        let mut found = Vec::new();
        self.each_secret(text, |secret| found.push(secret));
        found
    }

    /// Counts the secrets in `text`.
    #[must_use]
    pub fn count_secrets(&self, text: &str) -> u64 {
        self.redact_and_count(text.as_bytes(), false).1
    }

    /// Replaces the secrets in `all` and counts them. `cut` means that the text was truncated.
    pub(super) fn redact_and_count<'a>(&self, all: &'a [u8], cut: bool) -> (Cow<'a, [u8]>, u64) {
        let needles = self.automaton();
        let view = View::new(all, true, None);
        let (mut out, mut done, mut count) = (Vec::new(), 0, 0);
        while let ScanResult::Secret(found) = needles.next_secret(&view, done, done) {
            out.extend_from_slice(&all[done..found.text_range.start]);
            self.write_placeholder(&needles, &found, &view, &mut out);
            done = found.text_range.end;
            count += 1;
        }
        if cut {
            let view = View::new(all, false, None);
            if let Some(found) = needles.find_truncated(&view, done) {
                out.extend_from_slice(&all[done..found.text_range.start]);
                self.write_placeholder(&needles, &found, &view, &mut out);
                done = found.text_range.end;
                count += 1;
            }
        }
        if count == 0 {
            return (Cow::Borrowed(all), 0);
        }
        out.extend_from_slice(&all[done..]);
        (Cow::Owned(out), count)
    }

    /// Calls `note` with the kind and the fingerprint of each secret in `text`, in their order.
    pub(super) fn each_secret(&self, text: &[u8], mut note: impl FnMut(SecretMention)) {
        let needles = self.automaton();
        let view = View::new(text, true, None);
        let mut done = 0;
        while let ScanResult::Secret(found) = needles.next_secret(&view, done, done) {
            note(SecretMention { kind: found.kind, fingerprint: self.fingerprint(&needles, &found, &view) });
            done = found.text_range.end;
        }
    }

    /// Writes the placeholder for a secret that was found in `view`.
    pub(super) fn write_placeholder(
        &self,
        needles: &Automaton,
        found: &FoundSecret,
        view: &View<'_>,
        out: &mut Vec<u8>,
    ) {
        let _ = write!(out, "[redacted:{}:{}]", found.kind, self.fingerprint(needles, found, view));
    }

    /// Returns the fingerprint of a secret that was found in `view`.
    fn fingerprint(&self, needles: &Automaton, found: &FoundSecret, view: &View<'_>) -> String {
        // All forms of one key have one fingerprint, and line breaks inside a secret do not change it.
        let own = found.key.and_then(|key| needles.keys().get(key));
        let print = Sha256::new().chain_update(*self.fingerprint_key);
        let print = match own {
            Some(key) => print.chain_update(key),
            None => print.chain_update(&view.bytes[found.view_range.clone()]).chain_update(if found.padded {
                "="
            } else {
                ""
            }),
        };
        print.finalize()[..4].iter().fold(String::with_capacity(8), |mut text, byte| {
            let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
            text
        })
    }

    /// Creates a redactor for a text that arrives in pieces.
    #[must_use]
    pub fn stream(self: &Arc<Self>) -> StreamRedactor {
        StreamRedactor::new(self.clone())
    }
}

/// Converts to text. The redactor replaces only complete ASCII ranges, so that valid UTF-8 stays valid.
pub(super) fn into_string_lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned())
}
