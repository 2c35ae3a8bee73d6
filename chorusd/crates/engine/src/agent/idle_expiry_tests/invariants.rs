//! The invariants that must hold, tracked independently of the state machine.

use std::collections::HashMap;
use std::time::Duration;

use chorus_agent_core::context::Context;
use chorus_agent_core::effect::Effect;
use chorus_agent_core::event::{AgentCommand, RequestId};
use chorus_base::Ticks;
use chorus_proto::Trigger;
use chorus_session::stored_message::StoredMessage;
use uuid::Uuid;

use crate::agent::idle_expiry::EXPIRY_RETRY_INTERVAL;

/// A set of messages, as a bit mask of their numbers.
pub(super) type Mask = u128;

/// Returns the set of these messages.
pub(super) fn mask(messages: &[StoredMessage]) -> Mask {
    messages.iter().fold(0, |mask, message| mask | 1 << number(message))
}

/// Returns the number that the message starts with: `{"id":"007",`.
fn number(message: &StoredMessage) -> u32 {
    message.json()[7..10].iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

/// When an activity reset the timer, and the timeout at that time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Activity {
    pub ticks: Ticks,
    pub timeout: Option<Duration>,
}

/// The exclusive request in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunningOp {
    Clear,
    Discard,
    Idle,
    Move,
    Retime,
    Other,
}

#[derive(Debug)]
pub(super) struct Oracle {
    seed: u64,
    /// Acknowledged messages.
    acked: Mask,
    /// Messages that a request asked to discard.
    dropped: Mask,
    sessions: HashMap<Uuid, Mask>,
    /// The messages of the session that this context was last saved in or came from.
    held: Mask,
    /// How many pinned facts that session has, and how many the save in progress has.
    held_pins: usize,
    saving_pins: usize,
    doing: Option<(RequestId, RunningOp, Activity)>,
    activity: Option<Activity>,
    /// Successful saves by the timer since the last activity.
    saves: u32,
    /// When the timer of a deadline last fired.
    rang: Option<(Ticks, Ticks)>,
    /// The idle request that had an effect.
    acted: Option<RequestId>,
    pub idle_without_save: bool,
}

