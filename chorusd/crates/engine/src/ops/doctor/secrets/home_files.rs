//! The files of a home that may contain secrets.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_redact::Redactor;

use crate::ops::secret_counts::SecretCounts;

/// Lines are searched together, up to this many bytes, because a secret may have several.
const BLOCK_BYTES: usize = 1 << 20;

/// Parts of a home that are not searched here: databases and what is made of them, sessions and the trash, which are searched on their
/// own, and workspaces, which belong to their owner.
const LEFT_OUT: [&str; 9] =
    ["db", "index", "embeddings", "cache", "run", "trash", "sessions", "workspace", "worktrees"];

/// Files below a directory.
#[derive(Debug)]
pub(super) struct FileSearch {
    root: PathBuf,
    /// Names are relative to it.
    base: PathBuf,
    left_out: &'static [&'static str],
}

impl FileSearch {
    /// The files of a home below `root` that are not searched on their own.
    pub(super) fn of_home(home: &Path, root: &Path) -> Self {
        Self { root: root.to_owned(), base: home.to_owned(), left_out: &LEFT_OUT }
    }

    /// The files of an entry of the trash, without workspaces.
    pub(super) fn of_trash(content: &Path) -> Self {
        Self { root: content.to_owned(), base: content.to_owned(), left_out: &["workspace", "worktrees"] }
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
                inside.retain(|path| {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    !self.left_out.contains(&&*name)
                });
                inside.sort_unstable_by(|a, b| b.cmp(a));
                pending.extend(inside);
            }
        }
        Ok(())
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
    loop {
        let length = file.read_until(b'\n', &mut block).map_err(failed)?;
        if is_json {
            if length == 0 {
                return Ok(());
            }
            secrets.add(redactor.find_secrets_in_json(&String::from_utf8_lossy(&block)), None);
            block.clear();
        } else if length == 0 || block.len() >= BLOCK_BYTES {
            secrets.add(redactor.find_secrets(&block), None);
            block.clear();
            if length == 0 {
                return Ok(());
            }
        }
    }
}
