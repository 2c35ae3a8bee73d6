//! The versions of files that conversations have seen, in bounded memory.

use std::collections::HashMap;

use chorus_catalog::FileHash;
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
    pub extent: SeenExtent,
}

/// How much of a version a conversation has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeenExtent {
    Whole,
    /// The first lines, of a file that it had seen whole at that position, or never if that is 0.
    Lines {
        last: u64,
        whole_at: u64,
    },
}

/// Lines of a file that a view showed, numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tools::files) struct ShownLines {
    pub first: u64,
    pub last: u64,
    /// Nothing comes after them.
    pub is_end: bool,
}

impl ShownLines {
    pub(in crate::tools::files) const ALL: Self = Self { first: 1, last: u64::MAX, is_end: true };
}

impl SeenFile {
    pub(super) fn whole(hash: FileHash, position: u64) -> Self {
        Self { hash, position, extent: SeenExtent::Whole }
    }

    /// Returns what is seen of a version after a view of some of its lines; `before` is what was seen of the file.
    pub(super) fn after_view(before: Option<Self>, hash: FileHash, position: u64, shown: ShownLines) -> Self {
        let (seen_lines, whole_at) = match before {
            Some(before) => match before.extent {
                SeenExtent::Whole if before.hash == hash => return Self::whole(hash, position),
                SeenExtent::Whole => (0, before.position),
                SeenExtent::Lines { last, whole_at } if before.hash == hash => (last, whole_at),
                SeenExtent::Lines { whole_at, .. } => (0, whole_at),
            },
            None => (0, 0),
        };
        let last = if shown.first <= seen_lines + 1 { shown.last.max(seen_lines) } else { seen_lines };
        match shown.is_end && last == shown.last {
            true => Self::whole(hash, position),
            false => Self { hash, position, extent: SeenExtent::Lines { last, whole_at } },
        }
    }
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
        let file = |position| SeenFile::whole([7; 32], position);
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

    #[test]
    fn pages_one_after_the_other_are_the_whole_file() {
        let lines = |first, last, is_end| ShownLines { first, last, is_end };
        let view = |before, hash: u8, position, shown| SeenFile::after_view(before, [hash; 32], position, shown);
        let first = view(None, 1, 5, lines(1, 10, false));
        assert_eq!(first.extent, SeenExtent::Lines { last: 10, whole_at: 0 });
        assert_eq!(view(Some(first), 1, 6, lines(12, 20, true)).extent, SeenExtent::Lines { last: 10, whole_at: 0 });
        assert_eq!(view(Some(first), 1, 6, lines(9, 20, true)).extent, SeenExtent::Whole);
        assert_eq!(view(Some(first), 2, 6, lines(11, 20, true)).extent, SeenExtent::Lines { last: 0, whole_at: 0 });
        let whole = SeenFile::whole([1; 32], 5);
        assert_eq!(view(Some(whole), 1, 6, lines(3, 4, false)), SeenFile::whole([1; 32], 6));
        assert_eq!(view(Some(whole), 2, 6, lines(3, 4, false)).extent, SeenExtent::Lines { last: 0, whole_at: 5 });
        assert_eq!(view(None, 1, 7, ShownLines::ALL).extent, SeenExtent::Whole);
    }
}
