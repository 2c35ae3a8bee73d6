//! A backup in a directory: `objects/` holds each content once, under its SHA-256; the manifest says which path has which.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chorus_proto::ErrorKind;

use super::manifest::{Entry, Kind, Manifest};
use super::sink::{Sink, copy};
use super::{MANIFEST, sync};
use crate::failure::{Failure, Result};
use crate::store::agents_dir::create_private;

/// Marks a directory of backups, and is locked while one is written.
const MARK: &str = "CHORUS-BACKUP";

const MARK_TEXT: &str = "\
A backup made by `chorusctl backup`. `chorusctl backup verify` checks it, `chorusctl backup restore` brings it back.
manifest.jsonl lists every file; objects/ab/ab... is the file with that SHA-256.
";

const OBJECTS: &str = "objects";

/// Beginning of the name of a file that is being written.
const NEW: &str = "new-";

/// A directory that a backup is being written to.
#[derive(Debug)]
pub struct Directory {
    dir: PathBuf,
    _lock: File,
    /// Files of the backup before, by path: stamp and hash.
    before: HashMap<String, (String, String)>,
    /// Databases of the backup before: their copies are replaced.
    databases: Vec<String>,
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
    /// `denied` for a directory that is not ours, is in `home` or holds something else, `busy` while another backup is written.
    pub fn open(dir: &Path, home: &Path, prune: bool) -> Result<Self> {
        let failed = |e: io::Error| Failure::io(format_args!("cannot use {}", dir.display()), &e).at_backup();
        let home = home.canonicalize().map_err(failed)?;
        let dir = &match (dir.canonicalize(), dir.parent(), dir.file_name()) {
            (Err(e), Some(parent), Some(name)) if e.kind() == io::ErrorKind::NotFound => {
                let dir = parent.canonicalize().map_err(failed)?.join(name);
                apart(&dir, &home)?;
                fs::DirBuilder::new().mode(0o700).create(&dir).map_err(failed)?;
                dir
            }
            (found, ..) => found.map_err(failed)?,
        };
        apart(dir, &home)?;
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
            databases: Vec::new(),
            size_before: 0,
            trusted: HashSet::new(),
            fresh: HashSet::new(),
            created: Vec::new(),
            prune,
            done: false,
        };
        this.read_before().map_err(failed)?;
        Ok(this)
    }

    /// Bytes of the backup before; 0 if there is none.
    #[must_use]
    pub fn size_before(&self) -> u64 {
        self.size_before
    }

    fn read_before(&mut self) -> io::Result<()> {
        let file = match File::open(self.dir.join(MANIFEST)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let manifest = match Manifest::read(&mut BufReader::new(file)) {
            Ok(manifest) => manifest,
            // Nothing of it is trusted: everything is copied again.
            Err(why) => {
                tracing::warn!(dir = %self.dir.display(), "the manifest of the backup before {why}");
                return Ok(());
            }
        };
        self.size_before = manifest.size().1;
        for entry in manifest.entries.into_iter().filter(|entry| entry.kind == Kind::File) {
            // One that was cut off or deleted since is written again; other damage is for `verify` to find.
            let there = fs::symlink_metadata(object(&self.dir, &entry.sha256));
            if !there.is_ok_and(|there| there.is_file() && there.len() == entry.size) {
                continue;
            }
            if entry.path.starts_with("db/") {
                self.databases.push(entry.sha256.clone());
            }
            self.trusted.insert(entry.sha256.clone());
            if let Some(stamp) = entry.stamp {
                self.before.insert(entry.path, (stamp, entry.sha256));
            }
        }
        Ok(())
    }

    fn replace_manifest(&self, manifest: &Manifest) -> io::Result<()> {
        let fresh: Vec<PathBuf> = self.fresh.iter().map(|sha256| object(&self.dir, sha256)).collect();
        sync::all(&self.dir.join(OBJECTS), &fresh)?;
        let new = self.dir.join(format!("{MANIFEST}.new"));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let mut out = BufWriter::new(file);
        manifest.write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&new, self.dir.join(MANIFEST))?;
        File::open(&self.dir)?.sync_all()
    }

    /// Deletes contents that the manifest does not list: with `prune` all of them, else those of earlier databases.
    fn forget(&self, manifest: &Manifest) -> io::Result<u64> {
        let listed: HashSet<&str> = manifest.entries.iter().map(|entry| &*entry.sha256).collect();
        let mut deleted = 0;
        let mut delete = |path: &Path| match fs::remove_file(path) {
            Ok(()) => {
                deleted += 1;
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        };
        for sha256 in self.databases.iter().filter(|sha256| !listed.contains(&***sha256)) {
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

    fn file(&mut self, _: &Entry, source: &mut dyn Read) -> io::Result<(String, bool)> {
        let new = self.dir.join(OBJECTS).join(format!("{NEW}{}", uuid::Uuid::new_v4()));
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let placed = copy(source, |bytes| out.write_all(bytes)).and_then(|sha256| {
            if self.trusted.contains(&sha256) || self.fresh.contains(&sha256) {
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
            Ok((sha256, true))
        });
        placed.inspect_err(|_| _ = fs::remove_file(&new))
    }

    fn other(&mut self, _: &Entry) -> io::Result<()> {
        Ok(())
    }

    fn finish(mut self, manifest: &Manifest) -> Result<u64> {
        let failed = |e: io::Error| Failure::io(format_args!("cannot write to {}", self.dir.display()), &e).at_backup();
        self.replace_manifest(manifest).map_err(failed)?;
        let pruned = self.forget(manifest).map_err(failed)?;
        self.done = true;
        Ok(pruned)
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
