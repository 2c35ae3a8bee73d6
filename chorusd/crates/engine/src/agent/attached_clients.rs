//! The clients that have a conversation open in a chat, for status requests.

use std::collections::HashMap;

use chorus_base::sync::Mutex;
use chorus_proto::methods::conversations::Attached;
use chorus_session::conversation::ConversationKey;
use uuid::Uuid;

/// The attached clients, by conversation.
#[derive(Debug, Default)]
pub struct AttachedClients(Mutex<HashMap<ConversationKey, Vec<(Uuid, Attached)>>>);

/// Counts a client as attached until it is dropped.
#[derive(Debug)]
pub struct AttachedGuard<'a> {
    clients: &'a AttachedClients,
    conversation: ConversationKey,
    id: Uuid,
}

impl Drop for AttachedGuard<'_> {
    fn drop(&mut self) {
        let mut clients = self.clients.0.lock();
        if let Some(attached) = clients.get_mut(&self.conversation) {
            attached.retain(|(id, _)| *id != self.id);
            if attached.is_empty() {
                clients.remove(&self.conversation);
            }
        }
    }
}

impl AttachedClients {
    /// Adds a client until the guard is dropped.
    #[must_use]
    pub fn attach(&self, conversation: ConversationKey, client: Attached) -> AttachedGuard<'_> {
        let id = Uuid::new_v4();
        self.0.lock().entry(conversation).or_default().push((id, client));
        AttachedGuard { clients: self, conversation, id }
    }

    /// Returns the clients that are attached to a conversation, in the order in which they came.
    #[must_use]
    pub fn list(&self, conversation: ConversationKey) -> Vec<Attached> {
        let clients = self.0.lock();
        clients.get(&conversation).into_iter().flatten().map(|(_, client)| client.clone()).collect()
    }
}
