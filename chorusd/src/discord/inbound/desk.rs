//! What waits for each agent: one message after the other, in their order.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serenity::model::id::{ChannelId, MessageId};
use tokio::sync::watch;
use uuid::Uuid;

use super::heard::Asked;
use super::{Claim, turn};
use crate::discord::bridge::Bridge;

/// What has become of a message since it was taken up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// It says something else now.
    Says(Asked),
    /// It was deleted.
    Gone,
}

/// Desks of agents that have something to do.
#[derive(Debug, Default)]
pub struct Desks(Mutex<HashMap<Uuid, Desk>>);

#[derive(Debug, Default)]
struct Desk {
    waiting: VecDeque<Claim>,
    /// The one that is carried out, and where its changes are told.
    current: Option<(Claim, watch::Sender<Option<Wish>>)>,
}

/// Where a message was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It waits, and has been changed.
    Waiting,
    /// It is being carried out; whoever does that was told.
    Current,
}

impl Desks {
    fn desks(&self) -> MutexGuard<'_, HashMap<Uuid, Desk>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message behind the others of its agent.
    pub fn put(&self, bridge: &Arc<Bridge>, claim: Claim) {
        let agent = claim.agent;
        let mut desks = self.desks();
        if let Some(desk) = desks.get_mut(&agent) {
            desk.waiting.push_back(claim);
            return;
        }
        desks.insert(agent, Desk { waiting: [claim].into(), current: None });
        bridge.tasks.spawn(run(bridge.clone(), agent));
    }

    /// The next message of an agent, and where its changes are heard; `None`: there is none, and the desk is cleared.
    fn next(&self, agent: Uuid) -> Option<(Claim, watch::Receiver<Option<Wish>>)> {
        let mut desks = self.desks();
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
    pub fn change(&self, message: MessageId, wish: &Wish) -> Option<Place> {
        self.desks().values_mut().find_map(|desk| desk.change(message, wish))
    }

    /// What the messages of a channel say that wait, the one included that is being carried out.
    pub fn waiting_in(&self, channel: ChannelId) -> Vec<(MessageId, Asked)> {
        let desks = self.desks();
        let all = desks.values().flat_map(|desk| {
            let current = desk.current.iter().map(|(claim, changes)| match &*changes.borrow() {
                Some(Wish::Says(asked)) => (claim.channel, claim.message, asked.clone()),
                _ => (claim.channel, claim.message, claim.asked.clone()),
            });
            let waiting = desk.waiting.iter().map(|claim| (claim.channel, claim.message, claim.asked.clone()));
            current.chain(waiting).collect::<Vec<_>>()
        });
        all.filter(|(of, ..)| *of == channel).map(|(_, message, asked)| (message, asked)).collect()
    }

    /// How many wait for an agent.
    pub fn waiting_for(&self, agent: Uuid) -> usize {
        self.desks().get(&agent).map_or(0, |desk| desk.waiting.len() + usize::from(desk.current.is_some()))
    }
}

impl Desk {
    fn change(&mut self, message: MessageId, wish: &Wish) -> Option<Place> {
        if let Some(at) = self.waiting.iter().position(|claim| claim.message == message) {
            match (wish, self.waiting.get_mut(at)) {
                (Wish::Says(asked), Some(claim)) => claim.asked = asked.clone(),
                _ => drop(self.waiting.remove(at)),
            }
            return Some(Place::Waiting);
        }
        let (_, tell) = self.current.as_ref().filter(|(claim, _)| claim.message == message)?;
        // Nobody hears it any more where the turn is just over.
        let _ = tell.send(Some(wish.clone()));
        Some(Place::Current)
    }
}

/// Carries out what waits for an agent, until nothing does or the daemon stops.
async fn run(bridge: Arc<Bridge>, agent: Uuid) {
    while !bridge.stop.is_cancelled() {
        let Some((claim, changes)) = bridge.inbound.desks.next(agent) else { return };
        turn::carry_out(&bridge, &claim, changes).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::who::Requester;

    fn claim(message: u64) -> Claim {
        Claim {
            message: MessageId::new(message),
            channel: ChannelId::new(7),
            agent: Uuid::nil(),
            asked: asked(&message.to_string()),
            again: false,
        }
    }

    fn asked(text: &str) -> Asked {
        Asked { text: text.into(), below: Vec::new(), files: Vec::new(), by: Requester::Nobody }
    }

    #[test]
    fn a_message_that_waits_changes_and_the_one_at_work_hears_of_it() {
        let desks = Desks::default();
        let desk = Desk { waiting: (1..=4).map(claim).collect(), current: None };
        desks.desks().insert(Uuid::nil(), desk);
        let (first, changes) = desks.next(Uuid::nil()).unwrap();
        assert_eq!((first.message.get(), desks.waiting_for(Uuid::nil())), (1, 4));
        let change = |message: u64, wish: &Wish| desks.change(MessageId::new(message), wish);
        let says = Wish::Says(asked("new"));
        assert_eq!(change(1, &says), Some(Place::Current));
        assert_eq!(*changes.borrow(), Some(says.clone()));
        assert_eq!(change(2, &says), Some(Place::Waiting));
        assert_eq!(change(3, &Wish::Gone), Some(Place::Waiting));
        assert_eq!(change(9, &Wish::Gone), None);
        let waiting = desks.waiting_in(ChannelId::new(7));
        let waiting: Vec<_> = waiting.iter().map(|(message, asked)| (message.get(), asked.text.as_str())).collect();
        assert_eq!(waiting, [(1, "new"), (2, "new"), (4, "4")]);
        assert!(desks.waiting_in(ChannelId::new(8)).is_empty());
        assert_eq!(desks.next(Uuid::nil()).unwrap().0.asked.text, "new");
        assert_eq!(change(1, &says), None, "it is over");
        assert_eq!(desks.next(Uuid::nil()).unwrap().0.message.get(), 4);
        assert!(desks.next(Uuid::nil()).is_none() && desks.desks().is_empty());
    }
}
