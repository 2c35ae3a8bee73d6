//! The clients that have a conversation open: they hear what happens in it, and status requests list them.

use std::collections::HashMap;

use chorus_agent_core::turn_sink::{TurnSink, TurnSinks};
use chorus_base::sync::Mutex;
use chorus_proto::methods::conversations::{Attached, ContextPosition};
use chorus_proto::methods::send::TurnEvent;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
use tokio::sync::watch;
use uuid::Uuid;

/// The attached clients and the running turns, by conversation.
#[derive(Debug, Default)]
pub struct AttachedClients(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    clients: HashMap<ConversationKey, Vec<AttachedClient>>,
    turns: HashMap<ConversationKey, (Uuid, TurnSinks)>,
}

#[derive(Debug)]
struct AttachedClient {
    id: Uuid,
    about: Attached,
    sink: TurnSink,
    /// Gets the place at which the agent left this daemon.
    left: watch::Sender<Option<ContextPosition>>,
}

/// Keeps a client attached until it is dropped.
#[derive(Debug)]
pub struct AttachedGuard<'a> {
    clients: &'a AttachedClients,
    conversation: ConversationKey,
    id: Uuid,
    left: watch::Receiver<Option<ContextPosition>>,
}

impl AttachedGuard<'_> {
    /// Waits until the agent has left this daemon for another one. Returns the end of what the client has heard.
    pub async fn wait_until_left(&mut self) -> ContextPosition {
        let position = self.left.wait_for(Option::is_some).await.ok().and_then(|position| *position);
        match position {
            Some(position) => position,
            None => std::future::pending().await,
        }
    }
}

impl Drop for AttachedGuard<'_> {
    fn drop(&mut self) {
        let clients = &mut self.clients.0.lock().clients;
        if let Some(attached) = clients.get_mut(&self.conversation) {
            // Its sink may still be a listener of the running turn.
            attached.iter().filter(|client| client.id == self.id).for_each(|client| client.sink.close());
            attached.retain(|client| client.id != self.id);
            if attached.is_empty() {
                clients.remove(&self.conversation);
            }
        }
    }
}

impl AttachedClients {
    /// Adds a client until the guard is dropped. It first hears who else is attached and what was said so far in the
    /// running turn, then whatever happens.
    #[must_use]
    pub fn attach(&self, conversation: ConversationKey, about: Attached, sink: TurnSink) -> AttachedGuard<'_> {
        let id = Uuid::new_v4();
        // Under the lock, so that a turn that begins meanwhile is heard of once.
        let mut inner = self.0.lock();
        let others = inner.others(conversation);
        match inner.turns.get(&conversation) {
            Some((turn, sinks)) => {
                sinks.add_late_listener(sink.clone(), &TurnEvent::Attached { turn_id: Some(*turn), others });
            }
            None => sink.send(&TurnEvent::Attached { turn_id: None, others }),
        }
        let (left, leaving) = watch::channel(None);
        inner.clients.entry(conversation).or_default().push(AttachedClient { id, about, sink, left });
        AttachedGuard { clients: self, conversation, id, left: leaving }
    }

    /// Has the attached clients listen to a turn that begins.
    pub(super) fn begin_turn(&self, conversation: ConversationKey, turn: Uuid, sinks: &TurnSinks) {
        let mut inner = self.0.lock();
        let attached = inner.clients.get(&conversation).into_iter().flatten();
        attached.for_each(|client| sinks.add_listener(client.sink.clone()));
        inner.turns.insert(conversation, (turn, sinks.clone()));
    }

    /// Tells the attached clients that a turn has ended.
    pub(super) fn end_turn(&self, conversation: ConversationKey, turn: Uuid, reason: Option<String>) {
        let mut inner = self.0.lock();
        if inner.turns.get(&conversation).is_some_and(|(running, _)| *running == turn) {
            inner.turns.remove(&conversation);
        }
        inner.send(conversation, &TurnEvent::Ended { turn_id: turn, reason });
    }

    /// Forgets the running turn of a conversation whose actor has gone.
    pub(super) fn forget_turn(&self, conversation: ConversationKey) {
        self.0.lock().turns.remove(&conversation);
    }

    /// Tells the clients of an agent that it has left this daemon, each with the place to which it has heard its conversation.
    pub(super) fn leave(&self, agent: Uuid, position: impl Fn(ConversationKey) -> ContextPosition) {
        let inner = self.0.lock();
        for (conversation, clients) in inner.clients.iter().filter(|(conversation, _)| conversation.agent == agent) {
            let position = position(*conversation);
            clients.iter().for_each(|client| _ = client.left.send_replace(Some(position)));
        }
    }

    /// Returns whether a turn runs in a conversation.
    pub(crate) fn has_turn(&self, conversation: ConversationKey) -> bool {
        self.0.lock().turns.contains_key(&conversation)
    }

    /// Returns the clients that are attached to a conversation, in the order in which they came.
    #[must_use]
    pub fn list(&self, conversation: ConversationKey) -> Vec<Attached> {
        self.0.lock().others(conversation)
    }

    /// Returns true if a client is attached to the conversation.
    pub(super) fn has_any(&self, conversation: ConversationKey) -> bool {
        self.0.lock().clients.contains_key(&conversation)
    }

    /// Sends an event to the clients that are attached to a conversation.
    pub(super) fn send(&self, conversation: ConversationKey, event: &TurnEvent) {
        self.0.lock().send(conversation, event);
    }
}

impl Inner {
    fn others(&self, conversation: ConversationKey) -> Vec<Attached> {
        self.clients.get(&conversation).into_iter().flatten().map(|client| client.about.clone()).collect()
    }

    fn send(&self, conversation: ConversationKey, event: &TurnEvent) {
        self.clients.get(&conversation).into_iter().flatten().for_each(|client| client.sink.send(event));
    }
}

/// Returns the event that a message was added; `None` if it cannot be read.
pub(crate) fn message_event(message: &StoredMessage) -> Option<TurnEvent> {
    let message = message.to_message().ok()?;
    let author = message.author.map(|author| author.name);
    Some(TurnEvent::Message { id: message.id, role: message.role, text: message.content, author })
}
