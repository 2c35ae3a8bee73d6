//! A key or password: used, never shown.

use std::fmt;

/// A text that is not to be seen: its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What stands where a secret stood.
const REDACTED: &str = "[redacted]";

impl Secret {
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for whoever it was given for.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without this secret: a server may say it back in an error.
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
