//! Inspects and recovers the catalog's files before SQLite opens them, as [`super::journal_recovery`] does for the
//! journal. Sessions and agents can be rebuilt from files; memories, settings, approvals and the audit log cannot.

use std::io;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_proto::pluralize::pluralize;
use jiff::Timestamp;

use super::candidates::Candidate;
use super::file_watch::DatabaseLock;
use super::header_and_wal::DatabaseFiles;
use super::incident::Incident;
use super::journal_recovery::READABLE_DB;
use super::recover::{RecoveryOutcome, recover_database, remove_log, replace_database};
use super::wal::Wal;
use crate::catalog_salvage::SalvageCounts;
use crate::integrity;

/// Damage of the catalog that an inspection found.
#[derive(Debug)]
pub(crate) struct CatalogDamage {
    incident: Incident,
    /// Describes the state of the catalog that is in use now.
    outcome: &'static str,
}

/// Inspects the catalog `path`. If it is damaged, sets copies of the files aside, and replaces the catalog by the most
/// complete intact version. Leaves a catalog alone that another process has open, because SQLite has read its log
/// already.
///
/// # Errors
/// Fails if the copies cannot be written. Nothing has changed then.
pub(crate) fn inspect_catalog(path: &Path, now: Timestamp) -> Result<Option<CatalogDamage>> {
    let lock = match path.metadata() {
        Ok(_) => match DatabaseLock::try_acquire(path)? {
            Some(lock) => Some(lock),
            None => return Ok(None),
        },
        Err(_) => None,
    };
    let files = DatabaseFiles::read(path, lock)?;
    // Opening the database reports this.
    if integrity::header_bytes_fault(path, files.length, &files.header).is_some() {
        return Ok(None);
    }
    let Some(log) = Wal::parse(&files.log, files.page_size()) else { return Ok(None) };
    let missing = files.length == 0 && log.has_commits();
    let what = if missing { Some("it is missing, but its log exists".to_owned()) } else { log.damage() };
    let Some(what) = what else { return Ok(None) };
    let what = format!("{}: {what}", path.display());
    let mut incident = Incident::begin(path.parent().unwrap_or(path), now, what)?;
    incident.facts.catalog = true;
    let kept = incident.copy_in(path).and_then(|()| incident.copy_in(&files.log_path)).and_then(|()| incident.save());
    kept.inspect_err(|_| incident.abandon())?;
    let became = replace_catalog(&incident, &log, path, missing)
        .map_err(|e| Error::io(format_args!("cannot recover {}", path.display()), &e))?;
    incident.facts.lost = became != RECOVERED_BEYOND_DAMAGE;
    // Everything that can be read is in the new catalog already.
    incident.facts.salvaged = !incident.facts.lost;
    incident.save()?;
    Ok(Some(CatalogDamage { incident, outcome: became }))
}

const RECOVERED_BEYOND_DAMAGE: &str = "recovered the transactions after the damage from its log";

/// Replaces `path` by the most complete version, and describes which one that is.
fn replace_catalog(incident: &Incident, log: &Wal<'_>, path: &Path, missing: bool) -> io::Result<&'static str> {
    if recover_database(incident, log, path, Candidate::assess_catalog)? == RecoveryOutcome::BeyondDamage {
        return Ok(RECOVERED_BEYOND_DAMAGE);
    }
    if !missing {
        return Ok("using its state before the damage");
    }
    // SQLite would write a log into a database that it does not belong to.
    remove_log(path)?;
    let copy = path.with_extension("db.bak");
    if copy.is_file() && integrity::find_problems(&copy, true).is_empty() {
        replace_database(&copy, path)?;
        return Ok("replaced it with the copy of the last clean stop");
    }
    Ok("started a new one")
}

impl CatalogDamage {
    /// Path of the database with everything that can be read, if that is more than the catalog in use has.
    #[must_use]
    pub(crate) fn readable_path(&self) -> Option<PathBuf> {
        Some(self.incident.dir.join(READABLE_DB)).filter(|path| path.is_file())
    }

    /// Saves the numbers of rows that were salvaged from there, and returns the text of the notice.
    ///
    /// # Errors
    /// The error of `carried`, which is saved in the incident as well, or the error of saving it.
    pub(crate) fn finish(mut self, carried: Result<SalvageCounts>) -> Result<String> {
        let SalvageCounts { rows, skipped } = carried.as_ref().copied().unwrap_or_default();
        if skipped > 0 || carried.is_err() {
            (self.incident.facts.lost, self.incident.facts.salvaged) = (true, false);
        }
        let what = &mut self.incident.facts.what;
        what.push_str(&format!("; {}", self.outcome));
        if rows > 0 {
            what.push_str(&format!(", with {} written after it", pluralize(rows as u64, "row")));
        }
        if skipped > 0 {
            what.push_str(&format!("; skipped {}", pluralize(skipped as u64, "invalid row")));
        }
        if let Err(failure) = &carried {
            what.push_str(&format!("; cannot recover its other rows: {failure}"));
        }
        if self.incident.facts.lost {
            what.push_str("; memory, settings, approvals, usage and posts to Discord may be missing");
        }
        let noted = self.incident.save();
        carried?;
        noted?;
        let (what, name) = (&self.incident.facts.what, self.incident.name());
        Ok(format!("The catalog was damaged. {what} (db/{name}). Run `chorusctl doctor`."))
    }
}

#[cfg(test)]
mod tests {
    use super::super::incident::list_incidents;
    use super::*;

    #[test]
    fn rows_that_were_not_carried_over_are_noted_as_lost() -> Result<()> {
        for (carried, part) in [
            (Ok(SalvageCounts { rows: 1, skipped: 2 }), "skipped 2 invalid rows"),
            (Err(Error::disk_full()), "cannot recover its other rows: the disk is full"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let incident = Incident::begin(dir.path(), Timestamp::UNIX_EPOCH, "damage".into())?;
            let fails = carried.is_err();
            let told = CatalogDamage { incident, outcome: RECOVERED_BEYOND_DAMAGE }.finish(carried);
            assert_eq!(told.is_err(), fails);
            let noted = list_incidents(dir.path()).remove(0).facts;
            assert!(noted.what.contains(part) && noted.lost && !noted.salvaged, "{}", noted.what);
        }
        Ok(())
    }
}
