//! Compactions, and contexts that go on from a session without its messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use chorus_proto::TokenPair;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::records::{self, RecordChain};
use super::{Journal, NewContextRow, NewEvent, Record, context_row, events, unreadable_record};
use crate::error::Result;
use crate::message::{ContextNo, StoredMessage, Totals};

/// A context that begins without the messages of the session that it goes on from.
#[derive(Debug)]
pub struct Continuation {
    /// The context that ends with it.
    pub old: Option<ContextNo>,
    pub context: ContextNo,
    pub head: NewContextRow,
    pub working_set: Bytes,
    pub messages: Vec<StoredMessage>,
    pub restoration: TokenPair,
    /// Told with it.
    pub event: NewEvent,
}

impl Journal {
    /// Notes that older messages have left the window of a context, with the news of it; queued by this call. The order of calls
    /// is the order of records, among those of [`Journal::append`] too.
    pub fn append_compaction(
        &self,
        context: ContextNo,
        number: u32,
        compaction: Bytes,
        news: NewEvent,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let (events, told) = (self.events.clone(), self.last_published.clone());
        let done = self.writer.submit_without_savepoint(
            move |conn| {
                let mut chain =
                    RecordChain::open(conn, context)?.ok_or_else(|| unreadable_record("it has no context"))?;
                chain.append(conn, number, &Record::Compact { json: &compaction })?;
                context_row::set_last_record(conn, context, chain.newest())?;
                events::insert(conn, news).map(Arc::new)
            },
            move |event| {
                told.store(event.seq, Ordering::Release);
                let _ = events.send(event.clone());
            },
        );
        async move { done.await.map(drop) }
    }

    /// Ends `old` and begins a context that holds the first messages of a session, as a reference.
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
                records::mark_ended(conn, old)?;
            }
            head.insert(conn, context)?;
            let mut chain = RecordChain::new(context);
            chain.append(conn, 0, &Record::Session { id: *session.as_bytes(), messages: held.messages })?;
            chain.append(conn, 1, &Record::WorkingSet { json: &working_set })?;
            let mut first = 2_u32;
            if !restoration.is_zero() {
                let TokenPair { input, output } = restoration;
                chain.append(conn, first, &Record::Restoration { input, output })?;
                context_row::set_restoration(conn, context, restoration)?;
                first += 1;
            }
            for (number, message) in (first..).zip(&added) {
                chain.append(conn, number, &Record::Message { json: message.json() })?;
            }
            let mut totals = Totals::count(&added);
            totals.merge(held);
            context_row::add_totals(conn, context, totals, head.started_at, head.idle_deadline_at, chain.newest())?;
            conn.prepare_cached(
                "UPDATE contexts SET base_session = ?2, saved_messages = ?3, saved_session = ?2 WHERE id = ?1",
            )?
            .execute(params![context.0, session.as_bytes(), held.messages])?;
            Ok(())
        })
    }

    /// Ends a context, where there is one, and begins another with messages of its own, in one step.
    pub fn start_continuation(&self, renewal: Continuation) -> impl Future<Output = Result<()>> + Send + use<> {
        let (events, told) = (self.events.clone(), self.last_published.clone());
        let renew = move |conn: &Connection| {
            let Continuation { old, context, head, working_set, messages, restoration, event: news } = renewal;
            if let Some(old) = old {
                records::mark_ended(conn, old)?;
            }
            head.insert(conn, context)?;
            let mut chain = RecordChain::new(context);
            chain.append(conn, 0, &Record::WorkingSet { json: &working_set })?;
            let TokenPair { input, output } = restoration;
            chain.append(conn, 1, &Record::Restoration { input, output })?;
            context_row::set_restoration(conn, context, restoration)?;
            for (number, message) in (2_u32..).zip(&messages) {
                chain.append(conn, number, &Record::Message { json: message.json() })?;
            }
            let totals = Totals::count(&messages);
            context_row::add_totals(conn, context, totals, head.started_at, head.idle_deadline_at, chain.newest())?;
            events::insert(conn, news).map(Arc::new)
        };
        let done = self.writer.submit_with_callback(renew, move |event| {
            told.store(event.seq, Ordering::Release);
            let _ = events.send(event.clone());
        });
        async move { done.await.map(drop) }
    }
}

/// What a context begins with that holds messages of a session.
#[derive(Debug)]
pub struct SessionReference {
    pub session: Uuid,
    /// Of the messages that it holds: the session's first.
    pub totals: Totals,
    /// JSON.
    pub working_set: Bytes,
    /// What resuming had cost.
    pub restoration: TokenPair,
    /// Messages of its own behind those.
    pub added: Vec<StoredMessage>,
}

/// What is written behind the messages where a reference to a session is written out.
#[derive(Debug, Default)]
pub struct TrailingRecords {
    /// JSON of the working set before the first compaction.
    pub initial_working_set: Option<Bytes>,
    /// JSON of the compactions, in order.
    pub compactions: Vec<Bytes>,
    /// JSON of the working set as it is.
    pub working_set: Option<Bytes>,
    /// What resuming cost, where it did.
    pub restoration: Option<TokenPair>,
}

impl TrailingRecords {
    /// Adds the records from `number` on.
    pub(super) fn append(&self, conn: &Connection, chain: &mut RecordChain, number: u32) -> Result<()> {
        let before = self.initial_working_set.iter().map(|json| Record::WorkingSet { json });
        let compactions = self.compactions.iter().map(|json| Record::Compact { json });
        let now = self.working_set.iter().map(|json| Record::WorkingSet { json });
        let cost = self.restoration.map(|TokenPair { input, output }| Record::Restoration { input, output });
        for (number, record) in (number..).zip(before.chain(compactions).chain(now).chain(cost)) {
            chain.append(conn, number, &record)?;
        }
        Ok(())
    }
}
