//! `permissions.list`.

use chorus_proto::methods::permissions::{ListParams, ListResult};

use super::profile_info;
use crate::error::Result;
use crate::ops::{Ops, agent};

/// The presets and the profiles of the configuration, with who has them.
///
/// # Errors
/// A database that cannot be written.
pub async fn list(ops: &Ops, _: ListParams) -> Result<ListResult> {
    agent::reload_all(ops, ops.agents.all()).await?;
    let profiles = ops.config.profiles.iter().map(|(name, profile)| profile_info(ops, name, profile)).collect();
    Ok(ListResult { profiles })
}
