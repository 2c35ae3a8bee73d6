//! The operation `context.clear`.

use chorus_base::error::Result;
use chorus_proto::methods::context::{ClearParams, ClearResult};

use crate::agent::command;
use crate::ops::{Ops, resolve};

/// Discards the live context; `save` saves it first. Clients ask for confirmation themselves.
pub async fn clear(ops: &Ops, params: ClearParams) -> Result<ClearResult> {
    let agent = resolve::agent(ops, params.agent.as_deref()).await?;
    ops.registry.ask(agent.settings.id, command::clear(params.save)).await
}
