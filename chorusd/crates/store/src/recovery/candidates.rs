//! Candidates for recovery: databases that combine a damaged one with its log, and their ranking.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chorus_base::error::Result;
use chorus_catalog::{AuditHead, ChainVerifier};

use super::super::catalog::for_each_after;
use super::super::journal::{JournalPosition, check};
use super::super::{catalog_salvage, integrity, sqlite};
use super::wal::Wal;

/// A database that could replace the damaged one.
#[derive(Debug)]
pub(super) struct Candidate {
    pub path: PathBuf,
    /// Whether SQLite finds no fault in its pages and the audit log's hash chain is intact.
    pub sound: bool,
    /// Position of the database; `None` if it cannot be read.
    pub reached: Option<JournalPosition>,
    /// Number of contexts that cannot be read back.
    broken: usize,
}

impl Candidate {
    /// Assesses the journal `path`, which no process may have open.
    pub(super) fn assess_journal(path: PathBuf) -> Self {
        let sound = integrity::find_problems(&path, false).is_empty();
        let opened = sqlite::open_reader(&path).ok();
        let reached = opened.as_ref().and_then(|conn| JournalPosition::read(conn).ok());
        let broken = opened.and_then(|conn| check(&conn).ok()).map_or(usize::MAX, |checked| checked.broken().count());
        Self { path, sound, reached, broken }
    }

    /// Assesses the catalog `path`, which no process may have open. A catalog counts no commits: `newer` says whether
    /// it contains more of the log than the other candidate, and among equals the one with more rows ranks higher.
    pub(super) fn assess_catalog(path: PathBuf, newer: bool) -> Self {
        // A thorough check is needed: an index may not match its table although each page is valid by itself.
        let sound = integrity::find_problems(&path, true).is_empty() && has_intact_audit_chain(&path).unwrap_or(false);
        let rows = sqlite::open_reader(&path).map_or(0, |conn| catalog_salvage::count_unfiled_rows(&conn));
        Self { path, sound, reached: Some(JournalPosition { event: newer.into(), commits: rows }), broken: 0 }
    }

    /// Returns whether this candidate is better than `other`: intact first, then position, then fewer broken contexts.
    pub(super) fn is_better_than(&self, other: &Self) -> bool {
        let rank = |of: &Self| (of.sound, of.reached, std::cmp::Reverse(of.broken));
        rank(self) > rank(other)
    }
}

/// Returns whether every row of the audit log continues the hash chain.
fn has_intact_audit_chain(path: &Path) -> Result<bool> {
    let mut walk = ChainVerifier::starting_after(AuditHead::NONE);
    for_each_after(&sqlite::open_reader(path)?, 0, |entry| {
        walk.check_row(&entry);
        walk.is_intact()
    })?;
    Ok(walk.is_intact())
}

/// Writes to `to` the database `base`, if it exists, overlaid with every page in `log`; with `damaged`, also with pages
/// whose frames are damaged. Returns false if the log has no pages.
pub(super) fn overlay_log(base: &Path, log: &Wal<'_>, damaged: bool, to: &Path) -> io::Result<bool> {
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
    // Mark it as not in WAL mode, since it has no log.
    file.write_all_at(&[1, 1], 18)?;
    file.sync_all()?;
    Ok(true)
}
