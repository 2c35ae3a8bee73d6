//! The journal of live contexts as the daemon sees it, whatever database keeps it, and the format of its records.
//!
//! A context is a row with totals and a chain of records. Appending adds records and updates the row in one commit;
//! ending a context marks its row in one commit, and trimming deletes its records later.

#![warn(unreachable_pub)]

mod append;
mod continuation;
mod crc;
mod decoded_record;
mod edit;
mod event_publisher;
mod new_event;
mod nodes;
mod ownership;
mod record;
mod rows;
mod timestamps;

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use chorus_base::error::Result;
use chorus_proto::Event;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::broadcast;
use uuid::Uuid;

pub use append::{AppendRequest, JournalAppendOutcome, KnownTurn, TurnMark};
pub use continuation::{Continuation, SessionReference, TrailingRecords, message_records};
pub use crc::crc32;
pub use decoded_record::{DecodedRecord, NumberedRecords, RecordCursor, decode_record};
pub use edit::{EditRecord, JournalEdit};
pub use event_publisher::EventPublisher;
pub use new_event::{MAX_REPLAYED_EVENTS, NewEvent};
pub use nodes::{DatabaseReport, NodeRow, NodeState};
pub use ownership::{Claim, LateNode, Owner, Ownership};
pub use record::{Record, RecordPosition, unreadable_record};
pub use rows::{ContextRow, ConversationRow, NewContextRow};
pub use timestamps::{from_nanos, to_nanos};

/// Retention of the idempotency keys of appends and turns, in days.
pub const KEY_RETENTION_DAYS: i64 = 30;

/// A write. The call queues it, and the future waits for the commit: dropping the future does not undo the write. Writes
/// to one agent are carried out in the order of the calls.
pub type JournalWrite<T> = BoxFuture<'static, Result<T>>;

/// A read. It sees every write whose future has ended.
pub type JournalRead<'a, T> = BoxFuture<'a, Result<T>>;

/// The journal of live contexts and of events. Acknowledged writes survive `kill -9` and power loss.
pub trait Journal: Debug + Send + Sync {
    /// Returns an unused number for a new context.
    fn reserve_context_no(&self) -> ContextNo;

    /// Lists the rows of all live contexts.
    fn live_contexts(&self) -> JournalRead<'_, Vec<ContextRow>>;

    /// Lists the conversations of all agents beside `main`.
    fn conversations(&self) -> JournalRead<'_, Vec<ConversationRow>>;

    /// Stores a conversation: inserts the row, or replaces the one with its id. If it is selected, no other
    /// conversation of the agent stays so.
    fn store_conversation(&self, row: ConversationRow) -> JournalWrite<()>;

    /// Makes `main` the selected conversation of an agent.
    fn select_main_conversation(&self, agent: Uuid) -> JournalWrite<()>;

    /// Appends messages, with the event about them.
    fn append(&self, append: AppendRequest) -> JournalWrite<JournalAppendOutcome>;

    /// Records an edit, such as pins or a rewind. Inserts the context's row if there is none; `totals` and `saved` are
    /// the values after the edit.
    fn append_edit(&self, edit: JournalEdit) -> JournalWrite<()>;

    /// Records that older messages have left the window of a context, with the event about it.
    fn append_compaction(
        &self,
        context: ContextNo,
        number: u32,
        compaction: Bytes,
        event: NewEvent,
    ) -> JournalWrite<()>;

    /// Records the working set of a context, without an event.
    fn append_working_set(&self, context: ContextNo, number: u32, working_set: Bytes) -> JournalWrite<()>;

    /// Ends `old` and begins a context that refers to the first messages of a session, in one commit.
    fn start_from_session(
        &self,
        old: Option<ContextNo>,
        context: ContextNo,
        head: NewContextRow,
        reference: SessionReference,
    ) -> JournalWrite<()>;

    /// Ends `old`, if given, and begins a context with its own messages, in one commit.
    fn start_continuation(&self, continuation: Continuation) -> JournalWrite<()>;

