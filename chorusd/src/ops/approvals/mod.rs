//! `approvals.*`.

pub mod approve;
pub mod deny;
pub mod list;

use chorus_proto::methods::approvals::Approval;

use crate::agent::directory::Entry;
use crate::failure::Result;
use crate::ops::Ops;

/// The question of that id as it stands, without secrets.
///
/// # Errors
/// A database that cannot be read.
pub async fn look(ops: &Ops, id: &str) -> Result<Option<Approval>> {
    ops.store.catalog.approval(id.to_owned()).await
}

/// Denies what is asked of an agent whose permissions are no longer those of `before`: it was asked under other rules.
pub async fn close_outdated(ops: &Ops, before: &Entry) {
    let now = ops.directory.by_id(before.facts.id);
    if now.is_some_and(|now| now.permissions != before.permissions) {
        ops.registry.world.approvals.close(before.facts.id).await;
    }
}
