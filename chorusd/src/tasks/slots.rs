//! What runs: who may start one more, who waits for one to print or to end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::notice::Ended;
use super::{MOST, MOST_OF_ONE};
use crate::store::catalog::TaskRow;

/// What has become of a task while somebody waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// It has printed more.
    More,
    Ended,
}

/// All slots.
#[derive(Debug, Default)]
pub struct Slots {
    inner: Mutex<Inner>,
    /// Something was added, or is gone.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the number of the id.
    slots: BTreeMap<u64, Slot>,
    /// The highest number so far.
    last: u64,
    /// How many of each agent have ended.
    ended: HashMap<Uuid, u64>,
    /// Agents that are about to go.
    leaving: HashSet<Uuid>,
    /// Nothing is started any more.
    closed: bool,
    /// Ended while their agent, or the daemon, was going.
    untold: Vec<Ended>,
}

#[derive(Debug)]
struct Slot {
    agent: Uuid,
    /// `None`: it is being started.
    row: Option<TaskRow>,
    stop: CancellationToken,
    printed: watch::Receiver<u64>,
}

/// A slot that is taken for a task about to start, or for one that runs. Dropping it gives it back, whatever became of the task.
#[derive(Debug)]
pub struct Taken {
    slots: Arc<Slots>,
    pub number: u64,
    /// The task is to end.
    pub stop: CancellationToken,
    /// How many bytes its log has.
    pub printed: watch::Sender<u64>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.slots.inner().slots.remove(&self.number);
        self.slots.changed.send_replace(());
    }
}

/// Hears what becomes of a task.
#[derive(Debug)]
pub struct Ear(watch::Receiver<u64>);

impl Ear {
    /// Waits until more than `length` bytes are in the log, or the task has ended.
    pub async fn more_than(mut self, length: u64) -> Waited {
        match self.0.wait_for(|printed| *printed > length).await {
            Ok(_) => Waited::More,
            Err(_) => Waited::Ended,
        }
    }

