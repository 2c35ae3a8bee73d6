//! Reads rows from the pages of a damaged database without SQLite, which needs the header, the schema and every page on
//! the way to a row. Leaf pages of tables describe themselves, and so do rows.
//!
//! The format is documented at <https://sqlite.org/fileformat2.html>.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::super::{journal, sqlite};
use super::wal::Wal;
use crate::sqlite::StoreResult;

/// Page type of a leaf of a table.
const LEAF_TABLE_PAGE: u8 = 0x0d;
/// Limit of a row's length in bytes; longer ones are damage.
const MAX_ROW_BYTES: u64 = 256 << 20;

/// Columns of `contexts` in the order in which migrations added them; a row that was not written since has fewer.
const CONTEXT_COLUMNS: [&str; 18] = [
    "id",
    "agent_id",
    "started_at",
    "last_activity_at",
    "idle_deadline_at",
    "messages",
    "queries",
    "chars",
    "parent_id",
    "saved_messages",
    "saved_session",
    "base_session",
    "last_record",
    "ended",
    "turn",
    "restored_input",
    "restored_output",
    "conversation_id",
];
/// Number of columns in the first version of the schema.
const INITIAL_CONTEXT_COLUMNS: usize = 12;

/// The pages of a database and of its log.
struct Pages<'a> {
    file: Option<File>,
    log: BTreeMap<u32, &'a [u8]>,
    size: usize,
}

impl Pages<'_> {
    /// The newest content of a page.
    fn page(&self, number: u32) -> Option<Vec<u8>> {
        if let Some(page) = self.log.get(&number) {
            return Some(page.to_vec());
        }
        let mut page = vec![0; self.size];
        let at = u64::from(number.checked_sub(1)?) * self.size as u64;
        self.file.as_ref()?.read_exact_at(&mut page, at).ok()?;
        Some(page)
    }

    fn last_page(&self) -> u32 {
        let length = self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |of| of.len());
        let in_file = u32::try_from(length / self.size as u64).unwrap_or(u32::MAX);
        self.log.keys().next_back().map_or(in_file, |page| in_file.max(*page))
    }

    /// Reads the row in the cell at offset `at` of a leaf: its key and its columns.
    fn read_row(&self, page: &[u8], at: usize) -> Option<(i64, Vec<Value>)> {
        let mut cell = page.get(at..)?;
        let length = read_varint(&mut cell)?;
        let key = read_varint(&mut cell)?.cast_signed();
        let length = usize::try_from(length).ok().filter(|length| *length as u64 <= MAX_ROW_BYTES)?;
        let (most, least) = (self.size - 35, (self.size - 12) * 32 / 255 - 23);
        if length <= most {
            return Some((key, parse_columns(cell.get(..length)?)?));
        }
        let wanted = least + (length - least) % (self.size - 4);
        let here = if wanted <= most { wanted } else { least };
        let mut payload = cell.get(..here)?.to_vec();
        let mut next = read_page_number(cell.get(here..)?);
        while payload.len() < length {
            let page = self.page(next)?;
            next = read_page_number(&page);
            payload.extend_from_slice(&page[4..self.size.min(4 + length - payload.len())]);
        }
        Some((key, parse_columns(&payload)?))
    }
}

/// Writes the records and context rows that are left in the pages of `base`, if it exists, and of `log` to a new
/// journal `to`, which must not exist. Returns false if there are none.
pub(super) fn rebuild_journal(base: &Path, log: Option<&Wal<'_>>, to: &Path) -> StoreResult<bool> {
    let file = File::open(base).ok();
    let size = log.map(|log| log.page_size).or_else(|| page_size_of_file(file.as_ref()?)).unwrap_or(4096);
    let pages = log.and_then(|log| log.pages(true)).map(|(pages, _)| pages).unwrap_or_default();
    let pages = Pages { file, log: pages, size };
    let mut conn = sqlite::open(to, journal::MIGRATIONS)?;
    let all = conn.transaction()?;
    let (mut found, mut again) = (0_usize, Vec::new());
    for number in 1..=pages.last_page() {
        let Some(page) = pages.page(number) else { continue };
        for at in cell_offsets(&page, if number == 1 { 100 } else { 0 }) {
            let Some((key, columns)) = pages.read_row(&page, at) else { continue };
            if is_record(&columns) {
                found += 1;
                if !insert_record(&all, Some(key), &columns)? {
                    again.push(columns);
                }
            } else if is_context_row(&columns) {
                found += 1;
                insert_context_row(&all, key, columns)?;
            }
        }
    }
    // A page that is no longer in use may have a record with the row id of another one.
    for columns in &again {
        insert_record(&all, None, columns)?;
    }
    all.commit()?;
    Ok(found > 0)
}

