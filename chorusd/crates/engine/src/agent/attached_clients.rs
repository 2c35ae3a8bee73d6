//! The clients that have a conversation open: they hear what happens in it, and status requests list them.

use std::collections::HashMap;

use chorus_agent_core::turn_sink::{TurnSink, TurnSinks};
use chorus_base::sync::Mutex;
use chorus_proto::methods::conversations::Attached;
use chorus_proto::methods::send::TurnEvent;
use chorus_session::conversation::ConversationKey;
use chorus_session::stored_message::StoredMessage;
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
}

/// Keeps a client attached until it is dropped.
#[derive(Debug)]
pub struct AttachedGuard<'a> {
    clients: &'a AttachedClients,
    conversation: ConversationKey,
    id: Uuid,
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
        inner.clients.entry(conversation).or_default().push(AttachedClient { id, about, sink });
        AttachedGuard { clients: self, conversation, id }
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
pub(super) fn message_event(message: &StoredMessage) -> Option<TurnEvent> {
    let message = message.to_message().ok()?;
    let author = message.author.map(|author| author.name);
    Some(TurnEvent::Message { id: message.id, role: message.role, text: message.content, author })
}
