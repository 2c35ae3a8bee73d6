//! The record of the files that were imported into a home: an import without FILE takes only files that are new or changed.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const FILE_NAME: &str = "imported_files.jsonl";

/// Lines that may be obsolete before the record is written again.
const MAX_OBSOLETE_LINES: usize = 1_000;

/// The imported files by path. Losing the record is harmless: conversations that exist are skipped by the daemon, too.
#[derive(Debug)]
pub(super) struct ImportedFiles {
    path: PathBuf,
    entries: HashMap<PathBuf, Entry>,
}

/// A line of the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    file: PathBuf,
    #[serde(flatten)]
    state: FileState,
    conversations: u64,
    /// The version that found nothing to import in the file. Another version tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unreadable_by: Option<String>,
}

/// Length and time of a file, which change when a program appends to its transcript. Those of a database include its
/// write-ahead log, which can have all that is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileState {
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl FileState {
    /// Returns the present state of a file; `None` if it cannot be read.
    pub(super) fn of(file: &Path) -> Option<Self> {
        let metadata = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let log = fs::metadata(log).ok();
        let bytes = metadata.len() + log.as_ref().map_or(0, fs::Metadata::len);
        let times = [Some(&metadata), log.as_ref()].into_iter().flatten().map(|file| (file.mtime(), file.mtime_nsec()));
        let (modified_s, modified_ns) = times.max()?;
        Some(Self { bytes, modified_s, modified_ns })
    }
}

impl ImportedFiles {
    /// Reads the record of a home. Lines that cannot be read are left out.
    pub(super) fn open(home: &Path) -> Self {
        let path = home.join(FILE_NAME);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Entry>(line).ok());
        let entries: HashMap<_, _> = entries.map(|entry| (entry.file.clone(), entry)).collect();
        let record = Self { path, entries };
        if text.lines().count() > record.entries.len() * 2 + MAX_OBSOLETE_LINES {
            // If this fails, the record stays long.
            let _ = record.rewrite();
        }
        record
    }

    /// Returns how many conversations the file had when it was imported; `None` if it was not, or has changed since.
    pub(super) fn conversations(&self, file: &str) -> Option<u64> {
        let file = fs::canonicalize(file).ok()?;
        let entry = self.entries.get(&file)?;
        let is_current = entry.unreadable_by.as_deref().is_none_or(|version| version == env!("CARGO_PKG_VERSION"));
        (is_current && FileState::of(&file) == Some(entry.state)).then_some(entry.conversations)
    }

    /// Records that a file was imported, which had this state before it was read. `None` instead of a number of
    /// conversations means that nothing in it could be imported. If it cannot be recorded, the next import takes the file
    /// again.
    pub(super) fn add(&mut self, file: &str, state: Option<FileState>, conversations: Option<u64>) {
        let (Ok(file), Some(state)) = (fs::canonicalize(file), state) else { return };
        let unreadable_by = conversations.is_none().then(|| env!("CARGO_PKG_VERSION").to_owned());
        let entry = Entry { file: file.clone(), state, conversations: conversations.unwrap_or(0), unreadable_by };
        if self.entries.get(&file) != Some(&entry) {
            let _ = self.append(&entry);
            self.entries.insert(file, entry);
        }
    }

    fn append(&self, entry: &Entry) -> std::io::Result<()> {
        let mut record = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        record.write_all(format!("{}\n", serde_json::to_string(entry)?).as_bytes())
    }

    fn rewrite(&self) -> std::io::Result<()> {
        let mut record = tempfile::NamedTempFile::new_in(self.path.parent().unwrap_or(&self.path))?;
        for entry in self.entries.values() {
            writeln!(record, "{}", serde_json::to_string(entry)?)?;
        }
        record.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_until_it_changes() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("a.jsonl");
        let name = file.to_str().expect("UTF-8");
        fs::write(&file, "one\n").expect("written");
        let mut record = ImportedFiles::open(home.path());
        assert_eq!(record.conversations(name), None);
        record.add(name, FileState::of(&file), Some(2));
        assert_eq!(record.conversations(name), Some(2));
        assert_eq!(ImportedFiles::open(home.path()).conversations(name), Some(2));
        fs::write(&file, "one\ntwo\n").expect("written");
        assert_eq!(ImportedFiles::open(home.path()).conversations(name), None);
        record.add(name, FileState::of(&file), None);
        assert_eq!(ImportedFiles::open(home.path()).conversations(name), Some(0));
        fs::remove_file(&file).expect("removed");
        assert_eq!(record.conversations(name), None);
    }

    #[test]
    fn a_record_of_obsolete_lines_is_written_again() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("a.jsonl");
        let name = file.to_str().expect("UTF-8");
        fs::write(&file, "one\n").expect("written");
        let mut record = ImportedFiles::open(home.path());
        record.add(name, FileState::of(&file), Some(1));
        let path = home.path().join(FILE_NAME);
        let line = fs::read_to_string(&path).expect("the record");
        fs::write(&path, line.repeat(MAX_OBSOLETE_LINES + 3) + "cut").expect("written");
        assert_eq!(ImportedFiles::open(home.path()).conversations(name), Some(1));
        assert_eq!(fs::read_to_string(&path).expect("the record"), line);
    }
}
