//! `context.resume`.

use chorus_proto::methods::chain::{ResumeParams, ResumeResult};

use super::parent::Parent;
use super::wrong_reply;
use crate::agent::event::{Reply, Resume, Verb};
use crate::failure::Result;
use crate::ops::{Ops, select, view};
use crate::who::Requester;

/// Begins a fresh context that goes on from a session, which it knows by its summary and its working set. Unsaved messages of the
/// live context are saved first. What is amiss with the session is told, and what can be done is done.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `corrupt_session` where not even a summary is known; `busy`, `disk_full`, `storage_failed`.
pub async fn resume(ops: &Ops, params: ResumeParams) -> Result<ResumeResult> {
    resume_for(ops, params, &Requester::Owner).await
}

/// As [`resume`], on behalf of `by`.
///
/// # Errors
/// As [`resume`].
pub async fn resume_for(ops: &Ops, params: ResumeParams, by: &Requester) -> Result<ResumeResult> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    // Another agent's is told of, not refused: no message of it comes over.
    let row = select::session_for(ops, by, &agent, true, &params.session).await?;
    // A turn that runs would refuse it, and the acknowledgement costs money.
    ops.registry.ask(agent.facts.id, Verb::IsFree).await?;
    let parent = Parent::read(ops, &agent.facts, &row).await?;
    let opening = parent.acknowledge(ops, &agent.facts, true).await?;
    let id = row.header.id;
    let verb = Verb::Resume(Box::new(Resume {
        session: id,
        session_id: row.header.session_id.clone(),
        working_set: parent.working_set(),
        acknowledgement: opening.message,
        cost: opening.cost,
        compacts: None,
    }));
    let Reply::Restored { messages, saved_first } = ops.registry.ask(agent.facts.id, verb).await?.reply else {
        return Err(wrong_reply());
    };
    // When it was last used only matters to retention: nobody waits for it.
    drop(ops.store.catalog.touch_session(id, ops.clock.now()));
    Ok(ResumeResult {
        session: view::session(ops, row).await?,
        messages,
        saved_first: saved_first.map(|session| *session),
        acknowledgement: opening.text,
        generated: opening.generated,
        warnings: parent.warnings,
    })
}
