//! The journal of live contexts: `db/live.db`. What it has answered survives `kill -9` and power loss.
//!
//! A context is a row of totals (its head) and a chain of records. Appending adds records and moves the head in one
//! commit; ending a context marks the head in one commit and trims the records behind it.

mod chain;
mod change;
mod check;
mod crc;
pub(super) mod events;
mod head;
mod links;
mod marks;
mod reached;
mod readable;
mod record;
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

pub use chain::Entry;
pub use change::{Change, ChangeRecord};
pub use check::{Checked, check};
pub use crc::crc32;
pub use events::NewEvent;
pub use head::{Head, NewHead, from_nanos, to_nanos};
pub use links::{Behind, Reference, Renewal};
pub use reached::Reached;
pub use readable::{Readable, readable};
#[cfg(test)]
pub(super) use record::Place;
pub use record::{Record, unreadable};
pub(super) use schema::MIGRATIONS;
pub use turn::{KnownTurn, TurnMark};

use self::chain::Chain;
use super::copy::DatabaseCopy;
use super::recovery::{self, Lock, Note, Tally, Watch};
use super::sqlite;
use super::worker::{Files, Worker};
use super::{Durability, OnFatal};
use crate::failure::{Failure, Result};
use crate::message::{ContextNo, Stored, Totals};

/// Records deleted in one commit when a context has ended: few enough that no append waits long.
const TRIM: usize = 2_000;

/// Keys of appends are remembered so long.
pub const KEY_DAYS: i64 = 30;

/// Messages for a live context.
#[derive(Debug)]
pub struct Append {
    pub agent: Uuid,
    pub agent_name: String,
    pub context: ContextNo,
    /// The head to make if this is the first of the context to arrive.
    pub begin: NewHead,
    /// Number of the first record.
    pub first: u32,
    pub messages: Vec<Stored>,
    pub at: Timestamp,
    pub deadline: Option<Timestamp>,
    /// The same key again gives the first answer.
    pub key: Option<String>,
    /// What is noted of a turn in the same commit.
    pub mark: Option<TurnMark>,
}

/// What became of an [`Append`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Appended {
    Now(AppendResult),
    /// The key was known: nothing was added.
    Before(AppendResult),
    /// The key of the turn was known: nothing was added.
    Known(KnownTurn),
}

/// The journal.
#[derive(Debug)]
pub struct Journal {
    writer: Worker,
    reader: Worker,
    next: AtomicI64,
    newest: Note,
    /// Events as they are committed, in order. Observers that are too slow miss the oldest.
    events: broadcast::Sender<Arc<Event>>,
    /// Number of the last event that was told.
    told: Arc<AtomicU64>,
}

/// Events that wait for a slow observer.
const WAITING: usize = 4096;

impl Journal {
    pub(super) fn open(path: &Path, durability: Durability, on_fatal: &OnFatal, now: Timestamp) -> Result<Self> {
        let found = recovery::look(path, now)?;
        let conn = sqlite::open(path, MIGRATIONS)?;
        if let Durability::Interval(_) = durability {
            conn.pragma_update(None, "synchronous", "NORMAL")?;
        }
        if found.is_damage() {
            sqlite::truncate_log(&conn)?;
        }
        let next = schema::last_context(&conn)? + 1;
        if let Some((text, seq)) = found.settle(path, Reached::of(&conn)?, now)? {
            tracing::error!("{text}");
            events::insert_at(&conn, seq, now, &json!({"text": text}))?;
        }
        let reached = Reached::of(&conn)?;
        let told = Arc::new(AtomicU64::new(reached.event));
        // From here on no other process reads or writes it.
        let watch = Watch::of(path, Some(Lock::take(path)?))?;
        let newest = Note::open(path, durability);
        newest.committed(reached);
        let reader = sqlite::open_reader(path)?;
        let files = Files { watch, tally: Tally::new(newest.clone()) };
        Ok(Self {
            writer: Worker::writer("journal", conn, on_fatal.clone(), files)?,
            newest,
            reader: Worker::reader("journal-read", reader)?,
            next: AtomicI64::new(next),
            events: broadcast::Sender::new(WAITING),
            told,
        })
    }

