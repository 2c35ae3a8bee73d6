//! Integrity checks of the databases, and setting damaged ones aside.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::sync_dir;
use chorus_journal::ContextRow;
use jiff::Timestamp;
use rusqlite::Connection;

use super::catalog::schema::MIGRATIONS;
use super::journal::{self, CheckReport, SalvagedContent};
use super::recovery::{Incident, evidence_of_journal};
use super::{CATALOG_FILE, DB_DIR, JOURNAL_FILE, catalog_salvage, sqlite};
use crate::sqlite::{StoreError, StoreResult};

/// Suffixes of a database's companion files: the write-ahead log and its index.
const COMPANION_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

/// Version of the built-in SQLite, and whether it is free of the known corruption bugs.
#[must_use]
pub fn sqlite_version() -> (&'static str, bool) {
    (rusqlite::version(), rusqlite::version_number() >= sqlite::MIN_SQLITE_VERSION)
}

/// Lists the problems of the database at `path`, which this process must not have open. `thorough` also compares the
/// indexes with their tables. Blocks.
#[must_use]
pub fn find_problems(path: &Path, thorough: bool) -> Vec<String> {
    match header_fault(path).or_else(|| length_fault(path)) {
        Some(what) => vec![what],
        None => find_problems_while_open(path, thorough),
    }
}

/// As [`find_problems`], for a database that this process may have open. Does not open the file itself, because closing
/// it would drop SQLite's locks.
#[must_use]
pub fn find_problems_while_open(path: &Path, thorough: bool) -> Vec<String> {
    let check = if thorough { "integrity_check(20)" } else { "quick_check(20)" };
    let asked = sqlite::open_reader(path).map_err(StoreError::from).and_then(|conn| {
        let mut statement = conn.prepare(&format!("PRAGMA {check}"))?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(lines)
    });
    match asked {
        Ok(lines) => lines.into_iter().filter(|line| line != "ok").collect(),
        Err(failure) => vec![failure.0.message],
    }
}

/// Lists the problems of a copy of a database that nobody else uses. Creates no files beside it. Blocks.
#[must_use]
pub fn find_problems_in_copy(path: &Path) -> Vec<String> {
    if let Some(what) = length_fault(path) {
        return vec![what];
    }
    let asked = sqlite::open_copy(path).and_then(|conn| {
        let mut statement = conn.prepare("PRAGMA integrity_check(20)")?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(lines)
    });
    match asked {
        Ok(lines) => lines.into_iter().filter(|line| line != "ok").collect(),
        Err(failure) => vec![failure.0.message],
    }
}

/// Lists the problems of a copy of the journal that nobody else uses, in its pages and in its records. Blocks.
#[must_use]
pub fn find_problems_in_journal_copy(path: &Path) -> Vec<String> {
    let found = find_problems_in_copy(path);
    if !found.is_empty() {
        return found;
    }
    let checked = match sqlite::open_copy(path).and_then(|conn| journal::check(&conn)) {
        Ok(checked) => checked,
        Err(failure) => return vec![failure.0.message],
    };
    let mut problems: Vec<String> = checked
        .broken()
        .filter_map(|found| Some(format!("cannot read a conversation: {}", found.broken.as_ref()?)))
        .collect();
    if checked.orphans + checked.holes > 0 {
        let (orphans, holes) = (checked.orphans, checked.holes);
        problems.push(format!("{orphans} records without a conversation, {holes} unreadable rows"));
    }
    problems
}

/// A session in a copy of the catalog.
#[derive(Debug)]
pub struct IndexedSession {
    /// Directory of the agent, relative to the home.
    pub dir: String,
    pub session_id: String,
    pub sha256: String,
    /// Whether the session's file could not be read.
    pub corrupt: bool,
    /// Whether the session should have a file: its agent is active.
    pub expected: bool,
}

