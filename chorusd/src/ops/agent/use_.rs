//! `agent.use`.

use chorus_proto::methods::agent::{UseParams, UseResult};

use crate::failure::Result;
use crate::ops::{Ops, select, view};

/// The setting that remembers the choice over restarts.
pub const CHOSEN: &str = "chosen_agent";

/// Chooses the agent that is meant when none is named.
///
/// # Errors
/// `agent_not_found`.
pub async fn use_(ops: &Ops, params: UseParams) -> Result<UseResult> {
    let entry = select::agent(ops, Some(&params.name)).await?;
    ops.store.catalog.set_setting(CHOSEN, Some(entry.facts.id.to_string())).await?;
    ops.directory.choose(Some(entry.facts.id));
    Ok(UseResult { agent: view::agent(ops, &entry).await? })
}
