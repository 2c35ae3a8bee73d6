//! The journal of live contexts in SQLite: `db/live.db`.

mod append;
mod check;
mod context_salvage;
mod context_start;
mod contexts_table;
mod conversations_table;
pub(super) mod events;
mod named_values;
mod position;
mod record_list;
mod schema;
mod segment_reader;
mod turn_marks_and_keys;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use chorus_base::Durability;
use chorus_base::error::{Error, Result};
use chorus_journal::{
    AppendRequest, ContextRow, Continuation, ConversationRow, EventPublisher, Journal, JournalAppendOutcome,
    JournalEdit, JournalRead, JournalWrite, KEY_RETENTION_DAYS, NewContextRow, NewEvent, NumberedRecords, Record,
    RecordCursor, SessionReference, TrailingRecords, TurnMark, to_nanos,
};
use chorus_proto::{Event, EventType};
use chorus_runtime::spawn_blocking;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::json;
use uuid::Uuid;

pub use check::{CheckReport, check};
pub use context_salvage::{SalvagedContent, salvage_context};
pub(crate) use position::JournalPosition;
pub(super) use schema::MIGRATIONS;

use self::append::append_in_transaction;
use self::record_list::RecordChain;
use self::segment_reader::SegmentReaders;
use super::OnFatal;
use super::db_thread::{DbThread, FileGuards, erase_wal};
use super::recovery::{self, CommitCounter, DatabaseLock, FileWatch, PositionFile};
use super::snapshot::PendingSnapshot;
use super::sqlite;
use crate::sqlite::StoreResult;

/// Records that are deleted in one commit when an ended context is trimmed: few enough that no append waits long.
const RECORDS_PER_TRIM: usize = 2_000;

/// Records of a context that are read first, before all others.
const NEWEST_RECORDS: usize = 1024;

/// Limit of batches of records that are being decoded or wait for a thread to decode them.
const MAX_DECODING_BATCHES: usize = 4;

/// The journal of one home.
#[derive(Debug)]
pub struct SqliteJournal {
    writer: DbThread,
    reader: DbThread,
    /// Reads large contexts, while all other reads go on.
    segment_readers: SegmentReaders,
    next_context: AtomicI64,
    position_file: PositionFile,
    publisher: EventPublisher,
}

impl SqliteJournal {
    pub(super) fn open(path: &Path, durability: Durability, on_fatal: &OnFatal, now: Timestamp) -> StoreResult<Self> {
        let found = recovery::inspect_journal(path, now)?;
        let conn = sqlite::open(path, MIGRATIONS)?;
        if let Durability::Interval(_) = durability {
            conn.pragma_update(None, "synchronous", "NORMAL")?;
        }
        if found.found_damage() {
            sqlite::truncate_wal(&conn)?;
        }
        let next = schema::last_context(&conn)? + 1;
        if let Some((text, seq)) = found.finish(path, JournalPosition::read(&conn)?, now)? {
            tracing::error!("{text}");
            events::insert_notice(&conn, seq, now, &json!({"text": text}))?;
        }
        let reached = JournalPosition::read(&conn)?;
        // From here on no other process reads or writes the database.
        let watch = FileWatch::new(path, Some(DatabaseLock::acquire(path)?))?;
        let newest = PositionFile::open(path, durability);
        newest.record_commit(reached);
        let reader = sqlite::open_reader(path)?;
        let files = FileGuards { watch, commit_counter: CommitCounter::new(newest.clone()) };
        Ok(Self {
            writer: DbThread::writer("journal", conn, on_fatal.clone(), files)?,
            position_file: newest,
            reader: DbThread::reader("journal-read", reader)?,
            segment_readers: SegmentReaders::new(path),
            next_context: AtomicI64::new(next),
            publisher: EventPublisher::new(reached.event),
        })
    }

    /// Stores and publishes a notice without waiting for the commit.
    pub(super) fn emit_notice(&self, text: &str, at: Timestamp) {
        drop(self.emit(vec![NewEvent {
            at,
            kind: EventType::Notice,
            agent: None,
            conversation: None,
            data: json!({"text": text}),
        }]));
    }

