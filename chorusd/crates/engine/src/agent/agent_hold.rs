//! Locks an agent with all its conversations, while its directory moves.

use std::sync::Arc;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::interruption_reason::Interruption;
use chorus_base::error::{Error, Result};
use chorus_session::conversation::ConversationKey;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::actor::Envelope;
use super::command::{self, Command, HoldGuard};
use super::registry::{Inner, Registry};

/// Keeps the conversations of an agent locked until it is dropped. Requests wait meanwhile.
#[derive(Debug)]
pub struct AgentHold {
    // First: whoever waits for the others may freeze the agent as soon as they are free.
    _frozen: FreezeGuard,
    _held: Vec<HoldGuard>,
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
        // From here on the actors of other conversations wait before they do anything.
        let frozen = self.freeze_if(settings.id, |_| true);
        let (frozen, others) = frozen.ok_or_else(Error::busy)?;
        for conversation in others.into_iter().filter(|key| !key.is_main()) {
            held.extend(self.hold_running(conversation, settings, ends_turn).await?);
        }
        Ok(AgentHold { _held: held, _frozen: frozen })
    }

    /// As [`Registry::hold_agent`], for an agent that moves to another daemon: ends its turns, and loads no context that is
    /// not in memory.
    pub(crate) async fn hold_for_move(self: &Arc<Self>, settings: &Arc<AgentSettings>) -> Result<AgentHold> {
        let ends_turn = Some(Interruption::AgentMoved);
        // Whoever has locked the agent has an actor of `main`, which is locked first.
        let is_free = |inner: &Inner| !inner.actors.contains_key(&ConversationKey::main(settings.id));
        let Some((frozen, active)) = self.freeze_if(settings.id, is_free) else {
            return self.hold_agent(settings, ends_turn).await;
        };
        let mut held = Vec::new();
        for conversation in active {
            held.extend(self.hold_running(conversation, settings, ends_turn).await?);
        }
        Ok(AgentHold { _held: held, _frozen: frozen })
    }

    /// Lets further actors of an agent wait before they do anything, if `condition` holds. Returns the conversations that
    /// have one.
    fn freeze_if(
        self: &Arc<Self>,
        agent: Uuid,
        condition: impl FnOnce(&Inner) -> bool,
    ) -> Option<(FreezeGuard, Vec<ConversationKey>)> {
        let thawed = CancellationToken::new();
        let mut inner = self.inner.lock();
        if !condition(&inner) {
            return None;
        }
        inner.frozen.insert(agent, thawed.clone());
        let active = self.with_actors(&inner, agent);
        Some((FreezeGuard { registry: self.clone(), agent, thawed }, active))
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
