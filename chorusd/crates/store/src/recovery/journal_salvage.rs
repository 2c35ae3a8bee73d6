//! Salvages a damaged journal that was set aside. SQLite must not open these files themselves: it deletes the log of an
//! empty database and writes into one that has a log. It opens copies in a temporary directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};

use super::candidates::overlay_log;
use super::journal_recovery::READABLE_DB;
use super::raw_pages;
use super::wal::Wal;
use crate::integrity::SalvagedContext;
use crate::{JOURNAL_FILE, integrity, journal, sqlite};

/// Name prefix of the temporary directories.
const SCRATCH_PREFIX: &str = ".salvage-";

/// Salvaged content of a damaged journal.
#[derive(Debug, Default)]
pub struct SalvagedJournal {
    pub contexts: Vec<SalvagedContext>,
    /// Number of records that belong to no known context, and of unreadable rows.
    pub lost: u64,
    /// Whether files of a journal were found.
    pub has_files: bool,
    /// Whether something in them was readable.
    pub has_readable: bool,
}

/// Salvages everything in the files of `dir`, a directory below `db/`. Changes nothing in it. Blocks.
pub fn salvage_journal(dir: &Path) -> Result<SalvagedJournal> {
    let base = dir.join(JOURNAL_FILE);
    let [readable, log_path] = [dir.join(READABLE_DB), base.with_extension("db-wal")];
    if ![&base, &readable, &log_path].into_iter().any(|path| path.is_file()) {
        return Ok(SalvagedJournal::default());
    }
    let failed = |e: io::Error| Error::io(format_args!("cannot copy the content of {}", dir.display()), &e);
    let copies = ScratchDir::create(dir.parent().unwrap_or(dir)).map_err(failed)?;
    let bytes = match fs::read(&log_path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other.map_err(failed)?,
    };
    let length = base.metadata().map_or(0, |of| of.len());
    let header = if length > 0 { integrity::header_fault(&base) } else { None };
    let log = Wal::parse(&bytes, if header.is_none() { raw_pages::read_page_size(&base) } else { None });
    let mut found = SalvagedJournal { has_files: true, ..SalvagedJournal::default() };
    if readable.is_file() {
        found.merge_from(&copies.copy(&readable, "readable.db").map_err(failed)?);
    }
    if length > 0 && header.is_none() {
        let plain = copies.copy(&base, "plain.db").map_err(failed)?;
        if !bytes.is_empty() {
            copies.copy(&log_path, "plain.db-wal").map_err(failed)?;
        }
        let sound = integrity::find_problems(&plain, false).is_empty();
        let whole = found.merge_from(&plain) && sound && log.as_ref().is_none_or(|log| log.damage().is_none());
        if whole {
            return Ok(found);
        }
    }
    for (name, damaged) in [("undamaged.db", false), ("all.db", true)] {
        let to = copies.dir.join(name);
        let log = log.as_ref();
        if let Some(log) = log
            && overlay_log(&base, log, damaged, &to).map_err(failed)?
            && integrity::header_fault(&to).is_none()
        {
            found.merge_from(&to);
        }
    }
    let rows = copies.dir.join("rows.db");
    if raw_pages::rebuild_journal(&base, log.as_ref(), &rows)? {
        found.merge_from(&rows);
    }
    Ok(found)
}

impl SalvagedJournal {
    /// Adds what the copy `path` has in addition. Returns whether it was read completely, without broken contexts or
    /// lost records.
    fn merge_from(&mut self, path: &Path) -> bool {
        let read = sqlite::open_reader(path).and_then(|conn| {
            let checked = journal::check(&conn)?;
            let lost = checked.orphans + checked.holes;
            Ok((integrity::salvage_contexts_of(&conn, &checked, false)?, lost, checked.broken().count()))
        });
        let (contexts, lost, broken) = match read {
            Ok(read) => read,
            Err(failure) => {
                tracing::info!(%failure, copy = %path.display(), "cannot read a copy of a damaged journal");
                return false;
            }
        };
        (self.lost, self.has_readable) = (lost, true);
        for (head, all) in contexts {
            let same = |known: &&mut SalvagedContext| {
                (known.0.context, known.0.conversation) == (head.context, head.conversation)
            };
            match self.contexts.iter_mut().find(same) {
                Some(known) if known.1.messages.len() < all.messages.len() => *known = (head, all),
                Some(_) => {}
                None => self.contexts.push((head, all)),
            }
        }
        broken == 0 && lost == 0
    }
}

/// A temporary directory for copies, deleted on drop.
#[derive(Debug)]
pub(super) struct ScratchDir {
    pub(super) dir: PathBuf,
}

impl ScratchDir {
    /// Creates the directory in `db`, where there is space for the journal; removes the directories that a crash left.
    pub(super) fn create(db: &Path) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        for entry in fs::read_dir(db)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(SCRATCH_PREFIX) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        let dir = db.join(format!("{SCRATCH_PREFIX}{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        Ok(Self { dir })
    }

    fn copy(&self, from: &Path, name: &str) -> io::Result<PathBuf> {
        let to = self.dir.join(name);
        fs::copy(from, &to).map(|_| to)
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
