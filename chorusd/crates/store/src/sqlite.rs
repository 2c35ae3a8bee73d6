//! Opens databases with one set of options: WAL, durable commits, migrations, mode 0600. Maps SQLite errors.

use std::path::Path;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

/// The schema of a database, one step per version. Released steps are never edited.
pub(crate) type Migrations = &'static [&'static str];

/// Oldest accepted SQLite; earlier ones have known corruption bugs (the WAL-reset bug, fixed in 3.51.3).
pub(crate) const MIN_SQLITE_VERSION: i32 = 3_051_003;

/// Prefix of error messages about damage that do not name the file.
const DAMAGED_PREFIX: &str = "the database is damaged: ";
const SALVAGE_COMMAND: &str = "`chorusctl doctor --salvage`";
const REBUILD_COMMAND: &str = "`chorusctl doctor --rebuild`";

/// Opens `path` for writing, creates it if it is missing, and migrates it to the newest schema.
pub(crate) fn open(path: &Path, migrations: Migrations) -> Result<Connection> {
    if rusqlite::version_number() < MIN_SQLITE_VERSION {
        return Err(Error::internal(format!("SQLite {} has known corruption bugs", rusqlite::version())));
    }
    let fail = |e: &rusqlite::Error| open_error(path, e);
    if let Some(what) = super::integrity::header_fault(path).or_else(|| super::integrity::length_fault(path)) {
        return Err(damaged_error(path, &what));
    }
    create_private_file(path)?;
    let conn = Connection::open(path).map_err(|e| fail(&e))?;
    conn.busy_timeout(Duration::from_secs(5)).map_err(|e| fail(&e))?;
    // Refuse a newer schema before anything is written, the journal mode included.
    let version: usize = conn.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(|e| fail(&e))?;
    if version > migrations.len() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("{} has schema {version}; this version supports {}", path.display(), migrations.len()),
        )
        .hint("use the newer chorusd that created it; the file was not changed"));
    }
    conn.pragma_update(None, "journal_mode", "WAL").map_err(|e| fail(&e))?;
    conn.pragma_update(None, "synchronous", "FULL").map_err(|e| fail(&e))?;
    conn.pragma_update(None, "foreign_keys", "ON").map_err(|e| fail(&e))?;
    for (index, step) in migrations.iter().enumerate().skip(version) {
        migrate(&conn, step, index + 1).map_err(|e| fail(&e))?;
    }
    enable_stable_plans(&conn).map_err(|e| fail(&e))?;
    Ok(conn)
}

/// Brings the schema to `version` by the statements of `step`. A damaged log can take the number of a schema that is there
/// already; what it made is left as it is then.
fn migrate(conn: &Connection, step: &str, version: usize) -> rusqlite::Result<()> {
    let set_version = format!("PRAGMA user_version = {version}; COMMIT");
    let Err(failure) = conn.execute_batch(&format!("BEGIN IMMEDIATE; {step}; {set_version}")) else { return Ok(()) };
    if !conn.is_autocommit() {
        conn.execute_batch("ROLLBACK")?;
    }
    if !is_there_already(&failure) {
        return Err(failure);
    }
    tracing::warn!(%failure, version, "a part of the schema already exists");
    let transaction = rusqlite::Transaction::new_unchecked(conn, rusqlite::TransactionBehavior::Immediate)?;
    // Each statement of a migration ends a line.
    for statement in step.split_inclusive(";\n") {
        match conn.execute_batch(statement) {
            Err(failure) if !is_there_already(&failure) => return Err(failure),
            _ => {}
        }
    }
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()
}

fn is_there_already(failure: &rusqlite::Error) -> bool {
    let text = failure.to_string();
    text.contains("duplicate column name") || text.contains(" already exists")
}

/// Checkpoints the write-ahead log into the database and truncates it, including frames that SQLite ignores.
pub(crate) fn truncate_wal(conn: &Connection) -> StoreResult<()> {
    Ok(conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
}

/// Opens `path`, which [`open`] created, for reading.
pub(crate) fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|e| open_error(path, &e))?;
    // 512 KiB are enough: pages that are read again are in the system's cache.
    conn.pragma_update(None, "cache_size", -512).map_err(|e| open_error(path, &e))?;
    conn.busy_timeout(Duration::from_secs(5)).map_err(|e| open_error(path, &e))?;
    enable_stable_plans(&conn).map_err(|e| open_error(path, &e))?;
    Ok(conn)
}

