//! Looks at the journal's files before SQLite opens them: it drops what stands behind a damaged frame of its log, and the whole log if the
//! database is missing, without a word.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use jiff::Timestamp;

use super::candidates::{Candidate, overlay};
use super::incident::Incident;
use super::newest::Newest;
use super::wal::Wal;
use super::watch::Lock;
use crate::failure::{Failure, Result};
use crate::store::session_files::sync_dir;
use crate::store::{damage, sqlite};

/// Name of the database made of everything that can be read, kept beside the damaged files if it could not take their place.
pub const READABLE: &str = "readable.db";

/// What became of it if its log has more behind the damage, and all of it could be read.
const BEYOND: &str = "what its log has behind the damage was recovered";

/// What became of it if its log has nothing more that can be read.
const BEFORE: &str = "it was recovered up to the damage";

/// The findings of a look.
#[derive(Debug, Default)]
pub struct Found {
    incident: Option<Incident>,
    newest: Option<Newest>,
}

/// Looks at the journal `path`, which nobody has open; sets aside what is damaged, and puts the most that can be had of it in its place.
///
/// # Errors
/// It is no database, another process has it open, or the disk does not take the copies: then nothing was changed.
pub fn look(path: &Path, now: Timestamp) -> Result<Found> {
    let db = path.parent().unwrap_or(path);
    let newest = Newest::read(db);
    let failed = |e: io::Error| Failure::io(format_args!("cannot read {}", path.display()), &e);
    let length = path.metadata().map_or(0, |of| of.len());
    let mut header = [0; 100];
    if path.symlink_metadata().is_ok() {
        let lock = Lock::take(path)?;
        let _ = lock.file().read_exact_at(&mut header, 0);
        // SQLite would write the log into it, or drop it.
        if let Some(what) = damage::fault_of_header(path, length, &header) {
            return Err(sqlite::damaged(path, &what));
        }
    }
    let log_path = path.with_extension("db-wal");
    let log_bytes = match fs::read(&log_path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other.map_err(failed)?,
    };
    let page_size = match usize::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => Some(65_536),
        size => Some(size).filter(|size| size.is_power_of_two() && *size >= 512),
    };
    let none = Found { incident: None, newest };
    let Some(log) = Wal::read(&log_bytes, page_size) else { return Ok(none) };
    let what = if length == 0 && log.frames.iter().any(|frame| frame.commits > 0) {
        Some("it is missing, and its log is there".to_owned())
    } else {
        // Transactions that were never synced may reach the disk in any order.
        log.damage().filter(|_| newest.is_none_or(|newest| newest.synced))
    };
    let Some(what) = what else { return Ok(none) };
    let mut incident = Incident::begin(db, now, what)?;
    incident.keep(path)?;
    incident.keep(&log_path)?;
    let became = match recover(&incident, &log, path).map_err(failed)? {
        BEFORE if length == 0 => {
            incident.facts.lost = true;
            "a new one was begun, and its log was set aside"
        }
        became => {
            incident.facts.continued = [BEFORE, BEYOND].contains(&became);
            became
        }
    };
    incident.facts.what = format!("{}: {}; {became}", path.display(), incident.facts.what);
    incident.note()?;
    Ok(Found { incident: Some(incident), newest })
}

/// Puts the most that can be had in the place of `path`; says what that is.
fn recover(incident: &Incident, log: &Wal<'_>, path: &Path) -> io::Result<&'static str> {
    let kept = |name: &str| incident.dir.join(name);
    let base = kept(path.file_name().and_then(|name| name.to_str()).unwrap_or_default());
    // The database that SQLite itself makes of them.
    let plain = kept("plain.db");
    for (from, to) in [(&base, &plain), (&base.with_extension("db-wal"), &plain.with_extension("db-wal"))] {
        match fs::copy(from, to) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    let own = Candidate::of(plain.clone());
    let mut best: Option<Candidate> = None;
    for (name, damaged) in [("undamaged.db", false), ("all.db", true)] {
        let to = kept(name);
        if overlay(&base, log, damaged, &to)? {
            let found = Candidate::of(to);
            if best.as_ref().is_none_or(|best| found.is_better_than(best)) {
                best = Some(found);
            }
        }
    }
    let became = match best {
        Some(best) if best.sound && best.is_better_than(&own) => {
            install(&best.path, path)?;
            BEYOND
        }
        Some(best) if best.is_better_than(&own) || best.newest > own.newest => {
            fs::rename(&best.path, kept(READABLE))?;
            "what can still be read of it was set aside"
        }
        _ => BEFORE,
    };
    for name in ["plain.db", "plain.db-wal", "plain.db-shm", "undamaged.db", "all.db"] {
        match fs::remove_file(kept(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(became)
}

/// Puts the database `from`, which has all of the log in it, in the place of `path` and its log. Cut short, the next start does the same.
fn install(from: &Path, path: &Path) -> io::Result<()> {
    let new = path.with_extension("db.new");
    fs::copy(from, &new)?;
    fs::File::open(&new)?.sync_all()?;
    fs::rename(&new, path)?;
    for suffix in ["db-wal", "db-shm"] {
        match fs::remove_file(path.with_extension(suffix)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    path.parent().map_or(Ok(()), sync_dir)
}

impl Found {
    /// Compares the journal as it was opened, whose newest event is `last`, with the number that was kept beside it. What is to be told: the
    /// text, and the number that the event about it has, so that no number is given twice.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn settle(self, path: &Path, last: u64, now: Timestamp) -> Result<Option<(String, u64)>> {
        let missing = self.newest.map(|newest| newest.event).filter(|newest| *newest > last);
        if self.incident.is_none() && missing.is_none() {
            return Ok(None);
        }
        let db = path.parent().unwrap_or(path);
        let mut incident = match self.incident {
            Some(incident) => incident,
            None => Incident::begin(db, now, format!("{} is older than what was acknowledged", path.display()))?,
        };
        if let Some(newest) = missing {
            let (count, first) = (newest - last, last + 1);
            let what = &mut incident.facts.what;
            what.push_str(&format!(
                "; events {first} to {newest} are missing ({count}): messages that were acknowledged are among them"
            ));
            incident.facts.lost = true;
        }
        incident.note()?;
        sync_dir(db).map_err(|e| Failure::io(format_args!("cannot sync {}", db.display()), &e))?;
        let text = format!(
            "The journal was damaged. {} (db/{}). Run `chorusctl doctor` for what to do.",
            incident.facts.what,
            incident.name()
        );
        Ok(Some((text, missing.unwrap_or(last) + 1)))
    }
}