/// Returns false if a different record has the row id.
fn insert_record(conn: &Connection, key: Option<i64>, columns: &[Value]) -> StoreResult<bool> {
    let [_, before, number, envelope] = columns else { return Ok(true) };
    let added = conn
        .prepare_cached("INSERT OR IGNORE INTO records (id, before, number, envelope) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![key, before, number, envelope])?;
    if added > 0 {
        return Ok(true);
    }
    let mut same = conn.prepare_cached("SELECT envelope = ?2 FROM records WHERE id = ?1")?;
    Ok(same.query_row(params![key, envelope], |row| row.get(0)).optional()?.unwrap_or(true))
}

/// Keeps the newest of several rows of a context.
fn insert_context_row(conn: &Connection, key: i64, mut columns: Vec<Value>) -> StoreResult<()> {
    columns.truncate(CONTEXT_COLUMNS.len());
    conn.prepare_cached("DELETE FROM contexts WHERE id = ?1 AND last_activity_at <= ?2")?
        .execute(params![key, columns.get(3)])?;
    if let Some(first) = columns.first_mut() {
        *first = Value::Integer(key);
    }
    let places = vec!["?"; columns.len()].join(",");
    let insert =
        format!("INSERT OR IGNORE INTO contexts ({}) VALUES ({places})", CONTEXT_COLUMNS[..columns.len()].join(","));
    conn.prepare_cached(&insert)?.execute(params_from_iter(columns))?;
    Ok(())
}

/// The first column is null, because SQLite stores the key elsewhere in the cell.
fn is_record(columns: &[Value]) -> bool {
    matches!(
        columns,
        [Value::Null, Value::Null | Value::Integer(_), Value::Integer(_), Value::Blob(envelope)] if !envelope.is_empty()
    )
}

fn is_context_row(columns: &[Value]) -> bool {
    columns.len() >= INITIAL_CONTEXT_COLUMNS
        && matches!(
            columns,
            [Value::Null, Value::Blob(agent), Value::Integer(_), Value::Integer(_), ..] if agent.len() == 16
        )
}

/// Offsets of the cells of a table's leaf page; empty for other pages.
fn cell_offsets(page: &[u8], header: usize) -> Vec<usize> {
    if page.get(header) != Some(&LEAF_TABLE_PAGE) {
        return Vec::new();
    }
    let word = |at: usize| page.get(at..at + 2).map(|two| usize::from(u16::from_be_bytes([two[0], two[1]])));
    let count = word(header + 3).unwrap_or(0);
    (0..count).map_while(|n| word(header + 8 + 2 * n)).collect()
}

/// Reads the page size from the header of the database `path`.
pub(super) fn read_page_size(path: &Path) -> Option<usize> {
    page_size_of_file(&File::open(path).ok()?)
}

fn page_size_of_file(file: &File) -> Option<usize> {
    let mut two = [0; 2];
    file.read_exact_at(&mut two, 16).ok()?;
    match usize::from(u16::from_be_bytes(two)) {
        1 => Some(65_536),
        size => Some(size).filter(|size| size.is_power_of_two() && *size >= 512),
    }
}

/// Reads a number of one to nine bytes from the front of `bytes`.
fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for n in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        if n == 8 {
            return Some(value << 8 | u64::from(*first));
        }
        value = value << 7 | u64::from(first & 0x7f);
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Decodes a signed big-endian number of up to eight bytes.
fn decode_signed(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    bytes.iter().fold(if negative { -1 } else { 0 }, |value, byte| value << 8 | i64::from(*byte))
}

/// Reads a page number from the front of `bytes`; 0 means none.
fn read_page_number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |four| u32::from_be_bytes(*four))
}