    /// Waits until the task has ended.
    pub async fn end(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

impl Slots {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up what the table says.
    pub fn recover(&self, last: u64, ended: HashMap<Uuid, u64>) {
        let mut inner = self.inner();
        (inner.last, inner.ended) = (last, ended);
    }

    /// A slot for one more task of `agent`.
    ///
    /// # Errors
    /// Why there is none, for a model.
    pub fn take(self: &Arc<Self>, agent: Uuid) -> Result<Taken, String> {
        let mut inner = self.inner();
        if inner.closed {
            return Err("the daemon is stopping: nothing is started in the background any more".into());
        }
        if inner.leaving.contains(&agent) {
            return Err("this agent is being destroyed: nothing is started in the background any more".into());
        }
        let own = inner.slots.values().filter(|slot| slot.agent == agent).count();
        if own >= MOST_OF_ONE {
            return Err(format!(
                "{own} tasks of this agent run in the background already, and no more may; wait until one has ended, or run \
                 the command in the foreground"
            ));
        }
        if inner.slots.len() >= MOST {
            return Err(format!(
                "{MOST} tasks of all agents run in the background already, and no more may; try again later, or run the \
                 command in the foreground"
            ));
        }
        inner.last += 1;
        let number = inner.last;
        let (stop, (printed, hear)) = (CancellationToken::new(), watch::channel(0));
        inner.slots.insert(number, Slot { agent, row: None, stop: stop.clone(), printed: hear });
        Ok(Taken { slots: self.clone(), number, stop, printed })
    }

    /// The task in a slot runs.
    pub fn runs(&self, number: u64, row: TaskRow) {
        if let Some(slot) = self.inner().slots.get_mut(&number) {
            slot.row = Some(row);
        }
        self.changed.send_replace(());
    }

    /// The task in a slot has ended; the slot is free. Answers it where its agent is to be told now: where agent or daemon are
    /// about to go, whoever lets them go tells it.
    pub fn ended(&self, number: u64, ended: Ended) -> Option<Ended> {
        let mut inner = self.inner();
        inner.slots.remove(&number);
        let agent = ended.row.agent;
        *inner.ended.entry(agent).or_default() += 1;
        let tell = if inner.closed || inner.leaving.contains(&agent) {
            inner.untold.push(ended);
            None
        } else {
            Some(ended)
        };
        drop(inner);
        self.changed.send_replace(());
        tell
    }

    /// How many run and have ended.
    pub fn counts(&self, agent: Option<Uuid>) -> (u64, u64) {
        let inner = self.inner();
        let meant = |of: Uuid| agent.is_none_or(|agent| agent == of);
        let running = inner.slots.values().filter(|slot| slot.row.is_some() && meant(slot.agent)).count();
        let ended = inner.ended.iter().filter(|(of, _)| meant(**of)).map(|(_, count)| count).sum();
        (running as u64, ended)
    }

    /// Those of an agent that run, the oldest first.
    pub fn running_of(&self, agent: Uuid) -> Vec<TaskRow> {
        let inner = self.inner();
        inner.slots.values().filter(|slot| slot.agent == agent).filter_map(|slot| slot.row.clone()).collect()
    }

    /// Hears what becomes of a task that runs.
    pub fn ear(&self, id: &str) -> Option<Ear> {
        self.find(id, |slot| Ear(slot.printed.clone()))
    }

    /// Asks a task that runs to end.
    pub fn ask_to_stop(&self, id: &str) -> Option<Ear> {
        self.find(id, |slot| {
            slot.stop.cancel();
            Ear(slot.printed.clone())
        })
    }

    fn find<T>(&self, id: &str, found: impl FnOnce(&Slot) -> T) -> Option<T> {
        let inner = self.inner();
        inner.slots.values().find(|slot| slot.row.as_ref().is_some_and(|row| row.id == id)).map(found)
    }

    /// Ends all tasks of an agent, and lets it start none.
    pub async fn leave(&self, agent: Uuid) -> Vec<Ended> {
        self.inner().leaving.insert(agent);
        self.end(|of| of == agent).await
    }

    /// Lets an agent start tasks again.
    pub fn stay(&self, agent: Uuid) {
        self.inner().leaving.remove(&agent);
    }

    /// Ends all tasks, and lets nobody start any.
    pub async fn close(&self) -> Vec<Ended> {
        self.inner().closed = true;
        self.end(|_| true).await
    }

    /// Ends tasks, those that are being started too. Those that nobody was told of.
    async fn end(&self, which: impl Fn(Uuid) -> bool) -> Vec<Ended> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            {
                let mut inner = self.inner();
                let mut left = inner.slots.values().filter(|slot| which(slot.agent)).peekable();
                if left.peek().is_none() {
                    let (meant, rest) =
                        std::mem::take(&mut inner.untold).into_iter().partition(|one| which(one.row.agent));
                    inner.untold = rest;
                    return meant;
                }
                left.for_each(|slot| slot.stop.cancel());
            }
            // The sender lives as long as this.
            let _ = changed.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use chorus_proto::methods::tasks::TaskStatus;
    use jiff::Timestamp;

    use super::*;

    fn row(agent: Uuid, number: u64) -> TaskRow {
        TaskRow {
            id: format!("t{number}"),
            agent,
            agent_name: "a".into(),
            command: "sleep 9".into(),
            pid: 1,
            pid_started: 1,
            boot: String::new(),
            status: TaskStatus::Running,
            exit_code: None,
            signal: None,
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: None,
            log_path: String::new(),
        }
    }

    #[test]
    fn an_agent_has_eight_slots_and_all_together_have_sixty_four() {
        let (slots, one) = (Arc::<Slots>::default(), Uuid::from_u128(1));
        let mut own: Vec<_> = (0..MOST_OF_ONE).map(|_| slots.take(one).expect("a slot")).collect();
        assert!(slots.take(one).expect_err("too many").contains("8 tasks of this agent"));
        let others = 2..=MOST as u128 - MOST_OF_ONE as u128 + 1;
        let _others: Vec<_> = others.map(|other| slots.take(Uuid::from_u128(other)).expect("a slot")).collect();
        assert!(slots.take(Uuid::from_u128(1000)).expect_err("too many").contains("64 tasks of all agents"));
        own.remove(0);
        assert_eq!(slots.take(one).expect("a slot").number, MOST as u64 + 1, "no number comes again");
    }

    #[tokio::test]
    async fn whoever_leaves_takes_what_is_being_started_along() {
        let (slots, one) = (Arc::<Slots>::default(), Uuid::from_u128(1));
        let begun = slots.take(one).expect("a slot");
        let other = slots.take(Uuid::from_u128(2)).expect("a slot");
        let starts = async {
            begun.stop.cancelled().await;
            assert!(slots.take(one).is_err(), "nothing new begins");
            slots.runs(begun.number, row(one, begun.number));
            assert_eq!(slots.counts(Some(one)), (1, 0));
            let ended = Ended { row: row(one, begun.number), output: Vec::new(), problem: None };
            assert_eq!(slots.ended(begun.number, ended), None, "who lets it go tells it");
        };
        let (left, ()) = tokio::join!(slots.leave(one), starts);
        assert_eq!((left.len(), slots.counts(None)), (1, (0, 1)));
        assert!(!other.stop.is_cancelled());
        slots.stay(one);
        assert!(slots.take(one).is_ok());
    }

    #[tokio::test]
    async fn a_slot_is_given_back_whatever_becomes_of_its_task() {
        let (slots, one) = (Arc::<Slots>::default(), Uuid::from_u128(1));
        let holding = |taken: Taken| {
            slots.runs(taken.number, row(one, taken.number));
            tokio::spawn(async move {
                taken.stop.cancelled().await;
                panic!("in the middle");
            })
        };
        let (aborted, panics) = (holding(slots.take(one).unwrap()), holding(slots.take(one).unwrap()));
        let ear = slots.ear("t1").unwrap();
        assert_eq!(slots.counts(None), (2, 0));
        aborted.abort();
        ear.end().await;
        assert_eq!(slots.counts(None), (1, 0));
        // It waits for both, and asks the one that is left to end.
        assert!(slots.close().await.is_empty());
        assert!(panics.await.unwrap_err().is_panic());
        assert_eq!(slots.counts(None), (0, 0));
    }
}
