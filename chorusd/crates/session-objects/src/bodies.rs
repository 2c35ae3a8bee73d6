//! The interface of a store of session bodies, for the engine.

use std::fmt::Debug;

use chorus_base::Ticks;
use chorus_base::error::Result;
use chorus_session::stored_message::StoredMessage;
use futures_util::future::BoxFuture;
use uuid::Uuid;

/// The result of a call.
pub type BodyFuture<'a, T> = BoxFuture<'a, Result<T>>;

/// The messages of a session. A body never changes: a save and a growth write one each, and then a row names it. Title,
/// tags and summary belong to the row; a store of files may keep a copy of them in its file.
pub trait SessionBodies: Debug + Send + Sync {
    /// Writes the body of a session. It is durable once this ends, and the caller then commits the row that names it.
    ///
    /// # Errors
    /// `denied`, `storage_failed`, `storage_unavailable`; nothing that was there before has changed.
    fn write(&self, body: NewBody) -> BodyFuture<'_, WrittenBody>;

    /// Writes a body that has the first `kept` messages of `from` and behind them those of `added`. `from` stays until
    /// it is deleted.
    ///
    /// # Errors
    /// As [`SessionBodies::write`], and `corrupt_session` if `from` is not as it was written.
    fn grow(&self, from: BodyRow, kept: u64, added: NewBody) -> BodyFuture<'_, WrittenBody>;

    /// Reads all messages, and verifies their hash.
    ///
    /// # Errors
    /// `session_not_found`, `corrupt_session`, `denied`, `storage_failed`, `storage_unavailable`.
    fn read(&self, row: BodyRow) -> BodyFuture<'_, Vec<StoredMessage>>;

    /// Reads up to `count` messages from number `first` on, counted from 0; fewer at the end. What was read is verified.
    ///
    /// # Errors
    /// As [`SessionBodies::read`].
    fn page(&self, row: BodyRow, first: u64, count: u64) -> BodyFuture<'_, Vec<StoredMessage>>;

    /// Deletes a body that no row names any more. It may be gone already.
    ///
    /// # Errors
    /// `denied`, `storage_failed`, `storage_unavailable`.
    fn delete(&self, row: BodyRow) -> BodyFuture<'_, ()>;

    /// Lists up to 1,000 bodies whose keys come after `after`, in the order of keys, for a repair of the rows.
    ///
    /// # Errors
    /// `denied`, `storage_failed`, `storage_unavailable`.
    fn list(&self, after: Option<String>) -> BodyFuture<'_, Vec<FoundBody>>;

    /// Makes the row of a body that was listed. Reads the whole body.
    ///
    /// # Errors
    /// As [`SessionBodies::read`].
    fn recover(&self, found: FoundBody) -> BodyFuture<'_, BodyRow>;
}

/// A body to write.
#[derive(Debug, Clone)]
pub struct NewBody {
    pub agent: Uuid,
    pub session: Uuid,
    /// The epoch in which the writer owns the agent.
    pub epoch: u64,
    pub messages: Vec<StoredMessage>,
}

/// The columns of a row that name a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyRow {
    pub key: String,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of the messages, each with its newline.
    pub body_bytes: u64,
    /// Bytes of the messages and of the index behind them.
    pub object_bytes: u64,
    /// [`MessageHash`](chorus_session::MessageHash) of the messages.
    pub sha256: String,
    /// SHA-256 of the index, as 64 hex digits.
    pub index_sha256: String,
}

/// A body that was written and that no row names yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenBody {
    pub row: BodyRow,
    /// The row must be committed before this time of the clock that counts sleep. Later the body may be swept.
    pub name_before: Ticks,
}

/// A body in the list of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBody {
    pub key: String,
    pub agent: Uuid,
    pub session: Uuid,
    pub epoch: u64,
    /// Bytes of the messages and of the index behind them.
    pub object_bytes: u64,
}
