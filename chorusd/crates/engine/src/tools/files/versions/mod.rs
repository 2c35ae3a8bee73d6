//! Keeps one conversation of an agent from overwriting what another one changed in their workspace.
//!
//! The version that a conversation saw last of a file, and when commands ran, are in memory. The last write of each file
//! is in the catalog and durable before the file changes, so it survives a restart; a conversation whose knowledge is lost
//! reads the file again. An agent that has only `main` has no rows and is never refused anything.

mod begun_write;
mod commands;
mod hash;
#[cfg(test)]
mod interleaving;
mod seen_files;
mod unseen_change;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chorus_base::sync::Mutex;
use chorus_catalog::{FileHash, FileWriteTable};
use chorus_session::conversation::ConversationKey;
use uuid::Uuid;

pub(super) use begun_write::RecordedWrite;
pub use commands::CommandGuard;
use commands::CommandTimes;
pub(super) use hash::{HashingReader, hash_bytes};
#[cfg(test)]
pub(super) use interleaving::pause;
pub(super) use seen_files::ShownLines;
use seen_files::{SeenFile, SeenFiles};

/// The conversations of agents, as far as their files are concerned.
pub trait ConversationNames: Debug + Send + Sync {
    /// Returns true if the agent has conversations beside `main`, open or closed.
    fn has_several(&self, agent: Uuid) -> bool;

    /// Returns the name of a conversation.
    fn name(&self, key: ConversationKey) -> Option<String>;
}

/// The versions of files that conversations have seen, and who changed them.
#[derive(Debug)]
pub struct FileVersions {
    table: Arc<dyn FileWriteTable>,
    conversations: Arc<dyn ConversationNames>,
    /// The position of the newest view, write or end of a command in the order of all of them.
    last_position: AtomicU64,
    seen: Mutex<SeenFiles>,
    commands: Mutex<CommandTimes>,
}

/// The files of a workspace, as one conversation sees them.
#[derive(Debug, Clone, Copy)]
pub struct ConversationFiles<'a> {
    versions: &'a FileVersions,
    key: ConversationKey,
}

impl FileVersions {
    /// Creates the service. `last_position` is that of the newest row of the table.
    #[must_use]
    pub fn new(
        table: Arc<dyn FileWriteTable>,
        conversations: Arc<dyn ConversationNames>,
        last_position: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            table,
            conversations,
            last_position: AtomicU64::new(last_position),
            seen: Mutex::default(),
            commands: Mutex::default(),
        })
    }

    /// Returns the files as a conversation sees them.
    #[must_use]
    pub fn of(&self, key: ConversationKey) -> ConversationFiles<'_> {
        ConversationFiles { versions: self, key }
    }

    /// Returns true if other conversations may change the files of this one.
    fn is_shared(&self, key: ConversationKey) -> bool {
        !key.is_main() || self.conversations.has_several(key.agent)
    }

    /// Continues behind `position`, which another daemon has used.
    pub fn raise_position(&self, position: u64) {
        self.last_position.fetch_max(position, Ordering::Relaxed);
    }

    fn next_position(&self) -> u64 {
        self.last_position.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl ConversationFiles<'_> {
    /// Returns the position of something that begins now.
    pub(super) fn next_position(&self) -> u64 {
        self.versions.next_position()
    }

    /// Notes the version of a file that the conversation has seen.
    fn note_seen(&self, path: &str, seen: SeenFile) {
        self.versions.seen.lock().insert(self.key.id, path, seen);
    }

    /// Notes that the conversation viewed lines of a version of a file at `position`.
    pub(super) fn note_viewed(&self, path: &str, hash: FileHash, position: u64, shown: ShownLines) {
        let mut seen = self.versions.seen.lock();
        let before = seen.get(self.key.id, path);
        seen.insert(self.key.id, path, SeenFile::after_view(before, hash, position, shown));
    }
}
