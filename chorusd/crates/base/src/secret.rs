//! A key or password that must never be printed.

use std::fmt;

/// A text whose `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Replacement of a secret.
const REDACTED: &str = "[redacted]";

impl Secret {
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces this secret in `text`, because servers may echo it in errors.
    #[must_use]
    pub fn scrub(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, REDACTED) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_seen() {
        let secret = Secret::new("sk-12345".into());
        assert_eq!(format!("{:?} {:?}", secret, Some(&secret)), "[redacted] Some([redacted])");
        assert_eq!(secret.scrub("bad key sk-12345, sk-12"), "bad key [redacted], sk-12");
        assert_eq!(Secret::new(String::new()).scrub("a"), "a");
    }
}
