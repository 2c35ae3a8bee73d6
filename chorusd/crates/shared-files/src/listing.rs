//! The files in the directory of an agent, with what tells that they have changed.

use std::collections::{BTreeMap, BTreeSet};

use chorus_catalog::{MAX_AGENT_FILE_BYTES, MAX_AGENT_FILES};
use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};
use rustix::io::Errno;

use crate::file_path::{self, MAX_FOLDERS};
use crate::open_dir::{OpenDir, open_folder};

/// Limit on the entries of all folders that are listed; the others are not stored.
const MAX_ENTRIES: usize = 8 * MAX_AGENT_FILES;

/// A file that can become a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedFile {
    pub(crate) stamp: String,
    pub(crate) bytes: u64,
}

/// A file that cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnusableFile {
    pub(crate) stamp: String,
    pub(crate) why: &'static str,
}

/// The entries of the directory of an agent, by path.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) files: BTreeMap<String, ListedFile>,
    pub(crate) unusable: BTreeMap<String, UnusableFile>,
    /// The folders next to agent.json. If one is missing, its files were not deleted one by one.
    pub(crate) folders: BTreeSet<String>,
    /// There are more entries than were listed.
    is_partial: bool,
    seen: usize,
}

impl Listing {
    /// Lists the files of an agent. Skips hidden ones. Blocks.
    pub(crate) fn of(dir: &OpenDir) -> std::io::Result<Self> {
        let mut listing = Self::default();
        listing.add_folder(dir.as_file(), "", 0)?;
        Ok(listing)
    }

    /// Returns true if there are more entries than were listed.
    pub(crate) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Number of all files.
    pub(crate) fn len(&self) -> usize {
        self.files.len() + self.unusable.len()
    }

    /// Returns true if somebody has deleted a file that is not in the list. Returns false if its folder cannot be read, or if the
    /// top folder is missing: that rather is not mounted, or was moved elsewhere.
    pub(crate) fn is_deleted(&self, path: &str) -> bool {
        let mut folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        let top = folders.clone().next();
        !self.is_partial
            && top.is_none_or(|folder| self.folders.contains(folder))
            && folders.all(|folder| !self.unusable.contains_key(folder))
    }

    fn add_folder(&mut self, folder: &std::fs::File, before: &str, depth: usize) -> std::io::Result<()> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let raw = entry.file_name();
            if raw.to_bytes().starts_with(b".") {
                continue;
            }
            let name = raw.to_string_lossy();
            if depth == 0 && file_path::is_other(&name) {
                continue;
            }
            let path = format!("{before}{name}");
            let stat = match statat(folder, raw, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(e) => return Err(e.into()),
            };
            self.seen += 1;
            let kind = FileType::from_raw_mode(stat.st_mode);
            let why = match kind {
                _ if self.seen > MAX_ENTRIES => Some("there are too many files"),
                _ if raw.to_str().is_err() => Some("its name is not UTF-8"),
                FileType::Directory if depth >= MAX_FOLDERS => Some("it is in too many folders"),
                FileType::Directory => file_path::check_name(&name).err(),
                FileType::RegularFile => file_path::check(&path).err(),
                FileType::Symlink => Some("it is a symbolic link"),
                _ => Some("it is not a regular file"),
            };
            match why {
                Some(why) => {
                    self.unusable.insert(path, UnusableFile { stamp: stamp(&stat), why });
                }
                None if kind == FileType::Directory => {
                    if depth == 0 {
                        self.folders.insert(path.clone());
                    }
                    match open_folder(folder, raw) {
                        Ok(inner) => self.add_folder(&inner, &format!("{path}/"), depth + 1)?,
                        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                        Err(_) => {
                            let why = "it cannot be opened";
                            self.unusable.insert(path, UnusableFile { stamp: stamp(&stat), why });
                        }
                    }
                }
                None => self.add_file(path, &stat),
            }
            if self.seen > MAX_ENTRIES {
                self.is_partial = true;
                break;
            }
        }
        Ok(())
    }

    fn add_file(&mut self, path: String, stat: &Stat) {
        let (stamp, bytes) = (stamp(stat), u64::try_from(stat.st_size).unwrap_or_default());
        if bytes > MAX_AGENT_FILE_BYTES {
            self.unusable.insert(path, UnusableFile { stamp, why: "it is larger than 1 MiB" });
        } else {
            self.files.insert(path, ListedFile { stamp, bytes });
        }
    }
}

/// Values that change whenever a file does: length, times of the content and of the inode, and the number of the inode.
pub(crate) fn stamp(stat: &Stat) -> String {
    format!(
        "{}:{}.{}:{}.{}:{}",
        stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec, stat.st_ino
    )
}