/// Opens a copy at `path` that nobody else uses, for reading: takes no locks and creates no `-wal` or `-shm` file.
pub(crate) fn open_copy(path: &Path) -> StoreResult<Connection> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::path::absolute(path).map_err(|e| Error::io("cannot determine the working directory", &e))?;
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(char::from(*byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(uri, flags)?)
}

/// Caches prepared statements with their plans. Without the planner's stability guarantee (SQLITE_DBCONFIG_ENABLE_QPSG)
/// SQLite recompiles statements with a `LIMIT ?` at each use.
fn enable_stable_plans(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(64);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn open_error(path: &Path, error: &rusqlite::Error) -> Error {
    let failure = to_error(error);
    match failure.kind {
        ErrorKind::StorageFailed => damaged_error(path, &error.to_string()),
        _ => failure,
    }
}

pub(crate) fn damaged_error(path: &Path, what: &str) -> Error {
    let hint = match path.file_name().and_then(|name| name.to_str()) {
        Some(super::CATALOG_FILE) => {
            "rebuild it from the agents' directories (a copy is kept): chorusctl doctor --rebuild"
        }
        _ => "save all readable messages as sessions (a copy is kept): chorusctl doctor --salvage",
    };
    Error::new(ErrorKind::StorageFailed, format!("cannot open {}: {what}", path.display())).hint(hint)
}

/// Adds the name of the database `file` to an error about damage.
pub(crate) fn name_database(failure: Error, file: &str) -> Error {
    let Some(what) = failure.message.strip_prefix(DAMAGED_PREFIX) else { return failure };
    let repair = match file {
        super::JOURNAL_FILE => SALVAGE_COMMAND,
        super::CATALOG_FILE => REBUILD_COMMAND,
        _ => return failure,
    };
    let message = format!("db/{file} is damaged: {what}");
    Error { message, ..failure }.hint(format!("run `chorusctl daemon stop`, then {repair}"))
}

/// Creates the file with mode 0600; SQLite gives its companions (-wal, -shm) the mode of the database.
fn create_private_file(path: &Path) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(|e| Error::io(format_args!("cannot open {}", path.display()), &e))
}

/// Maps a database error to one with a message and a hint for the user.
pub(crate) fn to_error(error: &rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::disk_full(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::new(ErrorKind::Busy, "the database is locked by another program")
                .hint("stop the program that uses it and try again")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::new(ErrorKind::StorageFailed, format!("{DAMAGED_PREFIX}{error}")).hint(format!(
                "run `chorusctl daemon stop`, then {SALVAGE_COMMAND} for db/live.db, or {REBUILD_COMMAND} for \
                 db/chorus.db"
            ))
        }
        _ => Error::new(ErrorKind::StorageFailed, format!("database error: {error}"))
            .hint("check the disk and `chorusctl daemon logs`"),
    }
}

/// The error of a function that uses a connection. It is an [`Error`] to which `?` also converts those of SQLite.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct StoreError(pub Error);

/// A result of a function that uses a connection.
pub(crate) type StoreResult<T> = Result<T, StoreError>;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self(to_error(&error))
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<StoreError> for Error {
    fn from(StoreError(error): StoreError) -> Self {
        error
    }
}

/// Returns whether storage cannot be trusted after `error`: after a failed sync it is unknown which writes were lost.
pub(crate) fn is_fatal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_migration_made_before_the_log_was_damaged_is_left_as_it_is() {
        let conn = Connection::open_in_memory().unwrap();
        let step = "\n-- a table; and more\nCREATE TABLE a (x);\nALTER TABLE b ADD COLUMN y;\nCREATE TABLE c (z);\n";
        conn.execute_batch("CREATE TABLE a (x); CREATE TABLE b (x, y); INSERT INTO a VALUES (7)").unwrap();
        migrate(&conn, step, 3).unwrap();
        let version: usize = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        let kept: u64 = conn.query_row("SELECT x FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!((version, kept), (3, 7));
        assert!(conn.prepare("SELECT z FROM c").is_ok());
        assert!(migrate(&conn, "ALTER TABLE missing ADD COLUMN y;\n", 4).is_err());
        assert!(conn.is_autocommit());
    }
}
