//! Passages of the agent's past, which join the working set when a window starts: a fresh one, that of a restored session,
//! or the one after a compaction. Part of the state machine.
//!
//! They are found once for each window and then stay in the working set as they are, so that every request of the window
//! has the same bytes. A window without them is as good a window: whatever prevents the recall, the turn goes on.

use chorus_proto::methods::send::TurnEvent;
use chorus_proto::pluralize::pluralize;
use chorus_proto::{Recall, WorkingSet};
use uuid::Uuid;

use super::AgentSettings;
use super::context::Context;
use super::effect::Effect;
use super::state::{AppendOwner, PendingAppend, State};
use super::turn::{EventTime, TurnPhase};

/// Maximum tokens of a passage.
pub const MAX_PASSAGE_TOKENS: u64 = 300;

/// Maximum tokens of all passages of a window.
pub const MAX_RECALLED_TOKENS: u64 = 1500;

/// Passages to find before a model call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRecall {
    /// How many, at most.
    pub count: u64,
    /// Sessions whose messages are in the context.
    pub sessions: Vec<Uuid>,
}

impl State {
    /// Returns what to find before the next model call; `None` if the window has its passages or is to have none.
    pub(super) fn plan_recall(&self, settings: &AgentSettings) -> Option<PlannedRecall> {
        let (turn, context) = (self.turn.as_ref()?, self.context.as_ref()?);
        let has_recalled = context
            .working_set
            .recalled
            .as_ref()
            .is_some_and(|recalled| recalled.window_start >= context.window_start() as u64);
        if settings.recall == 0 || turn.recall_tried || turn.reduced || has_recalled {
            return None;
        }
        let mut sessions: Vec<Uuid> = context.saved_session.into_iter().chain(context.base_session).collect();
        sessions.dedup();
        Some(PlannedRecall { count: settings.recall, sessions })
    }

    /// Records passages in the journal, before the model is called.
    pub(super) fn start_recall(
        &mut self,
        (id, step): (Uuid, u32),
        moment: EventTime,
        mut recall: Recall,
        effects: &mut Vec<Effect>,
    ) {
        let calls = self.turn.as_ref().is_some_and(|turn| turn.id == id && turn.is_calling_step(step));
        if !calls || self.end_if_interrupted(effects) {
            return;
        }
        let (Some(turn), Some(context)) = (&mut self.turn, &self.context) else { return };
        turn.phase = TurnPhase::RecordingRecall;
        let mut set = context.working_set.clone();
        if let Some(before) = set.recalled.take().filter(|_| recall.passages.is_empty()) {
            recall.passages = before.passages;
        }
        set.recalled = Some(recall.clone());
        let Some(begin) = self.live_head() else { return };
        let (number, context) = (self.next_record, begin.context);
        self.next_record = number.saturating_add(1);
        self.pending_appends.push_back(PendingAppend {
            owner: AppendOwner::Recall(Box::new(recall)),
            deadline: begin.deadline,
            head: begin,
            messages: Vec::new(),
            at: moment.now,
        });
        effects.push(Effect::RecordRecall { context, record_number: number, working_set: Box::new(set) });
    }

    /// Goes on with the model call. If the journal could not record the passages, the window does not have them.
    pub(super) fn on_recall_recorded(&mut self, recall: Recall, is_recorded: bool, effects: &mut Vec<Effect>) {
        if let Some(context) = self.context.as_mut().filter(|_| is_recorded) {
            let count = recall.passages.len() as u64;
            let before = context.working_set.recalled.take().unwrap_or_default();
            if count > 0 && recall.passages != before.passages {
                let note = format!("recalled {} from earlier conversations", pluralize(count, "passage"));
                effects.push(Effect::Broadcast(TurnEvent::Note(note)));
            }
            context.working_set.recalled = Some(recall);
            context.set_revision += 1;
        }
        let Some(turn) = self.turn.as_mut().filter(|turn| matches!(turn.phase, TurnPhase::RecordingRecall)) else {
            return;
        };
        turn.compaction_mode = turn.call_mode;
        self.call_model_or_end(effects);
    }
}

/// Returns the working set that a window shows: without what was recalled, if the agent is to recall nothing any more.
pub(super) fn shown_set(context: Option<&Context>, settings: &AgentSettings) -> WorkingSet {
    let mut set = context.map(|context| context.working_set.clone()).unwrap_or_default();
    if settings.recall == 0 {
        set.recalled = None;
    }
    set
}

/// Returns the working set as a session has it. Its file names the recalled messages, which stay in their sessions.
pub(super) fn without_texts(set: &WorkingSet) -> WorkingSet {
    let mut set = set.clone();
    set.clear_recalled_texts();
    set
}
