//! Reads the older records of a large context with several connections at once.
//!
//! The rows before a cursor are cut into segments of equal length, which the threads take one after the other. A thread cannot
//! know which record of a segment the chain from the cursor reaches, so it begins with the newest of the context and follows the
//! chain from there. Only segments that begin exactly where the records before them lead are used: what is put together is the
//! chain from the cursor, whatever other records the segments have. What is missing then is read one batch after the other, as
//! all records of smaller contexts, and so are segments with errors, which such a read reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use chorus_base::error::{Error, Result};
use chorus_journal::{NumberedRecords, Record, RecordCursor, RecordPosition};
use chorus_runtime::run_blocking;
use chorus_session::stored_message::ContextNo;
use rusqlite::Connection;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::record_list::{self, MAX_BATCH_RECORDS, MAX_SKIPPED_RECORDS};
use crate::db_thread::DbThread;
use crate::sqlite::{self, StoreResult};

/// Rows of a segment. As many messages of the usual length fill a batch.
const SEGMENT_ROWS: i64 = 1024;

/// Records from which a context is read in segments.
const MIN_SEGMENTED_RECORDS: u32 = 8192;

/// Limit of the threads.
const MAX_THREADS: usize = 4;

/// Jobs that may wait for each thread: it has one at a time.
const MAX_QUEUED_JOBS: usize = 1;

/// Reads one large context at a time, with threads and connections that exist only meanwhile.
#[derive(Debug)]
pub(super) struct SegmentReaders {
    path: PathBuf,
    /// Held while a context is read, by each of the tasks that read it.
    reading: Arc<Mutex<()>>,
    is_closed: Arc<AtomicBool>,
}

/// The records that one segment has of a chain.
#[derive(Debug)]
struct Segment {
    /// Row id and number of its newest record.
    newest: (i64, u32),
    /// The batches, the newest first.
    batches: Vec<NumberedRecords>,
    /// The record before them.
    before: Option<RecordCursor>,
}

impl SegmentReaders {
    /// Reads the journal at `path`.
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), reading: Arc::default(), is_closed: Arc::default() }
    }

    /// Reads records from `cursor` backwards, if there are many and no other context is being read. Returns their batches, the newest
    /// first, and the cursor of the record before them. These may be all records, some, or none.
    pub(super) async fn read(
        &self,
        context: ContextNo,
        cursor: RecordCursor,
    ) -> (Vec<NumberedRecords>, Option<RecordCursor>) {
        let (mut read, mut cursor) = (Vec::new(), Some(cursor));
        let is_long = |from: &RecordCursor| from.after.is_some_and(|after| after >= MIN_SEGMENTED_RECORDS);
        if cursor.filter(is_long).is_none() {
            return (read, cursor);
        }
        let Ok(reading) = self.reading.clone().try_lock_owned() else { return (read, cursor) };
        let reading = Arc::new(reading);
        let threads = self.open_threads().await;
        while let Some(from) = cursor.filter(is_long) {
            let is_used;
            (cursor, is_used) = self.read_round((&threads, &reading), context, from, &mut read).await;
            if !is_used {
                break;
            }
        }
        for thread in &threads {
            thread.close().await;
        }
        (read, cursor)
    }

    /// Opens a connection for each processor, four at most; none if that fails.
    async fn open_threads(&self) -> Vec<DbThread> {
        let path = self.path.clone();
        let opening = run_blocking(move || {
            let count = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
            let open = |_| DbThread::reader_with_queue("journal-load", sqlite::open_reader(&path)?, MAX_QUEUED_JOBS);
            (0..count).map(open).collect::<Result<Vec<_>>>()
        });
        opening
            .await
            .inspect_err(|error| tracing::debug!(%error, "a long context is read by one thread"))
            .unwrap_or_default()
    }

    /// Reads as many rows as the chain from `from` has records: with the rows of other contexts between them, this is only a part
    /// of the chain. Adds its batches to `read`. Returns the cursor of the record before them, and true if all segments that were
    /// read are in the chain.
    async fn read_round(
        &self,
        (threads, reading): (&[DbThread], &Arc<OwnedMutexGuard<()>>),
        context: ContextNo,
        from: RecordCursor,
        read: &mut Vec<NumberedRecords>,
    ) -> (Option<RecordCursor>, bool) {
        let oldest = from.next.saturating_sub(from.after.unwrap_or(0).into()).max(0);
        let next = Arc::new(AtomicI64::new(from.next));
        let _stop = StopOnDrop(next.clone());
        let tasks = threads.iter().map(|thread| {
            let (thread, next, is_closed) = (thread.clone(), next.clone(), self.is_closed.clone());
            let reading = reading.clone();
            chorus_runtime::spawn(async move {
                let segments = read_segments(&thread, context, &next, oldest, &is_closed).await;
                drop(reading);
                segments
            })
        });
        let mut segments = Vec::new();
        for task in tasks.collect::<Vec<_>>() {
            segments.extend(task.await.unwrap_or_default());
        }
        segments.sort_unstable_by_key(|segment| segment.newest.0);
        let (mut cursor, mut is_used) = (Some(from), !segments.is_empty());
        while let Some(segment) = segments.pop() {
            let (row, number) = segment.newest;
            is_used = cursor.is_some_and(|at| row == at.next && at.after.is_none_or(|after| after > number));
            if !is_used {
                break;
            }
            read.extend(segment.batches);
            cursor = segment.before;
        }
        (cursor, is_used)
    }

    /// Ends after the segments that are being read.
    pub(super) async fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        drop(self.reading.lock().await);
    }
}

