//! Salvages the rows of a damaged catalog that exist in no file: the newest rows of the audit log, memories, settings,
//! and others.

use std::path::Path;

use chorus_base::error::Result;
use chorus_catalog::{AuditHead, ChainVerifier};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, params_from_iter};

use super::catalog::{for_each_after, insert_audit, newest_audit};
use super::sqlite;
use crate::sqlite::StoreResult;

/// Tables whose rows exist in no file; with `true`, a salvaged row replaces the one with its key.
const UNFILED_TABLES: [(&str, bool); 14] = [
    ("settings", true),
    // This table has no key: an equal row is not inserted again.
    ("discord_identifies", true),
    ("memory", false),
    ("schedules", false),
    ("approvals", false),
    ("usage", false),
    ("tasks", false),
    ("discord_channels", false),
    ("claims", false),
    // Only rows of sessions that exist are accepted.
    ("summaries_wanted", false),
    ("file_writes", false),
    ("workspace_commands", false),
    ("imported_usage", false),
    ("imported_calls", false),
];

/// Numbers of salvaged and skipped rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SalvageCounts {
    pub rows: usize,
    /// Rows that could be read but do not fit into the catalog.
    pub skipped: usize,
}

/// Copies the rows that the database `from` has in addition into the catalog `to`, as far as they can be read. Skips
/// rows that do not fit. Blocks.
pub(crate) fn salvage_rows(from: &Path, to: &Path, migrations: sqlite::Migrations) -> StoreResult<SalvageCounts> {
    let mut carried = SalvageCounts::default();
    let Ok(damaged) = sqlite::open_reader(from) else { return Ok(carried) };
    if count_unfiled_rows(&damaged) == 0 {
        return Ok(carried);
    }
    let mut conn = sqlite::open(to, migrations)?;
    let all = conn.transaction()?;
    carried.rows = salvage_audit_log(&damaged, &all)?;
    for (table, replaces) in UNFILED_TABLES {
        salvage_table(&damaged, &all, table, replaces, &mut carried)?;
    }
    all.commit()?;
    Ok(carried)
}

/// Counts the rows of a catalog that exist in no file, as far as they can be read.
pub(crate) fn count_unfiled_rows(conn: &Connection) -> u64 {
    let tables = UNFILED_TABLES.iter().map(|(table, _)| *table).chain(["audit_log"]);
    let rows = |table| conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, u64>(0));
    tables.filter_map(|table| rows(table).ok()).sum()
}

/// Copies rows of the audit log, as long as each continues the hash chain of the one before it.
fn salvage_audit_log(from: &Connection, to: &Connection) -> Result<usize> {
    let head = newest_audit(to).ok().flatten().unwrap_or(AuditHead::NONE);
    let (mut walk, mut rows) = (ChainVerifier::starting_after(head), Vec::new());
    // The rows before a page that cannot be read are salvaged.
    let _ = for_each_after(from, head.id, |entry| {
        walk.check_row(&entry);
        if walk.is_intact() {
            rows.push(entry);
        }
        walk.is_intact()
    });
    for row in &rows {
        insert_audit(to, row)?;
    }
    Ok(rows.len())
}

/// Copies the rows of `table`, with the columns that both databases have; counts the new and the replaced ones.
fn salvage_table(
    from: &Connection,
    to: &Connection,
    table: &str,
    replaces: bool,
    carried: &mut SalvageCounts,
) -> StoreResult<()> {
    let known = list_columns(to, table)?;
    let Ok(there) = list_columns(from, table) else { return Ok(()) };
    let shared: Vec<String> = known.into_iter().filter(|name| there.contains(name)).collect();
    let names = shared.join(", ");
    let Ok(mut statement) = from.prepare(&format!("SELECT {names} FROM {table}")) else { return Ok(()) };
    let (or, places) = (if replaces { "REPLACE" } else { "IGNORE" }, vec!["?"; shared.len()].join(", "));
    let mut insert = to.prepare(&format!("INSERT OR {or} INTO {table} ({names}) VALUES ({places})"))?;
    // Only small tables have rows that are replaced, so that comparing them is cheap.
    let mut same = to.prepare(&format!("SELECT 1 FROM {table} WHERE ({names}) IS ({places})"))?;
    let Ok(mut rows) = statement.query([]) else { return Ok(()) };
    // A page that cannot be read ends the table.
    while let Ok(Some(row)) = rows.next() {
        let values: rusqlite::Result<Vec<Value>> = (0..shared.len()).map(|at| row.get(at)).collect();
        let inserted = values.and_then(|values| {
            let there = replaces && same.exists(params_from_iter(&values))?;
            if there { Ok(0) } else { insert.execute(params_from_iter(&values)) }
        });
        match inserted {
            Ok(new) => carried.rows += new,
            Err(e) if is_database_error(&e) => return Err(e.into()),
            Err(e) => {
                tracing::debug!(table, "cannot copy a row of the damaged catalog: {e}");
                carried.skipped += 1;
            }
        }
    }
    Ok(())
}

