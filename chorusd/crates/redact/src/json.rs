//! Redacts JSON. Only strings that contain a secret are rewritten; everything else stays as it is, digit for digit.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::redactor::{Redactor, SecretMention};

impl Redactor {
    /// Redacts `json`, a value on one line. Returns the number of secrets, too.
    #[must_use]
    pub fn redact_json<'a>(&self, json: &'a str) -> (Cow<'a, str>, u64) {
        if !may_hide_text(json) && self.count_secrets(json) == 0 {
            return (Cow::Borrowed(json), 0);
        }
        let (mut out, mut done, mut count) = (String::new(), 0, 0);
        let mut rest = json;
        while let Some(start) = memchr::memchr(b'"', rest.as_bytes()) {
            let at = json.len() - rest.len() + start;
            let end = at + string_len(&json[at..]);
            let (string, found) = self.redact_json_string(&json[at..end]);
            if found > 0 {
                out.push_str(&json[done..at]);
                out.push_str(&string);
                done = end;
                count += found;
            }
            rest = &json[end..];
        }
        if count == 0 {
            return (Cow::Borrowed(json), 0);
        }
        out.push_str(&json[done..]);
        (Cow::Owned(out), count)
    }

    /// Names the secrets in `json`, as [`Redactor::redact_json`] finds them.
    #[must_use]
    pub fn find_secrets_in_json(&self, json: &str) -> Vec<SecretMention> {
        let mut found = Vec::new();
        if !may_hide_text(json) && self.count_secrets(json) == 0 {
            return found;
        }
        let mut rest = json;
        while let Some(start) = memchr::memchr(b'"', rest.as_bytes()) {
            let at = json.len() - rest.len() + start;
            let end = at + string_len(&json[at..]);
            if let Ok(text) = serde_json::from_str::<String>(&json[at..end]) {
                self.each_secret(text.as_bytes(), |secret| found.push(secret));
            }
            rest = &json[end..];
        }
        found
    }

    /// As [`Redactor::redact_json`]. Returns `None` if there is nothing to replace.
    #[must_use]
    pub(crate) fn redact_raw_value(&self, json: &RawValue) -> Option<Box<RawValue>> {
        match self.redact_json(json.get()).0 {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => RawValue::from_string(text).ok(),
        }
    }

    /// Redacts a single string, including its quotes.
    fn redact_json_string(&self, json: &str) -> (String, u64) {
        let Ok(text) = serde_json::from_str::<String>(json) else { return (String::new(), 0) };
        let (found, count) = self.redact_and_count(text.as_bytes(), false);
        if count == 0 {
            return (String::new(), 0);
        }
        let text = super::redactor::into_string_lossy(found.into_owned());
        (serde_json::to_string(&text).unwrap_or_default(), count)
    }
}

/// Returns true if an escape may hide a secret, which is only visible once the string is decoded.
fn may_hide_text(json: &str) -> bool {
    ["\\u", "\\/"].iter().any(|escape| memchr::memmem::find(json.as_bytes(), escape.as_bytes()).is_some())
}

/// Returns the length in bytes of the string at the start of `json`, including its quotes.
fn string_len(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}