/// Leaves no segment to take once nobody waits for the round.
struct StopOnDrop(Arc<AtomicI64>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(i64::MIN / 2, Ordering::Relaxed);
    }
}

/// Takes the segment at `next` and reads it, until one cannot be read or the row `oldest` is reached. Each is a job of its own:
/// between two of them the thread waits a moment, in which others run even if no processor is free.
async fn read_segments(
    thread: &DbThread,
    context: ContextNo,
    next: &AtomicI64,
    oldest: i64,
    is_closed: &AtomicBool,
) -> Vec<Segment> {
    let mut segments = Vec::new();
    loop {
        let high = next.fetch_sub(SEGMENT_ROWS, Ordering::Relaxed);
        if high <= oldest || is_closed.load(Ordering::Relaxed) {
            return segments;
        }
        match thread.submit(move |conn| read_segment(conn, context, high - SEGMENT_ROWS, high)).await {
            Ok(segment) => segments.extend(segment),
            Err(_) => return segments,
        }
    }
}

/// Reads the records of the newest chain of `context` in the rows after `low` up to `high`; `None` if there is none near `high`.
fn read_segment(conn: &Connection, context: ContextNo, low: i64, high: i64) -> StoreResult<Option<Segment>> {
    let Some(newest) = find_newest(conn, context, low, high)? else { return Ok(None) };
    let mut segment = Segment { newest, batches: Vec::new(), before: None };
    let mut cursor = Some(RecordCursor { next: newest.0, after: Some(newest.1.saturating_add(1)) });
    while let Some(from) = cursor.filter(|from| from.next > low) {
        let (batch, before) = record_list::read_batch(conn, from, MAX_BATCH_RECORDS, low)?;
        segment.batches.push(record_list::decode_batch(context, batch)?);
        cursor = before;
    }
    segment.before = cursor;
    Ok(Some(segment))
}

