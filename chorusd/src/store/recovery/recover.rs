//! Puts the most that can be had of a damaged database and its log in its place.

use std::fs;
use std::io;
use std::path::Path;

use super::candidates::{Candidate, overlay};
use super::incident::Incident;
use super::start::READABLE;
use super::wal::Wal;
use crate::store::session_files::sync_dir;

/// What became of the database in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// It has what its log has behind the damage, too.
    Beyond,
    /// It is as SQLite reads it, and that is all there is.
    Before,
    /// It is as SQLite reads it; more of it can be read in [`READABLE`] beside the damaged files.
    Readable,
}

/// Looks a database over: the one that SQLite itself makes of the files (false), or one that has more of the log.
pub type LookOver = fn(std::path::PathBuf, bool) -> Candidate;

/// Recovers `path`, copies of which and of whose `log` the incident has.
pub fn recover(incident: &Incident, log: &Wal<'_>, path: &Path, look_over: LookOver) -> io::Result<Became> {
    let kept = |name: &str| incident.dir.join(name);
    let base = kept(path.file_name().and_then(|name| name.to_str()).unwrap_or_default());
    let own = kept("plain.db");
    copy_both(&base, &own)?;
    let own = look_over(own, false);
    let mut best: Option<Candidate> = None;
    for (name, damaged) in [("undamaged.db", false), ("all.db", true)] {
        let to = kept(name);
        if overlay(&base, log, damaged, &to)? {
            let found = look_over(to, true);
            if best.as_ref().is_none_or(|best| found.is_better_than(best)) {
                best = Some(found);
            }
        }
    }
    let became = match best {
        Some(best) if best.sound && best.is_better_than(&own) => {
            install(&best.path, path)?;
            Became::Beyond
        }
        Some(best) if best.is_better_than(&own) || best.reached > own.reached => {
            fs::rename(&best.path, kept(READABLE))?;
            Became::Readable
        }
        _ => Became::Before,
    };
    for name in ["plain.db", "plain.db-wal", "plain.db-shm", "undamaged.db", "all.db"] {
        remove(&kept(name))?;
    }
    Ok(became)
}

/// Copies the database `from` and its log, as far as they are there.
pub fn copy_both(from: &Path, to: &Path) -> io::Result<()> {
    for (from, to) in [(from, to), (&from.with_extension("db-wal"), &to.with_extension("db-wal"))] {
        match fs::copy(from, to) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Puts the database `from`, which has all of the log in it, in the place of `path` and its log. Cut short, the next start does the same.
pub fn install(from: &Path, path: &Path) -> io::Result<()> {
    let new = path.with_extension("db.new");
    fs::copy(from, &new)?;
    fs::File::open(&new)?.sync_all()?;
    fs::rename(&new, path)?;
    drop_log(path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Removes the log of `path`.
pub fn drop_log(path: &Path) -> io::Result<()> {
    remove(&path.with_extension("db-wal"))?;
    remove(&path.with_extension("db-shm"))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}
