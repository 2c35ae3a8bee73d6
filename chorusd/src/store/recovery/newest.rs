//! The number of the newest event, in a small file beside the journal. It is written after each commit and never synced by itself:
//! `kill -9` does not lose it, and after a loss of power it may be old. It is never ahead of the journal, so a journal that ends
//! before it has lost what was acknowledged.

use std::fs::File;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use super::super::Durability;
use super::super::journal::{crc32, events};

/// Name of the file, beside live.db.
pub const NAME: &str = "live.newest";

/// The content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newest {
    /// Number of the newest event on the disk.
    pub event: u64,
    /// Every commit was synced before it was acknowledged.
    pub synced: bool,
}

impl Newest {
    /// Reads what was noted in the directory `db`; `None` if nothing can be used.
    pub fn read(db: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(db.join(NAME)).ok()?;
        let (facts, sum) = text.trim_end().rsplit_once(' ')?;
        if sum != format!("{:08x}", crc32(0, facts.as_bytes())) {
            return None;
        }
        let mut facts = facts.split(' ');
        let event = facts.next()?.parse().ok()?;
        Some(Self { event, synced: facts.next()? == "always" })
    }
}

/// Writes the file.
#[derive(Debug, Clone)]
pub struct Note {
    /// `None` if it cannot be opened: the journal works without.
    file: Option<Arc<File>>,
    durability: Durability,
}

impl Note {
    /// Opens or creates the file in the directory `db`.
    pub fn open(db: &Path, durability: Durability) -> Self {
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(false).mode(0o600).open(db.join(NAME));
        if let Err(error) = &opened {
            tracing::warn!(%error, "cannot keep the number of the newest event beside the journal");
        }
        Self { file: opened.ok().map(Arc::new), durability }
    }

    /// Notes the newest event of `conn` after a commit; if commits are not synced, [`Note::write`] notes it after a sync.
    pub fn of(&self, conn: &Connection) {
        if self.durability == Durability::Always
            && let Ok(event) = events::last(conn)
        {
            self.write(event);
        }
    }

    /// Notes `event`, which is on the disk. What cannot be noted leaves an older number, which is right as far as it goes.
    pub fn write(&self, event: u64) {
        let synced = if self.durability == Durability::Always { "always" } else { "interval" };
        let facts = format!("{event:020} {synced:8}");
        let line = format!("{facts} {:08x}\n", crc32(0, facts.as_bytes()));
        let _ = self.file.as_ref().map(|file| file.write_all_at(line.as_bytes(), 0));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_note_reads_as_it_was_written_and_damage_reads_as_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Newest::read(dir.path()), None);
        let note = Note::open(dir.path(), Durability::Interval(Duration::from_secs(1)));
        assert_eq!(Newest::read(dir.path()), None);
        note.write(70_000);
        note.write(7);
        assert_eq!(Newest::read(dir.path()), Some(Newest { event: 7, synced: false }));
        Note::open(dir.path(), Durability::Always).write(8);
        assert_eq!(Newest::read(dir.path()), Some(Newest { event: 8, synced: true }));
        let path = dir.path().join(NAME);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() - 1 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            std::fs::write(&path, flipped).unwrap();
            assert_eq!(Newest::read(dir.path()), None, "byte {at}");
        }
    }
}
