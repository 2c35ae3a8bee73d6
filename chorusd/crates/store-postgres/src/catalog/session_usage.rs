//! The usage of imported conversations, which is written in the commits of their sessions.

use chorus_catalog::ImportedUsage;
use uuid::Uuid;

use crate::statement::Call;

/// Records the usage of a session whose row exists, in place of an earlier one. PostgreSQL has no table of it yet.
pub(super) fn record_calls(_session: Uuid, _usage: &ImportedUsage) -> Vec<Call> {
    Vec::new()
}

/// Deletes the usage of a session.
pub(super) fn delete_calls(_session: Uuid) -> Vec<Call> {
    Vec::new()
}

/// Gives the usage of a session to another agent.
pub(super) fn move_calls(_session: Uuid, _agent: Uuid) -> Vec<Call> {
    Vec::new()
}
