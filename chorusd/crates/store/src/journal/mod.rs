//! The journal of live contexts: `db/live.db`. Acknowledged writes survive `kill -9` and power loss.
//!
//! A context is a row with totals and a chain of records. Appending adds records and updates the row in one commit;
//! ending a context marks its row in one commit, and trimming deletes its records later.

mod append;
mod check;
mod compaction_record;
mod context_salvage;
mod contexts_table;
mod conversations_table;
mod crc;
mod edit_record;
pub(super) mod events;
mod named_values;
mod position;
mod publisher;
mod record;
mod record_list;
mod schema;
mod turn_marks_and_keys;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chorus_proto::{Event, EventType};
use chorus_runtime::spawn_blocking;
use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde_json::json;
use tokio::sync::broadcast;
use uuid::Uuid;

use crate::sqlite::StoreResult;
pub use append::{AppendRequest, JournalAppendOutcome};
pub use check::{CheckReport, check};
pub use compaction_record::{Continuation, SessionReference, TrailingRecords};
pub use context_salvage::{SalvagedContent, salvage_context};
pub use contexts_table::{ContextRow, NewContextRow, from_nanos, to_nanos};
pub use conversations_table::ConversationRow;
pub(crate) use crc::crc32;
pub use edit_record::{EditRecord, JournalEdit};
pub use events::NewEvent;
pub(crate) use position::JournalPosition;
#[cfg(test)]
pub(super) use record::RecordPosition;
pub use record::{Record, unreadable_record};
pub use record_list::{DecodedRecord, RecordCursor};
pub(super) use schema::MIGRATIONS;
pub use turn_marks_and_keys::{KnownTurn, TurnMark};

use self::append::append_in_transaction;
use self::publisher::EventPublisher;
use self::record_list::RecordChain;
use super::db_thread::{DbThread, FileGuards, erase_wal};
use super::recovery::{self, CommitCounter, DatabaseLock, FileWatch, PositionFile};
use super::snapshot::PendingSnapshot;
use super::sqlite;
use chorus_base::Durability;

use super::OnFatal;
use chorus_base::error::{Error, Result};
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage};

/// Records that are deleted in one commit when an ended context is trimmed: few enough that no append waits long.
const RECORDS_PER_TRIM: usize = 2_000;

/// Retention of the idempotency keys of appends and turns, in days.
pub const KEY_RETENTION_DAYS: i64 = 30;

/// Handle of the journal.
#[derive(Debug)]
pub struct Journal {
    writer: DbThread,
    reader: DbThread,
    next_context: AtomicI64,
    position_file: PositionFile,
    publisher: EventPublisher,
}

/// Records of a context that are read first, before all others.
const NEWEST_RECORDS: usize = 1024;

/// Limit of batches of records that are being decoded or wait for a thread to decode them.
const MAX_DECODING_BATCHES: usize = 4;

