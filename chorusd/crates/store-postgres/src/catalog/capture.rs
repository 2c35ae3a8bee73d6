//! Rows of capture. Transcripts belong to the node on whose disk they are; what was deleted is deleted for all nodes.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use chorus_catalog::{CaptureTable, CapturedFile, CatalogRead, CatalogWrite, SkippedLine};
use chorus_journal::{from_nanos, to_nanos};
use tokio_postgres::Row;

use super::CatalogDb;
use crate::statement::call;

/// The table of one node in PostgreSQL.
#[derive(Debug)]
pub(super) struct PostgresCaptureTable {
    pub(super) db: CatalogDb,
}

impl CaptureTable for PostgresCaptureTable {
    fn files(&self) -> CatalogRead<'_, Vec<CapturedFile>> {
        Box::pin(async move {
            let sql =
                "SELECT source, path, device, inode, read_bytes, size, modified_at, conversations, messages, sessions,
                     skipped_lines, skipped_line, skipped_reason, marker, failure, unsaved
                 FROM captured_files WHERE node = $1";
            let rows = self.db.read(sql, &[&self.db.node.id]).await?;
            Ok(rows.iter().map(read_file).collect())
        })
    }

    fn record(&self, file: CapturedFile) -> CatalogWrite<()> {
        let sql = "INSERT INTO captured_files (node, path, source, device, inode, read_bytes, size, modified_at, conversations,
                 messages, sessions, skipped_lines, skipped_line, skipped_reason, marker, failure, unsaved)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
             ON CONFLICT (node, path) DO UPDATE SET source = $3, device = $4, inode = $5, read_bytes = $6, size = $7,
                 modified_at = $8, conversations = $9, messages = $10, sessions = $11, skipped_lines = $12,
                 skipped_line = $13, skipped_reason = $14, marker = $15, failure = $16, unsaved = $17";
        let (skipped_line, skipped_reason) =
            file.skipped.map(|skipped| (skipped.line.cast_signed(), skipped.reason.into_bytes())).unzip();
        let record = call!(
            sql,
            self.db.node.id.clone(),
            file.path.as_os_str().as_bytes().to_vec(),
            file.source,
            file.device.cast_signed(),
            file.inode.cast_signed(),
            file.read_bytes.cast_signed(),
            file.size.cast_signed(),
            to_nanos(file.modified_at),
            file.conversations.cast_signed(),
            file.messages.cast_signed(),
            file.sessions,
            file.skipped_lines.cast_signed(),
            skipped_line,
            skipped_reason,
            file.marker.map(String::into_bytes),
            file.failure.map(String::into_bytes),
            file.unsaved,
        );
        self.db.write(Ok(None), vec![record])
    }

    fn forget_held_back(&self) -> CatalogWrite<()> {
        let sql = "UPDATE captured_files SET inode = 0, marker = NULL WHERE node = $1 AND conversations = 0";
        self.db.write(Ok(None), vec![call!(sql, self.db.node.id.clone())])
    }

    fn read_all_again(&self) -> CatalogWrite<()> {
        let sql = "UPDATE captured_files SET inode = 0, marker = NULL WHERE node = $1";
        self.db.write(Ok(None), vec![call!(sql, self.db.node.id.clone())])
    }

    fn deleted_conversations(&self) -> CatalogRead<'_, Vec<String>> {
        Box::pin(async move {
            let rows = self.db.read("SELECT conversation FROM capture_tombstones", &[]).await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    fn add_tombstone(&self, hash: String) -> CatalogWrite<()> {
        let sql = "INSERT INTO capture_tombstones (conversation) VALUES ($1) ON CONFLICT DO NOTHING";
        self.db.write(Ok(None), vec![call!(sql, hash)])
    }

    fn remove_tombstones(&self, hashes: Vec<String>) -> CatalogWrite<()> {
        let sql = "DELETE FROM capture_tombstones WHERE conversation = ANY ($1)";
        self.db.write(Ok(None), vec![call!(sql, hashes)])
    }
}

fn read_file(row: &Row) -> CapturedFile {
    let number = |column: usize| row.get::<_, i64>(column).cast_unsigned();
    let text = |column: usize| {
        let bytes: Option<Vec<u8>> = row.get(column);
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    CapturedFile {
        source: row.get(0),
        path: OsString::from_vec(row.get(1)).into(),
        device: number(2),
        inode: number(3),
        read_bytes: number(4),
        size: number(5),
        modified_at: from_nanos(row.get(6)),
        conversations: number(7),
        messages: number(8),
        sessions: row.get(9),
        skipped_lines: number(10),
        skipped: row
            .get::<_, Option<i64>>(11)
            .zip(text(12))
            .map(|(line, reason)| SkippedLine { line: line.cast_unsigned(), reason }),
        marker: text(13),
        failure: text(14),
        unsaved: row.get(15),
    }
}
