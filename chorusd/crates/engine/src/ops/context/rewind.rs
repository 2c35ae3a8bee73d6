//! The operation `context.rewind`.

use std::sync::Arc;

use chorus_base::error::{Error, Result};
use chorus_proto::methods::context::{RewindParams, RewindResult};

use crate::agent::command;
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;

/// Drops the last user turns from the live context; `undo` brings back what the last rewind dropped.
///
/// # Errors
/// `nothing_to_save` for an empty context, `invalid_params`, `denied` if there is nothing to undo.
pub async fn rewind(agents: &AgentResolver, registry: &Arc<Registry>, params: RewindParams) -> Result<RewindResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let rewind = match (params.undo, params.n) {
        (true, None) => command::unrewind(),
        (true, Some(_)) => {
            return Err(Error::invalid("`undo` takes the last rewind back whole").hint("leave the number out"));
        }
        (false, Some(0)) => {
            return Err(Error::invalid("at least one turn").hint("without a number the last one is dropped"));
        }
        (false, turns) => command::rewind(turns.unwrap_or(1)),
    };
    let rewound = registry.ask(agent.settings.id, rewind).await?;
    Ok(RewindResult { moved: rewound.moved_messages, messages: rewound.messages })
}
