//! Restores a backup into an empty home. All files are written and checked in a staging directory first; then they are
//! moved into place, the databases last.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::{create_private, remove_dir, sync_dir};
use chorus_proto::ErrorKind;
use chorus_proto::methods::backup::Restored;
use chorus_store::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, integrity};

use super::fsync;
use super::manifest::{EntryKind, Manifest, ManifestEntry, percent_decode};
use super::reader::{BackupSource, FileReceiver, OnReadProgress};
use super::sink::copy_hashed;
use crate::lifecycle::home_dir::{self, RESTORE_STAGING_DIR};
use crate::lifecycle::instance_lock::InstanceLock;

/// Directories that an empty home may have, since they say nothing about agents.
const IGNORED_DIRS: [&str; 2] = ["run", "log"];

/// Refuses a home that has anything in it. Blocks.
fn ensure_empty(home: &Path) -> Result<()> {
    let failed = |e: io::Error| Error::io(format_args!("cannot read {}", home.display()), &e);
    let entries = match fs::read_dir(home) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let harmless = IGNORED_DIRS.iter().any(|harmless| name == *harmless) || name == RESTORE_STAGING_DIR;
        let empty = || fs::read_dir(entry.path()).is_ok_and(|mut inside| inside.next().is_none());
        if !(harmless || entry.file_type().is_ok_and(|kind| kind.is_dir()) && empty()) {
            let what = format!("the home {} is not empty: it contains {}", home.display(), name.display());
            return Err(Error::new(ErrorKind::AlreadyExists, what)
                .hint("restore into another home with --home DIR, or move this home"));
        }
    }
    Ok(())
}

/// Restores the backup at `source` into `home`, which must be empty and without a daemon. Blocks. The umask of the
/// process must be 077, because SQLite creates databases with it.
///
/// # Errors
/// `already_exists`, `denied`, `disk_full`, `storage_failed`, or a damaged backup. The home then has nothing of the
/// backup.
pub fn restore(source: &Path, home: &Path, progress: OnReadProgress<'_>) -> Result<Restored> {
    if home.metadata().is_ok_and(|home| !home.is_dir()) {
        let what = format!("{} is not a directory", home.display());
        return Err(Error::new(ErrorKind::AlreadyExists, what).hint("pass a new or empty directory with --home DIR"));
    }
    ensure_empty(home)?;
    let made = !home.exists();
    home_dir::prepare_for_restore(home)?;
    // With the lock held, anything in the staging directory is left by a restore that has ended.
    let lock = InstanceLock::acquire(home)?;
    // Another restore may have completed between the first check and the lock.
    let begun = ensure_empty(home).and_then(|()| remove_staging(home));
    let restored = begun.and_then(|()| restore_locked(source, home, progress));
    if made && restored.is_err() {
        let _ = fs::remove_dir_all(home);
    }
    drop(lock);
    restored
}

/// Deletes the staging directory of a restore that was interrupted before it moved anything into place.
fn remove_staging(home: &Path) -> Result<()> {
    match remove_dir(&home.join(RESTORE_STAGING_DIR)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            Err(Error::io(format_args!("cannot write to {}", home.display()), &e))
        }
        _ => Ok(()),
    }
}

fn restore_locked(source: &Path, home: &Path, progress: OnReadProgress<'_>) -> Result<Restored> {
    let source = BackupSource::open(source)?;
    let staging = home.join(RESTORE_STAGING_DIR);
    let failed = |e: io::Error| Error::io(format_args!("cannot write to {}", home.display()), &e);
    create_private(&staging).map_err(failed)?;
    let staged = stage_files(source, &staging, progress);
    let manifest = match staged {
        Ok(manifest) => manifest,
        Err(failure) => {
            let _ = remove_dir(&staging);
            return Err(failure);
        }
    };
    move_into_place(&staging, home).map_err(failed)?;
    apply_restrictive_modes(home, &manifest).map_err(failed)?;
    let ((agents, sessions), (files, bytes)) = (manifest.agent_totals(), manifest.file_totals());
    let home = home.to_string_lossy().into_owned();
    Ok(Restored { home, created_at: manifest.created_at, agents, sessions, files, bytes })
}

