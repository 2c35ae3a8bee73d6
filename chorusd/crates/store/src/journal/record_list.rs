//! The records of a context: a linked list from the newest back to the first. The context's row points to the newest.

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_journal::{
    NewContextRow, NumberedRecords, Record, RecordCursor, RecordPosition, decode_record, unreadable_record,
};
use chorus_session::stored_message::ContextNo;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::contexts_table;
use crate::sqlite::StoreResult;

/// Appends records to a context. The caller must write [`RecordChain::newest`] into the context's row.
#[derive(Debug)]
pub(super) struct RecordChain {
    context: ContextNo,
    newest: Option<i64>,
}

impl RecordChain {
    /// Creates a chain of `context` without records.
    pub(super) fn new(context: ContextNo) -> Self {
        Self { context, newest: None }
    }

    /// Opens the chain of `context`; inserts the row `begin` if the context does not exist.
    pub(super) fn open_or_create(conn: &Connection, context: ContextNo, begin: &NewContextRow) -> Result<Self> {
        if let Some(chain) = find_chain(conn, context)? {
            return Ok(chain);
        }
        contexts_table::insert(conn, context, begin)?;
        Ok(Self::new(context))
    }

    /// Opens the chain of an existing context.
    pub(super) fn open(conn: &Connection, context: ContextNo) -> StoreResult<Option<Self>> {
        find_chain(conn, context)
    }

    /// Row id of the newest record.
    pub(super) fn newest(&self) -> Option<i64> {
        self.newest
    }

    pub(super) fn append(&mut self, conn: &Connection, number: u32, record: &Record<'_>) -> StoreResult<()> {
        let place = RecordPosition { before: self.newest, number };
        conn.prepare_cached("INSERT INTO records (before, number, envelope) VALUES (?1, ?2, ?3)")?.execute(params![
            self.newest,
            number,
            record.encode(self.context, place)?
        ])?;
        self.newest = Some(conn.last_insert_rowid());
        Ok(())
    }

    /// Appends records, numbered from `first`.
    pub(super) fn append_all<'a>(
        &mut self,
        conn: &Connection,
        first: u32,
        records: impl IntoIterator<Item = Record<'a>>,
    ) -> StoreResult<()> {
        (first..).zip(records).try_for_each(|(number, record)| self.append(conn, number, &record))
    }
}

fn find_chain(conn: &Connection, context: ContextNo) -> StoreResult<Option<RecordChain>> {
    let newest = conn
        .prepare_cached("SELECT last_record FROM contexts WHERE id = ?1")?
        .query_row([context.0], |row| row.get(0))
        .optional()?;
    Ok(newest.map(|newest| RecordChain { context, newest }))
}

/// Limit of records in a batch, so that no other read waits long for the reader thread.
pub(super) const MAX_BATCH_RECORDS: usize = 4096;

/// Size from which a batch is full, in bytes of envelopes; its last record may exceed it. The allocator would map
/// blocks of 1 MiB and more one by one.
const FULL_BATCH_BYTES: usize = 768 << 10;

/// Limit of records of other contexts that a scan skips in a row before the next record is looked up by its id.
pub(super) const MAX_SKIPPED_RECORDS: usize = 16;

/// Creates a cursor at the newest record of `context`, or returns `None` if the context has no records. `next` of a cursor
/// is a row id.
pub(super) fn cursor_at_newest(conn: &Connection, context: ContextNo) -> Result<Option<RecordCursor>> {
    let newest = find_chain(conn, context)?.and_then(|chain| chain.newest);
    Ok(newest.map(|next| RecordCursor { next, after: None }))
}

/// Encoded records of a context, the newest first.
#[derive(Debug, Default)]
pub(super) struct RecordBatch {
    /// Position of each record, and the end of its envelope in `envelopes`.
    records: Vec<(RecordPosition, usize)>,
    envelopes: Vec<u8>,
}

