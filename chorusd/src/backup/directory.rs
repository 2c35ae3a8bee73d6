//! A backup in a directory: `objects/` holds each content once, under its SHA-256; the manifest says which path has which.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chorus_proto::ErrorKind;

use super::generations::{Generation, Generations, database, is_there, manifest, rotate};
use super::identity::Identity;
use super::manifest::{Entry, Kind, Manifest};
use super::sink::{Finished, Sink, copy};
use super::{MANIFEST, PREVIOUS, sync};
use crate::failure::{Failure, Result};
use crate::store::agents_dir::create_private;
use crate::store::{JOURNAL, damage};

/// Marks a directory of backups, and is locked while one is written.
const MARK: &str = "CHORUS-BACKUP";

const MARK_TEXT: &str = "\
A backup made by `chorusctl backup`. `chorusctl backup verify` checks it, `chorusctl backup restore` brings it back.
manifest.jsonl lists every file, manifest.previous.jsonl those of the backup before; objects/ab/ab... is the file with that SHA-256.
";

pub const OBJECTS: &str = "objects";

/// Beginning of the name of a file that is being written.
const NEW: &str = "new-";

/// A directory that a backup is being written to.
#[derive(Debug)]
pub struct Directory {
    dir: PathBuf,
    _lock: File,
    /// Files of the backup before, by path: stamp and hash.
    before: HashMap<String, (String, String)>,
    /// The home that is backed up.
    of: Identity,
    /// The backups that are there already.
    earlier: Generations,
    /// Bytes of the backup before.
    size_before: u64,
    /// Contents that are on the disk for certain.
    trusted: HashSet<String>,
    /// Contents that this backup wrote.
    fresh: HashSet<String>,
    /// Those of them that were not there before in any form.
    created: Vec<PathBuf>,
    prune: bool,
    done: bool,
}

