//! The operation `permissions.list`.

use chorus_base::error::Result;
use chorus_proto::methods::permissions::{ListParams, ListResult};

use super::profile_info;
use crate::ops::{Ops, agent};

/// Lists the presets and the configured profiles, with the agents that use them.
pub async fn list(ops: &Ops, _: ListParams) -> Result<ListResult> {
    agent::reload_all(ops, ops.agents.all()).await?;
    let profiles = ops.config.profiles.iter().map(|(name, profile)| profile_info(ops, name, profile)).collect();
    Ok(ListResult { profiles })
}