/// Reads at most `limit` records from `cursor` backwards, but none of the rows up to `stop`. Also returns the cursor of the
/// record before them, if there is one.
pub(super) fn read_batch(
    conn: &Connection,
    cursor: RecordCursor,
    limit: usize,
    stop: i64,
) -> StoreResult<(RecordBatch, Option<RecordCursor>)> {
    // Stepping to the previous row costs a fraction of a lookup, and that row is usually the one wanted.
    let mut statement =
        conn.prepare_cached("SELECT id, before, number, envelope FROM records WHERE id <= ?1 ORDER BY id DESC")?;
    let mut batch = RecordBatch::default();
    if cursor.after.is_some() {
        // Most contexts have only one batch; the later batches of the others are full.
        batch.envelopes.reserve(FULL_BATCH_BYTES + FULL_BATCH_BYTES / 8);
    }
    let mut cursor = Some(cursor);
    let has_room = |batch: &RecordBatch| batch.records.len() < limit && batch.envelopes.len() < FULL_BATCH_BYTES;
    while let Some(start) = cursor
        && has_room(&batch)
        && start.next > stop
    {
        let mut rows = statement.query([start.next])?;
        let mut skipped = 0;
        while let Some(RecordCursor { next, after }) = cursor
            && has_room(&batch)
            && next > stop
            && skipped < MAX_SKIPPED_RECORDS
        {
            let row = rows.next()?.ok_or_else(missing_record_error)?;
            let id: i64 = row.get(0)?;
            if id > next {
                skipped += 1;
                continue;
            }
            if id < next {
                return Err(missing_record_error().into());
            }
            skipped = 0;
            let place = RecordPosition { before: row.get(1)?, number: row.get(2)? };
            // A damaged link could form a cycle.
            if after.is_some_and(|after| after <= place.number) {
                return Err(unreadable_record(format_args!("number {} is out of order", place.number)).into());
            }
            let envelope = row.get_ref(3)?.as_blob().map_err(|e| Error::internal(e.to_string()))?;
            batch.envelopes.extend_from_slice(envelope);
            batch.records.push((place, batch.envelopes.len()));
            cursor = place.before.map(|next| RecordCursor { next, after: Some(place.number) });
            // The link does not lead to an earlier row: the scan cannot reach it.
            if cursor.is_some_and(|cursor| cursor.next >= id) {
                break;
            }
        }
    }
    batch.envelopes.shrink_to_fit();
    Ok((batch, cursor))
}

fn missing_record_error() -> Error {
    unreadable_record("one in the middle of a context is missing")
}

/// Decodes the records of a batch and returns them in order, each with its number. Their messages share the memory of
/// the batch.
pub(super) fn decode_batch(context: ContextNo, batch: RecordBatch) -> Result<NumberedRecords> {
    let RecordBatch { records, envelopes } = batch;
    let (envelopes, mut begin) = (Bytes::from(envelopes), 0);
    let mut entries = Vec::with_capacity(records.len());
    for (place, end) in records {
        let (of, entry) = decode_record(&envelopes[begin..end], place, |json| envelopes.slice_ref(json))?;
        if of.is_some_and(|of| of != context) {
            return Err(unreadable_record(format_args!("number {} belongs to another context", place.number)));
        }
        entries.push((place.number, entry));
        begin = end;
    }
    entries.reverse();
    Ok(entries)
}

/// Marks a context as ended; its records are trimmed later.
pub(super) fn mark_ended(conn: &Connection, context: ContextNo) -> StoreResult<()> {
    conn.prepare_cached("UPDATE contexts SET ended = 1 WHERE id = ?1")?.execute([context.0])?;
    Ok(())
}

