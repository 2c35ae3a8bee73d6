//! Writes many files through to the disk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// From this number of files on, one `syncfs` replaces syncing each file. With fewer it would cost more, because it
/// also writes what other programs left in the file system's cache.
const SYNCFS_MIN_FILES: usize = 16;

/// Syncs `files` and the directories they are in. A failure means that the backup failed, not that the daemon's own
/// storage did.
pub(super) fn sync_files(top: &Path, files: &[PathBuf]) -> io::Result<()> {
    let top = File::open(top)?;
    if files.len() >= SYNCFS_MIN_FILES && chorus_store::syncs_whole_file_system(&top) {
        return Ok(rustix::fs::syncfs(&top)?);
    }
    let mut dirs: Vec<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    dirs.sort_unstable();
    dirs.dedup();
    files.iter().map(PathBuf::as_path).chain(dirs).try_for_each(|path| File::open(path)?.sync_all())?;
    top.sync_all()
}
