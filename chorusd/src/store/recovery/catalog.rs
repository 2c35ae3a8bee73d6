//! Looks at the catalog's files before SQLite opens them, as is done with those of the journal. Sessions and agents are in files as well;
//! memory, settings, approvals and the audit log are not.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::candidates::Candidate;
use super::files::DatabaseFiles;
use super::incident::Incident;
use super::recover::{Became, drop_log, install, recover};
use super::start::READABLE;
use super::wal::Wal;
use super::watch::Lock;
use crate::failure::{Failure, Result};
use crate::store::damage;
use crate::store::salvage::Carried;

/// A damage of the catalog that was found by a look.
#[derive(Debug)]
pub struct Damaged {
    incident: Incident,
    /// The catalog in use is in this state.
    became: &'static str,
}

/// Looks at the catalog `path`; sets aside what is damaged, and puts the most that can be had of it in its place. One that another process
/// has open is left alone: SQLite has looked at it then.
///
/// # Errors
/// The disk does not take the copies: then nothing was changed.
pub fn look_at_catalog(path: &Path, now: Timestamp) -> Result<Option<Damaged>> {
    let lock = match path.metadata() {
        Ok(_) => match Lock::try_take(path)? {
            Some(lock) => Some(lock),
            None => return Ok(None),
        },
        Err(_) => None,
    };
    let files = DatabaseFiles::read(path, lock)?;
    // The opening says so.
    if damage::fault_of_header(path, files.length, &files.header).is_some() {
        return Ok(None);
    }
    let Some(log) = Wal::read(&files.log, files.page_size()) else { return Ok(None) };
    let missing = files.length == 0 && log.has_commits();
    let what = if missing { Some("it is missing, and its log is there".to_owned()) } else { log.damage() };
    let Some(what) = what else { return Ok(None) };
    let what = format!("{}: {what}", path.display());
    let mut incident = Incident::begin(path.parent().unwrap_or(path), now, what)?;
    incident.facts.catalog = true;
    let kept = incident.keep(path).and_then(|()| incident.keep(&files.log_path)).and_then(|()| incident.note());
    kept.inspect_err(|_| incident.abandon())?;
    let became = put(&incident, &log, path, missing)
        .map_err(|e| Failure::io(format_args!("cannot recover {}", path.display()), &e))?;
    incident.facts.lost = became != BEYOND;
    // What can be had of it is had at once.
    incident.facts.salvaged = !incident.facts.lost;
    incident.note()?;
    Ok(Some(Damaged { incident, became }))
}

const BEYOND: &str = "what its log has behind the damage was recovered";

/// Puts the most that can be had in the place of `path`; says what that is.
fn put(incident: &Incident, log: &Wal<'_>, path: &Path, missing: bool) -> io::Result<&'static str> {
    if recover(incident, log, path, Candidate::of_catalog)? == Became::Beyond {
        return Ok(BEYOND);
    }
    if !missing {
        return Ok("it is in use as it was before the damage");
    }
    // A log beside a database that it is not of would be written into it.
    drop_log(path)?;
    let copy = path.with_extension("db.bak");
    if copy.is_file() && damage::problems(&copy, true).is_empty() {
        install(&copy, path)?;
        return Ok("the copy of the last orderly stop took its place");
    }
    Ok("a new one was begun")
}

impl Damaged {
    /// The database with everything that can be read, if more can be read than is in use.
    #[must_use]
    pub fn readable(&self) -> Option<PathBuf> {
        Some(self.incident.dir.join(READABLE)).filter(|path| path.is_file())
    }

    /// Notes what was carried over from there, and returns what is to be told.
    ///
    /// # Errors
    /// What kept rows from being carried over, which is noted; whatever the disk says.
    pub fn settle(mut self, carried: Result<Carried>) -> Result<String> {
        let Carried { rows, skipped } = carried.as_ref().copied().unwrap_or_default();
        if skipped > 0 || carried.is_err() {
            (self.incident.facts.lost, self.incident.facts.salvaged) = (true, false);
        }
        let what = &mut self.incident.facts.what;
        what.push_str(&format!("; {}", self.became));
        if rows > 0 {
            what.push_str(&format!(", with {rows} rows that were written after it"));
        }
        if skipped > 0 {
            what.push_str(&format!("; {skipped} rows of it do not fit and were left out"));
        }
        if let Err(failure) = &carried {
            what.push_str(&format!("; what else it has was not carried over: {failure}"));
        }
        if self.incident.facts.lost {
            what.push_str("; memory, settings, approvals, usage and posts to Discord may be missing");
        }
        let noted = self.incident.note();
        carried?;
        noted?;
        let (what, name) = (&self.incident.facts.what, self.incident.name());
        Ok(format!("The catalog was damaged. {what} (db/{name}). Run `chorusctl doctor` for what to do."))
    }
}

#[cfg(test)]
mod tests {
    use super::super::incident::incidents;
    use super::*;

    #[test]
    fn rows_that_were_not_carried_over_are_noted_as_lost() -> Result<()> {
        for (carried, part) in [
            (Ok(Carried { rows: 1, skipped: 2 }), "2 rows of it do not fit"),
            (Err(Failure::disk_full()), "was not carried over: the disk is full"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let incident = Incident::begin(dir.path(), Timestamp::UNIX_EPOCH, "damage".into())?;
            let fails = carried.is_err();
            let told = Damaged { incident, became: BEYOND }.settle(carried);
            assert_eq!(told.is_err(), fails);
            let noted = incidents(dir.path()).remove(0).facts;
            assert!(noted.what.contains(part) && noted.lost && !noted.salvaged, "{}", noted.what);
        }
        Ok(())
    }
}
