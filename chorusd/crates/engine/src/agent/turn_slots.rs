//! Limits how many turns of an agent's conversations run at the same time. Those that wait get their turn in the order
//! in which they came.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use chorus_base::sync::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

/// The running and waiting turns of all agents.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnSlots(Arc<Mutex<HashMap<Uuid, AgentTurns>>>);

#[derive(Debug, Default)]
struct AgentTurns {
    running: u64,
    /// The limit as of the newest turn that came.
    most: u64,
    waiting: VecDeque<oneshot::Sender<TurnSlot>>,
}

impl AgentTurns {
    /// Sets the limit, and forgets those that have left the queue.
    fn set_limit(&mut self, most: u64) {
        self.most = most.max(1);
        self.waiting.retain(|waiting| !waiting.is_closed());
    }
}

/// The right of a turn to run, until it is dropped.
#[derive(Debug)]
pub(super) struct TurnSlot {
    slots: TurnSlots,
    agent: Uuid,
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        self.slots.release(self.agent);
    }
}

impl TurnSlots {
    /// Returns the right to run a turn if less than `most` of the agent's turns run and none waits.
    #[must_use]
    pub(super) fn try_acquire(&self, agent: Uuid, most: u64) -> Option<TurnSlot> {
        let mut all = self.0.lock();
        let turns = all.entry(agent).or_default();
        turns.set_limit(most);
        if turns.running >= turns.most || !turns.waiting.is_empty() {
            return None;
        }
        turns.running += 1;
        Some(TurnSlot { slots: self.clone(), agent })
    }

    /// Waits for the right to run a turn, behind those that wait already. Whoever drops the future leaves the queue.
    pub(super) async fn acquire(&self, agent: Uuid, most: u64) -> TurnSlot {
        loop {
            let receiver = {
                let mut all = self.0.lock();
                let turns = all.entry(agent).or_default();
                turns.set_limit(most);
                if turns.running < turns.most && turns.waiting.is_empty() {
                    turns.running += 1;
                    return TurnSlot { slots: self.clone(), agent };
                }
                let (sender, receiver) = oneshot::channel();
                turns.waiting.push_back(sender);
                receiver
            };
            // An error cannot come: the sender is in the queue until it sends.
            if let Ok(slot) = receiver.await {
                return slot;
            }
        }
    }

    /// Takes back the slot of a turn, and hands those that are free to the first ones that still wait.
    fn release(&self, agent: Uuid) {
        let mut all = self.0.lock();
        let Some(turns) = all.get_mut(&agent) else { return };
        turns.running -= 1;
        turns.waiting.retain(|waiting| !waiting.is_closed());
        let mut next = Vec::new();
        while turns.running < turns.most
            && let Some(waiting) = turns.waiting.pop_front()
        {
            turns.running += 1;
            next.push(waiting);
        }
        if turns.running == 0 && turns.waiting.is_empty() {
            all.remove(&agent);
        }
        drop(all);
        // Sent without the lock: if one leaves the queue just now, its slot is released in turn.
        for waiting in next {
            drop(waiting.send(TurnSlot { slots: self.clone(), agent }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Polls once.
    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn turns_wait_in_order_and_who_leaves_gives_way() {
        let (slots, agent, other) = (TurnSlots::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        let first = slots.try_acquire(agent, 2).unwrap();
        let second = slots.try_acquire(agent, 2).unwrap();
        assert!(slots.try_acquire(agent, 2).is_none());
        assert!(slots.try_acquire(other, 1).is_some(), "another agent has its own");
        let mut third = Box::pin(slots.acquire(agent, 2));
        let mut fourth = Box::pin(slots.acquire(agent, 2));
        let mut fifth = Box::pin(slots.acquire(agent, 2));
        assert!(poll(third.as_mut()).is_none() && poll(fourth.as_mut()).is_none() && poll(fifth.as_mut()).is_none());
        drop(third);
        drop(first);
        assert!(poll(fifth.as_mut()).is_none(), "the fourth comes first");
        let fourth = poll(fourth.as_mut()).unwrap();
        assert!(slots.try_acquire(agent, 9).is_none(), "nobody overtakes the fifth");
        drop(second);
        let fifth = poll(fifth.as_mut()).unwrap();
        drop((fourth, fifth));
        assert!(slots.0.lock().is_empty(), "an agent without turns costs nothing");
    }
    #[test]
    fn a_lower_limit_holds_for_those_that_wait_and_a_higher_one_lets_more_run() {
        let (slots, agent) = (TurnSlots::default(), Uuid::from_u128(1));
        let running: Vec<_> = (0..4).map(|_| slots.try_acquire(agent, 4).unwrap()).collect();
        let mut fifth = Box::pin(slots.acquire(agent, 2));
        assert!(poll(fifth.as_mut()).is_none());
        let mut running = running.into_iter();
        drop((running.next(), running.next()));
        assert!(poll(fifth.as_mut()).is_none(), "two still run");
        let mut sixth = Box::pin(slots.acquire(agent, 3));
        assert!(poll(sixth.as_mut()).is_none(), "the fifth comes first");
        drop(running.next());
        assert!(poll(fifth.as_mut()).is_some() && poll(sixth.as_mut()).is_some());
    }
}
