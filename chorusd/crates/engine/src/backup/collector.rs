//! Reads a home for a backup in three passes: everything but workspaces; then, while nothing may be moved or deleted,
//! the files that changed since; then the workspaces.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::TEMPORARY_PREFIX;
use chorus_proto::methods::backup::{SPECIAL_FILE_WARNING, Summary, Unreadable};
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, Snapshots};
use jiff::Timestamp;
use rustix::fs::{Stat, fstat};

use super::directory_sink::target_error;
use super::home_identity::{HOME_ID_FILE, HomeIdentity};
use super::manifest::{EntryKind, Manifest, ManifestEntry, manifest_path, percent_encode};
use super::sink::BackupSink;
use super::walk::{self, ItemKind, Visitor, WalkItem};
use crate::lifecycle::home_dir::RESTORE_STAGING_DIR;

/// Directories that a backup leaves out: they belong to the running daemon, hold its log, or can be built again.
const EXCLUDED_DIRS: [&str; 5] = ["run", "log", "index", "embeddings", "cache"];

/// Directories of the home whose omission must be reported, because they hold most of its data.
const DATA_DIRS: [&str; 3] = ["agents", "trash", DB_DIR];

/// Files of `db/` that a backup has besides the copies of the databases.
const INCLUDED_DB_FILES: [&str; 2] = ["fingerprint.key", HOME_ID_FILE];

/// The number of times that a file is copied if it changes meanwhile.
const MAX_COPY_ATTEMPTS: usize = 3;

/// Seconds. A file whose inode changed in the second before the backup began gets no stamp: it may have changed again
/// within the resolution of the file system's clock, and the next backup would not notice.
const STAMP_SETTLE_SECS: i64 = 1;

/// Is called with the number of bytes processed so far.
pub type OnProgress = Box<dyn FnMut(u64) + Send>;

/// Collects the files of a home.
pub struct Collector<S> {
    home: OwnedFd,
    sink: S,
    identity: HomeIdentity,
    started_at: Timestamp,
    entries: BTreeMap<String, ManifestEntry>,
    /// Workspaces, which are copied last; paths relative to the home.
    workspaces: Vec<PathBuf>,
    progress: OnProgress,
    bytes_done: u64,
    summary: Summary,
}

impl<S> std::fmt::Debug for Collector<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

/// A reader that returns exactly as many bytes as were announced, with zeros for those that cannot be read. The error
/// is kept in `error`.
struct ExactReader<'a> {
    file: &'a File,
    offset: u64,
    remaining: u64,
    error: Option<io::Error>,
}

impl Read for ExactReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let buffer = &mut buffer[..wanted];
        let count = match &self.error {
            Some(_) => 0,
            None => match self.file.read_at(buffer, self.offset) {
                Ok(0) => {
                    self.error = Some(io::Error::other("it became shorter while being read"));
                    0
                }
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
                Err(e) => {
                    self.error = Some(e);
                    0
                }
            },
        };
        let count = if count == 0 {
            buffer.fill(0);
            wanted
        } else {
            count
        };
        self.offset += count as u64;
        self.remaining -= count as u64;
        Ok(count)
    }
}

/// The purpose of a walk over the home.
enum WalkPass {
    /// Copies everything.
    CopyAll,
    /// Spools the files that changed since they were copied.
    SpoolChanged(ChangedFiles),
}

/// Entries that changed since they were copied, and all paths that still exist.
#[derive(Debug)]
pub struct ChangedFiles {
    existing_paths: HashSet<String>,
    /// Each entry with the offset of its bytes in the spool file.
    changed: Vec<(ManifestEntry, u64)>,
    spool: File,
    spool_length: u64,
}

/// The treatment of a path of the home.
#[derive(Debug, PartialEq, Eq)]
enum PathRule {
    Skip,
    Include,
    /// A workspace: copied last.
    Workspace,
}

fn path_rule(path: &Path, is_dir: bool) -> PathRule {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap_or_default()).collect();
    match parts[..] {
        [DB_DIR] => PathRule::Include,
        [DB_DIR, file] if INCLUDED_DB_FILES.contains(&file) => PathRule::Include,
        [DB_DIR, ..] => PathRule::Skip,
        [top] if EXCLUDED_DIRS.contains(&top) || top.starts_with(RESTORE_STAGING_DIR) => PathRule::Skip,
        ["agents", _, "workspace"] | ["trash", _, "content", "workspace"] if is_dir => PathRule::Workspace,
        ["agents", _, "worktrees", name] | ["trash", _, "content", "worktrees", name]
            if is_dir && !name.starts_with(TEMPORARY_PREFIX) =>
        {
            PathRule::Workspace
        }
        [.., last] if last.starts_with(TEMPORARY_PREFIX) => PathRule::Skip,
        _ => PathRule::Include,
    }
}