/// Lists ended contexts that are not trimmed yet.
pub(super) fn list_ended(conn: &Connection) -> StoreResult<Vec<ContextNo>> {
    let mut statement = conn.prepare("SELECT id FROM contexts WHERE ended")?;
    let found = statement.query_map([], |row| row.get(0).map(ContextNo))?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

/// Deletes at most `most` records of ended contexts, the newest of each first, and the row of a context with its last
/// record. Returns the contexts that remain.
pub(super) fn trim(conn: &Connection, mut contexts: Vec<ContextNo>, mut most: usize) -> StoreResult<Vec<ContextNo>> {
    while let Some(context) = contexts.last().copied() {
        let mut newest = find_chain(conn, context)?.and_then(|chain| chain.newest);
        delete_newest(conn, &mut newest, &mut most)?;
        if newest.is_some() {
            conn.prepare_cached("UPDATE contexts SET last_record = ?2 WHERE id = ?1 AND ended")?
                .execute(params![context.0, newest])?;
            break;
        }
        conn.prepare_cached("DELETE FROM contexts WHERE id = ?1 AND ended")?.execute([context.0])?;
        contexts.pop();
    }
    Ok(contexts)
}

/// Deletes all records of a context.
pub(super) fn delete_all(conn: &Connection, context: ContextNo) -> StoreResult<()> {
    let mut newest = find_chain(conn, context)?.and_then(|chain| chain.newest);
    let mut all = usize::MAX;
    delete_newest(conn, &mut newest, &mut all)
}

/// Deletes at most `most` records from `newest` backwards. Updates `newest` to the newest record that is left, and
/// `most` to the number that may still be deleted.
fn delete_newest(conn: &Connection, newest: &mut Option<i64>, most: &mut usize) -> StoreResult<()> {
    let mut statement = conn.prepare_cached("DELETE FROM records WHERE id = ?1 RETURNING before")?;
    while *most > 0
        && let Some(id) = *newest
    {
        *newest = statement.query_row([id], |row| row.get(0)).optional()?.flatten();
        *most -= 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use chorus_journal::DecodedRecord;
    use chorus_session::conversation::ConversationKey;

    use super::*;
    use crate::journal::schema::MIGRATIONS;
    use jiff::Timestamp;
    use uuid::Uuid;

    fn database() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|step| conn.execute_batch(step).unwrap());
        conn
    }

    fn add(conn: &Connection, context: ContextNo, numbers: std::ops::Range<u32>) {
        let at = Timestamp::UNIX_EPOCH;
        let begin = NewContextRow {
            conversation: ConversationKey::main(Uuid::nil()),
            started_at: at,
            idle_deadline_at: None,
            parent: None,
        };
        let mut chain = RecordChain::open_or_create(conn, context, &begin).unwrap();
        for number in numbers {
            chain.append(conn, number, &Record::Rewind { keep: u64::from(number), saved: 0 }).unwrap();
        }
        contexts_table::add_totals(
            conn,
            context,
            chorus_session::stored_message::Totals::default(),
            at,
            None,
            chain.newest(),
        )
        .unwrap();
    }

    /// Reads all records, at most `limit` at a time.
    fn load(conn: &Connection, context: ContextNo, limit: usize) -> Result<Vec<(u32, DecodedRecord)>> {
        let (mut cursor, mut batches) = (cursor_at_newest(conn, context)?, Vec::new());
        while let Some(from) = cursor {
            let (batch, before) = read_batch(conn, from, limit, i64::MIN)?;
            batches.push(decode_batch(context, batch)?);
            cursor = before;
        }
        Ok(batches.into_iter().rev().flatten().collect())
    }

    fn numbers(conn: &Connection, context: ContextNo) -> Vec<u32> {
        load(conn, context, 3).unwrap().into_iter().map(|(number, _)| number).collect()
    }

    fn count(conn: &Connection, table: &str) -> u64 {
        conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn each_context_has_its_own_records_in_order() {
        let (conn, one, two) = (database(), ContextNo(1), ContextNo(2));
        add(&conn, one, 0..2);
        add(&conn, two, 0..3);
        add(&conn, one, 2..5);
        assert_eq!(numbers(&conn, one), [0, 1, 2, 3, 4]);
        assert_eq!(numbers(&conn, two), [0, 1, 2]);
        assert_eq!(numbers(&conn, ContextNo(3)), [0; 0]);
    }

    #[test]
    fn a_context_that_ended_is_trimmed_in_steps_and_others_stay() {
        let (conn, one, two) = (database(), ContextNo(1), ContextNo(2));
        add(&conn, one, 0..3);
        add(&conn, two, 0..3);
        add(&conn, one, 3..6);
        mark_ended(&conn, one).unwrap();
        assert_eq!(list_ended(&conn).unwrap(), [one]);
        assert_eq!(trim(&conn, vec![one], 4).unwrap(), [one]);
        assert_eq!((count(&conn, "records"), numbers(&conn, two)), (5, vec![0, 1, 2]));
        assert_eq!(trim(&conn, vec![one], 4).unwrap(), []);
        assert_eq!((count(&conn, "records"), count(&conn, "contexts")), (3, 1));
        assert!(list_ended(&conn).unwrap().is_empty());
        // Row ids that are used again belong to no other context.
        add(&conn, ContextNo(3), 0..4);
        assert_eq!(numbers(&conn, ContextNo(3)), [0, 1, 2, 3]);
        assert_eq!(numbers(&conn, two), [0, 1, 2]);
        delete_all(&conn, two).unwrap();
        assert_eq!(count(&conn, "records"), 4);
    }

    #[test]
    fn many_records_come_in_order_and_damage_far_back_is_found() {
        let (conn, one) = (database(), ContextNo(1));
        let count = 307;
        add(&conn, one, 0..count);
        assert_eq!(numbers(&conn, one), (0..count).collect::<Vec<_>>());
        conn.execute("UPDATE records SET envelope = x'0200' WHERE id = 12", []).unwrap();
        assert!(load(&conn, one, 50).unwrap_err().message.contains("cannot read"));
        conn.execute("DELETE FROM records WHERE id = 12", []).unwrap();
        assert!(load(&conn, one, 50).unwrap_err().message.contains("missing"));
    }

    #[test]
    fn records_of_others_between_them_are_passed_over_however_many() {
        let (conn, one, two) = (database(), ContextNo(1), ContextNo(2));
        let skipped = u32::try_from(MAX_SKIPPED_RECORDS).unwrap();
        let (mut ours, mut theirs) = (0, 0);
        for between in [0, 1, skipped - 1, skipped, skipped + 1, 5 * skipped] {
            add(&conn, one, ours..ours + 2);
            add(&conn, two, theirs..theirs + between);
            (ours, theirs) = (ours + 2, theirs + between);
        }
        add(&conn, one, ours..ours + 1);
        for limit in [1, 2, 5, MAX_BATCH_RECORDS] {
            let of = |context| load(&conn, context, limit).unwrap().into_iter().map(|(number, _)| number);
            assert!(of(one).eq(0..=ours) && of(two).eq(0..theirs), "{limit}");
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_or_in_a_circle_is_an_error() {
        let (conn, one) = (database(), ContextNo(1));
        add(&conn, one, 0..3);
        conn.execute("UPDATE records SET before = 3 WHERE id = 2", []).unwrap();
        assert!(load(&conn, one, MAX_BATCH_RECORDS).is_err());
        conn.execute("UPDATE records SET before = 77 WHERE id = 2", []).unwrap();
        assert!(load(&conn, one, MAX_BATCH_RECORDS).is_err());
    }
}
