//! Reading a home for a backup: first everything but workspaces, then, while nothing may move or go, what changed since, then
//! workspaces.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use chorus_proto::methods::backup::{SPECIAL, Summary, Unreadable};
use jiff::Timestamp;
use rustix::fs::{Stat, fstat};

use super::identity::{HOME_ID, Identity};
use super::manifest::{Entry, Kind, Manifest, encode, name};
use super::sink::Sink;
use super::walk::{self, Item, Visitor, What};
use crate::failure::{Failure, Result};
use crate::lifecycle::home::UNFINISHED;
use crate::store::session_files::TEMPORARY;
use crate::store::{CATALOG, Copied, DB, JOURNAL};

/// Directories that are not in a backup: what belongs to a running daemon, its log, and what is built again.
const LEFT_OUT: [&str; 3] = ["run", "log", "index"];

/// Directories of the home that hold too much to be left out without a word.
const TREES: [&str; 3] = ["agents", "trash", DB];

/// Of `db/`, beside the copies of the databases.
const KEPT_OF_DB: [&str; 2] = ["fingerprint.key", HOME_ID];

/// How often a file that changes while it is copied is copied.
const TRIES: usize = 3;

/// A file whose inode changed in the second before the backup began is not recognized by its stamp later: it may have been changed
/// again within the resolution of the file system's clock.
const SETTLED: i64 = 1;

/// How far it has come, in bytes.
pub type OnProgress = Box<dyn FnMut(u64) + Send>;

/// Collects the files of a home.
pub struct Collector<S> {
    home: OwnedFd,
    sink: S,
    of: Identity,
    begun: Timestamp,
    entries: BTreeMap<String, Entry>,
    /// Trees that are walked last: relative to the home.
    workspaces: Vec<PathBuf>,
    progress: OnProgress,
    done: u64,
    summary: Summary,
}

impl<S> std::fmt::Debug for Collector<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