impl Oracle {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            acked: 0,
            dropped: 0,
            sessions: HashMap::new(),
            held: 0,
            held_pins: 0,
            saving_pins: 0,
            doing: None,
            activity: None,
            saves: 0,
            rang: None,
            acted: None,
            idle_without_save: false,
        }
    }

    fn record_activity(&mut self, activity: Activity) {
        (self.activity, self.saves) = (Some(activity), 0);
    }

    fn running_op(&self) -> RunningOp {
        self.doing.map_or(RunningOp::Other, |(_, doing, _)| doing)
    }

    /// Checks that a deadline fires once, and again only if it could not be handled, after a while.
    pub(super) fn timer_fired(&mut self, due: Ticks, now: Ticks) {
        assert!(now >= due, "seed {}: rang early", self.seed);
        if let Some((last, at)) = self.rang {
            assert!(
                last != due || now >= at.after(EXPIRY_RETRY_INTERVAL),
                "seed {}: rang twice for one deadline",
                self.seed
            );
        }
        self.rang = Some((due, now));
    }

    pub(super) fn command_accepted(&mut self, verb: &AgentCommand, id: RequestId, activity: Activity) {
        let doing = match verb {
            AgentCommand::Append { .. } | AgentCommand::ReadPage { .. } => return,
            AgentCommand::Clear { save: false } => RunningOp::Clear,
            AgentCommand::Restore(restore) if restore.discard => RunningOp::Discard,
            AgentCommand::Expire { .. } => RunningOp::Idle,
            AgentCommand::Rewind { .. } | AgentCommand::Unrewind => RunningOp::Move,
            AgentCommand::UpdateIdleTimeout => RunningOp::Retime,
            _ => RunningOp::Other,
        };
        assert!(self.doing.is_none(), "seed {}: two exclusive requests at once", self.seed);
        self.doing = Some((id, doing, activity));
    }

    pub(super) fn command_replied(&mut self, id: RequestId) {
        self.doing = self.doing.filter(|(doing, ..)| *doing != id);
    }

    /// Whether the idle request `id` had an effect.
    pub(super) fn had_effect(&self, id: RequestId) -> bool {
        self.acted == Some(id)
    }

    pub(super) fn messages_appended(&mut self, messages: Mask, activity: Activity) {
        self.acked |= messages;
        self.record_activity(activity);
    }

    /// Handles the start of an operation that takes time; `busy`: another one was in progress.
    pub(super) fn operation_started(&mut self, work: &Effect, context: Option<&Context>, busy: bool, now: Ticks) {
        let live = context.map_or(0, |context| mask(&context.messages));
        if let Effect::WriteSession(draft) = work {
            assert_eq!(mask(&draft.messages), live, "seed {}: another context is saved", self.seed);
            let asked_for = matches!(draft.trigger, Trigger::ManualSave | Trigger::ContextClear);
            self.saving_pins = draft.working_set.pinned_facts.len();
            let has_changes = live & !self.held != 0 || self.saving_pins != self.held_pins;
            assert!(asked_for || has_changes, "seed {}: saved twice without a new message or pin", self.seed);
        }
        let Some((id, RunningOp::Idle, _)) = self.doing else { return };
        self.acted = Some(id);
        self.idle_without_save |= matches!(work, Effect::EndContext(_)) && self.saves == 0;
        assert!(!busy, "seed {}: put away while something was under way", self.seed);
        let due = self.due().expect("a deadline, for the timer acted");
        assert!(now >= due, "seed {}: put away at {now:?}, before {due:?}", self.seed);
    }

    pub(super) fn session_written(&mut self, id: Uuid, messages: Mask, trigger: Trigger) {
        self.sessions.insert(id, messages);
        if self.saving_pins != self.held_pins {
            // A fact pinned since then is a change to save, but no activity.
            self.saves = 0;
        }
        (self.held, self.held_pins) = (messages, self.saving_pins);
        if trigger == Trigger::IdleTimeout {
            self.saves += 1;
            assert!(self.saves <= 1, "seed {}: saved twice in one idle period", self.seed);
        }
    }

    /// Handles the end of the live context; `lost` are its messages.
    pub(super) fn context_ended(&mut self, lost: Mask, notices: &[Uuid]) {
        if self.running_op() == RunningOp::Clear {
            self.dropped |= lost;
        }
        let due = usize::from(self.running_op() == RunningOp::Idle);
        assert_eq!(notices.len(), due, "seed {}: notices", self.seed);
        for session in notices {
            let held = self.sessions[session];
            assert_eq!(lost & !held, 0, "seed {}: the session that is named lacks messages", self.seed);
        }
        (self.held, self.held_pins, self.activity, self.saves) = (0, 0, None, 0);
    }

    /// Handles the replacement of `context` by a session.
    pub(super) fn context_replaced(&mut self, session: Uuid, context: Option<&Context>) {
        let Some((_, doing, activity)) = self.doing else { return };
        if doing == RunningOp::Discard {
            self.dropped |= context.map_or(0, |context| mask(&context.messages));
        }
        (self.held, self.held_pins) = (self.sessions[&session], 0);
        self.record_activity(activity);
    }

    /// Handles the completion of a pin or a rewind.
    pub(super) fn context_edited(&mut self, before: Mask, context: Option<&Context>) {
        let Some((_, RunningOp::Move, activity)) = self.doing else { return };
        self.dropped |= before & !context.map_or(0, |context| mask(&context.messages));
        self.record_activity(activity);
    }

    pub(super) fn timeout_changed(&mut self) {
        if let Some((_, RunningOp::Retime, activity)) = self.doing {
            self.record_activity(activity);
        }
    }

    fn due(&self) -> Option<Ticks> {
        let activity = self.activity?;
        Some(activity.ticks.after(activity.timeout?))
    }

    /// Checks what holds at every moment.
    pub(super) fn check_invariants(&mut self, context: Option<&Context>, timer: Option<Ticks>) {
        let live = context.map_or(0, |context| mask(&context.messages));
        self.dropped &= !live;
        let saved = self.sessions.values().fold(0, |all, session| all | session);
        let lost = self.acked & !(live | saved | self.dropped);
        assert_eq!(lost, 0, "seed {}: acknowledged messages are gone", self.seed);
        // Pins alone start no timer, and only activity moves one.
        let due = self.due().filter(|_| live != 0);
        assert_eq!(timer, due, "seed {}: the timer is set for another time", self.seed);
    }
}