fn stage_files(source: BackupSource, staging: &Path, progress: OnReadProgress<'_>) -> Result<Manifest> {
    let failed = |e: io::Error| Error::io("cannot write the home", &e);
    let mut write = StagingWriter { staging: staging.to_owned(), written: HashSet::new() };
    let (manifest, mut problems) = source.read(&mut write, progress)?;
    for database in [JOURNAL_FILE, CATALOG_FILE] {
        let path = staging.join(DB_DIR).join(database);
        let found = if path.is_file() { integrity::find_problems_in_copy(&path) } else { vec!["missing".to_owned()] };
        problems.extend(found.into_iter().map(|what| format!("{DB_DIR}/{database}: {what}")));
    }
    if let Some(first) = problems.first() {
        let more = if problems.len() > 1 { format!(", and {} more", problems.len() - 1) } else { String::new() };
        return Err(Error::new(ErrorKind::StorageFailed, format!("the backup is damaged: {first}{more}"))
            .hint("nothing was restored; list all problems with `chorusctl backup verify`, or use another backup"));
    }
    let files = write.apply_manifest(&manifest).map_err(failed)?;
    fsync::sync_files(staging, &files).map_err(failed)?;
    Ok(manifest)
}

/// Moves the staged files into place, the databases last: without them the home does not count as restored.
fn move_into_place(staging: &Path, home: &Path) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(staging)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort_by_key(|name| name == DB_DIR);
    for name in names {
        // A directory replaces an empty one.
        fs::rename(staging.join(&name), home.join(&name))?;
    }
    sync_dir(home)?;
    fs::remove_dir(staging)?;
    sync_dir(home)
}

/// Applies the modes of workspace directories that deny their owner read, write or search, the deepest first. This
/// comes last because nothing can be written into them afterwards.
fn apply_restrictive_modes(home: &Path, manifest: &Manifest) -> io::Result<()> {
    let closed = |entry: &&ManifestEntry| {
        entry.kind == EntryKind::Dir && entry.mode & 0o700 != 0o700 && is_in_workspace(&entry.path)
    };
    for entry in manifest.entries.iter().rev().filter(closed) {
        let dir = File::open(home.join(entry.path_in_home().map_err(io::Error::other)?))?;
        dir.set_permissions(Permissions::from_mode(entry.mode & 0o777))?;
        dir.sync_all()?;
    }
    Ok(())
}

struct StagingWriter {
    staging: PathBuf,
    /// Paths relative to the staging directory.
    written: HashSet<PathBuf>,
}

impl FileReceiver for StagingWriter {
    fn receive_file(&mut self, place: &Path, source: &mut dyn Read, _: Option<&Path>) -> io::Result<String> {
        let path = self.staging.join(place);
        if let Some(parent) = path.parent() {
            create_private(parent)?;
        }
        if !self.written.insert(place.to_owned()) {
            fs::remove_file(&path)?;
        }
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        copy_hashed(source, |bytes| out.write_all(bytes))
    }
}