impl Directory {
    /// Opens `dir`, or makes it. Blocks.
    ///
    /// # Errors
    /// `denied` for a directory that is not ours, is in `home`, or holds something else or the backup of another home, `busy` while another backup is written.
    pub fn open(dir: &Path, (home, of): (&Path, Identity), prune: bool) -> Result<Self> {
        let failed = |e: io::Error| Failure::io(format_args!("cannot use {}", dir.display()), &e).at_backup();
        let home = home.canonicalize().map_err(failed)?;
        let dir = &resolved(dir).map_err(failed)?;
        apart(dir, &home)?;
        if dir.symlink_metadata().is_err() {
            create_private(dir).map_err(failed)?;
        }
        check(dir)?;
        let mark = dir.join(MARK);
        let mut lock =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&mark).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Failure::new(
                    ErrorKind::Busy,
                    format!("another backup is being written to {}", dir.display()),
                )
                .hint("wait until it has ended"));
            }
            Err(fs::TryLockError::Error(e)) => return Err(failed(e)),
        }
        if lock.metadata().map_err(failed)?.len() == 0 {
            lock.write_all(MARK_TEXT.as_bytes()).map_err(failed)?;
        }
        create_private(&dir.join(OBJECTS)).map_err(failed)?;
        sweep(&dir.join(OBJECTS)).map_err(failed)?;
        let mut this = Self {
            dir: dir.clone(),
            _lock: lock,
            before: HashMap::new(),
            of,
            earlier: Generations::default(),
            size_before: 0,
            trusted: HashSet::new(),
            fresh: HashSet::new(),
            created: Vec::new(),
            prune,
            done: false,
        };
        let (latest, previous) =
            manifest(dir, MANIFEST).and_then(|latest| Ok((latest, manifest(dir, PREVIOUS)?))).map_err(failed)?;
        if let Some(before) = latest.as_ref().or(previous.as_ref()) {
            this.of.check(before, dir)?;
        }
        this.earlier.previous = previous.map(|previous| Generation::of(dir, &previous));
        if let Some(latest) = latest {
            this.earlier.latest = Some(Generation::of(dir, &latest));
            this.trust(latest);
        }
        Ok(this)
    }

    /// Bytes of the backup before; 0 if there is none.
    #[must_use]
    pub fn size_before(&self) -> u64 {
        self.size_before
    }

    /// Takes what need not be copied again from the manifest of the latest backup.
    fn trust(&mut self, latest: Manifest) {
        self.size_before = latest.size().1;
        for entry in latest.entries.into_iter().filter(|entry| entry.kind == Kind::File) {
            // One that was cut off or deleted since is written again; other damage is for `verify` to find.
            if !is_there(&self.dir, &entry) {
                continue;
            }
            self.trusted.insert(entry.sha256.clone());
            if let Some(stamp) = entry.stamp {
                self.before.insert(entry.path, (stamp, entry.sha256));
            }
        }
    }

    fn replace_manifest(&self, manifest: &Manifest, rotates: bool) -> io::Result<()> {
        let fresh: Vec<PathBuf> = self.fresh.iter().map(|sha256| object(&self.dir, sha256)).collect();
        sync::all(&self.dir.join(OBJECTS), &fresh)?;
        let new = self.dir.join(format!("{MANIFEST}.new"));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let mut out = BufWriter::new(file);
        manifest.write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        if rotates {
            rotate(&self.dir)?;
        }
        fs::rename(&new, self.dir.join(MANIFEST))?;
        File::open(&self.dir)?.sync_all()
    }

    /// Refuses a backup whose databases are damaged.
    fn check_databases(&self, manifest: &Manifest) -> Result<()> {
        for (entry, name) in manifest.entries.iter().filter_map(|entry| Some((entry, database(entry)?))) {
            let copy = object(&self.dir, &entry.sha256);
            let found =
                if name == JOURNAL { damage::problems_of_journal_copy(&copy) } else { damage::problems_of_copy(&copy) };
            if let Some(first) = found.first() {
                let what = format!("{} is damaged: {first}; the backup before is as it was", entry.path);
                return Err(Failure::new(ErrorKind::StorageFailed, what).hint("chorusctl doctor"));
            }
        }
        Ok(())
    }

    /// Deletes contents that neither the manifest nor the backup that is kept beside it lists: with `prune` all of them, else
    /// those of earlier databases.
    fn forget(&self, manifest: &Manifest, kept: Option<&Generation>) -> io::Result<u64> {
        let listed = manifest.entries.iter().map(|entry| &*entry.sha256);
        let listed: HashSet<&str> =
            listed.chain(kept.iter().flat_map(|kept| &kept.objects).map(String::as_str)).collect();
        let mut deleted = 0;
        let mut delete = |path: &Path| match fs::remove_file(path) {
            Ok(()) => {
                deleted += 1;
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        };
        for sha256 in self.earlier.databases().filter(|sha256| !listed.contains(&***sha256)) {
            delete(&object(&self.dir, sha256))?;
        }
        if self.prune {
            for folder in fs::read_dir(self.dir.join(OBJECTS))? {
                for file in fs::read_dir(folder?.path())? {
                    let file = file?;
                    if !file.file_name().to_str().is_some_and(|name| listed.contains(name)) {
                        delete(&file.path())?;
                    }
                }
            }
        }
        Ok(deleted)
    }
}

impl Sink for Directory {
    fn known(&self, path: &str, stamp: &str) -> Option<String> {
        self.before.get(path).filter(|(known, _)| known == stamp).map(|(_, sha256)| sha256.clone())
    }

    fn file(&mut self, entry: &Entry, source: &mut dyn Read) -> io::Result<(String, bool)> {
        let new = self.dir.join(OBJECTS).join(format!("{NEW}{}", uuid::Uuid::new_v4()));
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let placed = copy(source, |bytes| out.write_all(bytes)).and_then(|sha256| {
            let known = self.trusted.contains(&sha256) || self.fresh.contains(&sha256);
            // A database is written again in any case: its copy is checked at the end.
            if known && database(entry).is_none() {
                fs::remove_file(&new)?;
                return Ok((sha256, false));
            }
            let place = object(&self.dir, &sha256);
            if let Some(folder) = place.parent() {
                create_private(folder)?;
            }
            let there = place.symlink_metadata().is_ok();
            fs::rename(&new, &place)?;
            if !there {
                self.created.push(place);
            }
            self.fresh.insert(sha256.clone());
            Ok((sha256, !known))
        });
        placed.inspect_err(|_| _ = fs::remove_file(&new))
    }

