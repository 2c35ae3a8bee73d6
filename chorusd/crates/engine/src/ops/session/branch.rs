//! The operation `session.branch`.

use chorus_agent_core::event::RestoredContext;
use chorus_base::error::Result;
use chorus_proto::methods::session_tree::{BranchParams, BranchResult};

use crate::ops::context::session_prefix::SessionPrefix;
use crate::ops::{Ops, resolve, wire_types};

/// Continues from a session, or from its first messages, as the live context of the agent or of the one that `as`
/// names. Unsaved messages of that context are saved first. The session and its continuations stay as they are.
///
/// # Errors
/// As `context.restore`; `agent_not_found` also for `as`.
pub async fn branch(ops: &Ops, params: BranchParams) -> Result<BranchResult> {
    let of = resolve::agent(ops, params.agent.as_deref()).await?;
    let goes_on = match &params.as_agent {
        Some(name) => resolve::agent(ops, Some(name)).await?,
        None => of.clone(),
    };
    let _no_deletes = ops.sessions_lock.read().await;
    let row = resolve::session(ops, &of, params.agent.is_some() && !params.own, &params.session).await?;
    let mut taken = SessionPrefix::read(ops, &row, params.at).await?;
    let warnings = std::mem::take(&mut taken.warnings);
    let restore = taken.into_command(&row, false);
    let RestoredContext { messages, saved_first } = ops.registry.ask(goes_on.settings.id, restore).await?;
    // Not awaited: only retention uses the time of last use.
    drop(ops.store.catalog.sessions.touch(row.header.id, ops.clock.now()));
    Ok(BranchResult {
        agent: goes_on.settings.name.clone(),
        session: wire_types::session(ops, row).await?,
        messages,
        saved_first: saved_first.map(|session| *session),
        warnings,
    })
}
