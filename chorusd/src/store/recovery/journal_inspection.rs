//! Looks at the journal's files before SQLite opens them: it drops what stands behind a damaged frame of its log, and the whole log if the
//! database is missing, without a word.

use std::io;
use std::path::Path;

use jiff::Timestamp;

use super::candidates::Candidate;
use super::database_files::DatabaseFiles;
use super::file_watch::DatabaseLock;
use super::incident::{Incident, list_incidents};
use super::journal_salvage::ScratchDir;
use super::position_file::StoredPosition;
use super::recover::{RecoveryOutcome, copy_with_log, recover_database};
use super::wal::Wal;
use crate::error::{Error, Result};
use crate::store::journal::JournalPosition;
use crate::store::session_files::sync_dir;
use crate::store::{integrity, sqlite};

/// Name of the database made of everything that can be read, kept beside the damaged files if it could not take their place.
pub const READABLE_DB: &str = "readable.db";

/// The findings of a look.
#[derive(Debug, Default)]
pub struct JournalInspection {
    incident: Option<Incident>,
    newest: Option<StoredPosition>,
}

/// Looks at the journal `path`, which nobody has open; sets aside what is damaged, and puts the most that can be had of it in its place.
///
/// # Errors
/// It is no database, another process has it open, or the disk does not take the copies: then nothing was changed.
pub fn inspect_journal(path: &Path, now: Timestamp) -> Result<JournalInspection> {
    let db = path.parent().unwrap_or(path);
    let newest = StoredPosition::read(db);
    let failed = |e: io::Error| Error::io(format_args!("cannot read {}", path.display()), &e);
    let lock = if path.symlink_metadata().is_ok() { Some(DatabaseLock::acquire(path)?) } else { None };
    let files = DatabaseFiles::read(path, lock)?;
    // SQLite would write the log into it, or drop it.
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
                // One is there after all.
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
                "a new one was begun, and its log was set aside"
            }
            RecoveryOutcome::ReadableAside => "what can still be read of it was set aside",
            became => {
                incident.facts.continued = true;
                if became == RecoveryOutcome::BeyondDamage {
                    "what its log has behind the damage was recovered"
                } else {
                    "it was recovered up to the damage"
                }
            }
        };
    incident.facts.what = format!("{}: {}; {became}", path.display(), incident.facts.what);
    incident.save()?;
    Ok(JournalInspection { incident: Some(incident), newest })
}

/// Describes what is wrong with the files, if anything is.
fn describe_damage(files: &DatabaseFiles, log: &Wal<'_>, newest: Option<StoredPosition>) -> io::Result<Option<String>> {
    if files.length == 0 && log.has_commits() {
        return Ok(Some("it is missing, and its log is there".to_owned()));
    }
    // Transactions that were never synced may reach the disk in any order.
    if let Some(what) = log.damage().filter(|_| newest.is_none_or(|newest| newest.synced)) {
        return Ok(Some(what));
    }
    // The last transaction alone: a crash tears it as damage does, but not one that was acknowledged.
    let Some(noted) = newest.filter(|_| log.is_torn()) else { return Ok(None) };
    let copies = ScratchDir::create(files.path.parent().unwrap_or(&files.path))?;
    let plain = copies.dir.join("plain.db");
    copy_with_log(&files.path, &plain)?;
    let reached = sqlite::open_reader(&plain).and_then(|conn| JournalPosition::read(&conn));
    let missing = reached.is_ok_and(|reached| reached.is_behind(noted.position));
    Ok(missing.then(|| "the last transaction of its log is damaged".to_owned()))
}

impl JournalInspection {
    /// Returns true if damage was found: the log may have frames that nobody is to read again.
    #[must_use]
    pub fn found_damage(&self) -> bool {
        self.incident.is_some()
    }

    /// Compares the journal as it was opened, which has come to `reached`, with what was kept beside it. What is to be told: the text, and
    /// the number that the event about it has, so that no number is given twice.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn finish(self, path: &Path, reached: JournalPosition, now: Timestamp) -> Result<Option<(String, u64)>> {
        let noted = self.newest.map_or(reached, |newest| newest.position);
        if self.incident.is_none() && !reached.is_behind(noted) {
            return Ok(None);
        }
        let db = path.parent().unwrap_or(path);
        let mut incident = match self.incident {
            Some(incident) => incident,
            None => Incident::begin(db, now, format!("{} is older than what was acknowledged", path.display()))?,
        };
        let (first, newest) = (reached.event + 1, noted.event.max(reached.event));
        let what = &mut incident.facts.what;
        if incident.facts.begins_anew {
            what.push_str("; a new one was begun");
            incident.facts.begins_anew = false;
        } else if reached.is_behind(noted) {
            if noted.event > reached.event {
                let count = noted.event - reached.event;
                what.push_str(&format!(
                    "; events {first} to {newest} are missing ({count}): messages that were acknowledged are among them"
                ));
            }
            if noted.commits > reached.commits {
                let count = noted.commits - reached.commits;
                what.push_str(&format!("; changes without an event are missing ({count}), such as pins and rewinds"));
            }
            incident.facts.lost = true;
        }
        incident.save()?;
        sync_dir(db).map_err(|e| Error::io(format_args!("cannot sync {}", db.display()), &e))?;
        let text = format!(
            "The journal was damaged. {} (db/{}). Run `chorusctl doctor` for what to do.",
            incident.facts.what,
            incident.name()
        );
        Ok(Some((text, newest + 1)))
    }
}