    fn other(&mut self, _: &Entry) -> io::Result<()> {
        Ok(())
    }

    fn finish(mut self, manifest: &Manifest) -> Result<Finished> {
        let failed = |e: io::Error| Failure::io(format_args!("cannot write to {}", self.dir.display()), &e).at_backup();
        self.check_databases(manifest)?;
        let agents = manifest.agents().0;
        let rotates = self.earlier.rotates(&self.of, agents);
        self.replace_manifest(manifest, rotates).map_err(failed)?;
        self.done = true;
        let deleted = self.forget(manifest, self.earlier.kept(rotates)).map_err(failed)?;
        let before = self.earlier.latest.as_ref().map_or(0, |latest| latest.agents);
        let warnings = (agents == 0 && before > 0).then(|| {
            format!("the home has no agents any more; the backup before has {before} and is kept: {PREVIOUS}")
        });
        Ok(Finished { deleted, warnings: warnings.into_iter().collect() })
    }
}

impl Drop for Directory {
    /// A backup that failed leaves nothing of its own: the room is needed.
    fn drop(&mut self) {
        if !self.done {
            for path in &self.created {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Returns the path of the content with this hash.
pub fn object(dir: &Path, sha256: &str) -> PathBuf {
    dir.join(OBJECTS).join(sha256.get(..2).unwrap_or("00")).join(sha256)
}

fn refused(dir: &Path, why: &str) -> Failure {
    Failure::new(ErrorKind::Denied, format!("{} {why}", dir.display()))
        .hint("name a new or empty directory of your own")
}

/// The path without links, also of a directory that is not there yet.
fn resolved(dir: &Path) -> io::Result<PathBuf> {
    let (mut at, mut missing) = (dir, Vec::new());
    loop {
        match (at.canonicalize(), at.parent(), at.file_name()) {
            (Err(e), Some(parent), Some(name)) if e.kind() == io::ErrorKind::NotFound => {
                missing.push(name);
                at = parent;
            }
            (found, ..) => return found.map(|found| missing.iter().rev().fold(found, |path, name| path.join(name))),
        }
    }
}

/// Refuses a directory in the home, and one that has the home in it.
fn apart(dir: &Path, home: &Path) -> Result<()> {
    let nested = dir.starts_with(home) || home.starts_with(dir);
    if nested { Err(refused(dir, &format!("and the home {} are inside each other", home.display()))) } else { Ok(()) }
}

/// Refuses a directory that others may write to, or that holds something else.
fn check(dir: &Path) -> Result<()> {
    let failed = |e: io::Error| Failure::io(format_args!("cannot use {}", dir.display()), &e).at_backup();
    let metadata = dir.metadata().map_err(failed)?;
    let us = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() {
        return Err(refused(dir, "is not a directory"));
    }
    if metadata.uid() != us {
        return Err(refused(dir, &format!("belongs to user {}, not to user {us}", metadata.uid())));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(refused(dir, &format!("can be written to by others (mode {:04o})", metadata.mode() & 0o7777)));
    }
    let marked = fs::symlink_metadata(dir.join(MARK)).is_ok_and(|mark| mark.is_file());
    if !marked && fs::read_dir(dir).map_err(failed)?.next().is_some() {
        return Err(refused(dir, "is not empty and not a backup"));
    }
    Ok(())
}

/// Deletes what an interrupted backup was writing.
fn sweep(objects: &Path) -> io::Result<()> {
    for entry in fs::read_dir(objects)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(NEW) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

impl Failure {
    /// The same, where the hint is about the place of a backup.
    pub(super) fn at_backup(self) -> Self {
        match self.kind {
            ErrorKind::DiskFull => {
                Self { message: "there is no room for the backup; the one before is as it was".into(), ..self }
            }
            ErrorKind::StorageFailed => Self { fatal: false, ..self }.hint("check the directory and its disk"),
            _ => self,
        }
    }
}
