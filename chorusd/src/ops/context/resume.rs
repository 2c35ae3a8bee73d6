//! `context.resume`.

use chorus_proto::methods::chain::{ResumeParams, ResumeResult};

use super::continuation_source::ContinuationSource;
use super::wrong_reply;
use crate::agent::event::{AgentCommand, CommandOutcome, Resume};
use crate::error::Result;
use crate::ops::{Ops, resolve, wire_types};
use crate::requester::Requester;

/// Begins a fresh context that goes on from a session, which it knows by its summary and its working set. Unsaved messages of the
/// live context are saved first. What is amiss with the session is told, and what can be done is done.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `corrupt_session` where not even a summary is known; `busy`, `disk_full`, `storage_failed`.
pub async fn resume(ops: &Ops, params: ResumeParams) -> Result<ResumeResult> {
    resume_as(ops, params, &Requester::Owner).await
}

/// As [`resume`], on behalf of `by`.
///
/// # Errors
/// As [`resume`].
pub async fn resume_as(ops: &Ops, params: ResumeParams, by: &Requester) -> Result<ResumeResult> {
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    // Another agent's is told of, not refused: no message of it comes over.
    let row = resolve::session_as(ops, by, &agent, true, &params.session).await?;
    // A turn that runs would refuse it, and the acknowledgement costs money.
    ops.registry.ask(agent.settings.id, AgentCommand::CheckReplaceable).await?;
    let parent = ContinuationSource::read(ops, &agent.settings, &row).await?;
    let opening = parent.opening_message(ops, &agent.settings, true).await?;
    let id = row.header.id;
    let verb = AgentCommand::Resume(Box::new(Resume {
        session: id,
        session_id: row.header.session_id.clone(),
        working_set: parent.working_set(),
        acknowledgement: opening.message,
        restoration: opening.cost,
        compaction: None,
    }));
    let CommandOutcome::Restored { messages, saved_first } = ops.registry.ask(agent.settings.id, verb).await?.reply
    else {
        return Err(wrong_reply());
    };
    // When it was last used only matters to retention: nobody waits for it.
    drop(ops.store.catalog.touch_session(id, ops.clock.now()));
    Ok(ResumeResult {
        session: wire_types::session(ops, row).await?,
        messages,
        saved_first: saved_first.map(|session| *session),
        acknowledgement: opening.text,
        generated: opening.generated,
        warnings: parent.warnings,
    })
}
