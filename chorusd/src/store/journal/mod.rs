//! The journal of live contexts: `db/live.db`. What it has answered survives `kill -9` and power loss.
//!
//! A context is a row of totals (its head) and a chain of records. Appending adds records and moves the head in one
//! commit; ending a context marks the head in one commit and trims the records behind it.

mod check;
mod context_row;
mod context_salvage;
mod continuation;
mod crc;
mod edit_record;
pub(super) mod events;
mod named_values;
mod position;
mod record;
mod records;
mod schema;
mod turn;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use chorus_proto::methods::context::AppendResult;
use chorus_proto::{Event, EventType};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::json;
use tokio::sync::broadcast;
use uuid::Uuid;

pub use check::{CheckReport, check};
pub use context_row::{ContextRow, NewContextRow, from_nanos, to_nanos};
pub use context_salvage::{SalvagedContent, salvage_context};
pub use continuation::{Continuation, SessionReference, TrailingRecords};
pub use crc::crc32;
pub use edit_record::{EditRecord, JournalEdit};
pub use events::NewEvent;
pub use position::JournalPosition;
#[cfg(test)]
pub(super) use record::RecordPosition;
pub use record::{Record, unreadable_record};
pub use records::DecodedRecord;
pub(super) use schema::MIGRATIONS;
pub use turn::{KnownTurn, TurnMark};

use self::records::RecordChain;
use super::db_thread::{DbThread, FileGuards};
use super::recovery::{self, CommitCounter, DatabaseLock, FileWatch, PositionFile};
use super::snapshot::PendingSnapshot;
use super::sqlite;
use super::{Durability, OnFatal};
use crate::error::{Error, Result};
use crate::message::{ContextNo, StoredMessage, Totals};

/// Records deleted in one commit when a context has ended: few enough that no append waits long.
const RECORDS_PER_TRIM: usize = 2_000;

/// Keys of appends are remembered so long.
pub const KEY_RETENTION_DAYS: i64 = 30;

/// Messages for a live context.
#[derive(Debug)]
pub struct AppendRequest {
    pub agent: Uuid,
    pub agent_name: String,
    pub context: ContextNo,
    /// The head to make if this is the first of the context to arrive.
    pub begin: NewContextRow,
    /// Number of the first record.
    pub first: u32,
    pub messages: Vec<StoredMessage>,
    pub at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// The same key again gives the first answer.
    pub key: Option<String>,
    /// What is noted of a turn in the same commit.
    pub mark: Option<TurnMark>,
}

/// What became of an [`Append`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalAppendOutcome {
    Added(AppendResult),
    /// The key was known: nothing was added.
    RepeatedAppend(AppendResult),
    /// The key of the turn was known: nothing was added.
    RepeatedTurn(KnownTurn),
}

/// The journal.
#[derive(Debug)]
pub struct Journal {
    writer: DbThread,
    reader: DbThread,
    next_context: AtomicI64,
    position_file: PositionFile,
    /// Events as they are committed, in order. Observers that are too slow miss the oldest.
    events: broadcast::Sender<Arc<Event>>,
    /// Number of the last event that was told.
    last_published: Arc<AtomicU64>,
}

/// Events that wait for a slow observer.
const EVENT_CHANNEL_CAPACITY: usize = 4096;

