//! Keys of objects: `PREFIX/agents/AGENT/SESSION/EPOCH-WRITE`. The epoch has 16 hex digits, so that keys sort by it; each
//! write has an id, so that no key is ever used twice.

use chorus_base::error::{Error, Result};
use uuid::Uuid;

/// Everything in a bucket that belongs to one Chorus. Segments of letters, digits, `-`, `_` and `.`, separated by `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// Checks a prefix. Slashes at its ends do not count; it may be empty.
    ///
    /// # Errors
    /// `invalid_config`.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim_matches('/');
        let is_segment = |segment: &str| {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(is_known)
        };
        if !text.is_empty() && !text.split('/').all(is_segment) {
            let kind = chorus_proto::ErrorKind::InvalidConfig;
            return Err(Error::new(kind, format!("`{text}` is not a valid prefix of objects"))
                .hint("use letters, digits, `-`, `_` and `.`, separated by `/`"));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the key of `name` below this prefix.
    pub(crate) fn join(&self, name: &str) -> String {
        if self.0.is_empty() { name.to_owned() } else { format!("{}/{name}", self.0) }
    }

    /// The prefix of all bodies.
    pub(crate) fn bodies(&self) -> String {
        self.join("agents/")
    }

    /// The prefix of all bundles of workspaces.
    pub(crate) fn bundles(&self) -> String {
        self.join("workspaces/")
    }

    /// Returns a new key for a trial.
    pub(crate) fn new_probe_key(&self) -> String {
        self.join(&format!("probe/{}", Uuid::new_v4()))
    }
}

/// The parsed key of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyKey {
    pub agent: Uuid,
    pub session: Uuid,
    pub epoch: u64,
    /// The write that made the object.
    pub write: Uuid,
}

impl BodyKey {
    /// Returns the key of this body below `prefix`.
    #[must_use]
    pub fn to_text(&self, prefix: &Prefix) -> String {
        let Self { agent, session, epoch, write } = self;
        prefix.join(&format!("agents/{agent}/{session}/{epoch:016x}-{write}"))
    }

    /// Parses a key; `None` if it is not one that [`BodyKey::to_text`] makes.
    #[must_use]
    pub fn parse(prefix: &Prefix, text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(&prefix.bodies())?.split('/');
        let (agent, session, name) = (parts.next()?, parts.next()?, parts.next()?);
        let (epoch, write) = name.split_once('-')?;
        let key = Self {
            agent: agent.parse().ok()?,
            session: session.parse().ok()?,
            epoch: u64::from_str_radix(epoch, 16).ok()?,
            write: write.parse().ok()?,
        };
        (key.to_text(prefix) == text).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_parsed_back_and_others_are_not() {
        let key =
            BodyKey { agent: Uuid::new_v4(), session: Uuid::new_v4(), epoch: 0x1_0000_0007, write: Uuid::new_v4() };
        for prefix in ["", "a", "/team.x/chorus-1/"] {
            let prefix = Prefix::new(prefix).unwrap();
            let text = key.to_text(&prefix);
            assert_eq!(BodyKey::parse(&prefix, &text), Some(key));
            let upper = text.replace("agents/", "agents/X");
            for other in [format!("{text}x"), format!("x/{text}"), format!("{text}/a"), upper, String::new()] {
                assert_eq!(BodyKey::parse(&prefix, &other), None, "{other}");
            }
        }
        let (low, high) = (BodyKey { epoch: 9, ..key }, BodyKey { epoch: 16, ..key });
        let prefix = Prefix::new("p").unwrap();
        assert!(low.to_text(&prefix) < high.to_text(&prefix));
    }

    #[test]
    fn a_prefix_cannot_leave_its_place() {
        for refused in ["a//b", "..", "a/../b", "a b", "ä", "a/."] {
            assert!(Prefix::new(refused).is_err(), "{refused}");
        }
    }
}
