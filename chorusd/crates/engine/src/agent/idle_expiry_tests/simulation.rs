//! Simulates an actor of one agent, with a clock, a mailbox and a disk whose operations complete at random.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::effect::{Append, Effect};
use chorus_agent_core::event::{AgentCommand, AppendOutcome, CommandOutcome, Event, Request, RequestId, RequestMeta};
use chorus_agent_core::state::State;
use chorus_agent_core::test_support::sample_session;
use chorus_base::Ticks;
use chorus_base::error::Error;
use chorus_proto::Trigger;
use chorus_proto::methods::context::AppendResult;
use chorus_session::stored_message::{ContextNo, StoredMessage};
use jiff::Timestamp;
use uuid::Uuid;

use super::invariants::{Activity, Oracle, mask};
use super::rng::Rng;
use crate::agent::idle_expiry::{DeadlineTimers, EXPIRY_RETRY_INTERVAL};

pub(super) const AGENT: Uuid = Uuid::from_u128(1);
pub(super) const TIMEOUT: Duration = Duration::from_secs(1800);

/// How often interesting cases occurred, over all orders.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Coverage {
    pub idle_saves: u64,
    pub idle_without_save: u64,
    pub lost_races: u64,
    pub retries: u64,
}

impl Coverage {
    pub(super) fn add(&mut self, other: &Self) {
        self.idle_saves += other.idle_saves;
        self.idle_without_save += other.idle_without_save;
        self.lost_races += other.lost_races;
        self.retries += other.retries;
    }
}

pub(super) struct Simulation {
    pub(super) dice: Rng,
    pub seen: Coverage,
    state: State,
    pub(super) timers: DeadlineTimers<Uuid>,
    oracle: Oracle,
    pub(super) settings: Arc<AgentSettings>,
    pub(super) now: Timestamp,
    pub(super) ticks: Ticks,
    next: RequestId,
    /// Number of messages used so far.
    pub(super) used: usize,
    pub(super) mailbox: VecDeque<AgentCommand>,
    /// Timers that have fired and are on their way to the mailbox.
    rung: Vec<Ticks>,
    /// Requests of timers, with their deadlines.
    idle: HashMap<RequestId, Ticks>,
    appends: VecDeque<(Append, Activity)>,
    work: Vec<Effect>,
    pub(super) sessions: Vec<(Uuid, Vec<StoredMessage>)>,
    /// Nothing fails any more.
    sound: bool,
}

