//! The versions of files that conversations have seen, in bounded memory.

use std::collections::HashMap;

use chorus_store::catalog::FileHash;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Limit on the files of a generation. With two generations of some 64 bytes per file, this is about 8 MiB for the daemon.
const MAX_GENERATION: usize = 1 << 15;

/// A version of a file, as a conversation saw or wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenFile {
    pub hash: FileHash,
    /// When, in the order of views, writes and commands.
    pub position: u64,
}

/// The first half of a SHA-256 of the conversation and the path.
type Key = [u8; 16];

/// Maps conversations and paths to versions. When as many files were seen as fit into a generation, those that were not
/// seen since the generation before are forgotten.
#[derive(Debug, Default)]
pub(super) struct SeenFiles {
    newer: HashMap<Key, SeenFile>,
    older: HashMap<Key, SeenFile>,
}

impl SeenFiles {
    pub(super) fn insert(&mut self, conversation: Uuid, path: &str, seen: SeenFile) {
        let key = key(conversation, path);
        if self.newer.len() >= MAX_GENERATION && !self.newer.contains_key(&key) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, seen);
    }

    pub(super) fn get(&self, conversation: Uuid, path: &str) -> Option<SeenFile> {
        let key = key(conversation, path);
        self.newer.get(&key).or_else(|| self.older.get(&key)).copied()
    }
}

fn key(conversation: Uuid, path: &str) -> Key {
    let hash = Sha256::new().chain_update(conversation.as_bytes()).chain_update(path).finalize();
    let mut key = Key::default();
    key.copy_from_slice(&hash[..16]);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_the_newest_stay() {
        let (mut seen, conversation) = (SeenFiles::default(), Uuid::new_v4());
        let file = |position| SeenFile { hash: [7; 32], position };
        for position in 0..100_000 {
            seen.insert(conversation, &format!("f{position}"), file(position));
        }
        assert!(seen.newer.len() + seen.older.len() <= 2 * MAX_GENERATION);
        assert_eq!(seen.get(conversation, "f0"), None);
        for position in 100_000 - MAX_GENERATION as u64..100_000 {
            assert_eq!(seen.get(conversation, &format!("f{position}")), Some(file(position)));
        }
        assert_eq!(seen.get(Uuid::new_v4(), "f99999"), None, "another conversation has not seen it");
    }
}
