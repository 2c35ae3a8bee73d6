//! The operation `context.attach`.

use std::sync::Arc;

use chorus_agent_core::turn_sink::{TurnListener, TurnSink};
use chorus_base::error::{Error, Result};
use chorus_proto::methods::conversations::{AttachParams, AttachResult, Attached};

use super::attach_resumed::{ResumedListener, missed_messages};
use crate::agent::registry::Registry;
use crate::ops::agent::AgentResolver;

/// The limit on the characters of a client's name.
const MAX_CLIENT_CHARS: usize = 100;

/// Follows a conversation: what was added after a place that the client knows, what was said so far in the running turn, then whatever
/// happens, until the future is dropped, or the agent has moved to another daemon.
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
    let about = Attached { client, since: registry.now() };
    let resumed = Arc::new(ResumedListener::new(listener.clone()));
    let heard: Arc<dyn TurnListener> = if params.after.is_some() { resumed.clone() } else { listener };
    let sink = TurnSink::new(Some(heard));
    let mut attached = registry.attached.attach(target.key, about, sink.clone());
    // Only those who are attached by then are told that the agent leaves.
    agents.claims.ensure(target.key.agent, &target.agent.settings.name).await?;
    if let Some(after) = params.after {
        resumed.resume(missed_messages(registry, target.key, after).await?);
        sink.flush();
    }
    loop {
        tokio::select! {
            () = sink.wait_for_backlog() => sink.flush(),
            moved = attached.wait_until_left() => {
                // The place that is said counts what still waits for the client.
                sink.close();
                return Ok(AttachResult { moved: Some(moved) });
            }
        }
    }
}