    /// Overwrites the remains of deleted records by vacuuming the file. Appends wait meanwhile.
    pub(super) async fn vacuum(&self) -> Result<()> {
        self.writer
            .submit_outside_transaction(|conn| {
                // Trimming does not overwrite the pages it frees, so this vacuum does.
                conn.execute_batch("PRAGMA secure_delete = ON; VACUUM; PRAGMA secure_delete = OFF")?;
                erase_wal(conn)
            })
            .await
    }

    /// Deletes records that are in no chain; see [`super::Store::delete_unchained_records`].
    pub(super) async fn delete_unchained(&self, rows: Vec<i64>) -> Result<()> {
        let delete = move |conn: &Connection| {
            let mut statement = conn.prepare_cached("DELETE FROM records WHERE id = ?1")?;
            for id in &rows {
                statement.execute([id])?;
            }
            Ok(())
        };
        self.writer.submit(delete).await
    }

    /// See [`super::Store::copy_journal_to`].
    pub(super) async fn copy_to(&self, path: PathBuf) -> Result<()> {
        self.reader.submit(move |conn| Ok(conn.execute("VACUUM INTO ?1", [path.to_string_lossy()]).map(drop)?)).await
    }

    /// Poisons the writer with the fatal `failure`: it acknowledges nothing more.
    pub(super) fn poison(&self, failure: Error) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |_| Err(failure.into()))
    }

    /// Begins a snapshot of the database; see [`PendingSnapshot`].
    pub(super) async fn begin_snapshot(&self, dir: &Path) -> Result<PendingSnapshot> {
        PendingSnapshot::begin(&self.writer, dir).await
    }

    pub(super) async fn release_page_caches(&self) {
        tokio::join!(self.reader.release_page_cache(), self.writer.release_page_cache());
    }

    pub(super) async fn close(&self) {
        self.segment_readers.close().await;
        self.reader.close().await;
        self.writer.close().await;
    }

    /// Reads all records from the one at `cursor` back to the first. Returns them in order, in batches. Those of a large
    /// context are read by several threads. What they do not read is read one batch per job, so that other reads run in
    /// between, and earlier batches are decoded meanwhile.
    async fn read_records_before(&self, context: ContextNo, cursor: RecordCursor) -> Result<Vec<NumberedRecords>> {
        let (mut decoded, mut cursor) = self.segment_readers.read(context, cursor).await;
        let mut decoding = VecDeque::new();
        while cursor.is_some() || !decoding.is_empty() {
            if let Some(from) = cursor {
                let read = move |conn: &Connection| {
                    record_list::read_batch(conn, from, record_list::MAX_BATCH_RECORDS, i64::MIN)
                };
                let (batch, before) = self.reader.submit(read).await?;
                cursor = before;
                decoding.push_back(spawn_blocking(move || record_list::decode_batch(context, batch)));
            }
            if (cursor.is_none() || decoding.len() >= MAX_DECODING_BATCHES)
                && let Some(first) = decoding.pop_front()
            {
                decoded.push(first.await.map_err(|e| Error::internal(e.to_string()))??);
            }
        }
        decoded.reverse();
        Ok(decoded)
    }
}

impl Journal for SqliteJournal {
    fn reserve_context_no(&self) -> ContextNo {
        ContextNo(self.next_context.fetch_add(1, Ordering::Relaxed))
    }