impl Journal {
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
            next_context: AtomicI64::new(next),
            publisher: EventPublisher::new(reached.event),
        })
    }

    /// Returns an unused number for a new context.
    pub fn reserve_context_no(&self) -> ContextNo {
        ContextNo(self.next_context.fetch_add(1, Ordering::Relaxed))
    }

    /// Lists the rows of all live contexts.
    pub async fn live_contexts(&self) -> Result<Vec<ContextRow>> {
        self.reader.submit(contexts_table::list_live).await
    }

    /// Lists the conversations of all agents beside `main`.
    pub async fn conversations(&self) -> Result<Vec<ConversationRow>> {
        self.reader.submit(conversations_table::list).await
    }

    /// Stores a conversation.
    pub async fn store_conversation(&self, row: ConversationRow) -> Result<()> {
        self.writer.submit(move |conn| conversations_table::upsert(conn, &row)).await
    }

    /// Makes `main` the selected conversation of an agent.
    pub async fn select_main_conversation(&self, agent: Uuid) -> Result<()> {
        self.writer.submit(move |conn| conversations_table::deselect(conn, agent)).await
    }

    /// Appends messages. This call queues the write and the future waits for the commit; the order of calls is the
    /// order of records.
    pub fn append(&self, append: AppendRequest) -> impl Future<Output = Result<JournalAppendOutcome>> + Send + use<> {
        let publisher = self.publisher.clone();
        self.writer
            .submit_and_publish(move |conn| append_in_transaction(conn, &append), move |event| publisher.publish(event))
    }

    /// Stores events and publishes them after the commit. This call queues the write.
    pub fn emit(&self, new: Vec<NewEvent>) -> impl Future<Output = Result<()>> + Send + use<> {
        let publisher = self.publisher.clone();
        let insert = move |conn: &Connection| {
            let stored = new.into_iter().map(|event| events::insert(conn, event).map(Arc::new));
            Ok(((), stored.collect::<StoreResult<Vec<_>>>()?))
        };
        self.writer.submit_and_publish(insert, move |stored| publisher.publish(stored))
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

    /// Subscribes to events from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.publisher.subscribe()
    }

    /// Returns at most `limit` events after number `after`, and how many events after `after` are deleted already.
    pub async fn events_after(&self, after: u64, limit: u64) -> Result<(Vec<Event>, u64)> {
        self.reader.submit(move |conn| events::list_after(conn, after, limit)).await
    }

    /// Number of the newest event; 0 before the first.
    pub async fn last_event(&self) -> Result<u64> {
        self.reader.submit(events::last_seq).await
    }

    /// Records that `session` holds the first `messages` messages of a context.
    pub fn mark_saved(
        &self,
        context: ContextNo,
        messages: u64,
        session: Uuid,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let mark = move |conn: &Connection| {
            conn.prepare_cached("UPDATE contexts SET saved_messages = ?2, saved_session = ?3 WHERE id = ?1")?
                .execute(params![context.0, messages, session.as_bytes()])?;
            Ok(())
        };
        self.writer.submit_without_savepoint(mark)
    }

    /// Sets the idle deadline of a context.
    pub fn set_deadline(
        &self,
        context: ContextNo,
        deadline: Option<Timestamp>,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let mark = move |conn: &Connection| {
            conn.prepare_cached("UPDATE contexts SET idle_deadline_at = ?2 WHERE id = ?1")?
                .execute(params![context.0, deadline.map(to_nanos)])?;
            Ok(())
        };
        self.writer.submit_without_savepoint(mark)
    }

    /// Records the end of a turn that ends without a message.
    pub fn close_turn(
        &self,
        conversation: ConversationKey,
        context: ContextNo,
        mark: TurnMark,
        at: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_without_savepoint(move |conn| {
            turn_marks_and_keys::store_mark(conn, conversation, context, &mark, at)
        })
    }

    /// Publishes an event to subscribers without storing it. It has the number of the last stored event. `new` is not
    /// called if nobody subscribes.
    pub fn broadcast_transient(&self, new: impl FnOnce() -> NewEvent) {
        self.publisher.publish_transient(|seq| {
            let NewEvent { at, kind, agent, conversation, data } = new();
            Event { seq, time: at, kind, agent, conversation, data }
        });
    }

    /// Ends a context. [`Journal::trim`] deletes its records.
    pub fn end_context(&self, context: ContextNo) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_without_savepoint(move |conn| record_list::mark_ended(conn, context))
    }

    /// Records an edit, such as pins or a rewind. Inserts the context's row if there is none; `totals` and `saved` are
    /// the values after the edit.
    pub fn append_edit(&self, change: JournalEdit) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            let mut chain = RecordChain::open_or_create(conn, change.context, &change.begin)?;
            chain.append(conn, change.number, &change.record.as_record())?;
            contexts_table::update_totals(
                conn,
                change.context,
                change.totals,
                change.saved,
                change.deadline,
                chain.newest(),
            )
        })
    }

    /// Replaces the context's reference to `session`, which no longer holds the messages, by the messages themselves.
    pub fn materialise_messages(
        &self,
        context: ContextNo,
        messages: Vec<StoredMessage>,
        session: Uuid,
        behind: TrailingRecords,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            record_list::delete_all(conn, context)?;
            let mut chain = RecordChain::new(context);
            for (number, message) in (0_u32..).zip(&messages) {
                chain.append(conn, number, &Record::Message { json: message.json() })?;
            }
            behind.append(conn, &mut chain, u32::try_from(messages.len()).unwrap_or(u32::MAX))?;
            conn.execute(
                "UPDATE contexts SET base_session = NULL, saved_session = nullif(saved_session, ?2),
                     saved_messages = iif(saved_session = ?2, 0, saved_messages), last_record = ?3 WHERE id = ?1",
                params![context.0, session.as_bytes(), chain.newest()],
            )?;
            Ok(())
        })
    }

    /// Reads the newest records of a context in order, each with its number. Also returns the cursor of the record
    /// before them, if there is one.
    pub async fn newest_records(
        &self,
        context: ContextNo,
    ) -> Result<(Vec<(u32, DecodedRecord)>, Option<RecordCursor>)> {
        let read_newest = move |conn: &Connection| {
            let Some(cursor) = RecordCursor::at_newest(conn, context)? else { return Ok((Vec::new(), None)) };
            let (batch, before) = record_list::read_batch(conn, cursor, NEWEST_RECORDS)?;
            Ok((record_list::decode_batch(context, batch)?, before))
        };
        self.reader.submit(read_newest).await
    }

    /// Reads all records from the one at `cursor` back to the first. Returns them in order, in batches. Reads one batch
    /// per job, so that other reads run in between, and decodes earlier batches meanwhile.
    pub async fn records_before(
        &self,
        context: ContextNo,
        cursor: RecordCursor,
    ) -> Result<Vec<Vec<(u32, DecodedRecord)>>> {
        let (mut cursor, mut decoding, mut decoded) = (Some(cursor), VecDeque::new(), Vec::new());
        while cursor.is_some() || !decoding.is_empty() {
            if let Some(from) = cursor {
                let read = move |conn: &Connection| record_list::read_batch(conn, from, record_list::MAX_BATCH_RECORDS);
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

    /// Deletes the records of ended contexts, in several short commits.
    pub async fn trim(&self, mut contexts: Vec<ContextNo>) -> Result<()> {
        while !contexts.is_empty() {
            contexts = self
                .writer
                .submit_without_savepoint(move |conn| record_list::trim(conn, contexts, RECORDS_PER_TRIM))
                .await?;
        }
        Ok(())
    }

    /// Deletes the data of a session from the event log: its summary, its name, the notice about it.
    pub async fn delete_events_of(&self, session: Uuid) -> Result<()> {
        self.writer.submit(move |conn| events::delete_of_session(conn, session)).await
    }

    /// Returns whether a turn of the agent was started with `key`.
    pub async fn has_turn_key(&self, conversation: ConversationKey, key: String) -> Result<bool> {
        self.reader.submit(move |conn| Ok(turn_marks_and_keys::find_by_key(conn, conversation, &key)?.is_some())).await
    }

    /// Deletes the answers to an agent's turn keys; the keys stay known.
    pub async fn delete_turn_answers(&self, agent: Uuid) -> Result<()> {
        self.writer.submit(move |conn| turn_marks_and_keys::delete_answers(conn, agent)).await
    }

    /// Overwrites the remains of deleted records by vacuuming the file. Appends wait meanwhile.
    pub(crate) async fn vacuum(&self) -> Result<()> {
        self.writer
            .submit_outside_transaction(|conn| {
                // Trimming does not overwrite the pages it frees, so this vacuum does.
                conn.execute_batch("PRAGMA secure_delete = ON; VACUUM; PRAGMA secure_delete = OFF")?;
                erase_wal(conn)
            })
            .await
    }

    /// Deletes records that are in no chain. Must run before contexts are trimmed, because trimming frees row ids for
    /// new records.
    pub async fn delete_unchained(&self, rows: Vec<i64>) -> Result<()> {
        let delete = move |conn: &Connection| {
            let mut statement = conn.prepare_cached("DELETE FROM records WHERE id = ?1")?;
            for id in &rows {
                statement.execute([id])?;
            }
            Ok(())
        };
        self.writer.submit(delete).await
    }

    /// Copies the journal as of the last commit to `path`, which must not exist.
    pub async fn copy_to(&self, path: PathBuf) -> Result<()> {
        self.reader.submit(move |conn| Ok(conn.execute("VACUUM INTO ?1", [path.to_string_lossy()]).map(drop)?)).await
    }

    /// Lists ended contexts that were not trimmed yet, because a crash came between.
    pub async fn ended_contexts(&self) -> Result<Vec<ContextNo>> {
        self.reader.submit(record_list::list_ended).await
    }

    /// Deletes idempotency keys that are older than [`KEY_RETENTION_DAYS`].
    pub async fn prune_keys(&self, now: Timestamp) -> Result<()> {
        let before = to_nanos(now) - KEY_RETENTION_DAYS * 86_400 * 1_000_000_000;
        self.writer
            .submit(move |conn| {
                conn.execute("DELETE FROM append_keys WHERE at < ?1", [before])?;
                conn.execute("DELETE FROM turn_keys WHERE at < ?1", [before])?;
                Ok(())
            })
            .await
    }

    /// Sends a no-op through the writer; it completes if the writer is alive.
    pub fn ping(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_without_savepoint(|_| Ok(()))
    }

    /// Returns the error that poisoned the writer, if there is one. Does not ask the writer.
    pub fn ensure_healthy(&self) -> Result<()> {
        self.writer.ensure_healthy()
    }

    /// Syncs the journal if commits are not synced themselves.
    ///
    /// # Errors
    /// A failed sync is fatal.
    pub async fn flush(&self) -> Result<()> {
        let newest = self.position_file.clone();
        spawn_blocking(move || newest.sync())
            .await
            .map_err(|e| Error::internal(e.to_string()))?
            .map_err(|e| Error::io("cannot sync the journal", &e))
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
        self.reader.close().await;
        self.writer.close().await;
    }
}
