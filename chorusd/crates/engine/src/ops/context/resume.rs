//! The operation `context.resume`.

use chorus_agent_core::event::{RestoredContext, Resume};
use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_proto::methods::continuation::{ResumeParams, ResumeResult};

use super::continuation_source::ContinuationSource;
use crate::agent::command;
use crate::ops::{Ops, resolve_agent};

/// Begins a new context that continues from a session by its summary and working set. Unsaved messages of the live
/// context are saved first. Problems with the session are reported as warnings as long as something of it is usable.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `corrupt_session` if not even a summary is known; `busy`, `disk_full`,
/// `storage_failed`.
pub async fn resume(ops: &Ops, params: ResumeParams) -> Result<ResumeResult> {
    resume_as(ops, params, &Requester::Owner).await
}

/// Like [`resume`], on behalf of `by`.
pub async fn resume_as(ops: &Ops, params: ResumeParams, by: &Requester) -> Result<ResumeResult> {
    let agent = resolve_agent::agent(ops, params.agent.as_deref()).await?;
    // A session of another agent causes a warning instead of an error, because none of its messages is copied.
    let row = ops.sessions.resolve_as(by, &agent, true, &params.session).await?;
    // Checked first, because a running turn would refuse the command after the acknowledgement has cost money.
    ops.registry.ask(agent.settings.id, command::check_replaceable()).await?;
    let parent = ContinuationSource::read(ops, &agent.settings, &row).await?;
    let opening = parent.opening_message(ops, &agent.settings, true).await?;
    let id = row.header.id;
    let resume = command::resume(Resume {
        session: id,
        session_id: row.header.session_id.clone(),
        working_set: parent.working_set(),
        acknowledgement: opening.message,
        restoration: opening.cost,
        compaction: None,
    });
    let RestoredContext { messages, saved_first } = ops.registry.ask(agent.settings.id, resume).await?;
    // Not awaited: only retention uses the time of last use.
    drop(ops.store.catalog.sessions.touch(id, ops.clock.now()));
    Ok(ResumeResult {
        session: ops.sessions.describe(row).await?,
        messages,
        saved_first: saved_first.map(|session| *session),
        acknowledgement: opening.text,
        generated: opening.generated,
        warnings: parent.warnings,
    })
}
