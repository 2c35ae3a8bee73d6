//! Locks an agent with all its conversations, while its directory moves.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::interruption_reason::Interruption;
use chorus_base::error::Result;
use chorus_session::conversation::ConversationKey;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::actor::Envelope;
use super::command::{self, Command, HoldGuard};
use super::registry::Registry;

/// Keeps the conversations of an agent locked until it is dropped. Requests wait meanwhile.
#[derive(Debug)]
pub struct AgentHold {
    _held: Vec<HoldGuard>,
    _frozen: FreezeGuard,
}

/// Keeps further actors of an agent from beginning until it is dropped.
#[derive(Debug)]
struct FreezeGuard {
    registry: Arc<Registry>,
    agent: Uuid,
    thawed: CancellationToken,
}

impl Drop for FreezeGuard {
    fn drop(&mut self) {
        self.registry.inner.lock().frozen.remove(&self.agent);
        self.thawed.cancel();
    }
}

impl Registry {
    /// Locks all conversations of an agent against other requests. Fails while a turn runs in one of them, unless
    /// `ends_turn` is set: then it ends the turns first, for that reason.
    pub async fn hold_agent(
        self: &Arc<Self>,
        settings: &Arc<AgentSettings>,
        ends_turn: Option<Interruption>,
    ) -> Result<AgentHold> {
        let main = ConversationKey::main(settings.id);
        let mut held = vec![self.ask_with_settings(main, settings.clone(), command::hold(ends_turn)).await?];
        let thawed = CancellationToken::new();
        // From here on the actors of other conversations wait before they do anything.
        let others: Vec<ConversationKey> = {
            let mut inner = self.inner.lock();
            inner.frozen.insert(settings.id, thawed.clone());
            inner.actors.keys().filter(|key| key.agent == settings.id && !key.is_main()).copied().collect()
        };
        let frozen = FreezeGuard { registry: self.clone(), agent: settings.id, thawed };
        for conversation in others {
            held.extend(self.hold_running(conversation, settings, ends_turn).await?);
        }
        Ok(AgentHold { _held: held, _frozen: frozen })
    }

    /// Locks a conversation that has an actor; `None` if it has none by now.
    async fn hold_running(
        &self,
        conversation: ConversationKey,
        settings: &Arc<AgentSettings>,
        ends_turn: Option<Interruption>,
    ) -> Result<Option<HoldGuard>> {
        let Command { command, take_reply } = command::hold(ends_turn);
        let (reply, answer) = oneshot::channel();
        let envelope = Envelope { command: Box::new(command), settings: Some(settings.clone()), reply };
        let actor = self.inner.lock().actors.get(&conversation).cloned();
        let Some(actor) = actor else { return Ok(None) };
        if actor.send(envelope).await.is_err() {
            return Ok(None);
        }
        match answer.await {
            Ok(reply) => Ok(take_reply(reply?)),
            // It retired before it read the request.
            Err(_) => Ok(None),
        }
    }
}