impl Simulation {
    pub(super) fn new(dice: Rng) -> Self {
        let settings = AgentSettings {
            id: AGENT,
            name: "a".into(),
            dir: "/home/agents/a".into(),
            model: None,
            limits: Default::default(),
            idle_timeout: Some(TIMEOUT),
            ..AgentSettings::default()
        };
        Self {
            oracle: Oracle::new(dice.seed),
            dice,
            seen: Coverage::default(),
            state: State::default(),
            timers: DeadlineTimers::default(),
            settings: Arc::new(settings),
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

    /// Lets one thing happen.
    pub(super) fn step(&mut self) {
        match self.dice.below(12) {
            0..=2 => self.send_random_command(),
            3 | 4 => self.advance_time(),
            _ => {
                self.progress();
            }
        }
    }

    /// Completes everything in progress without new requests. What is live must then expire.
    pub(super) fn drain(&mut self) {
        self.sound = true;
        while self.progress() {}
        self.ticks = self.ticks.after(TIMEOUT * 2 + EXPIRY_RETRY_INTERVAL);
        while self.progress() {}
        let live = self.state.context().filter(|context| context.totals.messages > 0 && context.deadline.is_some());
        assert!(live.is_none(), "seed {}: never put away", self.dice.seed);
    }

    /// Lets something that can go on do so. Returns false if there is nothing.
    fn progress(&mut self) -> bool {
        let start = self.dice.below(5);
        (0..5).any(|n| match (start + n) % 5 {
            0 => self.fire_timers(),
            1 => self.deliver_timer(),
            2 => self.accept_command(),
            3 => self.complete_append(),
            _ => self.complete_work(),
        })
    }

    fn fire_timers(&mut self) -> bool {
        let rung = self.timers.take_due(self.ticks);
        for (_, due) in &rung {
            self.oracle.timer_fired(*due, self.ticks);
            self.rung.push(*due);
        }
        !rung.is_empty()
    }

    fn deliver_timer(&mut self) -> bool {
        let Some(due) = self.rung.pop() else { return false };
        if !self.sound && self.dice.one_in(8) {
            // The mailbox is full.
            self.rearm_timer(due);
        } else {
            self.mailbox.push_back(AgentCommand::Expire { due });
        }
        true
    }

    fn rearm_timer(&mut self, due: Ticks) {
        self.seen.retries += 1;
        self.timers.rearm(AGENT, due, self.ticks.after(EXPIRY_RETRY_INTERVAL));
    }

    fn accept_command(&mut self) -> bool {
        if !self.state.accepts_requests() {
            return false;
        }
        let Some(verb) = self.mailbox.pop_front() else { return false };
        self.next += 1;
        let (id, settings, now, ticks) = (self.next, self.settings.clone(), self.now, self.ticks);
        if let AgentCommand::Expire { due } = &verb {
            self.idle.insert(id, *due);
        }
        self.oracle.command_accepted(&verb, id, Activity { ticks, timeout: settings.idle_timeout });
        let fresh = ContextNo(i64::try_from(id).expect("a small number"));
        self.handle(Event::Request(Box::new(Request {
            meta: RequestMeta { id, settings, conversation: None, now, ticks, new_context: fresh },
            command: verb,
        })));
        true
    }

    fn should_fail(&mut self) -> bool {
        !self.sound && self.dice.one_in(8)
    }

    fn complete_append(&mut self) -> bool {
        let Some((append, activity)) = self.appends.pop_front() else { return false };
        let result = if self.should_fail() {
            Err(Error::disk_full())
        } else {
            self.oracle.messages_appended(mask(&append.messages), activity);
            Ok(AppendOutcome::Added(AppendResult {
                appended: append.messages.len() as u64,
                messages: 0,
                secrets_found: None,
                note: None,
            }))
        };
        self.handle(Event::Appended(result));
        true
    }

    fn complete_work(&mut self) -> bool {
        if self.work.is_empty() {
            return false;
        }
        let index = self.dice.index(self.work.len());
        let work = self.work.swap_remove(index);
        let failed = self.should_fail();
        let result = if failed { Err(Error::disk_full()) } else { Ok(()) };
        let event = match work {
            Effect::WriteSession(_) if failed => Event::SessionWritten(Err(Error::disk_full())),
            Effect::WriteSession(draft) => {
                let mut session = sample_session(&draft);
                session.header.id = Uuid::from_u128(1000 + self.sessions.len() as u128);
                self.oracle.session_written(session.header.id, mask(&draft.messages), draft.trigger);
                self.seen.idle_saves += u64::from(draft.trigger == Trigger::IdleTimeout);
                self.sessions.push((session.header.id, Arc::unwrap_or_clone(draft.messages)));
                Event::SessionWritten(Ok(session.into()))
            }
            Effect::EndContext(_) => Event::ContextEnded(result),
            Effect::ReplaceWithSession { session, .. } => {
                if !failed {
                    self.oracle.context_replaced(session, self.state.context());
                }
                Event::ContextReplaced(result)
            }
            Effect::RecordEdit(_) => Event::EditRecorded(result),
            other => panic!("nobody waits for {other:?}"),
        };
        self.handle(event);
        true
    }

    /// Handles an event as the actor does.
    fn handle(&mut self, event: Event) {
        let ended =
            matches!(event, Event::ContextEnded(Ok(()))).then(|| self.state.context().map(|c| mask(&c.messages)));
        let changed = matches!(event, Event::EditRecorded(Ok(())));
        let before = self.state.context().map_or(0, |context| mask(&context.messages));
        let effects = self.state.handle(event);
        let due = self.state.context().and_then(|context| context.deadline).map(|deadline| deadline.due);
        self.timers.set(AGENT, due);
        if let Some(lost) = ended {
            let notices = effects.iter().filter_map(|effect| match effect {
                Effect::PostIdleNotice { session, .. } => Some(*session),
                _ => None,
            });
            let notices: Vec<Uuid> = notices.collect();
            self.oracle.context_ended(lost.unwrap_or(0), &notices);
        }
        if changed {
            self.oracle.context_edited(before, self.state.context());
        }
        let busy = !self.appends.is_empty() || !self.work.is_empty();
        for effect in effects {
            match effect {
                Effect::Append(append) => {
                    let activity = Activity { ticks: self.ticks, timeout: self.settings.idle_timeout };
                    self.appends.push_back((*append, activity));
                }
                Effect::Reply(id, result) => self.replied(id, &result),
                Effect::EmitEvent(..) | Effect::PostIdleNotice { .. } => {}
                Effect::SetDeadline { .. } => self.oracle.timeout_changed(),
                work => {
                    self.oracle.operation_started(&work, self.state.context(), busy, self.ticks);
                    self.work.push(work);
                }
            }
        }
        self.oracle.check_invariants(self.state.context(), self.timers.due(AGENT));
    }

    fn replied(&mut self, id: RequestId, result: &Result<CommandOutcome, Error>) {
        if let Some(due) = self.idle.remove(&id) {
            match result {
                Err(_) => self.rearm_timer(due),
                Ok(_) if self.oracle.had_effect(id) => {}
                Ok(_) => self.seen.lost_races += 1,
            }
            let without = mem::take(&mut self.oracle.idle_without_save);
            self.seen.idle_without_save += u64::from(without);
        }
        self.oracle.command_replied(id);
    }
}