/// Returns whether `error` concerns the whole database rather than the row, so that further rows would fail too.
fn is_database_error(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, DiskFull, OutOfMemory, PermissionDenied, ReadOnly};
    let code = error.sqlite_error_code();
    sqlite::is_fatal(error)
        || matches!(code, Some(DiskFull | ReadOnly | DatabaseBusy | DatabaseLocked | OutOfMemory | PermissionDenied))
}

fn list_columns(conn: &Connection, table: &str) -> StoreResult<Vec<String>> {
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use rusqlite::params;

    use super::super::catalog::schema::MIGRATIONS;
    use super::*;

    #[test]
    fn rows_that_no_file_tells_are_carried_over_once_and_settings_are_the_newer_ones() -> StoreResult<()> {
        let dir = tempfile::tempdir().unwrap();
        let [older, newer] = ["older.db", "newer.db"].map(|name| dir.path().join(name));
        let remember = |conn: &Connection, id: i64| {
            conn.execute(
                "INSERT INTO memory (id, agent_id, text, created_at, user, uid) VALUES (?1, zeroblob(16), 'x', 1, 'u', ?2)",
                params![id, vec![id as u8; 16]],
            )
        };
        for (path, value, memories) in [(&older, "one", 1), (&newer, "two", 3)] {
            let conn = sqlite::open(path, MIGRATIONS)?;
            conn.execute("INSERT INTO settings VALUES ('default_model', ?1)", [value])?;
            for id in 1..=memories {
                remember(&conn, id)?;
            }
        }
        assert_eq!(salvage_rows(&newer, &older, MIGRATIONS)?, SalvageCounts { rows: 3, skipped: 0 });
        assert_eq!(salvage_rows(&newer, &older, MIGRATIONS)?, SalvageCounts::default());
        let conn = sqlite::open_reader(&older)?;
        let found: (i64, String) = conn.query_row(
            "SELECT (SELECT count(*) FROM memory), (SELECT value FROM settings WHERE key = 'default_model')",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        assert_eq!(found, (3, "two".into()));
        assert_eq!(salvage_rows(&dir.path().join("missing.db"), &older, MIGRATIONS)?, SalvageCounts::default());
        Ok(())
    }

    #[test]
    fn a_row_that_does_not_fit_is_skipped_and_counted_and_the_others_are_carried_over() -> StoreResult<()> {
        let dir = tempfile::tempdir().unwrap();
        let [damaged, new] = ["damaged.db", "new.db"].map(|name| dir.path().join(name));
        // Typical damage: values that no column of the catalog accepts, and text that is not UTF-8.
        Connection::open(&damaged)?.execute_batch(
            "CREATE TABLE settings (key, value);
             INSERT INTO settings VALUES ('a', '1'), ('b', NULL), ('c', CAST(x'ff' AS TEXT)), ('d', '4');
             CREATE TABLE claims (message_id, channel_id, agent_id, state, asked, claimed_at);
             INSERT INTO claims VALUES ('none', 1, x'00', 'done', NULL, 1), (2, 1, x'00', 'done', NULL, 1);
             CREATE TABLE summaries_wanted (id, described);
             INSERT INTO summaries_wanted VALUES (x'00', 0), (x'01', 0);
             CREATE TABLE discord_identifies (at);
             INSERT INTO discord_identifies VALUES (7), (8);",
        )?;
        let conn = sqlite::open(&new, MIGRATIONS)?;
        conn.execute_batch(
            "INSERT INTO sessions (id, agent_id, session_id, saved_at, header, sha256, file_stamp, last_used_at)
             VALUES (x'01', x'00', 's', 1, '{}', '', '', 1);
             INSERT INTO discord_identifies VALUES (7);",
        )?;
        assert_eq!(salvage_rows(&damaged, &new, MIGRATIONS)?, SalvageCounts { rows: 5, skipped: 4 });
        let list = |sql| conn.query_row(sql, [], |row| row.get::<_, String>(0));
        assert_eq!(list("SELECT group_concat(key, '') FROM settings")?, "ad");
        assert_eq!(list("SELECT group_concat(message_id, '') FROM claims")?, "2");
        assert_eq!(list("SELECT group_concat(hex(id), '') FROM summaries_wanted")?, "01");
        assert_eq!(list("SELECT group_concat(at, '') FROM discord_identifies")?, "78");
        Ok(())
    }
}
