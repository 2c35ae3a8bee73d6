//! The operation `schedule.remove`.

use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_proto::methods::schedule::{RemoveParams, RemoveResult};

use super::{Schedules, conversation_origin, turn};

/// Removes a schedule, and closes its conversation if that is empty. A run that is under way continues.
///
/// # Errors
/// `agent_not_found`, `not_found`.
pub async fn remove(schedules: &Schedules, params: RemoveParams) -> Result<RemoveResult> {
    remove_as(schedules, params, &Requester::Owner).await
}

/// Like [`remove`], on behalf of `by`.
///
/// # Errors
/// As [`remove`].
pub async fn remove_as(schedules: &Schedules, params: RemoveParams, by: &Requester) -> Result<RemoveResult> {
    let (agent, row) = schedules.find(params.agent.as_deref(), &params.name).await?;
    let _alone = schedules.changes.lock(row.id).await;
    schedules.audit_change(&agent, "remove", &row, by).await?;
    schedules.table.delete(row.clone()).await?;
    let conversations = &schedules.agents.index.conversations;
    if let Some(conversation) = conversations.by_origin(row.agent, &conversation_origin(row.id))
        && row.progress.pending_at.is_none()
    {
        turn::close_if_empty(&schedules.agents, conversation.key).await;
    }
    Ok(RemoveResult { schedule: schedules.describe(row, &agent.settings.name) })
}