impl StagingWriter {
    /// Creates directories and links, and applies modes and times, as the manifest says. Returns the paths of the
    /// files.
    fn apply_manifest(&self, manifest: &Manifest) -> io::Result<Vec<PathBuf>> {
        let mut listed = HashSet::new();
        let mut files = Vec::new();
        for entry in &manifest.entries {
            let place = entry.path_in_home().map_err(io::Error::other)?;
            let path = self.staging.join(&place);
            match entry.kind {
                EntryKind::Dir => create_private(&path)?,
                EntryKind::Link => {}
                EntryKind::File => {
                    apply_file_metadata(&path, entry)?;
                    files.push(path);
                }
            }
            listed.insert(place);
        }
        // A file that the manifest of an archive does not list was changed or deleted while the backup was made.
        for gone in self.written.difference(&listed) {
            fs::remove_file(self.staging.join(gone))?;
        }
        // Links come last, so that nothing is written through one.
        for entry in manifest.entries.iter().rev() {
            let path = self.staging.join(entry.path_in_home().map_err(io::Error::other)?);
            match (entry.kind, &entry.target) {
                (EntryKind::Link, Some(target)) => std::os::unix::fs::symlink(percent_decode(target), path)?,
                (EntryKind::Dir, _) if is_in_workspace(&entry.path) => {
                    fs::set_permissions(path, Permissions::from_mode((entry.mode & 0o777) | 0o700))?;
                }
                _ => {}
            }
        }
        Ok(files)
    }
}

fn apply_file_metadata(path: &Path, entry: &ManifestEntry) -> io::Result<()> {
    let file = File::options().append(true).open(path)?;
    if let Some((seconds, nanos)) = entry.mtime {
        let part = Duration::from_nanos(u64::from(nanos));
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let epoch = SystemTime::UNIX_EPOCH;
        let at = if seconds < 0 { epoch.checked_sub(whole) } else { epoch.checked_add(whole) };
        if let Some(at) = at.and_then(|at| at.checked_add(part)) {
            // The index recognises an unchanged session file by its modification time.
            file.set_modified(at)?;
        }
    }
    if is_in_workspace(&entry.path) { file.set_permissions(Permissions::from_mode(entry.mode & 0o777)) } else { Ok(()) }
}

/// Returns true if a path is in a workspace, where modes are the agent's own.
fn is_in_workspace(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts[..],
        ["agents", _, "workspace", ..]
            | ["trash", _, "content", "workspace", ..]
            | ["agents", _, "worktrees", _, _, ..]
            | ["trash", _, "content", "worktrees", _, _, ..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_restore_leaves_what_the_first_has_staged() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = dir.path().join("home");
        home_dir::prepare_for_restore(&home).expect("a home");
        let first = InstanceLock::acquire(&home).expect("the lock");
        let staged = home.join(RESTORE_STAGING_DIR).join("staged");
        create_private(&home.join(RESTORE_STAGING_DIR)).expect("staging");
        fs::write(&staged, "of the first").expect("staged");
        let again = || restore(&dir.path().join("no backup"), &home, &mut |_, _| ()).expect_err("refused");
        assert_eq!(again().kind, ErrorKind::AlreadyExists);
        assert!(staged.is_file());
        drop(first);
        again();
        assert!(!home.join(RESTORE_STAGING_DIR).exists(), "one that was cut off is begun again");
    }

    #[test]
    fn directories_are_closed_after_what_is_in_them() {
        let home = tempfile::tempdir().expect("a home");
        let dir = |path: &str, mode| ManifestEntry {
            path: path.into(),
            kind: EntryKind::Dir,
            mode,
            size: 0,
            sha256: String::new(),
            mtime: None,
            target: None,
            stamp: None,
        };
        let (outer, inner) = ("agents/a/workspace/closed", "agents/a/workspace/closed/inner");
        let entries = vec![dir("agents/a", 0o500), dir(outer, 0o100), dir(inner, 0o500)];
        let manifest = Manifest::new(jiff::Timestamp::UNIX_EPOCH, None, entries);
        create_private(&home.path().join(inner)).expect("directories");
        apply_restrictive_modes(home.path(), &manifest).expect("closed");
        let mode = |path: &str| fs::metadata(home.path().join(path)).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode("agents/a"), mode(outer), mode(inner)), (0o700, 0o100, 0o500));
        for path in [outer, inner] {
            fs::set_permissions(home.path().join(path), Permissions::from_mode(0o700)).expect("opened");
        }
    }
}