    /// Replaces the context's reference to `session`, which no longer holds the messages, by the messages themselves.
    fn materialise_messages(
        &self,
        context: ContextNo,
        messages: Vec<StoredMessage>,
        session: Uuid,
        behind: TrailingRecords,
    ) -> JournalWrite<()>;

    /// Records that `session` holds the first `messages` messages of a context.
    fn mark_saved(&self, context: ContextNo, messages: u64, session: Uuid) -> JournalWrite<()>;

    /// Sets the idle deadline of a context.
    fn set_deadline(&self, context: ContextNo, deadline: Option<Timestamp>) -> JournalWrite<()>;

    /// Records the end of a turn that ends without a message.
    fn close_turn(
        &self,
        conversation: ConversationKey,
        context: ContextNo,
        mark: TurnMark,
        at: Timestamp,
    ) -> JournalWrite<()>;

    /// Ends a context. [`Journal::trim`] deletes its records.
    fn end_context(&self, context: ContextNo) -> JournalWrite<()>;

    /// Lists ended contexts that were not trimmed yet, because a crash came between.
    fn ended_contexts(&self) -> JournalRead<'_, Vec<ContextNo>>;

    /// Deletes the records of ended contexts, in several short commits.
    fn trim(&self, contexts: Vec<ContextNo>) -> JournalRead<'_, ()>;

    /// Reads the newest records of a context. Also returns the cursor of the record before them, if there is one.
    ///
    /// # Errors
    /// Fails with a [`unreadable_record`] if one of them is damaged or missing.
    fn newest_records(&self, context: ContextNo) -> JournalRead<'_, (NumberedRecords, Option<RecordCursor>)>;

    /// Reads all records from the one at `cursor` back to the first. Returns them in order, in batches.
    ///
    /// # Errors
    /// As [`Journal::newest_records`].
    fn records_before(&self, context: ContextNo, cursor: RecordCursor) -> JournalRead<'_, Vec<NumberedRecords>>;

    /// Returns whether a turn of the conversation was started with `key`.
    fn has_turn_key(&self, conversation: ConversationKey, key: String) -> JournalRead<'_, bool>;

    /// Deletes the answers to an agent's turn keys; the keys stay known.
    fn delete_turn_answers(&self, agent: Uuid) -> JournalWrite<()>;

    /// Deletes idempotency keys that are older than [`KEY_RETENTION_DAYS`].
    fn prune_keys(&self, now: Timestamp) -> JournalWrite<()>;

    /// Stores events and publishes them after the commit.
    fn emit(&self, events: Vec<NewEvent>) -> JournalWrite<()>;

    /// Returns at most `limit` events after number `after`, and how many events after `after` are deleted already: those
    /// before the newest [`MAX_REPLAYED_EVENTS`].
    fn events_after(&self, after: u64, limit: u64) -> JournalRead<'_, (Vec<Event>, u64)>;

    /// Returns the number of the newest event; 0 before the first.
    fn last_event(&self) -> JournalRead<'_, u64>;

    /// Deletes the data of a session from the event log: its summary, its name, the notice about it.
    fn delete_events_of(&self, session: Uuid) -> JournalWrite<()>;

    /// Returns the publisher that subscribers are told by.
    fn publisher(&self) -> &EventPublisher;

    /// Subscribes to events from now on.
    fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.publisher().subscribe()
    }

    /// Sends a no-op after all writes so far; it completes if the journal can write.
    fn ping(&self) -> JournalWrite<()>;

    /// Returns the error after which nothing is acknowledged any more, if there was one. Does not ask the database.
    ///
    /// # Errors
    /// That error.
    fn ensure_healthy(&self) -> Result<()>;

    /// Makes all acknowledged writes durable, if commits are not durable themselves.
    ///
    /// # Errors
    /// A failed sync is fatal.
    fn flush(&self) -> JournalRead<'_, ()>;
}
