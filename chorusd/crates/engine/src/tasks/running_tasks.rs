//! The slots of running tasks: limits how many may run, and lets callers wait for output or the end.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use chorus_base::sync::Mutex;
use chorus_catalog::TaskRow;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::notice::EndedTask;
use super::{MAX_TASKS, MAX_TASKS_PER_AGENT};

/// Why a wait for a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The task has printed more.
    MoreOutput,
    Ended,
}

/// The slots of all tasks.
#[derive(Debug, Default)]
pub(super) struct TaskSlots {
    state: Mutex<SlotsState>,
    /// Signals that a slot was added or removed.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct SlotsState {
    /// Slots by the number in the task's id.
    slots: BTreeMap<u64, Slot>,
    /// The highest number used so far.
    last_number: u64,
    /// Number of ended tasks by agent.
    ended: HashMap<Uuid, u64>,
    /// Tasks of agents that another daemon has taken over.
    abandoned: HashSet<u64>,
    /// Agents that are about to be destroyed.
    blocked: HashSet<Uuid>,
    /// True if no task may be started any more.
    closed: bool,
    /// Tasks that ended while their agent or the daemon was going away.
    unreported: Vec<EndedTask>,
}

#[derive(Debug)]
struct Slot {
    agent: Uuid,
    /// `None` while the task is being started.
    row: Option<TaskRow>,
    stop: CancellationToken,
    printed: watch::Receiver<u64>,
}

/// A slot held for a task that starts or runs. Dropping it frees the slot, even if the task's future panics or is
/// aborted.
#[derive(Debug)]
pub(super) struct SlotGuard {
    slots: Arc<TaskSlots>,
    pub number: u64,
    /// Cancelled when the task is to end.
    pub stop: CancellationToken,
    /// The bytes in the task's log.
    pub printed: watch::Sender<u64>,
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut inner = self.slots.state.lock();
        inner.slots.remove(&self.number);
        inner.abandoned.remove(&self.number);
        drop(inner);
        self.slots.changed.send_replace(());
    }
}

/// Watches the output and the end of a task.
#[derive(Debug)]
pub(super) struct TaskWatcher(watch::Receiver<u64>);

impl TaskWatcher {
    /// Waits until the log has more than `length` bytes, or the task has ended.
    pub(super) async fn wait_for_output(mut self, length: u64) -> WaitOutcome {
        match self.0.wait_for(|printed| *printed > length).await {
            Ok(_) => WaitOutcome::MoreOutput,
            Err(_) => WaitOutcome::Ended,
        }
    }

