//! Replaces a damaged database and its log by the most complete intact version.

use std::fs;
use std::io;
use std::path::Path;

use chorus_base::private_fs::sync_dir;

use super::candidates::{Candidate, overlay_log};
use super::incident::Incident;
use super::journal_recovery::READABLE_DB;
use super::wal::Wal;

/// Outcome of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecoveryOutcome {
    /// The database was replaced by one with the transactions after the damage, too.
    BeyondDamage,
    /// The database stays as SQLite reads it; nothing else is readable.
    UpToDamage,
    /// The database stays as SQLite reads it; more is readable in [`READABLE_DB`] beside the damaged files.
    ReadableAside,
}

/// Assesses a database: the one that SQLite itself recovers from the files (false), or one with more of the log (true).
pub(super) type AssessCandidate = fn(std::path::PathBuf, bool) -> Candidate;

/// Recovers the database `path`. The incident's directory must have copies of it and of its `log`.
pub(super) fn recover_database(
    incident: &Incident,
    log: &Wal<'_>,
    path: &Path,
    look_over: AssessCandidate,
) -> io::Result<RecoveryOutcome> {
    let kept = |name: &str| incident.dir.join(name);
    let base = kept(path.file_name().and_then(|name| name.to_str()).unwrap_or_default());
    let own = kept("plain.db");
    copy_with_log(&base, &own)?;
    let own = look_over(own, false);
    let mut best: Option<Candidate> = None;
    for (name, damaged) in [("undamaged.db", false), ("all.db", true)] {
        let to = kept(name);
        if overlay_log(&base, log, damaged, &to)? {
            let found = look_over(to, true);
            if best.as_ref().is_none_or(|best| found.is_better_than(best)) {
                best = Some(found);
            }
        }
    }
    let became = match best {
        Some(best) if best.sound && best.is_better_than(&own) => {
            replace_database(&best.path, path)?;
            RecoveryOutcome::BeyondDamage
        }
        Some(best) if best.is_better_than(&own) || best.reached > own.reached => {
            fs::rename(&best.path, kept(READABLE_DB))?;
            RecoveryOutcome::ReadableAside
        }
        _ => RecoveryOutcome::UpToDamage,
    };
    for name in ["plain.db", "plain.db-wal", "plain.db-shm", "undamaged.db", "all.db"] {
        remove_if_exists(&kept(name))?;
    }
    Ok(became)
}

/// Copies the database `from` and its log, if they exist.
pub(super) fn copy_with_log(from: &Path, to: &Path) -> io::Result<()> {
    for (from, to) in [(from, to), (&from.with_extension("db-wal"), &to.with_extension("db-wal"))] {
        match fs::copy(from, to) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Replaces `path` and its log by the database `from`, which contains the log. If this is interrupted, the next start
/// repeats it.
pub(super) fn replace_database(from: &Path, path: &Path) -> io::Result<()> {
    let new = path.with_extension("db.new");
    fs::copy(from, &new)?;
    fs::File::open(&new)?.sync_all()?;
    fs::rename(&new, path)?;
    remove_log(path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Removes the log of `path`.
pub(super) fn remove_log(path: &Path) -> io::Result<()> {
    remove_if_exists(&path.with_extension("db-wal"))?;
    remove_if_exists(&path.with_extension("db-shm"))
}

fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
