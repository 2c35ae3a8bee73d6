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
    waiting: VecDeque<oneshot::Sender<TurnSlot>>,
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
        if turns.running >= most.max(1) || !turns.waiting.is_empty() {
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
                if turns.running < most.max(1) && turns.waiting.is_empty() {
                    turns.running += 1;
                    return TurnSlot { slots: self.clone(), agent };
                }
                let (sender, receiver) = oneshot::channel();
                turns.waiting.push_back(sender);
                receiver
            };
            // The slot of a turn that ended is handed over as it is. An error cannot come: the sender is in the queue.
            if let Ok(slot) = receiver.await {
                return slot;
            }
        }
    }

    /// Hands the slot of a turn that ended to the first one that still waits.
    fn release(&self, agent: Uuid) {
        let mut all = self.0.lock();
        let Some(turns) = all.get_mut(&agent) else { return };
        turns.waiting.retain(|waiting| !waiting.is_closed());
        match turns.waiting.pop_front() {
            // Sent without the lock: if it leaves the queue just now, its slot is released in turn.
            Some(next) => {
                drop(all);
                drop(next.send(TurnSlot { slots: self.clone(), agent }));
            }
            None => {
                turns.running -= 1;
                if turns.running == 0 {
                    all.remove(&agent);
                }
            }
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
}