/// A file on its way, whatever becomes of it: exactly as many bytes as were announced, zeros for those that cannot be read.
struct Exactly<'a> {
    file: &'a File,
    at: u64,
    left: u64,
    failed: Option<io::Error>,
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if wanted == 0 {
            return Ok(0);
        }
        let buffer = &mut buffer[..wanted];
        let count = match &self.failed {
            Some(_) => 0,
            None => match self.file.read_at(buffer, self.at) {
                Ok(0) => {
                    self.failed = Some(io::Error::other("it became shorter while it was read"));
                    0
                }
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
                Err(e) => {
                    self.failed = Some(e);
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
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// The purpose of a walk.
enum Pass {
    /// Copy everything.
    All,
    /// Put aside what changed since it was copied.
    Late(Late),
}

/// Entries that changed since they were copied, and the paths that still exist.
#[derive(Debug)]
pub struct Late {
    seen: HashSet<String>,
    /// Each with where its bytes begin in the spool.
    changed: Vec<(Entry, u64)>,
    spool: File,
    length: u64,
}

/// The decision about a path of the home.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Skip,
    Take,
    /// A workspace: walked last.
    Workspace,
}

fn place(path: &Path, is_dir: bool) -> Place {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap_or_default()).collect();
    match parts[..] {
        [DB] => Place::Take,
        [DB, file] if KEPT_OF_DB.contains(&file) => Place::Take,
        [DB, ..] => Place::Skip,
        [top] if LEFT_OUT.contains(&top) || top.starts_with(UNFINISHED) => Place::Skip,
        ["agents", _, "workspace"] | ["trash", _, "content", "workspace"] if is_dir => Place::Workspace,
        [.., last] if last.starts_with(TEMPORARY) => Place::Skip,
        _ => Place::Take,
    }
}

impl<S: Sink> Collector<S> {
    /// A backup of `home` that begins now. Blocks, as do all others.
    ///
    /// # Errors
    /// A home that cannot be read.
    pub fn new((home, of): (&Path, Identity), sink: S, begun: Timestamp, progress: OnProgress) -> Result<Self> {
        let home = File::open(home).map_err(|e| Failure::io(format_args!("cannot read {}", home.display()), &e))?;
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
        Ok(Self { home: home.into(), sink, of, begun, entries, workspaces, progress, done: 0, summary })
    }

    /// Copies everything but workspaces and databases.
    ///
    /// # Errors
    /// The place of the backup does not take it.
    pub fn early(mut self) -> Result<Self> {
        self.walk_home(&mut Pass::All)?;
        Ok(self)
    }

    /// Puts aside what changed since; `dir` takes an unnamed file for it. Nothing may be moved or deleted in the home
    /// meanwhile.
    ///
    /// # Errors
    /// `disk_full`, `storage_failed`.
    pub fn late(mut self, dir: &Path) -> Result<(Self, Late)> {
        // Whatever could not be read is tried again.
        self.summary.unreadable.clear();
        self.summary.warnings.clear();
        self.workspaces.clear();
        let spool = tempfile::tempfile_in(dir).map_err(|e| Failure::io("cannot begin a backup", &e))?;
        let mut pass = Pass::Late(Late { seen: HashSet::new(), changed: Vec::new(), spool, length: 0 });
        self.walk_home(&mut pass)?;
        match pass {
            Pass::Late(late) => Ok((self, late)),
            Pass::All => Err(Failure::internal("a walk became another")),
        }
    }

    /// Copies what was put aside, all workspaces, and the databases; returns what was done.
    ///
    /// # Errors
    /// The place of the backup does not take it.
    pub fn finish(mut self, late: Late, copied: &Copied, keys: Vec<String>) -> Result<Summary> {
        self.entries.retain(|path, _| late.seen.contains(path));
        for (entry, begins) in late.changed {
            self.put_aside(entry, &late.spool, begins).map_err(failed)?;
        }
        for path in std::mem::take(&mut self.workspaces) {
            self.workspace(&path).map_err(failed)?;
        }
        for (file, name) in [(&copied.journal, JOURNAL), (&copied.catalog, CATALOG)] {
            let size = file.metadata().map_err(failed)?.len();
            let entry = Entry {
                path: format!("{DB}/{name}"),
                kind: Kind::File,
                mode: 0o600,
                size,
                sha256: String::new(),
                mtime: Some((self.begun.as_second(), 0)),
                target: None,
                stamp: None,
            };
            self.put_aside(entry, file, 0).map_err(failed)?;
        }
        // Also where the home has a link in its place.
        self.entries.entry(DB.to_owned()).or_insert_with(|| Entry {
            path: DB.to_owned(),
            kind: Kind::Dir,
            mode: 0o700,
            size: 0,
            sha256: String::new(),
            mtime: None,
            target: None,
            stamp: None,
        });
        let settled = self.begun.as_second() - SETTLED;
        let mut entries: Vec<Entry> = self.entries.into_values().collect();
        for entry in &mut entries {
            entry.stamp = entry.stamp.take().filter(|stamp| changed_at(stamp).is_some_and(|at| at < settled));
        }
        let manifest = Manifest::new(self.begun, Some(self.of.id), entries);
        let mut summary = self.summary;
        summary.warnings.extend(self.of.warnings);
        (summary.agents, summary.sessions) = manifest.agents();
        (summary.files, summary.bytes) = manifest.size();
        let has = |key: &String| manifest.entries.binary_search_by(|entry| entry.path.cmp(key)).is_ok();
        summary.keys = keys.into_iter().filter(has).collect();
        let done = self.sink.finish(&manifest)?;
        summary.pruned_files = done.deleted;
        summary.warnings.extend(done.warnings);
        Ok(summary)
    }

    fn walk_home(&mut self, pass: &mut Pass) -> Result<()> {
        let home = self.home.try_clone().map_err(failed)?;
        walk::walk(home.as_fd(), Path::new(""), &mut Visit { to: self, pass, inside: false }).map_err(failed)
    }

    fn workspace(&mut self, path: &Path) -> io::Result<()> {
        let opened = walk::open_below(self.home.as_fd(), path).and_then(|dir| Ok((fstat(&dir)?, dir)));
        let (stat, dir) = match opened {
            Ok(opened) => opened,
            Err(e) => {
                self.unreadable(path, &format!("moved or deleted while the backup was made ({e})"));
                return Ok(());
            }
        };
        let entry = entry_of(path, &stat, &What::Dir);
        self.sink.other(&entry)?;
        self.entries.insert(entry.path.clone(), entry);
        walk::walk(dir.as_fd(), path, &mut Visit { to: self, pass: &mut Pass::All, inside: true })
    }

    /// Takes an entry whose bytes are in a file that nobody else changes.
    fn put_aside(&mut self, mut entry: Entry, file: &File, begins: u64) -> io::Result<()> {
        if entry.kind != Kind::File {
            self.sink.other(&entry)?;
        } else {
            let mut source = Exactly { file, at: begins, left: entry.size, failed: None };
            let (sha256, new) = self.sink.file(&entry, &mut source)?;
            if let Some(e) = source.failed {
                return Err(e);
            }
            entry.sha256 = sha256;
            self.count(&entry, new);
        }
        self.entries.insert(entry.path.clone(), entry);
        Ok(())
    }

    /// Copies a file that others may be changing.
    fn copy(&mut self, item: &Item<'_>) -> io::Result<()> {
        for tried in 1..=TRIES {
            let (file, stat) = match item.open().and_then(|file| Ok((fstat(&file)?, file))) {
                Ok((stat, file)) => (file, stat),
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(e) => {
                    self.unreadable(item.path, &e.to_string());
                    return Ok(());
                }
            };
            let mut entry = entry_of(item.path, &stat, &What::File);
            let known = entry.stamp.as_deref().and_then(|stamp| self.sink.known(&entry.path, stamp));
            if let Some(sha256) = known {
                entry.sha256 = sha256;
                self.count(&entry, false);
                self.entries.insert(entry.path.clone(), entry);
                return Ok(());
            }
            let mut source = Exactly { file: &file, at: 0, left: entry.size, failed: None };
            let (sha256, new) = self.sink.file(&entry, &mut source)?;
            let after = entry_of(item.path, &fstat(&file)?, &What::File);
            let same = after.stamp == entry.stamp;
            if let Some(e) = source.failed.filter(|_| same) {
                self.unreadable(item.path, &e.to_string());
                return Ok(());
            }
            if same || tried == TRIES {
                if !same {
                    self.summary.warnings.push(format!("{} changed while it was copied", entry.path));
                }
                entry.sha256 = sha256;
                self.count(&entry, new);
                self.entries.insert(entry.path.clone(), entry);
                return Ok(());
            }
        }
        Ok(())
    }

    fn count(&mut self, entry: &Entry, new: bool) {
        if new {
            self.summary.copied_files += 1;
            self.summary.copied_bytes += entry.size;
        }
        self.done += entry.size;
        (self.progress)(self.done);
    }

    fn unreadable(&mut self, path: &Path, reason: &str) {
        self.entries.remove(&name(path));
        self.summary.unreadable.push(Unreadable { path: name(path), reason: reason.to_owned() });
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::io("cannot write the backup", &error).at_backup()
}

fn entry_of(path: &Path, stat: &Stat, what: &What) -> Entry {
    let (kind, target) = match what {
        What::Dir => (Kind::Dir, None),
        What::Link(target) => (Kind::Link, Some(encode(target))),
        What::File | What::Special => (Kind::File, None),
    };
    let is_file = kind == Kind::File;
    let nanos = |nanos| u32::try_from(nanos).unwrap_or(0);
    #[expect(clippy::useless_conversion, reason = "the fields have other types on other machines")]
    let (size, mtime) =
        (u64::try_from(stat.st_size).unwrap_or(0), (i64::from(stat.st_mtime), nanos(stat.st_mtime_nsec)));
    let stamp = || {
        let (ctime, part) = (stat.st_ctime, nanos(stat.st_ctime_nsec));
        format!("{}:{}:{size}:{}.{:09}:{ctime}.{part:09}", stat.st_dev, stat.st_ino, mtime.0, mtime.1)
    };
    Entry {
        path: name(path),
        kind,
        mode: stat.st_mode & 0o777,
        size: if is_file { size } else { 0 },
        sha256: String::new(),
        mtime: is_file.then_some(mtime),
        target,
        stamp: is_file.then(stamp),
    }
}

/// The second in which the inode of a stamp changed.
fn changed_at(stamp: &str) -> Option<i64> {
    stamp.rsplit(':').next()?.split('.').next()?.parse().ok()
}

/// A walk of the home, or of a workspace.
struct Visit<'a, S> {
    to: &'a mut Collector<S>,
    pass: &'a mut Pass,
    /// In a workspace, where everything is taken.
    inside: bool,
}

impl<S: Sink> Visitor for Visit<'_, S> {
    fn item(&mut self, item: &Item<'_>) -> io::Result<bool> {
        let is_dir = matches!(item.what, What::Dir);
        let place = if self.inside { Place::Take } else { place(item.path, is_dir) };
        match place {
            Place::Skip => return Ok(false),
            Place::Workspace => {
                self.to.workspaces.push(item.path.to_owned());
                return Ok(false);
            }
            Place::Take => {}
        }
        if !self.inside && matches!(item.what, What::Link(_)) && TREES.iter().any(|tree| item.path == Path::new(tree)) {
            self.to.unreadable(item.path, "it is a link, and a backup follows none");
            return Ok(false);
        }
        if matches!(item.what, What::Special) {
            let told = format!("{} {SPECIAL}", name(item.path));
            self.to.summary.warnings.push(told);
            return Ok(false);
        }
        match self.pass {
            Pass::Late(late) => self.to.compare(item, late)?,
            Pass::All if matches!(item.what, What::File) => self.to.copy(item)?,
            Pass::All => {
                let entry = entry_of(item.path, &item.stat, &item.what);
                self.to.sink.other(&entry)?;
                self.to.entries.insert(entry.path.clone(), entry);
            }
        }
        Ok(true)
    }

    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.to.unreadable(path, &error.to_string());
    }
}

