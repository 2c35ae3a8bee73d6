//! One agent as its actor drives it, with a clock, a mailbox and a disk that end things when the dice say so.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chorus_proto::Trigger;
use chorus_proto::methods::context::AppendResult;
use jiff::Timestamp;
use uuid::Uuid;

use super::dice::Dice;
use super::oracle::{Activity, Oracle, mask};
use crate::agent::Facts;
use crate::agent::effect::{Append, Effect};
use crate::agent::event::{Asked, Event, Journalled, Reply, Request, RequestId, Verb};
use crate::agent::idle::{IdleTimers, RETRY};
use crate::agent::state::State;
use crate::agent::state_tests::session;
use crate::clock::Ticks;
use crate::failure::Failure;
use crate::message::{ContextNo, Stored};

pub(super) const AGENT: Uuid = Uuid::from_u128(1);
pub(super) const TIMEOUT: Duration = Duration::from_secs(1800);

/// What came up, over all orders.
#[derive(Debug, Default, Clone, Copy)]
pub struct Seen {
    pub idle_saves: u64,
    pub idle_without_save: u64,
    pub lost_races: u64,
    pub retries: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        self.idle_saves += other.idle_saves;
        self.idle_without_save += other.idle_without_save;
        self.lost_races += other.lost_races;
        self.retries += other.retries;
    }
}

pub struct World {
    pub(super) dice: Dice,
    pub seen: Seen,
    state: State,
    pub(super) timers: IdleTimers,
    oracle: Oracle,
    pub(super) facts: Arc<Facts>,
    pub(super) now: Timestamp,
    pub(super) ticks: Ticks,
    next: RequestId,
    /// Messages of the pool that were used.
    pub(super) used: usize,
    pub(super) mailbox: VecDeque<Verb>,
    /// Timers that rang and are on their way to the mailbox.
    rung: Vec<Ticks>,
    /// Requests of timers, with their deadlines.
    idle: HashMap<RequestId, Ticks>,
    appends: VecDeque<(Append, Activity)>,
    work: Vec<Effect>,
    pub(super) sessions: Vec<(Uuid, Vec<Stored>)>,
    /// Nothing fails any more.
    sound: bool,
}

impl World {
    pub fn new(dice: Dice) -> Self {
        let facts = Facts {
            id: AGENT,
            name: "a".into(),
            dir: "/home/agents/a".into(),
            model: None,
            limits: Default::default(),
            idle_timeout: Some(TIMEOUT),
            ..Facts::default()
        };
        Self {
            oracle: Oracle::new(dice.seed),
            dice,
            seen: Seen::default(),
            state: State::default(),
            timers: IdleTimers::default(),
            facts: Arc::new(facts),
            now: "2026-02-12T10:00:00Z".parse().expect("a time"),
            ticks: Ticks(0),
            next: 0,
            used: 0,
            mailbox: VecDeque::new(),
            rung: Vec::new(),
            idle: HashMap::new(),
            appends: VecDeque::new(),
            work: Vec::new(),
            sessions: Vec::new(),
            sound: false,
        }
    }

    /// Something happens.
    pub fn step(&mut self) {
        match self.dice.below(12) {
            0..=2 => self.somebody_asks(),
            3 | 4 => self.time_passes(),
            _ => {
                self.go_on();
            }
        }
    }

    /// Whatever is under way ends, and nobody comes any more: what is live must be put away.
    pub fn leave_alone(&mut self) {
        self.sound = true;
        while self.go_on() {}
        self.ticks = self.ticks.after(TIMEOUT * 2 + RETRY);
        while self.go_on() {}
        let live = self.state.context().filter(|context| context.totals.messages > 0 && context.deadline.is_some());
        assert!(live.is_none(), "seed {}: never put away", self.dice.seed);
    }

    /// Something that can go on does; false where nothing can.
    fn go_on(&mut self) -> bool {
        let start = self.dice.below(5);
        (0..5).any(|n| match (start + n) % 5 {
            0 => self.ring(),
            1 => self.deliver(),
            2 => self.take(),
            3 => self.end_append(),
            _ => self.end_work(),
        })
    }

    fn ring(&mut self) -> bool {
        let rung = self.timers.ring(self.ticks);
        for (_, due) in &rung {
            self.oracle.rang(*due, self.ticks);
            self.rung.push(*due);
        }
        !rung.is_empty()
    }

    fn deliver(&mut self) -> bool {
        let Some(due) = self.rung.pop() else { return false };
        if !self.sound && self.dice.one_in(8) {
            // The mailbox is full.
            self.try_again(due);
        } else {
            self.mailbox.push_back(Verb::Idle { due });
        }
        true
    }