    /// A number for a context that is about to begin.
    pub fn reserve(&self) -> ContextNo {
        ContextNo(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Heads of all live contexts.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn heads(&self) -> Result<Vec<Head>> {
        self.reader.submit(head::all).await
    }

    /// Adds messages; queued by this call, done when the future is. The order of calls is the order of records.
    pub fn append(&self, append: Append) -> impl Future<Output = Result<Appended>> + Send + use<> {
        let (events, told) = (self.events.clone(), self.told.clone());
        let done = self.writer.submit_checked(
            move |conn| append_in(conn, &append),
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
        let (events, told) = (self.events.clone(), self.told.clone());
        let done = self.writer.submit_checked(
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
    pub(super) fn notice(&self, text: &str, at: Timestamp) {
        drop(self.emit(vec![NewEvent { at, kind: EventType::Notice, agent: None, data: json!({"text": text}) }]));
    }

    /// Events from now on.
    #[must_use]
    pub fn observe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    /// At most `limit` events after number `after`, and how many of those that came after it are gone.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn events_after(&self, after: u64, limit: u64) -> Result<(Vec<Event>, u64)> {
        self.reader.submit(move |conn| events::after(conn, after, limit)).await
    }

    /// Number of the newest event; 0 before the first.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn last_event(&self) -> Result<u64> {
        self.reader.submit(events::last).await
    }

    /// Notes that the first `messages` messages are held by `session`.
    pub fn saved(
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
        self.writer.submit_checked(mark, |()| ())
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
        self.writer.submit_checked(mark, |()| ())
    }

    /// Notes that the turn of a context is over, where no message says so.
    pub fn close_turn(
        &self,
        agent: Uuid,
        context: ContextNo,
        mark: TurnMark,
        at: Timestamp,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_checked(move |conn| turn::note(conn, agent, context, &mark, at), |()| ())
    }

    /// Tells whoever listens, and keeps nothing: the event has the number of the one before it. Where nobody listens it is
    /// not made.
    pub fn whisper(&self, new: impl FnOnce() -> NewEvent) {
        if self.events.receiver_count() == 0 {
            return;
        }
        let NewEvent { at, kind, agent, data } = new();
        let seq = self.told.load(Ordering::Acquire);
        let _ = self.events.send(Arc::new(Event { seq, time: at, kind, agent, data }));
    }

    /// Ends a context. Its records are trimmed by [`Journal::trim`].
    pub fn end(&self, context: ContextNo) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_checked(move |conn| chain::end(conn, context), |()| ())
    }

    /// Notes a change that is no message: pins, a rewind. Begins the context where there is none; `totals` and `saved`
    /// are what holds afterwards.
    pub fn change(&self, change: Change) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            let mut chain = Chain::of(conn, change.context, &change.begin)?;
            chain.add(conn, change.number, &change.record.borrow())?;
            head::set(conn, change.context, change.totals, change.saved, change.deadline, chain.newest())
        })
    }

    /// Puts the messages themselves where the context refers to `session`, which no longer holds them.
    pub fn materialise(
        &self,
        context: ContextNo,
        messages: Vec<Stored>,
        session: Uuid,
        behind: Behind,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            chain::clear(conn, context)?;
            let mut chain = Chain::empty(context);
            for (number, message) in (0_u32..).zip(&messages) {
                chain.add(conn, number, &Record::Message { json: message.json() })?;
            }
            behind.add(conn, &mut chain, u32::try_from(messages.len()).unwrap_or(u32::MAX))?;
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
    pub async fn records(&self, context: ContextNo) -> Result<Vec<(u32, Entry)>> {
        self.reader.submit(move |conn| chain::load(conn, context)).await
    }

    /// Deletes the records of contexts that have ended, in as many commits as it takes: none is long.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn trim(&self, mut contexts: Vec<ContextNo>) -> Result<()> {
        while !contexts.is_empty() {
            contexts = self.writer.submit_checked(move |conn| chain::trim(conn, contexts, TRIM), |_| ()).await?;
        }
        Ok(())
    }

    /// Forgets what the event log says of a session: its summary, its name, the notice about it.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn forget_events_of(&self, session: Uuid) -> Result<()> {
        self.writer.submit(move |conn| events::forget(conn, session)).await
    }

    /// Whether a turn of an agent was begun with this key.
    ///
    /// # Errors
    /// A database that cannot be read.
    pub async fn knows_turn(&self, agent: Uuid, key: String) -> Result<bool> {
        self.reader.submit(move |conn| Ok(turn::of_key(conn, agent, &key)?.is_some())).await
    }

    /// Forgets what the keys of an agent's turns were answered; the keys stay known.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn forget_answers(&self, agent: Uuid) -> Result<()> {
        self.writer.submit(move |conn| turn::forget_answers(conn, agent)).await
    }

    /// Overwrites what deleted records left behind. Appends wait meanwhile.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn forget(&self) -> Result<()> {
        self.writer
            .alone(|conn| {
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
    pub async fn delete_outside(&self, rows: Vec<i64>) -> Result<()> {
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
    pub async fn ended(&self) -> Result<Vec<ContextNo>> {
        self.reader.submit(chain::ended).await
    }

    /// Forgets keys of appends that are too old to come again.
    ///
    /// # Errors
    /// A database that cannot be written.
    pub async fn forget_keys(&self, now: Timestamp) -> Result<()> {
        let before = to_nanos(now) - KEY_DAYS * 86_400 * 1_000_000_000;
        self.writer
            .submit(move |conn| {
                conn.execute("DELETE FROM append_keys WHERE at < ?1", [before])?;
                conn.execute("DELETE FROM turn_keys WHERE at < ?1", [before])?;
                Ok(())
            })
            .await
    }

    /// Goes through the writer like any commit and changes nothing: answered, the writer is alive.
    pub fn pulse(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit_checked(|_| Ok(()), |()| ())
    }

    /// Whether commits are still acknowledged, as far as is known without one.
    ///
    /// # Errors
    /// What broke it.
    pub fn sound(&self) -> Result<()> {
        self.writer.sound()
    }

    /// Brings everything to the disk, where commits do not do so themselves.
    ///
    /// # Errors
    /// A sync that failed: fatal.
    pub async fn flush(&self) -> Result<()> {
        let newest = self.newest.clone();
        tokio::task::spawn_blocking(move || newest.sync())
            .await
            .map_err(|e| Failure::internal(e.to_string()))?
            .map_err(|e| Failure::io("cannot sync the journal", &e))
    }

    /// Acknowledges nothing more: `failure` is fatal.
    pub(super) fn distrust(&self, failure: Failure) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |_| Err(failure))
    }

    /// Begins a copy of the database; see [`DatabaseCopy`].
    pub(super) async fn copy(&self, dir: &Path) -> Result<DatabaseCopy> {
        DatabaseCopy::begin(&self.writer, dir).await
    }

    pub(super) async fn release_memory(&self) {
        tokio::join!(self.reader.release_memory(), self.writer.release_memory());
    }

    pub(super) async fn close(&self) {
        self.reader.close().await;
        self.writer.close().await;
    }
}