impl<S: BackupSink> Collector<S> {
    /// Begins a backup of `home`. Blocks, as do all other methods.
    pub fn new((home, of): (&Path, HomeIdentity), sink: S, begun: Timestamp, progress: OnProgress) -> Result<Self> {
        let home = File::open(home).map_err(|e| Error::io(format_args!("cannot read {}", home.display()), &e))?;
        let summary = Summary {
            agents: 0,
            sessions: 0,
            files: 0,
            bytes: 0,
            copied_files: 0,
            copied_bytes: 0,
            pruned_files: 0,
            unreadable: Vec::new(),
            keys: Vec::new(),
            warnings: Vec::new(),
            duration_ms: 0,
        };
        let (entries, workspaces) = (BTreeMap::new(), Vec::new());
        Ok(Self {
            home: home.into(),
            sink,
            identity: of,
            started_at: begun,
            entries,
            workspaces,
            progress,
            bytes_done: 0,
            summary,
        })
    }

    /// Copies everything but workspaces and databases.
    pub fn copy_unlocked(mut self) -> Result<Self> {
        self.walk_home(&mut WalkPass::CopyAll)?;
        Ok(self)
    }

    /// Copies the files that changed since into an unnamed file in `dir`. Nothing may be moved or deleted in the home
    /// meanwhile.
    pub fn spool_changed(mut self, dir: &Path) -> Result<(Self, ChangedFiles)> {
        // This pass tries again what could not be read before.
        self.summary.unreadable.clear();
        self.summary.warnings.clear();
        self.workspaces.clear();
        let spool = tempfile::tempfile_in(dir).map_err(|e| Error::io("cannot start a backup", &e))?;
        let mut pass = WalkPass::SpoolChanged(ChangedFiles {
            existing_paths: HashSet::new(),
            changed: Vec::new(),
            spool,
            spool_length: 0,
        });
        self.walk_home(&mut pass)?;
        match pass {
            WalkPass::SpoolChanged(late) => Ok((self, late)),
            WalkPass::CopyAll => Err(Error::internal("the walk mode changed")),
        }
    }

    /// Copies the changed files, all workspaces, and the databases, and completes the backup.
    pub fn finish(mut self, late: ChangedFiles, copied: &Snapshots, keys: Vec<String>) -> Result<Summary> {
        self.entries.retain(|path, _| late.existing_paths.contains(path));
        for (entry, begins) in late.changed {
            self.add_spooled(entry, &late.spool, begins).map_err(write_error)?;
        }
        for path in std::mem::take(&mut self.workspaces) {
            self.copy_workspace(&path).map_err(write_error)?;
        }
        for (file, name) in [(&copied.journal, JOURNAL_FILE), (&copied.catalog, CATALOG_FILE)] {
            let size = file.metadata().map_err(write_error)?.len();
            let entry = ManifestEntry {
                path: format!("{DB_DIR}/{name}"),
                kind: EntryKind::File,
                mode: 0o600,
                size,
                sha256: String::new(),
                mtime: Some((self.started_at.as_second(), 0)),
                target: None,
                stamp: None,
            };
            self.add_spooled(entry, file, 0).map_err(write_error)?;
        }
        // Added even if the home has a symbolic link in its place.
        self.entries.entry(DB_DIR.to_owned()).or_insert_with(|| ManifestEntry {
            path: DB_DIR.to_owned(),
            kind: EntryKind::Dir,
            mode: 0o700,
            size: 0,
            sha256: String::new(),
            mtime: None,
            target: None,
            stamp: None,
        });
        let settled = self.started_at.as_second() - STAMP_SETTLE_SECS;
        let mut entries: Vec<ManifestEntry> = self.entries.into_values().collect();
        for entry in &mut entries {
            entry.stamp = entry.stamp.take().filter(|stamp| ctime_second(stamp).is_some_and(|at| at < settled));
        }
        let manifest = Manifest::new(self.started_at, Some(self.identity.id), entries);
        let mut summary = self.summary;
        summary.warnings.extend(self.identity.warnings);
        (summary.agents, summary.sessions) = manifest.agent_totals();
        (summary.files, summary.bytes) = manifest.file_totals();
        let has = |key: &String| manifest.entries.binary_search_by(|entry| entry.path.cmp(key)).is_ok();
        summary.keys = keys.into_iter().filter(has).collect();
        let done = self.sink.finish(&manifest)?;
        summary.pruned_files = done.deleted;
        summary.warnings.extend(done.warnings);
        Ok(summary)
    }