    fn try_again(&mut self, due: Ticks) {
        self.seen.retries += 1;
        self.timers.again(AGENT, due, self.ticks.after(RETRY));
    }

    fn take(&mut self) -> bool {
        if !self.state.accepts() {
            return false;
        }
        let Some(verb) = self.mailbox.pop_front() else { return false };
        self.next += 1;
        let (id, facts, now, ticks) = (self.next, self.facts.clone(), self.now, self.ticks);
        if let Verb::Idle { due } = &verb {
            self.idle.insert(id, *due);
        }
        self.oracle.taken(&verb, id, Activity { ticks, timeout: facts.idle_timeout });
        let fresh = ContextNo(i64::try_from(id).expect("a small number"));
        self.handle(Event::Request(Box::new(Request { asked: Asked { id, facts, now, ticks, fresh }, verb })));
        true
    }

    fn fails(&mut self) -> bool {
        !self.sound && self.dice.one_in(8)
    }

    fn end_append(&mut self) -> bool {
        let Some((append, activity)) = self.appends.pop_front() else { return false };
        let result = if self.fails() {
            Err(Failure::disk_full())
        } else {
            self.oracle.appended(mask(&append.messages), activity);
            Ok(Journalled::Now(AppendResult {
                appended: append.messages.len() as u64,
                messages: 0,
                secrets_found: None,
            }))
        };
        self.handle(Event::Appended(result));
        true
    }

    fn end_work(&mut self) -> bool {
        if self.work.is_empty() {
            return false;
        }
        let index = self.dice.index(self.work.len());
        let work = self.work.swap_remove(index);
        let failed = self.fails();
        let result = if failed { Err(Failure::disk_full()) } else { Ok(()) };
        let event = match work {
            Effect::Write(_) if failed => Event::Written(Err(Failure::disk_full())),
            Effect::Write(draft) => {
                let mut session = session(&draft);
                session.header.id = Uuid::from_u128(1000 + self.sessions.len() as u128);
                self.oracle.written(session.header.id, mask(&draft.messages), draft.trigger);
                self.seen.idle_saves += u64::from(draft.trigger == Trigger::IdleTimeout);
                self.sessions.push((session.header.id, Arc::unwrap_or_clone(draft.messages)));
                Event::Written(Ok(session.into()))
            }
            Effect::End(_) => Event::Ended(result),
            Effect::Replace { session, .. } => {
                if !failed {
                    self.oracle.replaced(session, self.state.context());
                }
                Event::Replaced(result)
            }
            Effect::Change(_) => Event::Changed(result),
            other => panic!("nobody waits for {other:?}"),
        };
        self.handle(event);
        true
    }

    /// As the actor does.
    fn handle(&mut self, event: Event) {
        let ended = matches!(event, Event::Ended(Ok(()))).then(|| self.state.context().map(|c| mask(&c.messages)));
        let changed = matches!(event, Event::Changed(Ok(())));
        let before = self.state.context().map_or(0, |context| mask(&context.messages));
        let effects = self.state.handle(event);
        let due = self.state.context().and_then(|context| context.deadline).map(|deadline| deadline.due);
        self.timers.set(AGENT, due);
        if let Some(lost) = ended {
            let notices = effects.iter().filter_map(|effect| match effect {
                Effect::IdleNotice { session, .. } => Some(*session),
                _ => None,
            });
            let notices: Vec<Uuid> = notices.collect();
            self.oracle.ended(lost.unwrap_or(0), &notices);
        }
        if changed {
            self.oracle.changed(before, self.state.context());
        }
        let busy = !self.appends.is_empty() || !self.work.is_empty();
        for effect in effects {
            match effect {
                Effect::Append(append) => {
                    let activity = Activity { ticks: self.ticks, timeout: self.facts.idle_timeout };
                    self.appends.push_back((*append, activity));
                }
                Effect::Reply(id, result) => self.replied(id, &result),
                Effect::Tell(..) | Effect::IdleNotice { .. } => {}
                Effect::Deadline { .. } => self.oracle.retimed(),
                work => {
                    self.oracle.begins(&work, self.state.context(), busy, self.ticks);
                    self.work.push(work);
                }
            }
        }
        self.oracle.check(self.state.context(), self.timers.due(AGENT));
    }

    fn replied(&mut self, id: RequestId, result: &Result<Reply, Failure>) {
        if let Some(due) = self.idle.remove(&id) {
            match result {
                Err(_) => self.try_again(due),
                Ok(_) if self.oracle.acted_on(id) => {}
                Ok(_) => self.seen.lost_races += 1,
            }
            let without = mem::take(&mut self.oracle.idle_without_save);
            self.seen.idle_without_save += u64::from(without);
        }
        self.oracle.replied(id);
    }
}
