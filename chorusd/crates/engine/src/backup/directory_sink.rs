//! Writes a backup into a directory: `objects/` holds each content once, under its SHA-256; the manifest maps paths to
//! these contents.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::create_private;
use chorus_proto::ErrorKind;
use chorus_store::{JOURNAL_FILE, integrity};

use super::generations::{Generation, Generations, database_name, has_object, load_manifest, rotate_manifest};
use super::home_identity::HomeIdentity;
use super::manifest::{EntryKind, Manifest, ManifestEntry};
use super::sink::{BackupSink, SinkResult, copy_hashed};
use super::{MANIFEST_FILE, PREVIOUS_MANIFEST_FILE, fsync};

/// Marks a directory of backups, and is locked while one is written.
const MARKER_FILE: &str = "CHORUS-BACKUP";

const MARKER_TEXT: &str = "\
A backup made by `chorusctl backup`. `chorusctl backup verify` checks it, `chorusctl backup restore` restores it.
manifest.jsonl lists every file, manifest.previous.jsonl those of the previous backup; objects/ab/ab... is the file with that SHA-256.
";

pub(super) const OBJECTS_DIR: &str = "objects";

/// Prefix of the names of files that are being written.
const NEW_FILE_PREFIX: &str = "new-";

/// A directory that a backup is being written to.
#[derive(Debug)]
pub struct DirectorySink {
    dir: PathBuf,
    _lock: File,
    /// Files of the previous backup by path: stamp and SHA-256.
    previous_files: HashMap<String, (String, String)>,
    /// The home that is backed up.
    identity: HomeIdentity,
    /// The backups that the directory has already.
    generations: Generations,
    /// Size of the previous backup in bytes.
    previous_size: u64,
    /// Hashes of the contents that are certainly on disk.
    intact_objects: HashSet<String>,
    /// Hashes of the contents that this backup wrote.
    written_objects: HashSet<String>,
    /// Paths of those contents that did not exist before in any form.
    created_paths: Vec<PathBuf>,
    prune: bool,
    finished: bool,
}