    fn walk_home(&mut self, pass: &mut WalkPass) -> Result<()> {
        let home = self.home.try_clone().map_err(write_error)?;
        walk::walk(home.as_fd(), Path::new(""), &mut CollectVisitor { collector: self, pass, in_workspace: false })
            .map_err(write_error)
    }

    fn copy_workspace(&mut self, path: &Path) -> io::Result<()> {
        let opened = walk::open_below(self.home.as_fd(), path).and_then(|dir| Ok((fstat(&dir)?, dir)));
        let (stat, dir) = match opened {
            Ok(opened) => opened,
            Err(e) => {
                self.record_unreadable(path, &format!("moved or deleted during the backup ({e})"));
                return Ok(());
            }
        };
        let entry = entry_from_stat(path, &stat, &ItemKind::Dir);
        self.sink.store_other(&entry)?;
        self.entries.insert(entry.path.clone(), entry);
        walk::walk(
            dir.as_fd(),
            path,
            &mut CollectVisitor { collector: self, pass: &mut WalkPass::CopyAll, in_workspace: true },
        )
    }

    /// Adds an entry whose bytes are in a file that nobody else changes.
    fn add_spooled(&mut self, mut entry: ManifestEntry, file: &File, begins: u64) -> io::Result<()> {
        if entry.kind != EntryKind::File {
            self.sink.store_other(&entry)?;
        } else {
            let mut source = ExactReader { file, offset: begins, remaining: entry.size, error: None };
            let (sha256, new) = self.sink.store_file(&entry, &mut source)?;
            if let Some(e) = source.error {
                return Err(e);
            }
            entry.sha256 = sha256;
            self.count_copied(&entry, new);
        }
        self.entries.insert(entry.path.clone(), entry);
        Ok(())
    }

    /// Copies a file that may be changing meanwhile.
    fn copy_file(&mut self, item: &WalkItem<'_>) -> io::Result<()> {
        for tried in 1..=MAX_COPY_ATTEMPTS {
            let (file, stat) = match item.open().and_then(|file| Ok((fstat(&file)?, file))) {
                Ok((stat, file)) => (file, stat),
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(e) => {
                    self.record_unreadable(item.path, &e.to_string());
                    return Ok(());
                }
            };
            let mut entry = entry_from_stat(item.path, &stat, &ItemKind::File);
            let known = entry.stamp.as_deref().and_then(|stamp| self.sink.unchanged_sha256(&entry.path, stamp));
            if let Some(sha256) = known {
                entry.sha256 = sha256;
                self.count_copied(&entry, false);
                self.entries.insert(entry.path.clone(), entry);
                return Ok(());
            }
            let mut source = ExactReader { file: &file, offset: 0, remaining: entry.size, error: None };
            let (sha256, new) = self.sink.store_file(&entry, &mut source)?;
            let after = entry_from_stat(item.path, &fstat(&file)?, &ItemKind::File);
            let same = after.stamp == entry.stamp;
            if let Some(e) = source.error.filter(|_| same) {
                self.record_unreadable(item.path, &e.to_string());
                return Ok(());
            }
            if same || tried == MAX_COPY_ATTEMPTS {
                if !same {
                    self.summary.warnings.push(format!("{} changed while being copied", entry.path));
                }
                entry.sha256 = sha256;
                self.count_copied(&entry, new);
                self.entries.insert(entry.path.clone(), entry);
                return Ok(());
            }
        }
        Ok(())
    }

    fn count_copied(&mut self, entry: &ManifestEntry, new: bool) {
        if new {
            self.summary.copied_files += 1;
            self.summary.copied_bytes += entry.size;
        }
        self.bytes_done += entry.size;
        (self.progress)(self.bytes_done);
    }

    fn record_unreadable(&mut self, path: &Path, reason: &str) {
        self.entries.remove(&manifest_path(path));
        self.summary.unreadable.push(Unreadable { path: manifest_path(path), reason: reason.to_owned() });
    }
}

fn write_error(error: io::Error) -> Error {
    target_error(Error::io("cannot write the backup", &error))
}

