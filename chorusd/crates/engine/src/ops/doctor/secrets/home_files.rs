//! The files of a home that may contain secrets.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_redact::Redactor;

use crate::ops::secret_counts::SecretCounts;

/// Lines are searched together, up to this many bytes, because a secret may have several.
const BLOCK_BYTES: usize = 1 << 20;

/// Bytes of a block that are searched again with the next one, because a secret may lie across both: more than the longest secret has.
const OVERLAP_BYTES: usize = 64 << 10;

/// Longest line of JSON that is searched as a whole.
const MAX_JSON_LINE_BYTES: u64 = 64 << 20;

/// Directories of a home that are not searched here: databases and what is made of them, and the trash, which is searched separately.
const LEFT_OUT_OF_HOME: [&str; 7] = ["db", "index", "embeddings", "cache", "run", "trash", "worktrees"];

/// Directories of an agent that are not searched here: sessions, which are searched separately, and workspaces, which belong to their owner.
const LEFT_OUT_OF_AGENT: [&str; 3] = ["sessions", "workspace", "worktrees"];

/// Files below a directory.
#[derive(Debug)]
pub(super) struct FileSearch {
    root: PathBuf,
    /// Names are relative to it.
    base: PathBuf,
    /// True if `base` is a home, false if it is an entry of the trash.
    is_home: bool,
}

impl FileSearch {
    /// The files of a home below `root` that are not searched on their own.
    pub(super) fn of_home(home: &Path, root: &Path) -> Self {
        Self { root: root.to_owned(), base: home.to_owned(), is_home: true }
    }

    /// The files of an entry of the trash, without workspaces.
    pub(super) fn of_trash(content: &Path) -> Self {
        Self { root: content.to_owned(), base: content.to_owned(), is_home: false }
    }

    /// Calls `search` with each regular file and its name, in order of their paths. Symbolic links are not followed.
    ///
    /// # Errors
    /// The first error of `search`. Directories that cannot be read are left out.
    pub(super) fn each(&self, mut search: impl FnMut(&Path, &str) -> Result<()>) -> Result<()> {
        let mut pending = vec![self.root.clone()];
        while let Some(path) = pending.pop() {
            let Ok(metadata) = path.symlink_metadata() else { continue };
            if metadata.is_file() {
                let name = path.strip_prefix(&self.base).unwrap_or(&path).to_string_lossy();
                search(&path, &name)?;
            } else if metadata.is_dir() {
                let Ok(entries) = fs::read_dir(&path) else { continue };
                let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
                inside.retain(|path| !self.is_left_out(path));
                inside.sort_unstable_by(|a, b| b.cmp(a));
                pending.extend(inside);
            }
        }
        Ok(())
    }

    /// Returns true for what is searched separately or not at all, by its place: any name may be that of an agent or of a note.
    fn is_left_out(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.base).unwrap_or(path);
        let names: Vec<&str> = inside.iter().map(|name| name.to_str().unwrap_or_default()).collect();
        match names.as_slice() {
            [name] if self.is_home => LEFT_OUT_OF_HOME.contains(name),
            ["agents", _, name] if self.is_home => LEFT_OUT_OF_AGENT.contains(name),
            [name] => ["workspace", "worktrees"].contains(name),
            _ => false,
        }
    }
}

/// Adds the secrets in a file to `secrets`.
///
/// # Errors
/// It cannot be read.
pub(super) fn search_file(path: &Path, redactor: &Redactor, secrets: &mut SecretCounts) -> Result<()> {
    let failed = |e: io::Error| Error::io(format_args!("cannot read {}", path.display()), &e);
    let mut file = BufReader::with_capacity(64 << 10, File::open(path).map_err(failed)?);
    let is_json = path.extension().is_some_and(|extension| extension == "json");
    let mut block = Vec::new();
    if is_json {
        // Each line as a whole: its texts cannot be read in parts.
        while (&mut file).take(MAX_JSON_LINE_BYTES).read_until(b'\n', &mut block).map_err(failed)? > 0 {
            secrets.add(redactor.find_secrets_in_json(&String::from_utf8_lossy(&block)), None);
            block.clear();
        }
        return Ok(());
    }
    // Number of bytes at the start of the block that were searched with the block before.
    let mut searched = 0;
    loop {
        // A line may be as long as the file.
        let length = (&mut file).take(BLOCK_BYTES as u64).read_until(b'\n', &mut block).map_err(failed)?;
        if length > 0 && block.len() < searched + BLOCK_BYTES {
            continue;
        }
        secrets.add_once(redactor.find_secrets(&block), redactor.find_secrets(&block[..searched]));
        if length == 0 {
            return Ok(());
        }
        block.drain(..block.len().saturating_sub(OVERLAP_BYTES));
        searched = block.len();
    }
}
