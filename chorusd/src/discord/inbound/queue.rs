//! What waits for each agent: one message after the other, in their order.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serenity::model::id::{ChannelId, MessageId};
use tokio::sync::watch;
use uuid::Uuid;

use super::request::MessageRequest;
use super::{Claim, process};
use crate::discord::app::DiscordApp;

/// What has become of a message since it was taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingEdit {
    /// It says something else now.
    Changed(MessageRequest),
    /// It was deleted.
    Deleted,
}

/// Desks of agents that have something to do.
#[derive(Debug, Default)]
pub struct AgentQueues(Mutex<HashMap<Uuid, AgentQueue>>);

#[derive(Debug, Default)]
struct AgentQueue {
    waiting: VecDeque<Claim>,
    /// The one that is carried out, and where its changes are told.
    current: Option<(Claim, watch::Sender<Option<PendingEdit>>)>,
}

/// Where a message was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePosition {
    /// It waits, and has been changed.
    Waiting,
    /// It is being carried out; whoever does that was told.
    Current,
}

impl AgentQueues {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, AgentQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message behind the others of its agent.
    pub fn enqueue(&self, bridge: &Arc<DiscordApp>, claim: Claim) {
        let agent = claim.agent;
        let mut desks = self.lock();
        if let Some(desk) = desks.get_mut(&agent) {
            desk.waiting.push_back(claim);
            return;
        }
        desks.insert(agent, AgentQueue { waiting: [claim].into(), current: None });
        bridge.tasks.spawn(run_queue(bridge.clone(), agent));
    }

    /// The next message of an agent, and where its changes are heard; `None`: there is none, and the desk is cleared.
    fn dequeue(&self, agent: Uuid) -> Option<(Claim, watch::Receiver<Option<PendingEdit>>)> {
        let mut desks = self.lock();
        let desk = desks.get_mut(&agent)?;
        let Some(claim) = desk.waiting.pop_front() else {
            desks.remove(&agent);
            return None;
        };
        let (tell, changes) = watch::channel(None);
        desk.current = Some((claim.clone(), tell));
        Some((claim, changes))
    }

    /// Changes what a message says, or takes it away, as long as nobody works on it. `None`: it does not wait.
    pub fn apply_edit(&self, message: MessageId, wish: &PendingEdit) -> Option<QueuePosition> {
        self.lock().values_mut().find_map(|desk| desk.apply_edit(message, wish))
    }

    /// What the messages of a channel say that wait, the one included that is being carried out.
    pub fn requests_in_channel(&self, channel: ChannelId) -> Vec<(MessageId, MessageRequest)> {
        let desks = self.lock();
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

    /// How many wait for an agent.
    pub fn pending_count(&self, agent: Uuid) -> usize {
        self.lock().get(&agent).map_or(0, |desk| desk.waiting.len() + usize::from(desk.current.is_some()))
    }
}

impl AgentQueue {
    fn apply_edit(&mut self, message: MessageId, wish: &PendingEdit) -> Option<QueuePosition> {
        if let Some(at) = self.waiting.iter().position(|claim| claim.message == message) {
            match (wish, self.waiting.get_mut(at)) {
                (PendingEdit::Changed(asked), Some(claim)) => claim.request = asked.clone(),
                _ => drop(self.waiting.remove(at)),
            }
            return Some(QueuePosition::Waiting);
        }
        let (_, tell) = self.current.as_ref().filter(|(claim, _)| claim.message == message)?;
        // Nobody hears it any more where the turn is just over.
        let _ = tell.send(Some(wish.clone()));
        Some(QueuePosition::Current)
    }
}

/// Carries out what waits for an agent, until nothing does or the daemon stops.
async fn run_queue(bridge: Arc<DiscordApp>, agent: Uuid) {
    while !bridge.stop.is_cancelled() {
        let Some((claim, changes)) = bridge.inbound.queues.dequeue(agent) else { return };
        process::process_claim(&bridge, &claim, changes).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requester::Requester;

    fn claim(message: u64) -> Claim {
        Claim {
            message: MessageId::new(message),
            channel: ChannelId::new(7),
            agent: Uuid::nil(),
            request: asked(&message.to_string()),
            is_inherited: false,
        }
    }

    fn asked(text: &str) -> MessageRequest {
        MessageRequest { text: text.into(), below: Vec::new(), files: Vec::new(), by: Requester::Nobody }
    }

    #[test]
    fn a_message_that_waits_changes_and_the_one_at_work_hears_of_it() {
        let desks = AgentQueues::default();
        let desk = AgentQueue { waiting: (1..=4).map(claim).collect(), current: None };
        desks.lock().insert(Uuid::nil(), desk);
        let (first, changes) = desks.dequeue(Uuid::nil()).unwrap();
        assert_eq!((first.message.get(), desks.pending_count(Uuid::nil())), (1, 4));
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
        assert_eq!(desks.dequeue(Uuid::nil()).unwrap().0.request.text, "new");
        assert_eq!(change(1, &says), None, "it is over");
        assert_eq!(desks.dequeue(Uuid::nil()).unwrap().0.message.get(), 4);
        assert!(desks.dequeue(Uuid::nil()).is_none() && desks.lock().is_empty());
    }
}