impl<S: Sink> Collector<S> {
    /// Puts an item aside if it is not as it was copied.
    fn compare(&mut self, item: &Item<'_>, late: &mut Late) -> io::Result<()> {
        let now = entry_of(item.path, &item.stat, &item.what);
        late.seen.insert(now.path.clone());
        let same =
            self.entries.get(&now.path).is_some_and(|known| Entry { sha256: String::new(), ..known.clone() } == now);
        if same {
            return Ok(());
        }
        if now.kind != Kind::File {
            late.changed.push((now, 0));
            return Ok(());
        }
        let (file, stat) = match item.open().and_then(|file| Ok((fstat(&file)?, file))) {
            Ok((stat, file)) => (file, stat),
            Err(e) => {
                self.unreadable(item.path, &e.to_string());
                return Ok(());
            }
        };
        let entry = entry_of(item.path, &stat, &item.what);
        let mut source = Exactly { file: &file, at: 0, left: entry.size, failed: None };
        let copied = io::copy(&mut source, &mut late.spool)?;
        if let Some(e) = source.failed {
            self.unreadable(item.path, &e.to_string());
        } else {
            late.changed.push((entry, late.length));
        }
        late.length += copied;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_a_running_daemon_stays_out_and_workspaces_come_last() {
        for (path, is_dir, due) in [
            ("run", true, Place::Skip),
            ("log", true, Place::Skip),
            ("db", true, Place::Take),
            ("db/live.db-wal", false, Place::Skip),
            ("db/fingerprint.key", false, Place::Take),
            ("db/home.id", false, Place::Take),
            ("agents/a/workspace", true, Place::Workspace),
            ("agents/a/workspace", false, Place::Take),
            ("agents/a/docs/workspace", true, Place::Take),
            ("agents/a/sessions/.new-1", false, Place::Skip),
            ("trash/x/content/workspace", true, Place::Workspace),
            ("trash/x/content", true, Place::Take),
            ("config.toml", false, Place::Take),
        ] {
            assert_eq!(place(Path::new(path), is_dir), due, "{path}");
        }
    }

    #[test]
    fn the_second_of_a_stamp_is_read_back() {
        assert_eq!(changed_at("1:2:3:4.000000005:678.000000009"), Some(678));
    }
}