fn entry_from_stat(path: &Path, stat: &Stat, what: &ItemKind) -> ManifestEntry {
    let (kind, target) = match what {
        ItemKind::Dir => (EntryKind::Dir, None),
        ItemKind::Link(target) => (EntryKind::Link, Some(percent_encode(target))),
        ItemKind::File | ItemKind::Special => (EntryKind::File, None),
    };
    let is_file = kind == EntryKind::File;
    let nanos = |nanos| u32::try_from(nanos).unwrap_or(0);
    #[expect(clippy::useless_conversion, reason = "the fields have other types on other machines")]
    let (size, mtime) =
        (u64::try_from(stat.st_size).unwrap_or(0), (i64::from(stat.st_mtime), nanos(stat.st_mtime_nsec)));
    let stamp = || {
        let (ctime, part) = (stat.st_ctime, nanos(stat.st_ctime_nsec));
        format!("{}:{}:{size}:{}.{:09}:{ctime}.{part:09}", stat.st_dev, stat.st_ino, mtime.0, mtime.1)
    };
    ManifestEntry {
        path: manifest_path(path),
        kind,
        mode: stat.st_mode & 0o777,
        size: if is_file { size } else { 0 },
        sha256: String::new(),
        mtime: is_file.then_some(mtime),
        target,
        stamp: is_file.then(stamp),
    }
}

/// Returns the second in which the inode of a stamp changed.
fn ctime_second(stamp: &str) -> Option<i64> {
    stamp.rsplit(':').next()?.split('.').next()?.parse().ok()
}

/// The visitor of a walk over the home or a workspace.
struct CollectVisitor<'a, S> {
    collector: &'a mut Collector<S>,
    pass: &'a mut WalkPass,
    /// Within a workspace, where everything is included.
    in_workspace: bool,
}

impl<S: BackupSink> Visitor for CollectVisitor<'_, S> {
    fn visit(&mut self, item: &WalkItem<'_>) -> io::Result<bool> {
        let is_dir = matches!(item.kind, ItemKind::Dir);
        let place = if self.in_workspace { PathRule::Include } else { path_rule(item.path, is_dir) };
        match place {
            PathRule::Skip => return Ok(false),
            PathRule::Workspace => {
                self.collector.workspaces.push(item.path.to_owned());
                return Ok(false);
            }
            PathRule::Include => {}
        }
        if !self.in_workspace
            && matches!(item.kind, ItemKind::Link(_))
            && DATA_DIRS.iter().any(|tree| item.path == Path::new(tree))
        {
            self.collector.record_unreadable(item.path, "it is a symbolic link, which backups do not follow");
            return Ok(false);
        }
        if matches!(item.kind, ItemKind::Special) {
            let told = format!("{} {SPECIAL_FILE_WARNING}", manifest_path(item.path));
            self.collector.summary.warnings.push(told);
            return Ok(false);
        }
        match self.pass {
            WalkPass::SpoolChanged(late) => self.collector.spool_if_changed(item, late)?,
            WalkPass::CopyAll if matches!(item.kind, ItemKind::File) => self.collector.copy_file(item)?,
            WalkPass::CopyAll => {
                let entry = entry_from_stat(item.path, &item.stat, &item.kind);
                self.collector.sink.store_other(&entry)?;
                self.collector.entries.insert(entry.path.clone(), entry);
            }
        }
        Ok(true)
    }

    fn visit_unreadable(&mut self, path: &Path, error: &io::Error) {
        self.collector.record_unreadable(path, &error.to_string());
    }
}

impl<S: BackupSink> Collector<S> {
    /// Spools an item if it differs from its copy.
    fn spool_if_changed(&mut self, item: &WalkItem<'_>, late: &mut ChangedFiles) -> io::Result<()> {
        let now = entry_from_stat(item.path, &item.stat, &item.kind);
        late.existing_paths.insert(now.path.clone());
        let same = self
            .entries
            .get(&now.path)
            .is_some_and(|known| ManifestEntry { sha256: String::new(), ..known.clone() } == now);
        if same {
            return Ok(());
        }
        if now.kind != EntryKind::File {
            late.changed.push((now, 0));
            return Ok(());
        }
        let (file, stat) = match item.open().and_then(|file| Ok((fstat(&file)?, file))) {
            Ok((stat, file)) => (file, stat),
            Err(e) => {
                self.record_unreadable(item.path, &e.to_string());
                return Ok(());
            }
        };
        let entry = entry_from_stat(item.path, &stat, &item.kind);
        let mut source = ExactReader { file: &file, offset: 0, remaining: entry.size, error: None };
        let copied = io::copy(&mut source, &mut late.spool)?;
        if let Some(e) = source.error {
            self.record_unreadable(item.path, &e.to_string());
        } else {
            late.changed.push((entry, late.spool_length));
        }
        late.spool_length += copied;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