impl Journal {
    pub(super) fn open(path: &Path, durability: Durability, on_fatal: &OnFatal, now: Timestamp) -> Result<Self> {
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
        let told = Arc::new(AtomicU64::new(reached.event));
        // From here on no other process reads or writes it.
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
            events: broadcast::Sender::new(EVENT_CHANNEL_CAPACITY),
            last_published: told,
        })
    }

    /// A number for a context that is about to begin.
    pub fn reserve_context_no(&self) -> ContextNo {
        ContextNo(self.next_context.fetch_add(1, Ordering::Relaxed))
    }

    /// Heads of all live contexts.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn live_contexts(&self) -> Result<Vec<ContextRow>> {
        self.reader.submit(context_row::list_live).await
    }

    /// Adds messages; queued by this call, done when the future is. The order of calls is the order of records.
    pub fn append(&self, append: AppendRequest) -> impl Future<Output = Result<JournalAppendOutcome>> + Send + use<> {
        let (events, told) = (self.events.clone(), self.last_published.clone());
        let done = self.writer.submit_without_savepoint(
            move |conn| append_in_transaction(conn, &append),
            move |(_, event)| {
                if let Some(event) = event {
                    told.store(event.seq, Ordering::Release);
                    let _ = events.send(event.clone());
                }
            },
        );
        async move { done.await.map(|(appended, _)| appended) }
    }

    /// Keeps events and tells them to whoever listens; queued by this call.
    pub fn emit(&self, new: Vec<NewEvent>) -> impl Future<Output = Result<()>> + Send + use<> {
        let (events, told) = (self.events.clone(), self.last_published.clone());
        let done = self.writer.submit_without_savepoint(
            move |conn| {
                new.into_iter().map(|event| events::insert(conn, event).map(Arc::new)).collect::<Result<Vec<_>>>()
            },
            move |kept| {
                for event in kept {
                    told.store(event.seq, Ordering::Release);
                    let _ = events.send(event.clone());
                }
            },
        );
        async move { done.await.map(drop) }
    }

    /// Keeps a notice and tells it; nobody waits for it.
    pub(super) fn emit_notice(&self, text: &str, at: Timestamp) {
        drop(self.emit(vec![NewEvent { at, kind: EventType::Notice, agent: None, data: json!({"text": text}) }]));
    }

    /// Events from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    /// At most `limit` events after number `after`, and how many of those that came after it are gone.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn events_after(&self, after: u64, limit: u64) -> Result<(Vec<Event>, u64)> {
        self.reader.submit(move |conn| events::list_after(conn, after, limit)).await
    }

    /// Number of the newest event; 0 before the first.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn last_event(&self) -> Result<u64> {
        self.reader.submit(events::last_seq).await
    }

    /// Notes that the first `messages` messages are held by `session`.
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
        self.writer.submit_without_savepoint(mark, |()| ())
    }

    /// Moves the deadline of a context.
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
        self.writer.submit_without_savepoint(mark, |()| ())
    }

    /// Notes that the turn of a context is over, where no message says so.
    pub fn close_turn(
        &self,
        agent: Uuid,
        context: ContextNo,
        mark: TurnMark,
        at: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_without_savepoint(move |conn| turn::store_mark(conn, agent, context, &mark, at), |()| ())
    }

    /// Tells whoever listens, and keeps nothing: the event has the number of the one before it. Where nobody listens it is
    /// not made.
    pub fn broadcast_transient(&self, new: impl FnOnce() -> NewEvent) {
        if self.events.receiver_count() == 0 {
            return;
        }
        let NewEvent { at, kind, agent, data } = new();
        let seq = self.last_published.load(Ordering::Acquire);
        let _ = self.events.send(Arc::new(Event { seq, time: at, kind, agent, data }));
    }

    /// Ends a context. Its records are trimmed by [`Journal::trim`].
    pub fn end_context(&self, context: ContextNo) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_without_savepoint(move |conn| records::mark_ended(conn, context), |()| ())
    }

    /// Notes a change that is no message: pins, a rewind. Begins the context where there is none; `totals` and `saved`
    /// are what holds afterwards.
    pub fn append_edit(&self, change: JournalEdit) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            let mut chain = RecordChain::open_or_create(conn, change.context, &change.begin)?;
            chain.append(conn, change.number, &change.record.as_record())?;
            context_row::update_totals(
                conn,
                change.context,
                change.totals,
                change.saved,
                change.deadline,
                chain.newest(),
            )
        })
    }

    /// Puts the messages themselves where the context refers to `session`, which no longer holds them.
    pub fn materialise_messages(
        &self,
        context: ContextNo,
        messages: Vec<StoredMessage>,
        session: Uuid,
        behind: TrailingRecords,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            records::delete_all(conn, context)?;
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

    /// The records of a context in order, each with its number.
    ///
    /// # Errors
    /// A record that cannot be read.
    pub async fn records(&self, context: ContextNo) -> Result<Vec<(u32, DecodedRecord)>> {
        self.reader.submit(move |conn| records::load(conn, context)).await
    }

    /// Deletes the records of contexts that have ended, in as many commits as it takes: none is long.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn trim(&self, mut contexts: Vec<ContextNo>) -> Result<()> {
        while !contexts.is_empty() {
            contexts = self
                .writer
                .submit_without_savepoint(move |conn| records::trim(conn, contexts, RECORDS_PER_TRIM), |_| ())
                .await?;
        }
        Ok(())
    }

    /// Forgets what the event log says of a session: its summary, its name, the notice about it.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn delete_events_of(&self, session: Uuid) -> Result<()> {
        self.writer.submit(move |conn| events::delete_of_session(conn, session)).await
    }

    /// Whether a turn of an agent was begun with this key.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn has_turn_key(&self, agent: Uuid, key: String) -> Result<bool> {
        self.reader.submit(move |conn| Ok(turn::find_by_key(conn, agent, &key)?.is_some())).await
    }

    /// Forgets what the keys of an agent's turns were answered; the keys stay known.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn delete_turn_answers(&self, agent: Uuid) -> Result<()> {
        self.writer.submit(move |conn| turn::delete_answers(conn, agent)).await
    }

    /// Overwrites what deleted records left behind. Appends wait meanwhile.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn vacuum(&self) -> Result<()> {
        self.writer
            .submit_outside_transaction(|conn| {
                // Trimming need not overwrite: nothing of it stays here.
                conn.execute_batch("PRAGMA secure_delete = ON; VACUUM; PRAGMA secure_delete = OFF")?;
                conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
                Ok(())
            })
            .await
    }

    /// Deletes records that are in no chain. Their numbers may be used again once others are trimmed, so this comes before that.
    ///
    /// # Errors
    /// A database that cannot be written.
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

    /// Copies the journal as of the last commit to `path`, which is not there yet.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub async fn copy_to(&self, path: PathBuf) -> Result<()> {
        self.reader.submit(move |conn| Ok(conn.execute("VACUUM INTO ?1", [path.to_string_lossy()]).map(drop)?)).await
    }

    /// Contexts that have ended and were not trimmed: a crash came between.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn ended_contexts(&self) -> Result<Vec<ContextNo>> {
        self.reader.submit(records::list_ended).await
    }

    /// Forgets keys of appends that are too old to come again.
    ///
    /// # Errors
    /// A database that cannot be written.
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

    /// Goes through the writer like any commit and changes nothing: answered, the writer is alive.
    pub fn ping(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_without_savepoint(|_| Ok(()), |()| ())
    }

    /// Whether commits are still acknowledged, as far as is known without one.
    ///
    /// # Errors
    /// What broke it.
    pub fn ensure_healthy(&self) -> Result<()> {
        self.writer.ensure_healthy()
    }

    /// Brings everything to the disk, where commits do not do so themselves.
    ///
    /// # Errors
    /// A sync that failed: fatal.
    pub async fn flush(&self) -> Result<()> {
        let newest = self.position_file.clone();
        tokio::task::spawn_blocking(move || newest.sync())
            .await
            .map_err(|e| Error::internal(e.to_string()))?
            .map_err(|e| Error::io("cannot sync the journal", &e))
    }

    /// Acknowledges nothing more: `failure` is fatal.
    pub(super) fn poison(&self, failure: Error) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |_| Err(failure))
    }

    /// Begins a copy of the database; see [`DatabaseCopy`].
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

