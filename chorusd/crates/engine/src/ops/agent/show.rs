//! The operation `agent.show`.

use chorus_base::error::Result;
use chorus_proto::methods::agent::{ShowParams, ShowResult};

use super::config::effective_config;
use crate::ops::{Ops, resolve_agent, wire_types};

/// Shows one agent with its configuration.
pub async fn show(ops: &Ops, params: ShowParams) -> Result<ShowResult> {
    let entry = resolve_agent::agent(ops, params.name.as_deref()).await?;
    let (config, sessions) = effective_config(ops, &entry).await?;
    Ok(ShowResult { agent: wire_types::agent(ops, &entry).await?, config: config.map().clone(), sessions })
}
