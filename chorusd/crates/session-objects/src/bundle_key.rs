//! Keys of bundles of workspaces: `PREFIX/workspaces/AGENT/EPOCH-WRITE`, as those of bodies.

use uuid::Uuid;

use crate::key::Prefix;

/// The parsed key of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleKey {
    pub agent: Uuid,
    pub epoch: u64,
    /// The write that made the object.
    pub write: Uuid,
}

impl BundleKey {
    /// Returns the key of this bundle below `prefix`.
    #[must_use]
    pub fn to_text(&self, prefix: &Prefix) -> String {
        let Self { agent, epoch, write } = self;
        format!("{}{agent}/{epoch:016x}-{write}", prefix.bundles())
    }

    /// Parses a key; `None` if it is not one that [`BundleKey::to_text`] makes.
    #[must_use]
    pub fn parse(prefix: &Prefix, text: &str) -> Option<Self> {
        let (agent, name) = text.strip_prefix(&prefix.bundles())?.split_once('/')?;
        let (epoch, write) = name.split_once('-')?;
        let key = Self {
            agent: agent.parse().ok()?,
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
        let prefix = Prefix::new("team").unwrap();
        let key = BundleKey { agent: Uuid::new_v4(), epoch: 0x1_0000_0007, write: Uuid::new_v4() };
        let text = key.to_text(&prefix);
        assert_eq!(BundleKey::parse(&prefix, &text), Some(key));
        for other in [format!("{text}x"), format!("x/{text}"), text.replace("workspaces", "agents"), String::new()] {
            assert_eq!(BundleKey::parse(&prefix, &other), None, "{other}");
        }
    }
}
