//! The operation `context.attach`.

use std::sync::Arc;

use chorus_agent_core::turn_sink::{TurnListener, TurnSink};
use chorus_base::error::{Error, Result};
use chorus_proto::methods::conversations::{AttachParams, AttachResult, Attached};

use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;

/// The limit on the characters of a client's name.
const MAX_CLIENT_CHARS: usize = 100;

/// Follows a conversation: what was said so far in the running turn, then whatever happens, until the future is dropped.
///
/// # Errors
/// `agent_not_found`, `conversation_not_found`; `invalid_params` if the listener cannot be reached.
pub async fn attach(
    agents: &AgentResolver,
    registry: &Arc<Registry>,
    params: AttachParams,
    listener: Option<Arc<dyn TurnListener>>,
) -> Result<AttachResult> {
    let Some(listener) = listener else {
        return Err(Error::invalid("notifications need a number as the request's id").hint("use an integer as `id`"));
    };
    let client = params.client.unwrap_or_else(|| "a client".to_owned());
    if client.is_empty() || client.chars().count() > MAX_CLIENT_CHARS || client.chars().any(char::is_control) {
        return Err(Error::invalid(format!("`client` must be 1 to {MAX_CLIENT_CHARS} printable characters")));
    }
    let target = agents.conversation(params.agent.as_deref(), params.conversation.as_deref()).await?;
    let sink = TurnSink::new(Some(listener));
    let about = Attached { client, since: registry.now() };
    let _attached = registry.attached.attach(target.key, about, sink.clone());
    loop {
        sink.wait_for_backlog().await;
        sink.flush();
    }
}