/// Lists all sessions in a copy of the catalog. Blocks.
pub fn list_sessions_in_copy(path: &Path) -> StoreResult<Vec<IndexedSession>> {
    let conn = sqlite::open_copy(path)?;
    let mut statement = conn.prepare(
        "SELECT a.dir, s.session_id, s.sha256, s.corrupt IS NOT NULL, a.status = 'active'
         FROM sessions s JOIN agents a ON a.id = s.agent_id",
    )?;
    let rows = statement.query_map([], |row| {
        let (dir, session_id, sha256) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(IndexedSession { dir, session_id, sha256, corrupt: row.get(3)?, expected: row.get(4)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Checks the records of the journal at `path`. Blocks.
///
/// # Errors
/// Fails if nothing of the database can be read.
pub fn check_journal(path: &Path) -> Result<CheckReport> {
    Ok(journal::check(&sqlite::open_reader(path)?)?)
}

/// The row of a context, and the content salvaged from its records.
pub(crate) type SalvagedContext = (ContextRow, SalvagedContent);

/// Salvages the contexts of the journal at `path`, which may be in use or a copy. With `broken`, only those that cannot
/// be recovered completely. Blocks.
///
/// # Errors
/// Fails if nothing of the database can be read.
pub fn salvage_contexts(path: &Path, broken: bool) -> Result<Vec<SalvagedContext>> {
    let conn = sqlite::open_reader(path)?;
    salvage_contexts_of(&conn, &journal::check(&conn)?, broken)
}

/// As [`salvage_contexts`], for an open journal and the report of its check.
pub(crate) fn salvage_contexts_of(
    conn: &Connection,
    checked: &CheckReport,
    broken: bool,
) -> Result<Vec<SalvagedContext>> {
    let wanted = checked.contexts.iter().filter(|found| found.broken.is_some() || !broken);
    wanted.map(|found| Ok((found.head.clone(), journal::salvage_context(conn, found)?))).collect()
}

/// Sets the journal of `home` aside if SQLite cannot work with it, and lets the next start create a new one. Also
/// allows a new one in place of a missing journal. `doctor --salvage` reads the remains. Nobody else may have the
/// journal open. Blocks.
pub fn set_journal_aside(home: &Path, now: Timestamp) -> Result<()> {
    let db = home.join(DB_DIR);
    let path = db.join(JOURNAL_FILE);
    let what = if path.metadata().is_ok_and(|of| of.len() > 0) {
        let found = find_problems(&path, true);
        let Some(first) = found.first() else { return Ok(()) };
        format!("{} is damaged: {first}", path.display())
    } else {
        // Without evidence of an earlier journal, leave a remaining log to the start, which recovers what it can from
        // it.
        if evidence_of_journal(home)?.is_none() {
            return Ok(());
        }
        format!("{} is missing, including its live conversations", path.display())
    };
    let mut incident = Incident::begin(&db, now, what)?;
    // The progress file beside the journal stays, so that the event numbers continue.
    for name in [&format!("{JOURNAL_FILE}-wal"), &format!("{JOURNAL_FILE}-shm"), JOURNAL_FILE] {
        incident.move_in(&db.join(name))?;
    }
    (incident.facts.lost, incident.facts.begins_anew) = (true, true);
    incident.save()?;
    sync_dir(&db).map_err(|e| Error::io(format_args!("cannot sync {}", db.display()), &e))
}

/// Returns the reason why the first bytes of the file are not those of a database. I/O errors are left to the opening.
#[must_use]
pub(crate) fn header_fault(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut header = [0; 100];
    let _ = file.read_exact(&mut header);
    header_bytes_fault(path, length, &header)
}

/// As [`header_fault`], for a file of `length` bytes that begins with `header`. An empty file is no fault.
#[must_use]
pub(crate) fn header_bytes_fault(path: &Path, length: u64, header: &[u8; 100]) -> Option<String> {
    // SQLite uses this rollback journal to undo a first start that was interrupted.
    let undone = fs::metadata(path.with_extension("db-journal")).is_ok_and(|of| of.len() > 0);
    if length == 0 || undone {
        return None;
    }
    if length < 100 {
        return Some(format!("it has {length} bytes, too few for a database"));
    }
    let size = u16::from_be_bytes([header[16], header[17]]);
    let whole = header.starts_with(b"SQLite format 3\0")
        && (size == 1 || (size >= 512 && size.is_power_of_two()))
        && header[21..24] == [64, 32, 32];
    (!whole).then(|| "it does not start with a database header".into())
}

/// Returns the reason why the file must be truncated according to its length. I/O errors are left to the opening.
#[must_use]
pub(crate) fn length_fault(path: &Path) -> Option<String> {
    let log = path.with_extension("db-wal");
    // Pages that the file lacks may be in the log.
    if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    if length == 0 {
        // A first start that was interrupted has left no copy yet.
        return stop_copy_path(path).exists().then(|| "the message is empty".into());
    }
    let mut header = [0; 100];
    if file.read_exact(&mut header).is_err() {
        return Some(format!("it has {length} bytes, too few for a database"));
    }
    let word = |at: usize| u64::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
    let page = match u64::from(u16::from_be_bytes([header[16], header[17]])) {
        1 => 65_536,
        bytes => bytes,
    };
    // The page count in the header is valid only if it was written with the last change.
    let due = if word(24) == word(92) { word(28) * page } else { 0 };
    (header.starts_with(b"SQLite format 3\0") && length < due)
        .then(|| format!("it is truncated: {length} of {due} bytes"))
}

/// Path of the copy that the last orderly stop made.
fn stop_copy_path(path: &Path) -> PathBuf {
    path.with_extension("db.bak")
}

/// Sets the catalog of `home` aside if it is damaged, and replaces it by the copy of the last orderly stop if that copy
/// is intact. Nobody else may have the catalog open. Returns the new path of the damaged catalog. Blocks.
pub fn set_catalog_aside(home: &Path, now: Timestamp) -> Result<Option<PathBuf>> {
    let path = home.join(DB_DIR).join(CATALOG_FILE);
    let failed = |e: io::Error| Error::io(format_args!("cannot move {} away", path.display()), &e);
    // SQLite would delete the log of an empty database, or write it into another one. The start recovers what it can
    // from the log.
    let length = |path: &Path| path.metadata().map_or(0, |of| of.len());
    if length(&path) == 0 && length(&path.with_extension("db-wal")) > 0 {
        return Ok(None);
    }
    let there = path.symlink_metadata().is_ok();
    if there && find_problems(&path, true).is_empty() {
        return Ok(None);
    }
    let mut aside = None;
    if there {
        let name = |suffix: &str| {
            let time = now.strftime("%Y%m%dT%H%M%S%.3fZ");
            path.with_file_name(format!("{CATALOG_FILE}.damaged-{time}{suffix}"))
        };
        for suffix in COMPANION_SUFFIXES {
            match fs::rename(path.with_file_name(format!("{CATALOG_FILE}{suffix}")), name(suffix)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
                _ => {}
            }
        }
        fs::rename(&path, name("")).map_err(failed)?;
        aside = Some(name(""));
    }
    let copy = stop_copy_path(&path);
    if copy.is_file() && find_problems(&copy, true).is_empty() {
        // In addition to the tables that are rebuilt, the copy has rows that exist in no file: settings, destroyed
        // agents.
        let new = path.with_extension("db.new");
        fs::copy(&copy, &new).and_then(|_| File::open(&new)?.sync_all()).map_err(failed)?;
        fs::rename(&new, &path).map_err(failed)?;
    }
    if let Some(aside) = &aside {
        match catalog_salvage::salvage_rows(aside, &path, MIGRATIONS) {
            Ok(carried) if carried == catalog_salvage::SalvageCounts::default() => {}
            Ok(catalog_salvage::SalvageCounts { rows, skipped }) => {
                tracing::info!(rows, skipped, "recovered rows from the damaged catalog");
            }
            Err(failure) => tracing::warn!(%failure, "cannot recover the rows of the damaged catalog"),
        }
    }
    sync_dir(&home.join(DB_DIR)).map_err(failed)?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn database(path: &Path) -> rusqlite::Result<()> {
        let conn = Connection::open(path)?;
        conn.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (randomblob(50000))")
    }

    #[test]
    fn damage_is_seen_and_set_aside_and_the_copy_comes_in_its_place() -> Result<(), Box<dyn std::error::Error>> {
        let home = tempfile::tempdir()?;
        let (path, now) = (home.path().join("db/chorus.db"), Timestamp::UNIX_EPOCH);
        fs::create_dir(home.path().join("db"))?;
        assert_eq!(set_catalog_aside(home.path(), now)?, None);
        database(&path)?;
        assert_eq!(find_problems(&path, true), Vec::<String>::new());
        fs::copy(&path, path.with_extension("db.bak"))?;
        assert_eq!(set_catalog_aside(home.path(), now)?, None);
        let whole = fs::read(&path)?;
        for damaged in [&b""[..], b"short", &whole[..whole.len() - 4096], &[b'x'; 5000]] {
            fs::write(&path, damaged)?;
            assert_eq!(find_problems(&path, false).len(), 1);
            let aside = set_catalog_aside(home.path(), now)?.ok_or("nothing was set aside")?;
            assert_eq!((fs::read(&aside)?.as_slice(), fs::read(&path)? == whole), (damaged, true));
        }
        Ok(())
    }
}
