//! Rows of capture: the transcripts of other programs as they were when they were last read, and the conversations that
//! must not come back because they were deleted here.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use chorus_base::error::Result;
use chorus_journal::{from_nanos, to_nanos};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::CatalogDb;
use crate::sqlite::StoreResult;

/// A transcript, or a conversation in a database, as it was when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFile {
    /// The name of the program.
    pub source: String,
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    /// The bytes that were read, up to the end of the last complete line.
    pub read_bytes: u64,
    pub size: u64,
    pub modified_at: Timestamp,
    pub conversations: u64,
    pub messages: u64,
    /// The sessions that hold its conversations; `None` if an earlier version read it.
    pub sessions: Option<Vec<Uuid>>,
    /// Lines that could not be read.
    pub skipped_lines: u64,
    /// The first of them.
    pub skipped: Option<SkippedLine>,
    /// Of a conversation in a database, the marker of its last change. It has the path of the database with its id below.
    pub marker: Option<String>,
    /// Why the file could not be captured; what was captured before stays.
    pub failure: Option<String>,
    /// It was read, but could not be saved.
    pub unsaved: bool,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedLine {
    /// Starts at 1.
    pub line: u64,
    pub reason: String,
}

/// The tables of capture.
#[derive(Debug, Clone)]
pub struct CaptureTable {
    pub(super) db: CatalogDb,
}

impl CaptureTable {
    /// Returns all transcripts that were read.
    pub async fn files(&self) -> Result<Vec<CapturedFile>> {
        self.db
            .reader
            .submit(|conn| {
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
            .await
    }

    /// Records that a transcript was read.
    pub fn record(&self, file: CapturedFile) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
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

    /// Forgets the state of transcripts of which nothing was captured, so that they are read again.
    pub fn forget_held_back(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(|conn| {
            conn.execute("UPDATE captured_files SET inode = 0, marker = NULL WHERE conversations = 0", [])?;
            Ok(())
        })
    }

    /// Forgets the state of all transcripts, so that they are read again.
    pub fn read_all_again(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(|conn| {
            conn.execute("UPDATE captured_files SET inode = 0, marker = NULL", [])?;
            Ok(())
        })
    }

    /// Returns the hashes of the conversations that are not captured again.
    pub async fn deleted_conversations(&self) -> Result<Vec<String>> {
        self.db
            .reader
            .submit(|conn| {
                let rows = conn
                    .prepare_cached("SELECT conversation FROM capture_tombstones")?
                    .query_map([], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                Ok(rows)
            })
            .await
    }

    /// Adds the hash of a conversation that is not captured again.
    pub fn add_tombstone(&self, hash: String) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| insert_tombstone(conn, &hash))
    }

    /// Removes the hashes of conversations, which are captured again.
    pub fn remove_tombstones(&self, hashes: Vec<String>) -> impl Future<Output = Result<()>> + Send + use<> {
        self.db.writer.submit(move |conn| {
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
