//! The care that any database needs besides the reads and writes of its rows.

use std::fmt::Debug;

use chorus_base::error::{Error, Result};
use chorus_catalog::ChainVerifier;
use futures_util::future::BoxFuture;
use jiff::Timestamp;

/// The care of the databases behind a journal and a catalog.
pub trait Upkeep: Debug + Send + Sync {
    /// Returns whether what deleted rows left behind in the database must be overwritten.
    fn is_purge_due(&self) -> BoxFuture<'_, Result<bool>>;

    /// Overwrites what deleted rows left behind, as far as the database allows it.
    fn purge_deleted(&self) -> BoxFuture<'_, Result<()>>;

    /// Verifies the hash chains of the audit log.
    fn verify_audit_log(&self) -> BoxFuture<'_, Result<ChainVerifier>>;

    /// Writes a row to the audit log if rows at its end are missing.
    fn record_lost_audits(&self, now: Timestamp) -> BoxFuture<'_, Result<()>>;

    /// Frees memory that the database needs only while it is in use.
    fn release_memory(&self) -> BoxFuture<'_, ()>;

    /// Acknowledges nothing more, because of `failure`.
    fn poison(&self, failure: Error);

    /// Ends the use of the database after the queued writes.
    ///
    /// # Errors
    /// Fails if something could not be put in order; the database is closed all the same.
    fn close(&self) -> BoxFuture<'_, Result<()>>;
}
