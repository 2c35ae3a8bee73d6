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
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let rewind = match (params.undo, params.n) {
        (true, None) => command::unrewind(),
        (true, Some(_)) => {
            return Err(Error::invalid("`undo` reverts the whole last rewind, so it takes no number")
                .hint("leave out the number"));
        }
        (false, Some(0)) => {
            return Err(Error::invalid("N must be at least 1").hint("without a number, the last turn is undone"));
        }
        (false, turns) => command::rewind(turns.unwrap_or(1)),
    };
    let rewound = registry.ask(target.key, rewind).await?;
    Ok(RewindResult { moved: rewound.moved_messages, messages: rewound.messages })
}
