//! Contexts that begin with earlier messages: those of a session by reference, or a few of their own.

use bytes::Bytes;
use chorus_proto::TokenPair;
use chorus_session::stored_message::{ContextNo, StoredMessage, Totals};
use uuid::Uuid;

use crate::{NewContextRow, NewEvent, Record};

/// A new context that continues a session without its messages.
#[derive(Debug, Clone)]
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

impl Continuation {
    /// Returns the records of the new context, in order.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let TokenPair { input, output } = self.restoration;
        let head = [Record::WorkingSet { json: &self.working_set }, Record::Restoration { input, output }];
        let compaction = self.compaction.iter().map(|json| Record::Compacted { json });
        head.into_iter().chain(compaction).chain(message_records(&self.messages))
    }

    /// Returns the totals of the new context.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals::count(&self.messages)
    }
}

/// Initial content of a context that refers to the messages of a session.
#[derive(Debug, Clone)]
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

impl SessionReference {
    /// Returns the records of the new context, in order.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let session = Record::Session { id: *self.session.as_bytes(), messages: self.totals.messages };
        let working_set = Record::WorkingSet { json: &self.working_set };
        let TokenPair { input, output } = self.restoration;
        let restoration = (!self.restoration.is_zero()).then_some(Record::Restoration { input, output });
        [session, working_set].into_iter().chain(restoration).chain(message_records(&self.added))
    }

    /// Returns the totals of the new context: those of the session's messages, and of its own.
    #[must_use]
    pub fn totals_with_added(&self) -> Totals {
        let mut totals = Totals::count(&self.added);
        totals.merge(self.totals);
        totals
    }
}

/// Records after the messages when a reference to a session is replaced by the messages themselves.
#[derive(Debug, Clone, Default)]
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
    /// Returns the records that follow the messages, in order.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let before = self.initial_working_set.iter().map(|json| Record::WorkingSet { json });
        let compactions = self.compactions.iter().map(|json| Record::Compact { json });
        let now = self.working_set.iter().map(|json| Record::WorkingSet { json });
        let cost = self.restoration.map(|TokenPair { input, output }| Record::Restoration { input, output });
        let begun = self.compaction.iter().map(|json| Record::Compacted { json });
        before.chain(compactions).chain(now).chain(cost).chain(begun)
    }
}

/// Returns the records of `messages`, in order.
pub fn message_records(messages: &[StoredMessage]) -> impl Iterator<Item = Record<'_>> {
    messages.iter().map(|message| Record::Message { json: message.json() })
}