/// Returns row id and number of the newest record of `context` in the rows after `low` up to `high`. Looks at a few rows only.
/// Records of earlier releases, which name no context, count as none.
fn find_newest(conn: &Connection, context: ContextNo, low: i64, high: i64) -> StoreResult<Option<(i64, u32)>> {
    let mut statement = conn.prepare_cached(
        "SELECT id, before, number, envelope FROM records WHERE id <= ?1 AND id > ?2 ORDER BY id DESC",
    )?;
    let mut rows = statement.query([high, low])?;
    for _ in 0..MAX_SKIPPED_RECORDS {
        let Some(row) = rows.next()? else { return Ok(None) };
        let place = RecordPosition { before: row.get(1)?, number: row.get(2)? };
        let envelope = row.get_ref(3)?.as_blob().map_err(|e| Error::internal(e.to_string()))?;
        if Record::decode(envelope, place)?.0 == Some(context) {
            return Ok(Some((row.get(0)?, place.number)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use chorus_session::conversation::ConversationKey;
    use chorus_session::stored_message::Totals;
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::super::record_list::RecordChain;
    use super::super::schema::MIGRATIONS;
    use super::super::{NewContextRow, contexts_table};
    use super::*;

    const ONE: ContextNo = ContextNo(1);
    const TWO: ContextNo = ContextNo(2);

    struct Database {
        dir: tempfile::TempDir,
        conn: Connection,
        runtime: tokio::runtime::Runtime,
    }

    impl Database {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let conn = sqlite::open(&dir.path().join("live.db"), MIGRATIONS).unwrap();
            conn.execute_batch("BEGIN").unwrap();
            Self { dir, conn, runtime: tokio::runtime::Builder::new_current_thread().build().unwrap() }
        }

        fn chain(&self, context: ContextNo) -> RecordChain {
            let begin = NewContextRow {
                conversation: ConversationKey::main(Uuid::nil()),
                started_at: Timestamp::UNIX_EPOCH,
                idle_deadline_at: None,
                parent: None,
            };
            RecordChain::open_or_create(&self.conn, context, &begin).unwrap()
        }

        fn add(&self, context: ContextNo, numbers: std::ops::Range<u32>) {
            let mut chain = self.chain(context);
            for number in numbers {
                chain.append(&self.conn, number, &Record::Rewind { keep: number.into(), saved: 0 }).unwrap();
            }
            let (at, newest) = (Timestamp::UNIX_EPOCH, chain.newest());
            contexts_table::add_totals(&self.conn, context, Totals::default(), at, None, newest).unwrap();
        }

        /// Reads a context; returns the numbers of the records that were read in segments, and of those that are left.
        fn read(&self, context: ContextNo) -> (Vec<u32>, Result<Vec<u32>>) {
            self.conn.execute_batch("COMMIT; BEGIN").unwrap();
            let readers = SegmentReaders::new(&self.dir.path().join("live.db"));
            let newest = record_list::cursor_at_newest(&self.conn, context).unwrap().unwrap();
            let (batch, before) = record_list::read_batch(&self.conn, newest, 1, i64::MIN).unwrap();
            let last = record_list::decode_batch(context, batch).unwrap()[0].0;
            let (read, mut cursor) = self.runtime.block_on(readers.read(context, before.unwrap()));
            let numbers = |batches: Vec<NumberedRecords>| {
                let oldest_first = batches.into_iter().rev().flatten();
                oldest_first.map(|(number, _)| number).collect::<Vec<_>>()
            };
            let mut rest = Vec::new();
            let mut read_rest = || {
                while let Some(from) = cursor {
                    let (batch, before) = record_list::read_batch(&self.conn, from, MAX_BATCH_RECORDS, i64::MIN)?;
                    rest.push(record_list::decode_batch(context, batch)?);
                    cursor = before;
                }
                Ok(numbers(std::mem::take(&mut rest)))
            };
            let rest = read_rest();
            (numbers(read).into_iter().chain([last]).collect(), rest)
        }
    }

    #[test]
    fn a_large_context_is_read_whole_and_in_order() {
        let database = Database::new();
        database.add(TWO, 0..3000);
        database.add(ONE, 0..20_000);
        let (read, rest) = database.read(ONE);
        assert!(read.iter().copied().eq(0..20_000));
        assert_eq!(rest.unwrap(), [0; 0]);
    }

    #[test]
    fn of_contexts_whose_records_alternate_the_rest_is_left() {
        let database = Database::new();
        for at in 0..4000 {
            database.add(ONE, at * 5..at * 5 + 5);
            database.add(TWO, at * 5..at * 5 + 5);
        }
        for context in [ONE, TWO] {
            let (read, rest) = database.read(context);
            let rest = rest.unwrap();
            assert!(read.len() > 10_000, "{}", read.len());
            assert!(rest.into_iter().chain(read).eq(0..20_000));
        }
    }

    #[test]
    fn records_outside_the_chain_are_not_read() {
        let database = Database::new();
        database.add(ONE, 0..12_000);
        // As many rows as several segments, which name the context.
        let mut lost = RecordChain::new(ONE);
        for number in 0..5000 {
            lost.append(&database.conn, number, &Record::Unrewind).unwrap();
        }
        database.add(ONE, 12_000..24_000);
        let (read, rest) = database.read(ONE);
        assert!(rest.unwrap().into_iter().chain(read).eq(0..24_000));
    }

    #[test]
    fn a_round_that_nobody_waits_for_takes_no_more_segments() {
        let database = Database::new();
        database.add(ONE, 0..20_000);
        database.conn.execute_batch("COMMIT; BEGIN").unwrap();
        let readers = SegmentReaders::new(&database.dir.path().join("live.db"));
        let newest = record_list::cursor_at_newest(&database.conn, ONE).unwrap().unwrap();
        database.runtime.block_on(async {
            let threads = readers.open_threads().await;
            let reading = Arc::new(readers.reading.clone().try_lock_owned().unwrap());
            let mut read = Vec::new();
            let mut round = Box::pin(readers.read_round((&threads, &reading), ONE, newest, &mut read));
            assert!(round.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            drop(round);
            drop(reading);
            // Its tasks, which have not run yet, give it back.
            readers.close().await;
            assert!(read.is_empty());

            let (next, is_closed) = (Arc::new(AtomicI64::new(newest.next)), AtomicBool::new(false));
            drop(StopOnDrop(next.clone()));
            assert!(read_segments(&threads[0], ONE, &next, 0, &is_closed).await.is_empty());
            for thread in &threads {
                thread.close().await;
            }
        });
    }

    #[test]
    fn what_is_behind_a_damaged_record_is_left_to_be_reported() {
        let database = Database::new();
        database.add(ONE, 0..20_000);
        database.conn.execute("UPDATE records SET envelope = x'0203' WHERE number = 7000", []).unwrap();
        let (read, rest) = database.read(ONE);
        assert!(read.iter().copied().eq(read[0]..20_000) && read[0] > 7000, "{:?}", read.first());
        rest.unwrap_err();
    }
}