    /// Waits until the task has ended.
    pub(super) async fn wait_for_end(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

impl TaskSlots {
    /// Restores the last number and the counts from the table.
    pub(super) fn restore(&self, last: u64, ended: HashMap<Uuid, u64>) {
        let mut inner = self.state.lock();
        (inner.last_number, inner.ended) = (last, ended);
    }

    /// Acquires a slot for one more task of `agent`.
    pub(super) fn acquire(self: &Arc<Self>, agent: Uuid) -> Result<SlotGuard, String> {
        let mut inner = self.state.lock();
        if inner.closed {
            return Err("the daemon is stopping and starts no more background tasks".into());
        }
        if inner.blocked.contains(&agent) {
            return Err("this agent is being destroyed or moved and starts no more background tasks".into());
        }
        let own = inner.slots.values().filter(|slot| slot.agent == agent).count();
        if own >= MAX_TASKS_PER_AGENT {
            return Err(format!(
                "this agent already has {own} background tasks, which is the limit; wait until one ends, or run \
                 the command in the foreground"
            ));
        }
        if inner.slots.len() >= MAX_TASKS {
            return Err(format!(
                "all agents together already have {MAX_TASKS} background tasks, which is the limit; try again \
                 later, or run the command in the foreground"
            ));
        }
        inner.last_number += 1;
        let number = inner.last_number;
        let (stop, (printed, printed_watcher)) = (CancellationToken::new(), watch::channel(0));
        inner.slots.insert(number, Slot { agent, row: None, stop: stop.clone(), printed: printed_watcher });
        Ok(SlotGuard { slots: self.clone(), number, stop, printed })
    }

    /// Marks the task in a slot as running.
    pub(super) fn set_running(&self, number: u64, row: TaskRow) {
        if let Some(slot) = self.state.lock().slots.get_mut(&number) {
            slot.row = Some(row);
        }
        self.changed.send_replace(());
    }

    /// Frees the slot of an ended task. Returns the task if its agent is to be notified now. If the agent or the daemon
    /// is going away, the task is kept for the caller that stops them, who sends the notification.
    pub(super) fn finish(&self, number: u64, ended: EndedTask) -> Option<EndedTask> {
        let mut inner = self.state.lock();
        inner.slots.remove(&number);
        let agent = ended.row.agent;
        *inner.ended.entry(agent).or_default() += 1;
        let tell = if inner.closed || inner.blocked.contains(&agent) {
            inner.unreported.push(ended);
            None
        } else {
            Some(ended)
        };
        drop(inner);
        self.changed.send_replace(());
        tell
    }

    /// Returns how many tasks are running and how many have ended.
    pub(super) fn counts(&self, agent: Option<Uuid>) -> (u64, u64) {
        let inner = self.state.lock();
        let meant = |of: Uuid| agent.is_none_or(|agent| agent == of);
        let running = inner.slots.values().filter(|slot| slot.row.is_some() && meant(slot.agent)).count();
        let ended = inner.ended.iter().filter(|(of, _)| meant(**of)).map(|(_, count)| count).sum();
        (running as u64, ended)
    }

    /// Returns the running tasks of an agent, oldest first.
    pub(super) fn running_of(&self, agent: Uuid) -> Vec<TaskRow> {
        let inner = self.state.lock();
        inner.slots.values().filter(|slot| slot.agent == agent).filter_map(|slot| slot.row.clone()).collect()
    }

    /// Returns a watcher of a running task.
    pub(super) fn watch_task(&self, id: &str) -> Option<TaskWatcher> {
        self.find_running(id, |slot| TaskWatcher(slot.printed.clone()))
    }

    /// Asks a running task to end.
    pub(super) fn request_stop(&self, id: &str) -> Option<TaskWatcher> {
        self.find_running(id, |slot| {
            slot.stop.cancel();
            TaskWatcher(slot.printed.clone())
        })
    }

    fn find_running<T>(&self, id: &str, found: impl FnOnce(&Slot) -> T) -> Option<T> {
        let inner = self.state.lock();
        inner.slots.values().find(|slot| slot.row.as_ref().is_some_and(|row| row.id == id)).map(found)
    }

    /// Ends the tasks of an agent, about which nothing is recorded any more.
    pub(super) fn abandon(&self, agent: Uuid) {
        let mut inner = self.state.lock();
        let SlotsState { slots, abandoned, .. } = &mut *inner;
        for (number, slot) in slots.iter().filter(|(_, slot)| slot.agent == agent) {
            abandoned.insert(*number);
            slot.stop.cancel();
        }
    }

    /// Returns whether a task with this id has a slot.
    pub(super) fn has(&self, id: &str) -> bool {
        let number = id.strip_prefix('t').and_then(|number| number.parse::<u64>().ok());
        number.is_some_and(|number| self.state.lock().slots.contains_key(&number))
    }

    /// Counts tasks that have ended without a slot.
    pub(super) fn count_ended(&self, agent: Uuid, more: u64) {
        *self.state.lock().ended.entry(agent).or_default() += more;
    }

    pub(super) fn is_abandoned(&self, number: u64) -> bool {
        self.state.lock().abandoned.contains(&number)
    }

    /// Asks all tasks to end.
    pub(super) fn stop_all(&self) {
        self.state.lock().slots.values().for_each(|slot| slot.stop.cancel());
    }

    /// Stops all tasks of an agent and blocks new ones.
    pub(super) async fn stop_and_block_agent(&self, agent: Uuid) -> Vec<EndedTask> {
        self.state.lock().blocked.insert(agent);
        self.stop_matching(|of| of == agent).await
    }

    /// Allows an agent to start tasks again.
    pub(super) fn unblock_agent(&self, agent: Uuid) {
        self.state.lock().blocked.remove(&agent);
    }

    /// Stops all tasks and blocks new ones for good.
    pub(super) async fn close(&self) -> Vec<EndedTask> {
        self.state.lock().closed = true;
        self.stop_matching(|_| true).await
    }

    /// Stops matching tasks, including those being started, and returns those whose agents were not notified.
    async fn stop_matching(&self, which: impl Fn(Uuid) -> bool) -> Vec<EndedTask> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            {
                let mut inner = self.state.lock();
                let mut left = inner.slots.values().filter(|slot| which(slot.agent)).peekable();
                if left.peek().is_none() {
                    let (meant, rest) =
                        std::mem::take(&mut inner.unreported).into_iter().partition(|one| which(one.row.agent));
                    inner.unreported = rest;
                    return meant;
                }
                left.for_each(|slot| slot.stop.cancel());
            }
            // This cannot fail, because `self` holds the sender.
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
            conversation_id: None,
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
        let (slots, one) = (Arc::<TaskSlots>::default(), Uuid::from_u128(1));
        let mut own: Vec<_> = (0..MAX_TASKS_PER_AGENT).map(|_| slots.acquire(one).expect("a slot")).collect();
        assert!(slots.acquire(one).expect_err("too many").contains("already has 8 background tasks"));
        let others = 2..=MAX_TASKS as u128 - MAX_TASKS_PER_AGENT as u128 + 1;
        let _others: Vec<_> = others.map(|other| slots.acquire(Uuid::from_u128(other)).expect("a slot")).collect();
        assert!(
            slots.acquire(Uuid::from_u128(1000)).expect_err("too many").contains("already have 64 background tasks")
        );
        own.remove(0);
        assert_eq!(slots.acquire(one).expect("a slot").number, MAX_TASKS as u64 + 1, "no number comes again");
    }

    #[tokio::test]
    async fn whoever_leaves_takes_what_is_being_started_along() {
        let (slots, one) = (Arc::<TaskSlots>::default(), Uuid::from_u128(1));
        let begun = slots.acquire(one).expect("a slot");
        let other = slots.acquire(Uuid::from_u128(2)).expect("a slot");
        let starts = async {
            begun.stop.cancelled().await;
            assert!(slots.acquire(one).is_err(), "nothing new begins");
            slots.set_running(begun.number, row(one, begun.number));
            assert_eq!(slots.counts(Some(one)), (1, 0));
            let ended = EndedTask { row: row(one, begun.number), output: Vec::new(), problem: None };
            assert_eq!(slots.finish(begun.number, ended), None, "who lets it go tells it");
        };
        let (left, ()) = tokio::join!(slots.stop_and_block_agent(one), starts);
        assert_eq!((left.len(), slots.counts(None)), (1, (0, 1)));
        assert!(!other.stop.is_cancelled());
        slots.unblock_agent(one);
        assert!(slots.acquire(one).is_ok());
    }

    #[tokio::test]
    async fn a_slot_is_given_back_whatever_becomes_of_its_task() {
        let (slots, one) = (Arc::<TaskSlots>::default(), Uuid::from_u128(1));
        let holding = |taken: SlotGuard| {
            slots.set_running(taken.number, row(one, taken.number));
            chorus_runtime::spawn(async move {
                taken.stop.cancelled().await;
                panic!("in the middle");
            })
        };
        let (aborted, panics) = (holding(slots.acquire(one).unwrap()), holding(slots.acquire(one).unwrap()));
        let listener = slots.watch_task("t1").unwrap();
        assert_eq!(slots.counts(None), (2, 0));
        aborted.abort();
        listener.wait_for_end().await;
        assert_eq!(slots.counts(None), (1, 0));
        // Waits for both, and asks the remaining one to end.
        assert!(slots.close().await.is_empty());
        assert!(panics.await.unwrap_err().is_panic());
        assert_eq!(slots.counts(None), (0, 0));
    }
}
