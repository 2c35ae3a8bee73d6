//! The position file: the journal's position (number of the newest event, and of commits without one) in a small file
//! beside it. It is written after each commit and never synced by itself: it survives `kill -9` and may be old after a
//! loss of power. It is never ahead of the journal, so a journal with an earlier position has lost acknowledged
//! commits.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chorus_base::Durability;
use chorus_base::private_fs::sync;
use chorus_base::sync::Mutex;
use chorus_journal::crc32;

use super::super::journal::JournalPosition;

/// Name of the file, beside live.db.
pub(super) const POSITION_FILE: &str = "live.newest";

/// Content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredPosition {
    /// Position of the journal on the disk.
    pub position: JournalPosition,
    /// Whether every commit was synced before it was acknowledged.
    pub synced: bool,
}

impl StoredPosition {
    /// Reads the position file in the directory `db`; `None` if it is missing or unusable.
    pub(super) fn read(db: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(db.join(POSITION_FILE)).ok()?;
        // An earlier release overwrites a longer line with a shorter one.
        let (facts, sum) = text.lines().next()?.rsplit_once(' ')?;
        if sum != format!("{:08x}", crc32(0, facts.as_bytes())) {
            return None;
        }
        let mut facts = facts.split_whitespace();
        let event = facts.next()?.parse().ok()?;
        let synced = facts.next()? == "always";
        // Earlier releases count events only.
        let commits = facts.next().map_or(Some(0), |commits| commits.parse().ok())?;
        Some(Self { position: JournalPosition { event, commits }, synced })
    }
}

/// Writes the position file.
#[derive(Debug, Clone)]
pub(crate) struct PositionFile {
    /// `None` if the file cannot be opened: the journal works without it.
    file: Option<Arc<File>>,
    /// SQLite's write-ahead log, which contains the last commits.
    log: PathBuf,
    durability: Durability,
    /// Position as of the last commit, whether synced or not.
    last_position: Arc<Mutex<JournalPosition>>,
}

impl PositionFile {
    /// Opens or creates the file beside the journal `path`.
    pub(crate) fn open(path: &Path, durability: Durability) -> Self {
        let mut options = File::options();
        let at = path.with_file_name(POSITION_FILE);
        let opened = options.write(true).create(true).truncate(false).mode(0o600).open(at);
        if let Err(error) = &opened {
            tracing::warn!(%error, "cannot write the position file of the journal");
        }
        Self {
            file: opened.ok().map(Arc::new),
            log: path.with_extension("db-wal"),
            durability,
            last_position: Arc::default(),
        }
    }

    /// Returns the position as of the last commit.
    pub(crate) fn position(&self) -> JournalPosition {
        *self.last_position.lock()
    }

    /// Stores the position after a commit, and writes it to the file if commits are synced. Otherwise
    /// [`PositionFile::sync`] writes it.
    pub(crate) fn record_commit(&self, reached: JournalPosition) {
        *self.last_position.lock() = reached;
        if self.durability == Durability::Always {
            self.write(reached);
        }
    }

    /// Syncs the log, and then writes the position that was reached before the sync.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let reached = self.position();
        sync(&File::open(&self.log)?)?;
        self.write(reached);
        Ok(())
    }

    /// As [`PositionFile::sync`], but does nothing if commits are synced.
    pub(crate) fn sync_if_deferred(&self) -> io::Result<()> {
        if self.durability == Durability::Always { Ok(()) } else { self.sync() }
    }

    /// Writes a position that is on the disk. Ignores errors: the older position in the file stays valid.
    fn write(&self, reached: JournalPosition) {
        let synced = if self.durability == Durability::Always { "always" } else { "interval" };
        let facts = format!("{:020} {synced:8} {:020}", reached.event, reached.commits);
        let line = format!("{facts} {:08x}\n", crc32(0, facts.as_bytes()));
        let _ = self.file.as_ref().map(|file| file.write_all_at(line.as_bytes(), 0));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(db: &Path) -> Option<(u64, u64, bool)> {
        StoredPosition::read(db).map(|newest| (newest.position.event, newest.position.commits, newest.synced))
    }

    #[test]
    fn a_note_reads_as_it_was_written_and_damage_reads_as_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("live.db");
        assert_eq!(read(dir.path()), None);
        let note = PositionFile::open(&journal, Durability::Interval(Duration::from_secs(1)));
        note.record_commit(JournalPosition { event: 70_000, commits: 3 });
        assert_eq!(read(dir.path()), None, "nothing is on the disk for certain");
        assert!(note.sync_if_deferred().is_err(), "log does not exist");
        std::fs::write(dir.path().join("live.db-wal"), "").unwrap();
        note.record_commit(JournalPosition { event: 7, commits: 4 });
        note.sync_if_deferred().unwrap();
        assert_eq!(read(dir.path()), Some((7, 4, false)));
        PositionFile::open(&journal, Durability::Always).record_commit(JournalPosition { event: 8, commits: 0 });
        assert_eq!(read(dir.path()), Some((8, 0, true)));
        let path = dir.path().join(POSITION_FILE);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() - 1 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            std::fs::write(&path, flipped).unwrap();
            assert_eq!(read(dir.path()), None, "byte {at}");
        }
    }

    #[test]
    fn the_note_of_an_earlier_release_is_read_also_where_it_was_written_over_a_newer_one() {
        let dir = tempfile::tempdir().unwrap();
        let facts = format!("{:020} {:8}", 9, "always");
        let earlier = format!("{facts} {:08x}\n", crc32(0, facts.as_bytes()));
        std::fs::write(dir.path().join(POSITION_FILE), &earlier).unwrap();
        assert_eq!(read(dir.path()), Some((9, 0, true)));
        PositionFile::open(&dir.path().join("live.db"), Durability::Always)
            .record_commit(JournalPosition { event: 8, commits: 5 });
        let file = File::options().write(true).open(dir.path().join(POSITION_FILE)).unwrap();
        file.write_all_at(earlier.as_bytes(), 0).unwrap();
        assert_eq!(read(dir.path()), Some((9, 0, true)));
    }
}
