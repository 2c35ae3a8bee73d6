//! A queue of claimed messages for each conversation. A conversation processes one message after the other; the
//! conversations of an agent do not wait for each other.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use chorus_base::sync::Mutex;
use chorus_engine::ops::conversations::ConversationKey;
use chorus_runtime::SpawnTracked as _;
use serenity::model::id::{ChannelId, MessageId};
use tokio::sync::watch;
use uuid::Uuid;

use super::request::MessageRequest;
use super::{Claim, claim_processor};
use crate::app::DiscordApp;
use crate::threads;

/// An edit of a message that was claimed and is not processed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingEdit {
    /// The new content of the message.
    Changed(MessageRequest),
    /// The message was deleted.
    Deleted,
}

/// The queues of the conversations that have messages to process.
#[derive(Debug, Default)]
pub(super) struct ConversationQueues(Mutex<HashMap<ConversationKey, ConversationQueue>>);

#[derive(Debug, Default)]
struct ConversationQueue {
    waiting: VecDeque<Claim>,
    /// The message that is being processed, and the channel that its edits are sent to.
    current: Option<(Claim, watch::Sender<Option<PendingEdit>>)>,
}

/// Where in its queue a message was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueuePosition {
    /// It waits, and was changed or removed.
    Waiting,
    /// It is being processed; the edit was sent to the task that processes it.
    Current,
}

impl ConversationQueues {
    /// Adds a message to the end of its conversation's queue, and starts the queue if it was empty.
    pub(super) fn enqueue(&self, app: &Arc<DiscordApp>, claim: Claim) {
        let conversation = claim.conversation;
        let mut desks = self.0.lock();
        if let Some(desk) = desks.get_mut(&conversation) {
            desk.waiting.push_back(claim);
            return;
        }
        desks.insert(conversation, ConversationQueue { waiting: [claim].into(), current: None });
        app.tasks.spawn_tracked(run_queue(app.clone(), conversation));
    }

    /// Takes the next message of a conversation, with the receiver of its edits. Removes the queue and returns `None` if
    /// there is none.
    fn dequeue(&self, conversation: ConversationKey) -> Option<(Claim, watch::Receiver<Option<PendingEdit>>)> {
        let mut desks = self.0.lock();
        let desk = desks.get_mut(&conversation)?;
        let Some(claim) = desk.waiting.pop_front() else {
            desks.remove(&conversation);
            return None;
        };
        let (tell, changes) = watch::channel(None);
        desk.current = Some((claim.clone(), tell));
        Some((claim, changes))
    }

    /// Changes a message or removes it from its queue; if it is being processed, sends the edit to that task. Returns
    /// `None` if the message is in no queue.
    pub(super) fn apply_edit(&self, message: MessageId, wish: &PendingEdit) -> Option<QueuePosition> {
        self.0.lock().values_mut().find_map(|desk| desk.apply_edit(message, wish))
    }

    /// Returns the requests of all messages of a channel in the queues, the one being processed included.
    pub(super) fn requests_in_channel(&self, channel: ChannelId) -> Vec<(MessageId, MessageRequest)> {
        let desks = self.0.lock();
        let all = desks.values().flat_map(|desk| {
            let current = desk.current.iter().map(|(claim, changes)| match &*changes.borrow() {
                Some(PendingEdit::Changed(asked)) => (claim.channel, claim.message, asked.clone()),
                _ => (claim.channel, claim.message, claim.request.clone()),
            });
            let waiting = desk.waiting.iter().map(|claim| (claim.channel, claim.message, claim.request.clone()));
            current.chain(waiting).collect::<Vec<_>>()
        });
        all.filter(|(of, ..)| *of == channel).map(|(_, message, asked)| (message, asked)).collect()
    }

    /// Returns the ids of all messages in the queues, those being processed included.
    pub(super) fn message_ids(&self) -> HashSet<u64> {
        let desks = self.0.lock();
        let claims =
            desks.values().flat_map(|desk| desk.waiting.iter().chain(desk.current.iter().map(|(claim, _)| claim)));
        claims.map(|claim| claim.message.get()).collect()
    }

    /// Returns whether messages of a conversation are in its queue or being processed.
    pub(super) fn contains(&self, conversation: ConversationKey) -> bool {
        self.0.lock().contains_key(&conversation)
    }