impl DirectorySink {
    /// Opens `dir`, or creates it. Blocks.
    ///
    /// # Errors
    /// `denied` for a directory that is not ours, is in `home`, holds something else or the backup of another home;
    /// `busy` while another backup is being written to it.
    pub fn open(dir: &Path, (home, of): (&Path, HomeIdentity), prune: bool) -> Result<Self> {
        let failed = |e: io::Error| target_error(Error::io(format_args!("cannot use {}", dir.display()), &e));
        let home = home.canonicalize().map_err(failed)?;
        let dir = &canonicalize_missing(dir).map_err(failed)?;
        ensure_apart_from_home(dir, &home)?;
        if dir.symlink_metadata().is_err() {
            create_private(dir).map_err(failed)?;
        }
        ensure_usable(dir)?;
        let mark = dir.join(MARKER_FILE);
        let mut lock =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&mark).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!("another backup is being written to {}", dir.display()),
                )
                .hint("wait until it ends"));
            }
            Err(fs::TryLockError::Error(e)) => return Err(failed(e)),
        }
        if lock.metadata().map_err(failed)?.len() == 0 {
            lock.write_all(MARKER_TEXT.as_bytes()).map_err(failed)?;
        }
        create_private(&dir.join(OBJECTS_DIR)).map_err(failed)?;
        remove_unfinished_files(&dir.join(OBJECTS_DIR)).map_err(failed)?;
        let mut this = Self {
            dir: dir.clone(),
            _lock: lock,
            previous_files: HashMap::new(),
            identity: of,
            generations: Generations::default(),
            previous_size: 0,
            intact_objects: HashSet::new(),
            written_objects: HashSet::new(),
            created_paths: Vec::new(),
            prune,
            finished: false,
        };
        let (latest, previous) = load_manifest(dir, MANIFEST_FILE)
            .and_then(|latest| Ok((latest, load_manifest(dir, PREVIOUS_MANIFEST_FILE)?)))
            .map_err(failed)?;
        if let Some(before) = latest.as_ref().or(previous.as_ref()) {
            this.identity.ensure_same_home(before, dir)?;
        }
        this.generations.previous = previous.map(|previous| Generation::from_manifest(dir, &previous));
        if let Some(latest) = latest {
            this.generations.latest = Some(Generation::from_manifest(dir, &latest));
            this.load_previous_files(latest);
        }
        Ok(this)
    }

    /// Returns the size of the previous backup in bytes; 0 if there is none.
    #[must_use]
    pub fn previous_size(&self) -> u64 {
        self.previous_size
    }

    /// Notes which files of the latest backup need not be copied again.
    fn load_previous_files(&mut self, latest: Manifest) {
        self.previous_size = latest.file_totals().1;
        for entry in latest.entries.into_iter().filter(|entry| entry.kind == EntryKind::File) {
            // A content that was truncated or deleted since is written again; `verify` finds other damage.
            if !has_object(&self.dir, &entry) {
                continue;
            }
            self.intact_objects.insert(entry.sha256.clone());
            if let Some(stamp) = entry.stamp {
                self.previous_files.insert(entry.path, (stamp, entry.sha256));
            }
        }
    }

    fn replace_manifest(&self, manifest: &Manifest, rotates: bool) -> io::Result<()> {
        let fresh: Vec<PathBuf> = self.written_objects.iter().map(|sha256| object_path(&self.dir, sha256)).collect();
        fsync::sync_files(&self.dir.join(OBJECTS_DIR), &fresh)?;
        let new = self.dir.join(format!("{MANIFEST_FILE}.new"));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let mut out = BufWriter::new(file);
        manifest.write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        if rotates {
            rotate_manifest(&self.dir)?;
        }
        fs::rename(&new, self.dir.join(MANIFEST_FILE))?;
        File::open(&self.dir)?.sync_all()
    }

    /// Refuses to complete a backup whose databases are damaged.
    fn ensure_databases_intact(&self, manifest: &Manifest) -> Result<()> {
        for (entry, name) in manifest.entries.iter().filter_map(|entry| Some((entry, database_name(entry)?))) {
            let copy = object_path(&self.dir, &entry.sha256);
            let found = if name == JOURNAL_FILE {
                integrity::find_problems_in_journal_copy(&copy)
            } else {
                integrity::find_problems_in_copy(&copy)
            };
            if let Some(first) = found.first() {
                let what = format!("{} is damaged: {first}; the previous backup is unchanged", entry.path);
                return Err(Error::new(ErrorKind::StorageFailed, what).hint("chorusctl doctor"));
            }
        }
        Ok(())
    }

    /// Deletes contents that neither the new manifest nor the retained backup lists: all of them with `prune`,
    /// otherwise only those of earlier databases. Returns how many it deleted.
    fn delete_unlisted(&self, manifest: &Manifest, kept: Option<&Generation>) -> io::Result<u64> {
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
        for sha256 in self.generations.databases().filter(|sha256| !listed.contains(&***sha256)) {
            delete(&object_path(&self.dir, sha256))?;
        }
        if self.prune {
            for folder in fs::read_dir(self.dir.join(OBJECTS_DIR))? {
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

impl BackupSink for DirectorySink {
    fn unchanged_sha256(&self, path: &str, stamp: &str) -> Option<String> {
        self.previous_files.get(path).filter(|(known, _)| known == stamp).map(|(_, sha256)| sha256.clone())
    }

    fn store_file(&mut self, entry: &ManifestEntry, source: &mut dyn Read) -> io::Result<(String, bool)> {
        let new = self.dir.join(OBJECTS_DIR).join(format!("{NEW_FILE_PREFIX}{}", uuid::Uuid::new_v4()));
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let placed = copy_hashed(source, |bytes| out.write_all(bytes)).and_then(|sha256| {
            let known = self.intact_objects.contains(&sha256) || self.written_objects.contains(&sha256);
            // Databases are always written again, because their copies are checked at the end.
            if known && database_name(entry).is_none() {
                fs::remove_file(&new)?;
                return Ok((sha256, false));
            }
            let place = object_path(&self.dir, &sha256);
            if let Some(folder) = place.parent() {
                create_private(folder)?;
            }
            let there = place.symlink_metadata().is_ok();
            fs::rename(&new, &place)?;
            if !there {
                self.created_paths.push(place);
            }
            self.written_objects.insert(sha256.clone());
            Ok((sha256, !known))
        });
        placed.inspect_err(|_| _ = fs::remove_file(&new))
    }

    fn store_other(&mut self, _: &ManifestEntry) -> io::Result<()> {
        Ok(())
    }

    fn finish(mut self, manifest: &Manifest) -> Result<SinkResult> {
        let failed = |e: io::Error| target_error(Error::io(format_args!("cannot write to {}", self.dir.display()), &e));
        self.ensure_databases_intact(manifest)?;
        let agents = manifest.agent_totals().0;
        let rotates = self.generations.should_rotate(&self.identity, agents);
        self.replace_manifest(manifest, rotates).map_err(failed)?;
        self.finished = true;
        let deleted = self.delete_unlisted(manifest, self.generations.retained(rotates)).map_err(failed)?;
        let before = self.generations.latest.as_ref().map_or(0, |latest| latest.agents);
        let warnings = (agents == 0 && before > 0).then(|| {
            format!(
                "the home no longer has agents; the previous backup has {before} and was kept: \
                 {PREVIOUS_MANIFEST_FILE}"
            )
        });
        Ok(SinkResult { deleted, warnings: warnings.into_iter().collect() })
    }
}

impl Drop for DirectorySink {
    /// Deletes what a failed backup has written, to free the space.
    fn drop(&mut self) {
        if !self.finished {
            for path in &self.created_paths {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Returns the path of the content with this hash.
pub(super) fn object_path(dir: &Path, sha256: &str) -> PathBuf {
    dir.join(OBJECTS_DIR).join(sha256.get(..2).unwrap_or("00")).join(sha256)
}

fn denied_error(dir: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Denied, format!("{} {why}", dir.display())).hint("use a new or empty directory that you own")
}

/// Resolves symbolic links in a path whose last components need not exist yet.
fn canonicalize_missing(dir: &Path) -> io::Result<PathBuf> {
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

/// Refuses a directory within the home, or one that contains it.
fn ensure_apart_from_home(dir: &Path, home: &Path) -> Result<()> {
    let nested = dir.starts_with(home) || home.starts_with(dir);
    if nested { Err(denied_error(dir, &format!("overlaps with the home {}", home.display()))) } else { Ok(()) }
}

/// Refuses a directory that others may write to, or that holds something else.
fn ensure_usable(dir: &Path) -> Result<()> {
    let failed = |e: io::Error| target_error(Error::io(format_args!("cannot use {}", dir.display()), &e));
    let metadata = dir.metadata().map_err(failed)?;
    let us = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() {
        return Err(denied_error(dir, "is not a directory"));
    }
    if metadata.uid() != us {
        return Err(denied_error(dir, &format!("belongs to user {}, not to user {us}", metadata.uid())));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(denied_error(dir, &format!("is writable by others (mode {:04o})", metadata.mode() & 0o7777)));
    }
    let marked = fs::symlink_metadata(dir.join(MARKER_FILE)).is_ok_and(|mark| mark.is_file());
    if !marked && fs::read_dir(dir).map_err(failed)?.next().is_some() {
        return Err(denied_error(dir, "is not empty and not a backup"));
    }
    Ok(())
}

/// Deletes files that an interrupted backup left half written.
fn remove_unfinished_files(objects: &Path) -> io::Result<()> {
    for entry in fs::read_dir(objects)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(NEW_FILE_PREFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Replaces message and hint of an error by ones about the backup's directory, since the disk of the home is not the
/// cause.
pub(super) fn target_error(error: Error) -> Error {
    match error.kind {
        ErrorKind::DiskFull => {
            Error { message: "not enough disk space for the backup; the previous backup is unchanged".into(), ..error }
        }
        ErrorKind::StorageFailed => Error { fatal: false, ..error }.hint("check the directory and its disk"),
        _ => error,
    }
}