fn append_in(conn: &Connection, append: &Append) -> Result<(Appended, Option<Arc<Event>>)> {
    if let Some(key) = &append.key
        && let Some(answer) = known_answer(conn, append.agent, key)?
    {
        return Ok((Appended::Before(answer), None));
    }
    if let Some(known) = turn::known(conn, append.agent, append.mark.as_ref())? {
        return Ok((Appended::Known(known), None));
    }
    let mut chain = Chain::of(conn, append.context, &append.begin)?;
    for (number, message) in (append.first..).zip(&append.messages) {
        chain.add(conn, number, &Record::Message { json: message.json() })?;
    }
    let totals = Totals::of(&append.messages);
    let messages = head::add(conn, append.context, totals, append.at, append.deadline, chain.newest())?;
    let answer = AppendResult { appended: totals.messages, messages, secrets_found: None };
    if let Some(mark) = &append.mark {
        turn::note(conn, append.agent, append.context, mark, append.at)?;
    }
    if let Some(key) = &append.key {
        conn.prepare_cached("INSERT INTO append_keys (agent_id, key, appended, messages, at) VALUES (?1,?2,?3,?4,?5)")?
            .execute(params![append.agent.as_bytes(), key, answer.appended, answer.messages, to_nanos(append.at)])?;
    }
    // A turn about a message that is there already.
    if append.messages.is_empty() {
        return Ok((Appended::Now(answer), None));
    }
    // In the same commit: the message and the news of it stand or fall together.
    let news = NewEvent {
        at: append.at,
        kind: EventType::MessageAppended,
        agent: Some(append.agent_name.clone()),
        data: json!({"appended": answer.appended, "messages": answer.messages}),
    };
    let event = events::insert(conn, news)?;
    Ok((Appended::Now(answer), Some(Arc::new(event))))
}

fn known_answer(conn: &Connection, agent: Uuid, key: &str) -> Result<Option<AppendResult>> {
    Ok(conn
        .prepare_cached("SELECT appended, messages FROM append_keys WHERE agent_id = ?1 AND key = ?2")?
        .query_row(params![agent.as_bytes(), key], |row| {
            Ok(AppendResult { appended: row.get(0)?, messages: row.get(1)?, secrets_found: None })
        })
        .optional()?)
}
