//! Requests of a node whose database is gone.

use std::time::Duration;

use chorus_base::error::{Error, MAYBE_STORED_HINT};
use chorus_proto::ErrorKind;

use super::claims::AgentClaims;

/// Time from which on nobody waits any more for the store, counted from when this node may begin nothing more.
const MAX_WAIT_WITHOUT_STORE: Duration = Duration::from_secs(4);

impl AgentClaims {
    /// Waits until the store was gone for so long that who waits is told so, and returns the error for a request that reads only, or
    /// changes something. Without a cluster it never returns.
    pub async fn store_given_up(&self, is_read: bool) -> Error {
        let Some(ownership) = &self.store.ownership else { return std::future::pending().await };
        loop {
            ownership.hold_ended().await;
            tokio::select! {
                () = tokio::time::sleep(MAX_WAIT_WITHOUT_STORE) => break,
                () = ownership.held() => {}
            }
        }
        let hint = if is_read { "check that PostgreSQL is running, then try again" } else { MAYBE_STORED_HINT };
        Error::new(ErrorKind::StorageUnavailable, "this node has lost its connection to PostgreSQL").hint(hint)
    }
}
