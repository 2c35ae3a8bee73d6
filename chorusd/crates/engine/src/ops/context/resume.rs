//! The operation `context.resume`.

use chorus_agent_core::event::{RestoredContext, Resume};
use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_proto::Trigger;
use chorus_proto::methods::continuation::{ResumeParams, ResumeResult};

use super::ContinuationStarter;
use super::continuation_source::ContinuationSource;
use crate::agent::command;
use crate::ops::agent::AgentResolver;

/// Begins a new context that continues from a session by its summary and working set. Unsaved messages of the live
/// context are saved first. Problems with the session are reported as warnings as long as something of it is usable.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `corrupt_session` if not even a summary is known; `busy`, `disk_full`,
/// `storage_failed`.
pub async fn resume(
    agents: &AgentResolver,
    starter: &ContinuationStarter,
    params: ResumeParams,
) -> Result<ResumeResult> {
    resume_as(agents, starter, params, &Requester::Owner).await
}

/// Like [`resume`], on behalf of `by`.
pub async fn resume_as(
    agents: &AgentResolver,
    starter: &ContinuationStarter,
    params: ResumeParams,
    by: &Requester,
) -> Result<ResumeResult> {
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let saved_live = starter.sessions.save_if_selected(by, &target, &[&params.session], Trigger::Resume).await?;
    // A session of another agent causes a warning instead of an error, because none of its messages is copied.
    let row = starter.sessions.find_as(by, &target, params.agent.is_none(), &params.session).await?;
    // Checked first, because a running turn would refuse the command after the acknowledgement has cost money.
    let new = params.as_conversation.as_deref();
    agents.check_destination(&target.agent, new)?;
    if new.is_none() {
        starter.registry.ask(target.key, command::check_replaceable()).await?;
    }
    let mut parent = ContinuationSource::read(starter, &target.agent.settings, &row).await?;
    let carried = parent.working_set();
    parent.warnings.extend(carried.warning(&row.header.session_id));
    let opening = parent.opening_message(starter, &target, true).await?;
    let id = row.header.id;
    let resume = command::resume(Resume {
        session: id,
        session_id: row.header.session_id.clone(),
        working_set: carried.working_set,
        acknowledgement: opening.message,
        restoration: opening.cost,
        compaction: None,
    });
    let target = agents.destination(target, new).await?;
    let RestoredContext { messages, saved_first } = starter.registry.ask(target.key, resume).await?;
    // Not awaited: only retention uses the time of last use.
    drop(starter.store.catalog.sessions.touch(id, starter.clock.now()));
    Ok(ResumeResult {
        session: starter.sessions.describe(row).await?,
        messages,
        saved_first: saved_first.or(saved_live).map(|session| *session),
        acknowledgement: opening.text,
        generated: opening.generated,
        warnings: parent.warnings,
    })
}
