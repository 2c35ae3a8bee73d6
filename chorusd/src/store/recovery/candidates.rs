//! Databases made of a damaged one and its log, and which of them has most.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::super::journal::{check, events};
use super::super::{damage, sqlite};
use super::wal::Wal;

/// A database that could take the place of the damaged one.
#[derive(Debug)]
pub struct Candidate {
    pub path: PathBuf,
    /// SQLite finds no fault in its pages.
    pub sound: bool,
    /// Number of its newest event.
    pub newest: u64,
    /// Contexts that cannot be read back.
    broken: usize,
}

impl Candidate {
    /// Looks the database `path` over, which no process has open.
    pub fn of(path: PathBuf) -> Self {
        let sound = damage::problems(&path, false).is_empty();
        let opened = sqlite::open_reader(&path).ok();
        let newest = opened.as_ref().and_then(|conn| events::last(conn).ok()).unwrap_or(0);
        let broken = opened.and_then(|conn| check(&conn).ok()).map_or(usize::MAX, |checked| checked.broken().count());
        Self { path, sound, newest, broken }
    }

    /// Returns true if it has more than `other`.
    pub fn is_better_than(&self, other: &Self) -> bool {
        let rank = |of: &Self| (of.sound, of.newest, std::cmp::Reverse(of.broken));
        rank(self) > rank(other)
    }
}

/// Writes to `to` the database `base`, if there is one, with every page that `log` has of it; `damaged`: with those, too, whose content is
/// not what was written. `false` if the log has none.
pub fn overlay(base: &Path, log: &Wal<'_>, damaged: bool, to: &Path) -> io::Result<bool> {
    let Some((pages, size)) = log.pages(damaged) else { return Ok(false) };
    match fs::copy(base, to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            drop(File::options().write(true).create_new(true).mode(0o600).open(to)?);
        }
        other => drop(other?),
    }
    let file = File::options().read(true).write(true).open(to)?;
    let page_size = log.page_size as u64;
    file.set_len(u64::from(size) * page_size)?;
    for (page, content) in pages {
        file.write_all_at(content, u64::from(page - 1) * page_size)?;
    }
    // It has no log of its own: SQLite need not look for one.
    file.write_all_at(&[1, 1], 18)?;
    file.sync_all()?;
    Ok(true)
}
