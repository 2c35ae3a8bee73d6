//! Records of compactions and of what was recalled, and contexts that continue a session with or without a reference to its messages.

use std::sync::Arc;

use bytes::Bytes;
use chorus_base::error::Result;
use chorus_proto::TokenPair;
use chorus_session::stored_message::{ContextNo, StoredMessage, Totals};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::record_list::{self, RecordChain};
use super::{Journal, NewContextRow, NewEvent, Record, contexts_table, events, unreadable_record};

/// A new context that continues a session without its messages.
#[derive(Debug)]
pub struct Continuation {
    /// The context that ends in the same commit.
    pub old: Option<ContextNo>,
    pub context: ContextNo,
    pub head: NewContextRow,
    pub working_set: Bytes,
    pub messages: Vec<StoredMessage>,
    pub restoration: TokenPair,
    /// JSON about the compaction by hand that it continues from, if it does.
    pub compaction: Option<Bytes>,
    /// The event that is stored in the same commit.
    pub event: NewEvent,
}

impl Journal {
    /// Records that older messages have left the window of a context, with the event about it. This call queues the
    /// write; the order of calls, including those of [`Journal::append`], is the order of records.
    pub fn append_compaction(
        &self,
        context: ContextNo,
        number: u32,
        compaction: Bytes,
        row: NewEvent,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let publisher = self.publisher.clone();
        self.writer.submit_and_publish(
            move |conn| {
                let mut chain =
                    RecordChain::open(conn, context)?.ok_or_else(|| unreadable_record("it has no context"))?;
                chain.append(conn, number, &Record::Compact { json: &compaction })?;
                contexts_table::set_last_record(conn, context, chain.newest())?;
                Ok(((), events::insert(conn, row)?))
            },
            move |event| publisher.publish([Arc::new(event)]),
        )
    }

    /// Records the working set of a context, without an event; otherwise as [`Journal::append_compaction`].
    pub fn append_working_set(
        &self,
        context: ContextNo,
        number: u32,
        working_set: Bytes,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        self.writer.submit(move |conn| {
            let mut chain = RecordChain::open(conn, context)?.ok_or_else(|| unreadable_record("it has no context"))?;
            chain.append(conn, number, &Record::WorkingSet { json: &working_set })?;
            contexts_table::set_last_record(conn, context, chain.newest())
        })
    }

    /// Ends `old` and begins a context that refers to the first messages of a session, in one commit.
    pub fn start_from_session(
        &self,
        old: Option<ContextNo>,
        context: ContextNo,
        head: NewContextRow,
        reference: SessionReference,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let SessionReference { session, totals: held, working_set, restoration, added } = reference;
        self.writer.submit(move |conn| {
            if let Some(old) = old {
                record_list::mark_ended(conn, old)?;
            }
            head.insert(conn, context)?;
            let mut chain = RecordChain::new(context);
            chain.append(conn, 0, &Record::Session { id: *session.as_bytes(), messages: held.messages })?;
            chain.append(conn, 1, &Record::WorkingSet { json: &working_set })?;
            let mut first = 2_u32;
            if !restoration.is_zero() {
                let TokenPair { input, output } = restoration;
                chain.append(conn, first, &Record::Restoration { input, output })?;
                contexts_table::set_restoration(conn, context, restoration)?;
                first += 1;
            }
            for (number, message) in (first..).zip(&added) {
                chain.append(conn, number, &Record::Message { json: message.json() })?;
            }
            let mut totals = Totals::count(&added);
            totals.merge(held);
            contexts_table::add_totals(conn, context, totals, head.started_at, head.idle_deadline_at, chain.newest())?;
            conn.prepare_cached(
                "UPDATE contexts SET base_session = ?2, saved_messages = ?3, saved_session = ?2 WHERE id = ?1",
            )?
            .execute(params![context.0, session.as_bytes(), held.messages])?;
            Ok(())
        })
    }

    /// Ends `old`, if given, and begins a context with its own messages, in one commit.
    pub fn start_continuation(&self, renewal: Continuation) -> impl Future<Output = Result<()>> + Send + use<> {
        let publisher = self.publisher.clone();
        let renew = move |conn: &Connection| {
            let Continuation { old, context, head, working_set, messages, restoration, compaction, event: news } =
                renewal;
            if let Some(old) = old {
                record_list::mark_ended(conn, old)?;
            }
            head.insert(conn, context)?;
            let mut chain = RecordChain::new(context);
            chain.append(conn, 0, &Record::WorkingSet { json: &working_set })?;
            let TokenPair { input, output } = restoration;
            chain.append(conn, 1, &Record::Restoration { input, output })?;
            contexts_table::set_restoration(conn, context, restoration)?;
            let mut first = 2_u32;
            if let Some(json) = &compaction {
                chain.append(conn, first, &Record::Compacted { json })?;
                first += 1;
            }
            for (number, message) in (first..).zip(&messages) {
                chain.append(conn, number, &Record::Message { json: message.json() })?;
            }
            let totals = Totals::count(&messages);
            contexts_table::add_totals(conn, context, totals, head.started_at, head.idle_deadline_at, chain.newest())?;
            Ok(((), events::insert(conn, news)?))
        };
        self.writer.submit_with_savepoint_and_publish(renew, move |event| publisher.publish([Arc::new(event)]))
    }
}

/// Initial content of a context that refers to the messages of a session.
#[derive(Debug)]
pub struct SessionReference {
    pub session: Uuid,
    /// Totals of the session's first messages, to which the context refers.
    pub totals: Totals,
    /// JSON.
    pub working_set: Bytes,
    /// Cost of resuming.
    pub restoration: TokenPair,
    /// The context's own messages after those.
    pub added: Vec<StoredMessage>,
}

/// Records after the messages when a reference to a session is replaced by the messages themselves.
#[derive(Debug, Default)]
pub struct TrailingRecords {
    /// JSON of the working set before the first compaction.
    pub initial_working_set: Option<Bytes>,
    /// JSON of the compactions, in order.
    pub compactions: Vec<Bytes>,
    /// JSON of the current working set.
    pub working_set: Option<Bytes>,
    /// Cost of resuming, if the context was resumed.
    pub restoration: Option<TokenPair>,
    /// JSON about the compaction by hand that the context began with, if it did.
    pub compaction: Option<Bytes>,
}

impl TrailingRecords {
    /// Appends the records, numbered from `number`.
    pub(super) fn append(&self, conn: &Connection, chain: &mut RecordChain, number: u32) -> Result<()> {
        let before = self.initial_working_set.iter().map(|json| Record::WorkingSet { json });
        let compactions = self.compactions.iter().map(|json| Record::Compact { json });
        let now = self.working_set.iter().map(|json| Record::WorkingSet { json });
        let cost = self.restoration.map(|TokenPair { input, output }| Record::Restoration { input, output });
        let begun = self.compaction.iter().map(|json| Record::Compacted { json });
        for (number, record) in (number..).zip(before.chain(compactions).chain(now).chain(cost).chain(begun)) {
            chain.append(conn, number, &record)?;
        }
        Ok(())
    }
}
