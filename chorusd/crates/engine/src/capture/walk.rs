//! Walks through the directories of transcripts, also through symbolic links: each directory once, so that a loop ends, and each file
//! that a link leads to once.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How many directories below one that a link leads to are looked at, so that a link to a large directory costs little.
const MAX_LINKED_DEPTH: usize = 3;

/// Something that a walk finds.
#[derive(Debug)]
pub(super) enum WalkEntry<'a> {
    /// A directory, before its contents are read, and how many directories below it are looked at.
    Dir { path: &'a Path, depth: usize, is_linked: bool },
    /// A file. A linked one is named by its link.
    File { path: PathBuf, metadata: Metadata, is_linked: bool },
    /// A directory that cannot be listed.
    Unreadable { dir: PathBuf, error: io::Error },
    /// A link that is not followed.
    Link,
}

/// Calls `on_entry` for a directory and everything up to `depth` directories below it. What links lead to comes last. Blocks.
pub(super) fn walk(dir: &Path, depth: usize, follows_links: bool, on_entry: &mut dyn FnMut(WalkEntry<'_>)) {
    let mut walk = Walk { seen: HashSet::new(), links: Vec::new(), on_entry };
    // The root itself may be a link.
    if let Ok(metadata) = dir.metadata() {
        walk.is_first(&metadata);
    }
    walk.visit(dir, depth, false);
    if !follows_links {
        std::mem::take(&mut walk.links).iter().for_each(|_| (walk.on_entry)(WalkEntry::Link));
    }
    while let Some((path, depth)) = walk.links.pop() {
        // A link that leads nowhere is none.
        let Ok(metadata) = path.metadata() else { continue };
        if !walk.is_first(&metadata) {
            continue;
        }
        if metadata.is_dir() && depth > 0 {
            walk.visit(&path, (depth - 1).min(MAX_LINKED_DEPTH), true);
        } else if metadata.is_file() {
            (walk.on_entry)(WalkEntry::File { path, metadata, is_linked: true });
        }
    }
}

/// Returns why a directory cannot be listed.
pub(super) fn list_error(dir: &Path) -> Option<io::Error> {
    let error = match fs::read_dir(dir) {
        Ok(mut entries) => entries.find_map(|entry| entry.and_then(|entry| entry.metadata()).err())?,
        Err(error) => error,
    };
    (error.kind() != io::ErrorKind::NotFound).then_some(error)
}

struct Walk<'a> {
    /// Device and inode of all directories and files so far.
    seen: HashSet<(u64, u64)>,
    /// Links that were found, and how many directories below that place are looked at.
    links: Vec<(PathBuf, usize)>,
    on_entry: &'a mut dyn FnMut(WalkEntry<'_>),
}

impl Walk<'_> {
    fn is_first(&mut self, metadata: &Metadata) -> bool {
        self.seen.insert((metadata.dev(), metadata.ino()))
    }

    fn visit(&mut self, dir: &Path, depth: usize, is_linked: bool) {
        (self.on_entry)(WalkEntry::Dir { path: dir, depth, is_linked });
        let unreadable = |error| WalkEntry::Unreadable { dir: dir.to_owned(), error };
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return (self.on_entry)(unreadable(error)),
        };
        let mut denied = None;
        for entry in entries.flatten() {
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) => {
                    denied = denied.or(Some(error).filter(|error| error.kind() == io::ErrorKind::PermissionDenied));
                    continue;
                }
            };
            if metadata.is_symlink() {
                self.links.push((entry.path(), depth));
                continue;
            }
            let is_first = self.is_first(&metadata);
            if metadata.is_dir() && depth > 0 {
                if is_first {
                    self.visit(&entry.path(), depth - 1, is_linked);
                }
            } else if metadata.is_file() {
                (self.on_entry)(WalkEntry::File { path: entry.path(), metadata, is_linked });
            }
        }
        if let Some(error) = denied {
            (self.on_entry)(unreadable(error));
        }
    }
}
