//! `agent.show`.

use chorus_proto::methods::agent::{ShowParams, ShowResult};

use super::config::in_force;
use crate::failure::Result;
use crate::ops::{Ops, select, view};

/// One agent with its configuration.
///
/// # Errors
/// `agent_not_found`, `no_agent`.
pub async fn show(ops: &Ops, params: ShowParams) -> Result<ShowResult> {
    let entry = select::agent(ops, params.name.as_deref()).await?;
    let (config, sessions) = in_force(ops, &entry).await?;
    Ok(ShowResult { agent: view::agent(ops, &entry).await?, config: config.map().clone(), sessions })
}