fn append_in_transaction(
    conn: &Connection,
    append: &AppendRequest,
) -> Result<(JournalAppendOutcome, Option<Arc<Event>>)> {
    if let Some(key) = &append.key
        && let Some(answer) = find_repeated_append(conn, append.agent, key)?
    {
        return Ok((JournalAppendOutcome::RepeatedAppend(answer), None));
    }
    if let Some(known) = turn::find_repeated(conn, append.agent, append.mark.as_ref())? {
        return Ok((JournalAppendOutcome::RepeatedTurn(known), None));
    }
    let mut chain = RecordChain::open_or_create(conn, append.context, &append.begin)?;
    for (number, message) in (append.first..).zip(&append.messages) {
        chain.append(conn, number, &Record::Message { json: message.json() })?;
    }
    let totals = Totals::count(&append.messages);
    let messages = context_row::add_totals(conn, append.context, totals, append.at, append.deadline, chain.newest())?;
    let answer = AppendResult { appended: totals.messages, messages, secrets_found: None };
    if let Some(mark) = &append.mark {
        turn::store_mark(conn, append.agent, append.context, mark, append.at)?;
    }
    if let Some(key) = &append.key {
        conn.prepare_cached("INSERT INTO append_keys (agent_id, key, appended, messages, at) VALUES (?1,?2,?3,?4,?5)")?
            .execute(params![append.agent.as_bytes(), key, answer.appended, answer.messages, to_nanos(append.at)])?;
    }
    // A turn about a message that is there already.
    if append.messages.is_empty() {
        return Ok((JournalAppendOutcome::Added(answer), None));
    }
    // In the same commit: the message and the news of it stand or fall together.
    let news = NewEvent {
        at: append.at,
        kind: EventType::MessageAppended,
        agent: Some(append.agent_name.clone()),
        data: json!({"appended": answer.appended, "messages": answer.messages}),
    };
    let event = events::insert(conn, news)?;
    Ok((JournalAppendOutcome::Added(answer), Some(Arc::new(event))))
}

fn find_repeated_append(conn: &Connection, agent: Uuid, key: &str) -> Result<Option<AppendResult>> {
    Ok(conn
        .prepare_cached("SELECT appended, messages FROM append_keys WHERE agent_id = ?1 AND key = ?2")?
        .query_row(params![agent.as_bytes(), key], |row| {
            Ok(AppendResult { appended: row.get(0)?, messages: row.get(1)?, secrets_found: None })
        })
        .optional()?)
}