    fn live_contexts(&self) -> JournalRead<'_, Vec<ContextRow>> {
        Box::pin(self.reader.submit(contexts_table::list_live))
    }

    fn conversations(&self) -> JournalRead<'_, Vec<ConversationRow>> {
        Box::pin(self.reader.submit(conversations_table::list))
    }

    fn store_conversation(&self, row: ConversationRow) -> JournalWrite<()> {
        Box::pin(self.writer.submit(move |conn| conversations_table::upsert(conn, &row)))
    }

    fn select_main_conversation(&self, agent: Uuid) -> JournalWrite<()> {
        Box::pin(self.writer.submit(move |conn| conversations_table::deselect(conn, agent)))
    }

    fn append(&self, append: AppendRequest) -> JournalWrite<JournalAppendOutcome> {
        let publisher = self.publisher.clone();
        Box::pin(self.writer.submit_and_publish(
            move |conn| append_in_transaction(conn, &append),
            move |event| publisher.publish(event),
        ))
    }

    fn append_edit(&self, edit: JournalEdit) -> JournalWrite<()> {
        Box::pin(self.writer.submit(move |conn| {
            let JournalEdit { context, begin, number, record, totals, saved, deadline } = edit;
            let mut chain = RecordChain::open_or_create(conn, context, &begin)?;
            chain.append(conn, number, &record.as_record())?;
            contexts_table::update_totals(conn, context, totals, saved, deadline, chain.newest())
        }))
    }

    fn append_compaction(
        &self,
        context: ContextNo,
        number: u32,
        compaction: Bytes,
        event: NewEvent,
    ) -> JournalWrite<()> {
        let publisher = self.publisher.clone();
        Box::pin(self.writer.submit_and_publish(
            move |conn| {
                context_start::append_record(conn, context, number, &Record::Compact { json: &compaction })?;
                Ok(((), events::insert(conn, event)?))
            },
            move |event| publisher.publish([Arc::new(event)]),
        ))
    }

    fn append_working_set(&self, context: ContextNo, number: u32, working_set: Bytes) -> JournalWrite<()> {
        Box::pin(self.writer.submit(move |conn| {
            context_start::append_record(conn, context, number, &Record::WorkingSet { json: &working_set })
        }))
    }

    fn start_from_session(
        &self,
        old: Option<ContextNo>,
        context: ContextNo,
        head: NewContextRow,
        reference: SessionReference,
    ) -> JournalWrite<()> {
        Box::pin(
            self.writer.submit(move |conn| context_start::start_from_session(conn, old, context, &head, &reference)),
        )
    }

    fn start_continuation(&self, continuation: Continuation) -> JournalWrite<()> {
        let publisher = self.publisher.clone();
        Box::pin(self.writer.submit_with_savepoint_and_publish(
            move |conn| Ok(((), context_start::start_continuation(conn, continuation)?)),
            move |event| publisher.publish([Arc::new(event)]),
        ))
    }

    fn materialise_messages(
        &self,
        context: ContextNo,
        messages: Vec<StoredMessage>,
        session: Uuid,
        behind: TrailingRecords,
    ) -> JournalWrite<()> {
        Box::pin(
            self.writer.submit(move |conn| context_start::replace_records(conn, context, &messages, session, &behind)),
        )
    }

    fn mark_saved(&self, context: ContextNo, messages: u64, session: Uuid) -> JournalWrite<()> {
        Box::pin(self.writer.submit_without_savepoint(move |conn| {
            conn.prepare_cached("UPDATE contexts SET saved_messages = ?2, saved_session = ?3 WHERE id = ?1")?
                .execute(params![context.0, messages, session.as_bytes()])?;
            Ok(())
        }))
    }

    fn set_deadline(&self, context: ContextNo, deadline: Option<Timestamp>) -> JournalWrite<()> {
        Box::pin(self.writer.submit_without_savepoint(move |conn| {
            conn.prepare_cached("UPDATE contexts SET idle_deadline_at = ?2 WHERE id = ?1")?
                .execute(params![context.0, deadline.map(to_nanos)])?;
            Ok(())
        }))
    }

    fn close_turn(
        &self,
        conversation: ConversationKey,
        context: ContextNo,
        mark: TurnMark,
        at: Timestamp,
    ) -> JournalWrite<()> {
        Box::pin(self.writer.submit_without_savepoint(move |conn| {
            turn_marks_and_keys::store_mark(conn, conversation, context, &mark, at)
        }))
    }

    fn end_context(&self, context: ContextNo) -> JournalWrite<()> {
        Box::pin(self.writer.submit_without_savepoint(move |conn| record_list::mark_ended(conn, context)))
    }

    fn ended_contexts(&self) -> JournalRead<'_, Vec<ContextNo>> {
        Box::pin(self.reader.submit(record_list::list_ended))
    }

    fn trim(&self, mut contexts: Vec<ContextNo>) -> JournalRead<'_, ()> {
        Box::pin(async move {
            while !contexts.is_empty() {
                let trim = move |conn: &Connection| record_list::trim(conn, contexts, RECORDS_PER_TRIM);
                contexts = self.writer.submit_without_savepoint(trim).await?;
            }
            Ok(())
        })
    }

    fn newest_records(&self, context: ContextNo) -> JournalRead<'_, (NumberedRecords, Option<RecordCursor>)> {
        Box::pin(self.reader.submit(move |conn| {
            let Some(cursor) = record_list::cursor_at_newest(conn, context)? else { return Ok((Vec::new(), None)) };
            let (batch, before) = record_list::read_batch(conn, cursor, NEWEST_RECORDS, i64::MIN)?;
            Ok((record_list::decode_batch(context, batch)?, before))
        }))
    }

    fn records_before(&self, context: ContextNo, cursor: RecordCursor) -> JournalRead<'_, Vec<NumberedRecords>> {
        Box::pin(self.read_records_before(context, cursor))
    }

    fn has_turn_key(&self, conversation: ConversationKey, key: String) -> JournalRead<'_, bool> {
        Box::pin(
            self.reader.submit(move |conn| Ok(turn_marks_and_keys::find_by_key(conn, conversation, &key)?.is_some())),
        )
    }

    fn delete_turn_answers(&self, agent: Uuid) -> JournalWrite<()> {
        Box::pin(self.writer.submit(move |conn| turn_marks_and_keys::delete_answers(conn, agent)))
    }

    fn prune_keys(&self, now: Timestamp) -> JournalWrite<()> {
        let before = to_nanos(now) - KEY_RETENTION_DAYS * 86_400 * 1_000_000_000;
        Box::pin(self.writer.submit(move |conn| {
            conn.execute("DELETE FROM append_keys WHERE at < ?1", [before])?;
            conn.execute("DELETE FROM turn_keys WHERE at < ?1", [before])?;
            Ok(())
        }))
    }

    fn emit(&self, new: Vec<NewEvent>) -> JournalWrite<()> {
        let publisher = self.publisher.clone();
        let insert = move |conn: &Connection| {
            let stored = new.into_iter().map(|event| events::insert(conn, event).map(Arc::new));
            Ok(((), stored.collect::<StoreResult<Vec<_>>>()?))
        };
        Box::pin(self.writer.submit_and_publish(insert, move |stored| publisher.publish(stored)))
    }

    fn events_after(&self, after: u64, limit: u64) -> JournalRead<'_, (Vec<Event>, u64)> {
        Box::pin(self.reader.submit(move |conn| events::list_after(conn, after, limit)))
    }

    fn last_event(&self) -> JournalRead<'_, u64> {
        Box::pin(self.reader.submit(events::last_seq))
    }

    fn delete_events_of(&self, session: Uuid) -> JournalWrite<()> {
        Box::pin(self.writer.submit(move |conn| events::delete_of_session(conn, session)))
    }

    fn publisher(&self) -> &EventPublisher {
        &self.publisher
    }

    fn ping(&self) -> JournalWrite<()> {
        Box::pin(self.writer.submit_without_savepoint(|_| Ok(())))
    }

    fn ensure_healthy(&self) -> Result<()> {
        self.writer.ensure_healthy()
    }

    fn flush(&self) -> JournalRead<'_, ()> {
        let newest = self.position_file.clone();
        Box::pin(async move {
            spawn_blocking(move || newest.sync())
                .await
                .map_err(|e| Error::internal(e.to_string()))?
                .map_err(|e| Error::io("cannot sync the journal", &e))
        })
    }
}
