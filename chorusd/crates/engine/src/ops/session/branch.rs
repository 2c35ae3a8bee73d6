//! The operation `session.branch`.

use std::sync::Arc;

use chorus_agent_core::event::RestoredContext;
use chorus_base::error::Result;
use chorus_base::requester::Requester;
use chorus_clock::Clock;
use chorus_proto::Trigger;
use chorus_proto::methods::session_branching::{BranchParams, BranchResult};
use tokio::sync::RwLock;

use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;
use crate::ops::context::session_prefix::SessionPrefix;
use crate::ops::conversations::ConversationTarget;
use crate::ops::session::SessionReader;

/// Continues from a session, or from its first messages, as the live context of the agent or of the one that `as`
/// names. Unsaved messages of that context are saved first. The session and its continuations stay as they are.
///
/// # Errors
/// As `context.restore`; `agent_not_found` also for `as`.
pub async fn branch(
    agents: &AgentResolver,
    sessions: &SessionReader,
    lock: &RwLock<()>,
    registry: &Arc<Registry>,
    clock: &Clock,
    params: BranchParams,
) -> Result<BranchResult> {
    let of = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let goes_on = match &params.as_agent {
        Some(name) => ConversationTarget::main(agents.resolve(Some(name)).await?),
        None => ConversationTarget::new(of.agent.clone(), of.key),
    };
    let new = params.as_conversation.as_deref();
    agents.check_destination(&goes_on.agent, new)?;
    let saved_live = sessions.save_if_selected(&Requester::Owner, &of, &[&params.session], Trigger::Restore).await?;
    let _no_deletes = lock.read().await;
    let said = params.agent.is_some() && !params.own;
    let row = sessions.resolve(&of, said, &params.session, "session branch NAME").await?;
    let (mut taken, check) = SessionPrefix::read(sessions, &row, params.at).await?;
    let mut warnings = std::mem::take(&mut taken.warnings);
    if !said {
        warnings.extend(sessions.same_name_warning(&row, &params.session).await?);
    }
    let restore = taken.into_command(&row, false);
    let goes_on = agents.destination(goes_on, new).await?;
    let RestoredContext { messages, saved_first } = registry.ask(goes_on.key, restore).await?;
    // Not awaited: only retention uses the time of last use.
    drop(sessions.table.touch(row.header.id, clock.now()));
    if let Some(warning) = check.warning(&row).await {
        warnings.insert(0, warning);
    }
    Ok(BranchResult {
        agent: goes_on.agent.settings.name.clone(),
        session: sessions.describe(row).await?,
        messages,
        saved_first: saved_first.or(saved_live).map(|session| *session),
        warnings,
    })
}
