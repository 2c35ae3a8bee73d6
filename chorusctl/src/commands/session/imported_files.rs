//! The record of the files that were imported into a home: an import without FILE takes only files that are new or changed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chorus_proto::methods::import::CommitResult;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

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
    /// The sessions that hold them. Earlier versions did not record these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sessions: Option<Vec<Uuid>>,
    /// Conversations that were left out, because they were forgotten or excluded.
    #[serde(default, skip_serializing_if = "is_zero")]
    left_out: u64,
    /// The version that found nothing to import in the file. Another version tries again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unreadable_by: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A file's state in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileLookup {
    /// It was not imported, or has changed since.
    New,
    /// It has not changed, but some of its conversations were deleted since, or left out.
    NotKept,
    /// It has not changed, and its conversations are still there.
    Kept { conversations: u64 },
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
    /// Returns an empty record that stays empty: the home is on another machine.
    pub(super) fn none() -> Self {
        Self { path: PathBuf::new(), entries: HashMap::new() }
    }

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

    /// Returns true if the record says of some file which sessions hold its conversations.
    pub(super) fn names_sessions(&self) -> bool {
        self.entries.values().any(|entry| entry.sessions.as_ref().is_some_and(|sessions| !sessions.is_empty()))
    }

    /// Returns what the record says of a file, if these sessions are there.
    pub(super) fn look_up(&self, file: &str, kept: &HashSet<Uuid>) -> FileLookup {
        let Ok(file) = fs::canonicalize(file) else { return FileLookup::New };
        let Some(entry) = self.entries.get(&file) else { return FileLookup::New };
        let is_current = entry.unreadable_by.as_deref().is_none_or(|version| version == env!("CARGO_PKG_VERSION"));
        if !is_current || FileState::of(&file) != Some(entry.state) {
            return FileLookup::New;
        }
        if entry.left_out > 0 || entry.sessions.iter().flatten().any(|session| !kept.contains(session)) {
            return FileLookup::NotKept;
        }
        FileLookup::Kept { conversations: entry.conversations }
    }

    /// Records that a file was imported with this result, which had this state before it was read. `None` instead of a
    /// result means that nothing in it could be imported. If it cannot be recorded, the next import takes the file again.
    pub(super) fn add(&mut self, file: &str, state: Option<FileState>, result: Option<&CommitResult>) {
        let (Ok(file), Some(state)) = (fs::canonicalize(file), state) else { return };
        let unreadable_by = result.is_none().then(|| env!("CARGO_PKG_VERSION").to_owned());
        let sessions = result.map(|result| {
            let found = result.sessions.iter().map(|session| session.header.id);
            found.chain(result.known_sessions.iter().copied()).collect::<Vec<_>>()
        });
        // A daemon of an earlier version only counts those that are known.
        let known = result.map_or(0, |result| result.sessions.len() as u64 + result.known.unwrap_or(0));
        let sessions = sessions.filter(|sessions| sessions.len() as u64 == known);
        let left_out = result.and_then(|result| result.left_out).unwrap_or(0);
        let entry = Entry { file: file.clone(), state, conversations: known, sessions, left_out, unreadable_by };
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

    /// The result of an import: the session of one conversation, which was up to date, and so many left out.
    fn result(session: Uuid, left_out: Option<u64>) -> CommitResult {
        CommitResult {
            sessions: Vec::new(),
            conversations: Vec::new(),
            skipped: Vec::new(),
            skipped_total: 0,
            secrets_found: None,
            warning: None,
            known: Some(1),
            known_sessions: vec![session],
            lines_left_out: None,
            left_out,
        }
    }

    #[test]
    fn a_file_is_known_until_it_changes() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("a.jsonl");
        let name = file.to_str().expect("UTF-8");
        fs::write(&file, "one\n").expect("written");
        let session = Uuid::new_v4();
        let kept = HashSet::from([session]);
        let mut record = ImportedFiles::open(home.path());
        assert_eq!(record.look_up(name, &kept), FileLookup::New);
        record.add(name, FileState::of(&file), Some(&result(session, None)));
        assert_eq!(record.look_up(name, &kept), FileLookup::Kept { conversations: 1 });
        let again = ImportedFiles::open(home.path());
        assert_eq!(again.look_up(name, &kept), FileLookup::Kept { conversations: 1 });
        assert_eq!(again.look_up(name, &HashSet::new()), FileLookup::NotKept);
        record.add(name, FileState::of(&file), Some(&result(session, Some(1))));
        assert_eq!(record.look_up(name, &kept), FileLookup::NotKept);
        fs::write(&file, "one\ntwo\n").expect("written");
        assert_eq!(ImportedFiles::open(home.path()).look_up(name, &kept), FileLookup::New);
        record.add(name, FileState::of(&file), None);
        assert_eq!(record.look_up(name, &kept), FileLookup::Kept { conversations: 0 });
        fs::remove_file(&file).expect("removed");
        assert_eq!(record.look_up(name, &kept), FileLookup::New);
    }

    #[test]
    fn a_record_of_earlier_versions_is_trusted() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("a.jsonl");
        fs::write(&file, "one\n").expect("written");
        let FileState { bytes, modified_s, modified_ns } = FileState::of(&file).expect("a state");
        let line = serde_json::json!({
            "file": fs::canonicalize(&file).expect("a path"), "bytes": bytes, "modified_s": modified_s,
            "modified_ns": modified_ns, "conversations": 3,
        });
        fs::write(home.path().join(FILE_NAME), format!("{line}\n")).expect("written");
        let record = ImportedFiles::open(home.path());
        let known = FileLookup::Kept { conversations: 3 };
        assert_eq!(record.look_up(file.to_str().expect("UTF-8"), &HashSet::new()), known);
    }

    #[test]
    fn a_record_of_obsolete_lines_is_written_again() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("a.jsonl");
        let name = file.to_str().expect("UTF-8");
        fs::write(&file, "one\n").expect("written");
        let session = Uuid::new_v4();
        let mut record = ImportedFiles::open(home.path());
        record.add(name, FileState::of(&file), Some(&result(session, None)));
        let path = home.path().join(FILE_NAME);
        let line = fs::read_to_string(&path).expect("the record");
        fs::write(&path, line.repeat(MAX_OBSOLETE_LINES + 3) + "cut").expect("written");
        let known = FileLookup::Kept { conversations: 1 };
        assert_eq!(ImportedFiles::open(home.path()).look_up(name, &HashSet::from([session])), known);
        assert_eq!(fs::read_to_string(&path).expect("the record"), line);
    }
}