    /// Counts the messages in the queues of an agent, those being processed included.
    pub(super) fn pending_count(&self, agent: Uuid) -> usize {
        let desks = self.0.lock();
        let of_agent = desks.iter().filter(|(conversation, _)| conversation.agent == agent);
        of_agent.map(|(_, desk)| desk.waiting.len() + usize::from(desk.current.is_some())).sum()
    }
}

impl ConversationQueue {
    fn apply_edit(&mut self, message: MessageId, wish: &PendingEdit) -> Option<QueuePosition> {
        if let Some(at) = self.waiting.iter().position(|claim| claim.message == message) {
            match (wish, self.waiting.get_mut(at)) {
                (PendingEdit::Changed(asked), Some(claim)) => claim.request = asked.clone(),
                _ => drop(self.waiting.remove(at)),
            }
            return Some(QueuePosition::Waiting);
        }
        let (_, tell) = self.current.as_ref().filter(|(claim, _)| claim.message == message)?;
        // The receiver is gone if the turn has just ended.
        let _ = tell.send(Some(wish.clone()));
        Some(QueuePosition::Current)
    }
}

/// Processes the queue of a conversation until it is empty or the daemon stops. A message whose answer was known before a
/// restart opens the conversation of a thread that is archived since; that is closed again.
async fn run_queue(app: Arc<DiscordApp>, conversation: ConversationKey) {
    let mut channel = None;
    while !app.stop.is_cancelled() {
        let Some((claim, changes)) = app.inbound.queues.dequeue(conversation) else { break };
        channel = Some(claim.channel);
        claim_processor::process_claim(&app, &claim, changes).await;
    }
    if let Some(channel) = channel {
        threads::close_if_archived(&app, channel);
    }
}

#[cfg(test)]
mod tests {
    use chorus_base::requester::Requester;

    use super::*;

    const MAIN: ConversationKey = ConversationKey { agent: Uuid::nil(), id: Uuid::nil() };

    fn claim(message: u64) -> Claim {
        Claim {
            message: MessageId::new(message),
            channel: ChannelId::new(7),
            conversation: MAIN,
            request: asked(&message.to_string()),
            is_inherited: false,
        }
    }

    fn asked(text: &str) -> MessageRequest {
        MessageRequest { text: text.into(), below: Vec::new(), files: Vec::new(), by: Requester::Nobody }
    }

    #[test]
    fn a_message_that_waits_changes_and_the_one_at_work_hears_of_it() {
        let desks = ConversationQueues::default();
        let desk = ConversationQueue { waiting: (1..=4).map(claim).collect(), current: None };
        desks.0.lock().insert(MAIN, desk);
        let (first, changes) = desks.dequeue(MAIN).unwrap();
        assert_eq!((first.message.get(), desks.pending_count(Uuid::nil())), (1, 4));
        let other = ConversationKey { id: Uuid::from_u128(1), ..MAIN };
        assert!(desks.contains(MAIN) && !desks.contains(other));
        let change = |message: u64, wish: &PendingEdit| desks.apply_edit(MessageId::new(message), wish);
        let says = PendingEdit::Changed(asked("new"));
        assert_eq!(change(1, &says), Some(QueuePosition::Current));
        assert_eq!(*changes.borrow(), Some(says.clone()));
        assert_eq!(change(2, &says), Some(QueuePosition::Waiting));
        assert_eq!(change(3, &PendingEdit::Deleted), Some(QueuePosition::Waiting));
        assert_eq!(change(9, &PendingEdit::Deleted), None);
        let waiting = desks.requests_in_channel(ChannelId::new(7));
        let waiting: Vec<_> = waiting.iter().map(|(message, asked)| (message.get(), asked.text.as_str())).collect();
        assert_eq!(waiting, [(1, "new"), (2, "new"), (4, "4")]);
        assert!(desks.requests_in_channel(ChannelId::new(8)).is_empty());
        assert_eq!(desks.dequeue(MAIN).unwrap().0.request.text, "new");
        assert_eq!(change(1, &says), None, "it is over");
        assert_eq!(desks.dequeue(MAIN).unwrap().0.message.get(), 4);
        assert!(desks.dequeue(MAIN).is_none() && desks.0.lock().is_empty());
    }
}