/// Parses the columns of a row.
fn parse_columns(payload: &[u8]) -> Option<Vec<Value>> {
    let mut header = payload;
    let length = usize::try_from(read_varint(&mut header)?).ok()?;
    let mut header = payload.get(payload.len() - header.len()..length)?;
    let mut body = payload.get(length..)?;
    let mut columns = Vec::new();
    while !header.is_empty() {
        let kind = usize::try_from(read_varint(&mut header)?).ok()?;
        let width = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => (kind - 12) / 2,
        };
        let (value, rest) = body.split_at_checked(width)?;
        body = rest;
        columns.push(match kind {
            0 => Value::Null,
            8 | 9 => Value::Integer(kind as i64 - 8),
            1..=6 => Value::Integer(decode_signed(value)),
            7 => Value::Real(f64::from_bits(decode_signed(value).cast_unsigned())),
            _ if kind % 2 == 0 => Value::Blob(value.to_vec()),
            _ => Value::Text(String::from_utf8(value.to_vec()).ok()?),
        });
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use chorus_session::stored_message::ContextNo;

    use super::super::super::integrity;
    use super::*;
    use chorus_journal::{Record, RecordPosition};

    #[test]
    fn rows_are_read_without_a_header_and_without_a_schema() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let conn = sqlite::open(&at("a.db"), journal::MIGRATIONS).unwrap();
        conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        let head = "INSERT INTO contexts (id, agent_id, started_at, last_activity_at, messages, last_record)
                    VALUES (7, zeroblob(16), -5, 1700000000000000000, 60, 60)";
        conn.execute_batch(head).unwrap();
        for n in 0..60_u32 {
            let place = RecordPosition { before: Some(i64::from(n)).filter(|n| *n > 0), number: n };
            // The longer ones need overflow pages.
            let json = format!("{{\"content\":\"{}\"}}", "x".repeat(n as usize * 300));
            let envelope = Record::Message { json: json.as_bytes() }.encode(ContextNo(7), place).unwrap();
            conn.execute(
                "INSERT INTO records (before, number, envelope) VALUES (?1, ?2, ?3)",
                params![place.before, n, envelope],
            )
            .unwrap();
        }
        let records = |path: &Path| {
            let conn = sqlite::open_reader(path).unwrap();
            let mut statement = conn.prepare("SELECT id, before, number, envelope FROM records ORDER BY id").unwrap();
            let row = |row: &rusqlite::Row<'_>| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, Option<i64>>(1)?,
                    row.get::<_, u32>(2)?,
                    row.get::<_, Vec<u8>>(3)?,
                ))
            };
            statement.query_map([], row).unwrap().collect::<rusqlite::Result<Vec<_>>>().unwrap()
        };
        let expected = records(&at("a.db"));
        let bytes = std::fs::read(at("a.db-wal")).unwrap();
        let log = Wal::parse(&bytes, None).unwrap();
        assert!(rebuild_journal(&at("missing.db"), Some(&log), &at("of-log.db")).unwrap());
        assert_eq!(records(&at("of-log.db")), expected);
        conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        drop(conn);
        let mut whole = std::fs::read(at("a.db")).unwrap();
        whole[..100].fill(0xa5);
        std::fs::write(at("a.db"), whole).unwrap();
        assert!(integrity::header_fault(&at("a.db")).is_some());
        assert!(rebuild_journal(&at("a.db"), None, &at("of-pages.db")).unwrap());
        assert_eq!(records(&at("of-pages.db")), expected);
        let head = "SELECT started_at = -5 AND messages = 60 AND last_record = 60 FROM contexts WHERE id = 7";
        let same: bool =
            sqlite::open_reader(&at("of-pages.db")).unwrap().query_row(head, [], |row| row.get(0)).unwrap();
        assert!(same);
    }
}
