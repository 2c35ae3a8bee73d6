//! `chorusctl trash`: one module per subcommand.

use chorus_proto::methods::trash::{TrashEntry, TrashKind};

use crate::ui::sanitize;

pub mod empty;
pub mod list;
pub mod restore;

group! {
    /// List, restore or permanently delete trashed items
    enum Verb or list {
        /// List deleted items, newest first (default)
        List(list::Args),
        /// Restore an agent, a session or a memory
        Restore(restore::Args),
        /// Permanently delete everything in the trash
        Empty(empty::Args),
    }
}

/// Returns the short form of an entry's id, which the user types.
pub fn short_id(entry: &TrashEntry) -> String {
    let uuid = entry.id.split_once('_').map_or(&*entry.id, |(_, uuid)| uuid);
    sanitize::one_line(uuid.get(..8).unwrap_or(uuid))
}

fn kind_name(entry: &TrashEntry) -> &'static str {
    match entry.kind {
        Some(TrashKind::Agent) => "agent",
        Some(TrashKind::Session) => "session",
        Some(TrashKind::Memory) => "memory",
        None => "unknown",
    }
}
