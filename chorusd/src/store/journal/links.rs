//! Compactions, and contexts that go on from a session without its messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use chorus_proto::TokenPair;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::chain::{self, Chain};
use super::{Journal, NewEvent, NewHead, Record, events, head, unreadable};
use crate::failure::Result;
use crate::message::{ContextNo, Stored, Totals};

/// A context that begins without the messages of the session that it goes on from.
#[derive(Debug)]
pub struct Renewal {
    /// The context that ends with it.
    pub old: Option<ContextNo>,
    pub context: ContextNo,
    pub head: NewHead,
    pub working_set: Bytes,
    pub messages: Vec<Stored>,
    pub restoration: TokenPair,
    /// Told with it.
    pub news: NewEvent,
}

impl Journal {
    /// Notes that older messages have left the window of a context, with the news of it; queued by this call. The order of calls
    /// is the order of records, among those of [`Journal::append`] too.
    pub fn compact(
        &self,
        context: ContextNo,
        number: u32,
        compaction: Bytes,
        news: NewEvent,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let (events, told) = (self.events.clone(), self.told.clone());
        let done = self.writer.submit_checked(
            move |conn| {
                let mut chain = Chain::going_on(conn, context)?.ok_or_else(|| unreadable("it has no context"))?;
                chain.add(conn, number, &Record::Compact { json: &compaction })?;
                head::set_newest(conn, context, chain.newest())?;
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
    pub fn replace(
        &self,
        old: Option<ContextNo>,
        context: ContextNo,
        head: NewHead,
        reference: Reference,
    ) -> impl Future<Output = Result<()>> + Send + use<> {
        let Reference { session, totals: held, working_set, restoration, added } = reference;
        self.writer.submit(move |conn| {
            if let Some(old) = old {
                chain::end(conn, old)?;
            }
            head.insert(conn, context)?;
            let mut chain = Chain::empty(context);
            chain.add(conn, 0, &Record::Session { id: *session.as_bytes(), messages: held.messages })?;
            chain.add(conn, 1, &Record::WorkingSet { json: &working_set })?;
            let mut first = 2_u32;
            if !restoration.is_zero() {
                let TokenPair { input, output } = restoration;
                chain.add(conn, first, &Record::Restoration { input, output })?;
                head::restored(conn, context, restoration)?;
                first += 1;
            }
            for (number, message) in (first..).zip(&added) {
                chain.add(conn, number, &Record::Message { json: message.json() })?;
            }
            let mut totals = Totals::of(&added);
            totals.join(held);
            head::add(conn, context, totals, head.started_at, head.idle_deadline_at, chain.newest())?;
            conn.prepare_cached(
                "UPDATE contexts SET base_session = ?2, saved_messages = ?3, saved_session = ?2 WHERE id = ?1",
            )?
            .execute(params![context.0, session.as_bytes(), held.messages])?;
            Ok(())
        })
    }

    /// Ends a context, where there is one, and begins another with messages of its own, in one step.
    pub fn renew(&self, renewal: Renewal) -> impl Future<Output = Result<()>> + Send + use<> {
        let (events, told) = (self.events.clone(), self.told.clone());
        let renew = move |conn: &Connection| {
            let Renewal { old, context, head, working_set, messages, restoration, news } = renewal;
            if let Some(old) = old {
                chain::end(conn, old)?;
            }
            head.insert(conn, context)?;
            let mut chain = Chain::empty(context);
            chain.add(conn, 0, &Record::WorkingSet { json: &working_set })?;
            let TokenPair { input, output } = restoration;
            chain.add(conn, 1, &Record::Restoration { input, output })?;
            head::restored(conn, context, restoration)?;
            for (number, message) in (2_u32..).zip(&messages) {
                chain.add(conn, number, &Record::Message { json: message.json() })?;
            }
            let totals = Totals::of(&messages);
            head::add(conn, context, totals, head.started_at, head.idle_deadline_at, chain.newest())?;
            events::insert(conn, news).map(Arc::new)
        };
        let done = self.writer.submit_telling(renew, move |event| {
            told.store(event.seq, Ordering::Release);
            let _ = events.send(event.clone());
        });
        async move { done.await.map(drop) }
    }
}

/// What a context begins with that holds messages of a session.
#[derive(Debug)]
pub struct Reference {
    pub session: Uuid,
    /// Of the messages that it holds: the session's first.
    pub totals: Totals,
    /// JSON.
    pub working_set: Bytes,
    /// What resuming had cost.
    pub restoration: TokenPair,
    /// Messages of its own behind those.
    pub added: Vec<Stored>,
}

/// What is written behind the messages where a reference to a session is written out.
#[derive(Debug, Default)]
pub struct Behind {
    /// JSON of the working set before the first compaction.
    pub before: Option<Bytes>,
    /// JSON of the compactions, in order.
    pub compactions: Vec<Bytes>,
    /// JSON of the working set as it is.
    pub working_set: Option<Bytes>,
    /// What resuming cost, where it did.
    pub restoration: Option<TokenPair>,
}

impl Behind {
    /// Adds the records from `number` on.
    pub(super) fn add(&self, conn: &Connection, chain: &mut Chain, number: u32) -> Result<()> {
        let before = self.before.iter().map(|json| Record::WorkingSet { json });
        let compactions = self.compactions.iter().map(|json| Record::Compact { json });
        let now = self.working_set.iter().map(|json| Record::WorkingSet { json });
        let cost = self.restoration.map(|TokenPair { input, output }| Record::Restoration { input, output });
        for (number, record) in (number..).zip(before.chain(compactions).chain(now).chain(cost)) {
            chain.add(conn, number, &record)?;
        }
        Ok(())
    }
}
