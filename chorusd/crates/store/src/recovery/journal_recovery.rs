//! Inspects and recovers the journal's files before SQLite opens them. SQLite silently drops everything after a damaged
//! frame of the log, and the whole log if the database is missing.

use std::io;
use std::path::Path;

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::sync_dir;
use jiff::Timestamp;

use super::candidates::Candidate;
use super::file_watch::DatabaseLock;
use super::header_and_wal::DatabaseFiles;
use super::incident::{Incident, list_incidents};
use super::journal_salvage::ScratchDir;
use super::position_file::StoredPosition;
use super::recover::{RecoveryOutcome, copy_with_log, recover_database};
use super::wal::Wal;
use crate::journal::JournalPosition;
use crate::{integrity, sqlite};

/// Name of the database with everything that can be read, stored beside the damaged files if it could not replace them.
pub(super) const READABLE_DB: &str = "readable.db";

/// Result of an inspection.
#[derive(Debug, Default)]
pub(crate) struct JournalInspection {
    incident: Option<Incident>,
    newest: Option<StoredPosition>,
}

/// Inspects the journal `path`, which nobody may have open. If it is damaged, sets copies of the files aside, and
/// replaces the journal by the most complete intact version.
///
/// # Errors
/// Fails if the file is not a database, if another process has it open, or if the copies cannot be written. Nothing has
/// changed then.
pub(crate) fn inspect_journal(path: &Path, now: Timestamp) -> Result<JournalInspection> {
    let db = path.parent().unwrap_or(path);
    let newest = StoredPosition::read(db);
    let failed = |e: io::Error| Error::io(format_args!("cannot read {}", path.display()), &e);
    let lock = if path.symlink_metadata().is_ok() { Some(DatabaseLock::acquire(path)?) } else { None };
    let files = DatabaseFiles::read(path, lock)?;
    // SQLite would write the log into the file, or drop it.
    if let Some(what) = integrity::header_bytes_fault(path, files.length, &files.header) {
        return Err(sqlite::damaged_error(path, &what));
    }
    let log = Wal::parse(&files.log, files.page_size());
    let what = match &log {
        Some(log) => describe_damage(&files, log, newest).map_err(failed)?,
        None => None,
    };
    let (Some(what), Some(log)) = (what, log) else {
        let mut incident = None;
        for mut anew in list_incidents(db).into_iter().filter(|found| found.facts.begins_anew) {
            if files.length == 0 {
                incident = Some(anew);
            } else {
                // A journal exists in spite of the incident.
                anew.facts.begins_anew = false;
                anew.save()?;
            }
        }
        return Ok(JournalInspection { incident, newest });
    };
    let mut incident = Incident::begin(db, now, what)?;
    let kept = incident.copy_in(path).and_then(|()| incident.copy_in(&files.log_path));
    kept.inspect_err(|_| incident.abandon())?;
    let became =
        match recover_database(&incident, &log, path, |path, _| Candidate::assess_journal(path)).map_err(failed)? {
            RecoveryOutcome::UpToDamage if files.length == 0 => {
                incident.facts.lost = true;
                "started a new one, and kept a copy of its log"
            }
            RecoveryOutcome::ReadableAside => "kept a copy of the readable part",
            became => {
                incident.facts.continued = true;
                if became == RecoveryOutcome::BeyondDamage {
                    "recovered the transactions after the damage from its log"
                } else {
                    "recovered it up to the damage"
                }
            }
        };
    incident.facts.what = format!("{}: {}; {became}", path.display(), incident.facts.what);
    incident.save()?;
    Ok(JournalInspection { incident: Some(incident), newest })
}

/// Describes the damage of the files, if there is any.
fn describe_damage(files: &DatabaseFiles, log: &Wal<'_>, newest: Option<StoredPosition>) -> io::Result<Option<String>> {
    if files.length == 0 && log.has_commits() {
        return Ok(Some("it is missing, but its log exists".to_owned()));
    }
    // Without syncs, transactions may reach the disk in any order, so a gap in the log is no proof of damage.
    if let Some(what) = log.damage().filter(|_| newest.is_none_or(|newest| newest.synced)) {
        return Ok(Some(what));
    }
    // A crash tears the last transaction as damage does, but never one that was acknowledged.
    let Some(noted) = newest.filter(|_| log.is_torn()) else { return Ok(None) };
    let copies = ScratchDir::create(files.path.parent().unwrap_or(&files.path))?;
    let plain = copies.dir.join("plain.db");
    copy_with_log(&files.path, &plain)?;
    let reached = sqlite::open_reader(&plain).and_then(|conn| JournalPosition::read(&conn));
    let missing = reached.is_ok_and(|reached| reached.is_behind(noted.position));
    Ok(missing.then(|| "the last transaction of its log is damaged".to_owned()))
}

impl JournalInspection {
    /// Returns whether damage was found. The log may then have frames that must never be read again.
    #[must_use]
    pub(crate) fn found_damage(&self) -> bool {
        self.incident.is_some()
    }

    /// Compares `reached`, the position of the opened journal, with the one in the position file. Returns the text of a
    /// notice and the number of its event, chosen so that no number is used twice; `None` if nothing is wrong.
    pub(crate) fn finish(self, path: &Path, reached: JournalPosition, now: Timestamp) -> Result<Option<(String, u64)>> {
        let noted = self.newest.map_or(reached, |newest| newest.position);
        if self.incident.is_none() && !reached.is_behind(noted) {
            return Ok(None);
        }
        let db = path.parent().unwrap_or(path);
        let mut incident = match self.incident {
            Some(incident) => incident,
            None => Incident::begin(db, now, format!("{} is missing acknowledged changes", path.display()))?,
        };
        let (first, newest) = (reached.event + 1, noted.event.max(reached.event));
        let what = &mut incident.facts.what;
        if incident.facts.begins_anew {
            what.push_str("; started a new one");
            incident.facts.begins_anew = false;
        } else if reached.is_behind(noted) {
            if noted.event > reached.event {
                let count = noted.event - reached.event;
                what.push_str(&format!(
                    "; events {first} to {newest} are missing ({count}), including acknowledged messages"
                ));
            }
            if noted.commits > reached.commits {
                let count = noted.commits - reached.commits;
                what.push_str(&format!("; {count} changes without an event are missing, such as pins and rewinds"));
            }
            incident.facts.lost = true;
        }
        incident.save()?;
        sync_dir(db).map_err(|e| Error::io(format_args!("cannot sync {}", db.display()), &e))?;
        let text = format!(
            "The journal was damaged. {} (db/{}). Run `chorusctl doctor`.",
            incident.facts.what,
            incident.name()
        );
        Ok(Some((text, newest + 1)))
    }
}
