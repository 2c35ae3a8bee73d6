//! Rows of capture.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use chorus_catalog::{CaptureTable, CapturedFile, CatalogRead, CatalogWrite, SkippedLine};
use chorus_journal::{from_nanos, to_nanos};
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

/// The table in SQLite.
#[derive(Debug)]
pub(super) struct SqliteCaptureTable {
    pub(super) db: CatalogDb,
}

impl CaptureTable for SqliteCaptureTable {
    fn files(&self) -> CatalogRead<'_, Vec<CapturedFile>> {
        self.db.read(|conn| {
            let rows = conn
                .prepare_cached(
                    "SELECT source, path, device, inode, read_bytes, size, modified_at, conversations, messages,
                             skipped_lines, failure, marker, skipped_line, skipped_reason, unsaved, sessions
                         FROM captured_files",
                )?
                .query_map([], read_file)?
                .collect::<rusqlite::Result<_>>()?;
            Ok(rows)
        })
    }

    fn record(&self, file: CapturedFile) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            conn.prepare_cached(
                "INSERT OR REPLACE INTO captured_files (source, path, device, inode, read_bytes, size, modified_at,
                     conversations, messages, skipped_lines, failure, marker, skipped_line, skipped_reason, unsaved, sessions)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            )?
            .execute(params![
                file.source,
                file.path.as_os_str().as_bytes(),
                file.device.cast_signed(),
                file.inode.cast_signed(),
                file.read_bytes.cast_signed(),
                file.size.cast_signed(),
                to_nanos(file.modified_at),
                file.conversations.cast_signed(),
                file.messages.cast_signed(),
                file.skipped_lines.cast_signed(),
                file.failure,
                file.marker,
                file.skipped.as_ref().map(|skipped| skipped.line.cast_signed()),
                file.skipped.as_ref().map(|skipped| &*skipped.reason),
                file.unsaved,
                file.sessions.map(|sessions| sessions.iter().flat_map(Uuid::as_bytes).copied().collect::<Vec<u8>>()),
            ])?;
            Ok(())
        })
    }

    fn forget_held_back(&self) -> CatalogWrite<()> {
        self.db.write(|conn| {
            conn.execute("UPDATE captured_files SET inode = 0, marker = NULL WHERE conversations = 0", [])?;
            Ok(())
        })
    }

    fn read_all_again(&self) -> CatalogWrite<()> {
        self.db.write(|conn| {
            conn.execute("UPDATE captured_files SET inode = 0, marker = NULL", [])?;
            Ok(())
        })
    }

    fn deleted_conversations(&self) -> CatalogRead<'_, Vec<String>> {
        self.db.read(|conn| {
            let rows = conn
                .prepare_cached("SELECT conversation FROM capture_tombstones")?
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            Ok(rows)
        })
    }

    fn add_tombstone(&self, hash: String) -> CatalogWrite<()> {
        self.db.write(move |conn| insert_tombstone(conn, &hash))
    }

    fn remove_tombstones(&self, hashes: Vec<String>) -> CatalogWrite<()> {
        self.db.write(move |conn| {
            let mut statement = conn.prepare_cached("DELETE FROM capture_tombstones WHERE conversation = ?1")?;
            for hash in hashes {
                statement.execute([hash])?;
            }
            Ok(())
        })
    }
}

pub(super) fn insert_tombstone(conn: &Connection, hash: &str) -> StoreResult<()> {
    conn.prepare_cached("INSERT OR IGNORE INTO capture_tombstones (conversation) VALUES (?1)")?.execute([hash])?;
    Ok(())
}

fn read_file(row: &Row<'_>) -> rusqlite::Result<CapturedFile> {
    let number = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    Ok(CapturedFile {
        source: row.get(0)?,
        path: OsString::from_vec(row.get(1)?).into(),
        device: number(2)?,
        inode: number(3)?,
        read_bytes: number(4)?,
        size: number(5)?,
        modified_at: from_nanos(row.get(6)?),
        conversations: number(7)?,
        messages: number(8)?,
        skipped_lines: number(9)?,
        failure: row.get(10)?,
        marker: row.get(11)?,
        skipped: match (row.get::<_, Option<i64>>(12)?, row.get(13)?) {
            (Some(line), Some(reason)) => Some(SkippedLine { line: line.cast_unsigned(), reason }),
            _ => None,
        },
        unsaved: row.get(14)?,
        sessions: row
            .get::<_, Option<Vec<u8>>>(15)?
            .map(|bytes| bytes.as_chunks().0.iter().copied().map(Uuid::from_bytes).collect()),
    })
}
