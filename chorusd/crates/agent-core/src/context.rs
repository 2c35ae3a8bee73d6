//! The live conversation of an agent, and pages of it.

use std::sync::Arc;

use chorus_base::Ticks;
use chorus_proto::{ContextInfo, Item, Receipt, Role, TokenPair, WorkingSet};
use chorus_session::notes::{NoteChange, NoteList, apply_changes};
use chorus_session::stored_message::{ContextNo, StoredMessage, Totals};
use jiff::Timestamp;
use uuid::Uuid;

use super::compaction::{AppliedCompaction, Compaction, DerivedState, MIN_KEPT_MESSAGES, ManualCompaction};
use super::effect::ContextHead;
use super::unmatched_calls::calls_without_result;

/// When a context expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// On the clock that also counts while the machine sleeps. It identifies this deadline among all others.
    pub due: Ticks,
    /// The wall-clock time that this was expected to be: shown to users, and stored for restarts.
    pub at: Timestamp,
}

/// A live context in memory.
#[derive(Debug, Clone)]
pub struct Context {
    pub number: ContextNo,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub deadline: Option<Deadline>,
    /// The session that it was restored from or continues from.
    pub parent: Option<Uuid>,
    /// Shared with readers, so that a copy of the context does not copy the conversation.
    pub messages: Arc<Vec<StoredMessage>>,
    pub totals: Totals,
    /// How many of the first messages `saved_session` holds.
    pub saved: u64,
    pub saved_session: Option<Uuid>,
    /// The facts pinned in that session or, without one, in the session that the context continues from.
    pub saved_pins: Vec<Item>,
    /// Whether people edited notes since then, pinned facts aside.
    pub has_unsaved_notes: bool,
    /// The session that the journal refers to instead of holding its messages.
    pub base_session: Option<Uuid>,
    pub working_set: WorkingSet,
    /// Grows with every change of the working set, so that what was measured of it need not be measured again.
    pub set_revision: u64,
    /// Edits of notes since the last model call was planned, which a compaction that it plans does not know.
    pub changes_since_call: Vec<NoteChange>,
    /// Set if the context began by a compaction by hand, which can be undone.
    pub begun_by_compaction: Option<Box<ManualCompaction>>,
    /// Messages dropped by rewinds; the last rewind is at the end.
    pub rewound: Vec<Rewound>,
    /// Compactions in place; the last one is at the end.
    pub compactions: Vec<AppliedCompaction>,
    /// Below this number of messages the window is not compacted automatically, because a compaction was just undone.
    pub no_auto_compaction_below: u64,
    /// Tokens that resuming cost.
    pub restoration: TokenPair,
}

/// Messages that a rewind dropped.
#[derive(Debug, Clone)]
pub struct Rewound {
    pub messages: Vec<StoredMessage>,
    /// Compactions that ended behind the remaining messages, the last one first.
    pub compactions: Vec<AppliedCompaction>,
    /// `saved` before the rewind.
    pub saved: u64,
}

/// Which messages a page consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRange {
    /// The newest ones.
    Last(u64),
    /// At most `limit` messages from an index on.
    From { offset: u64, limit: u64 },
}

/// How many bytes fit into a reply, which is one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBudget {
    /// Maximum bytes of messages in a page; the rest of the frame is left for the other fields.
    pub page_bytes: usize,
    /// Maximum bytes of one message.
    pub message_bytes: usize,
}

impl PageBudget {
    #[must_use]
    pub fn from_max_frame(max_frame: usize) -> Self {
        Self { page_bytes: (max_frame / 4 * 3).min(4 << 20), message_bytes: max_frame / 16 * 15 }
    }
}

impl Context {
    /// Returns the number of the first message that is in memory, counted from 0. It is 0 unless the context is large
    /// and its first messages are still being loaded.
    #[must_use]
    pub(crate) fn first_in_memory(&self) -> u64 {
        self.totals.messages.saturating_sub(self.messages.len() as u64)
    }

    /// Returns how many messages no session holds yet.
    #[must_use]
    pub fn unsaved(&self) -> u64 {
        self.totals.messages.saturating_sub(self.saved)
    }

    /// Whether the context continues from a session and has nothing but its opening message.
    #[must_use]
    pub(crate) fn has_only_opening_message(&self) -> bool {
        let begun = self.parent.is_some() && self.working_set.background.is_some() && self.saved_session.is_none();
        begun && self.totals.messages == 1 && self.totals.queries == 0
    }

    /// Whether something would be lost that no session holds: a message, or an edit of the notes.
    #[must_use]
    pub(crate) fn has_unsaved_changes(&self) -> bool {
        let edited = self.has_unsaved_notes || self.working_set.pinned_facts != self.saved_pins;
        (self.totals.messages > 0 && edited) || (self.unsaved() > 0 && !self.has_only_opening_message())
    }

    /// Appends messages that are durable.
    pub fn push(&mut self, messages: Vec<StoredMessage>, at: Timestamp, deadline: Option<Deadline>) {
        self.totals.merge(Totals::count(&messages));
        Arc::make_mut(&mut self.messages).extend(messages);
        self.last_activity_at = at;
        self.deadline = deadline;
        // A rewind cannot be undone once a message followed it.
        self.rewound.clear();
    }

    /// Records that `session` holds the first `count` messages and the notes.
    pub fn mark_saved(&mut self, session: Uuid, count: u64) {
        (self.saved, self.saved_session) = (count, Some(session));
        self.saved_pins.clone_from(&self.working_set.pinned_facts);
        self.has_unsaved_notes = false;
        // The new session does not hold what the rewind dropped, even if the session before it did.
        for rewound in &mut self.rewound {
            rewound.saved = count;
        }
    }

    /// Returns the index of the user message that starts the last `turns` user turns.
    #[must_use]
    pub(crate) fn rewind_index(&self, turns: u64) -> Option<usize> {
        let nth = usize::try_from(turns.checked_sub(1)?).ok()?;
        let users = self.messages.iter().enumerate().rev().filter(|(_, message)| message.role() == Role::User);
        users.map(|(index, _)| index).nth(nth)
    }

    /// Keeps only the first `keep` messages; [`Context::unrewind`] brings the others back.
    pub fn rewind(&mut self, keep: usize) {
        let keep = keep.min(self.messages.len());
        let messages = Arc::make_mut(&mut self.messages).split_off(keep);
        self.totals = Totals::count(&self.messages);
        // Undo compactions whose window would start behind the last message.
        let mut compactions = Vec::new();
        while let Some(done) = self.compactions.pop_if(|done| done.compaction.upto >= self.totals.messages) {
            self.switch_derived(&done.compaction.derived, &done.previous);
            compactions.push(done);
        }
        self.rewound.push(Rewound { messages, compactions, saved: self.saved });
        // The session holds other messages after this point than those that follow.
        self.saved = self.saved.min(self.totals.messages);
    }

    /// Undoes the last rewind. Returns false if there is none.
    pub fn unrewind(&mut self) -> bool {
        let Some(rewound) = self.rewound.pop() else { return false };
        Arc::make_mut(&mut self.messages).extend(rewound.messages);
        self.totals = Totals::count(&self.messages);
        self.saved = rewound.saved;
        for done in rewound.compactions.into_iter().rev() {
            let previous = DerivedState::from_working_set(&self.working_set);
            self.switch_derived(&done.previous, &done.compaction.derived);
            self.compactions.push(AppliedCompaction { previous, ..done });
        }
        true
    }

    /// Returns the index of the first message that no compaction removed from the window.
    #[must_use]
    pub fn window_start(&self) -> usize {
        let upto = self.compactions.last().map_or(0, |done| done.compaction.upto);
        usize::try_from(upto).unwrap_or(usize::MAX).min(self.messages.len())
    }

    /// Removes older messages from the window.
    pub fn compact(&mut self, compaction: Compaction) {
        let before = DerivedState::from_working_set(&self.working_set);
        compaction.derived.clone().apply_to(&mut self.working_set);
        self.set_revision += 1;
        self.compactions.push(AppliedCompaction { compaction, previous: before });
    }

    /// Undoes the last compaction and returns its receipt, or `None` if there is none.
    pub fn uncompact(&mut self) -> Option<Receipt> {
        let done = self.compactions.pop()?;
        self.switch_derived(&done.compaction.derived, &done.previous);
        self.no_auto_compaction_below = (self.messages.len() + MIN_KEPT_MESSAGES) as u64;
        Some(done.compaction.receipt)
    }

    /// Replaces the derived part of the working set, which was `base` and has been edited since, by `target` with the
    /// same edits.
    fn switch_derived(&mut self, base: &DerivedState, target: &DerivedState) {
        let current = DerivedState::from_working_set(&self.working_set);
        target.clone().with_edits(base, &current).apply_to(&mut self.working_set);
        self.set_revision += 1;
    }

    /// Applies edits of the notes.
    pub fn edit_notes(&mut self, changes: &[NoteChange]) {
        apply_changes(&mut self.working_set, changes);
        self.set_revision += 1;
        self.changes_since_call.extend_from_slice(changes);
        let is_pin = |change: &NoteChange| {
            let (NoteChange::Add { list, .. } | NoteChange::Replace { list, .. } | NoteChange::Remove { list, .. }) =
                change;
            *list == NoteList::PinnedFacts
        };
        self.has_unsaved_notes |= !changes.iter().all(is_pin);
    }

    /// Returns the number of pinned facts.
    #[must_use]
    pub(crate) fn pin_count(&self) -> u64 {
        self.working_set.pinned_facts.len() as u64
    }

    /// Returns the numbers that describe the context.
    #[must_use]
    pub fn info(&self) -> ContextInfo {
        ContextInfo {
            messages: self.totals.messages,
            token_estimate: self.totals.tokens(),
            started_at: self.started_at,
            last_activity_at: self.last_activity_at,
            idle_deadline_at: self.deadline.map(|deadline| deadline.at),
            parent_id: self.parent,
            unsaved: self.unsaved(),
            restoration_tokens: self.restoration,
            meter: None,
        }
    }
}

/// Returns an empty context with this head.
pub(crate) fn context_from_head(begin: &ContextHead) -> Context {
    Context {
        number: begin.context,
        started_at: begin.started_at,
        last_activity_at: begin.started_at,
        deadline: begin.deadline,
        parent: begin.parent,
        messages: Arc::default(),
        totals: Totals::default(),
        saved: 0,
        saved_session: None,
        saved_pins: Vec::new(),
        has_unsaved_notes: false,
        base_session: None,
        working_set: WorkingSet::default(),
        set_revision: 0,
        changes_since_call: Vec::new(),
        begun_by_compaction: None,
        rewound: Vec::new(),
        compactions: Vec::new(),
        no_auto_compaction_below: 0,
        restoration: TokenPair::default(),
    }
}

/// A page that is being filled.
#[derive(Debug)]
pub struct PageBuilder {
    budget: PageBudget,
    bytes: usize,
    pub messages: Vec<StoredMessage>,
}

impl PageBuilder {
    #[must_use]
    pub fn new(budget: PageBudget) -> Self {
        Self { budget, bytes: 0, messages: Vec::new() }
    }

    /// Adds the next message. Returns false if it does not fit.
    pub fn push(&mut self, message: &StoredMessage) -> bool {
        let message = fit_message(message, self.budget);
        self.bytes += message.json().len();
        let fits = self.bytes <= self.budget.page_bytes || self.messages.is_empty();
        if fits {
            self.messages.push(message);
        }
        fits
    }
}

/// Returns the messages of a page and the offset of the next one; none after a page that was to have no messages. The page ends
/// before it exceeds its bytes.
#[must_use]
pub fn read_page(messages: &[StoredMessage], pick: PageRange, room: PageBudget) -> (Vec<StoredMessage>, Option<u64>) {
    let count = messages.len() as u64;
    let (start, end) = match pick {
        PageRange::Last(n) => (count.saturating_sub(n), count),
        PageRange::From { offset, limit } => (offset.min(count), offset.saturating_add(limit).min(count)),
    };
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let mut page = PageBuilder::new(room);
    let _ = messages[index(start)..index(end)].iter().all(|message| page.push(message));
    let next = start + page.messages.len() as u64;
    (page.messages, (next < count && start < end).then_some(next))
}

/// Returns the message, or a placeholder if it is too long for a frame, as one from an import may be.
#[must_use]
pub fn fit_message(message: &StoredMessage, room: PageBudget) -> StoredMessage {
    if message.json().len() > room.message_bytes { oversized_placeholder(message) } else { message.clone() }
}

/// Returns a placeholder for a message that is too long for a frame.
fn oversized_placeholder(message: &StoredMessage) -> StoredMessage {
    let Ok(mut shown) = message.to_message() else { return message.clone() };
    shown.content =
        format!("(a message of {} bytes, too long to show; export the session to read it)", message.json().len());
    shown.generated = true;
    shown.tool_calls.clear();
    shown.attachments.clear();
    shown.provider = None;
    StoredMessage::new(&shown).unwrap_or_else(|_| message.clone())
}

/// Returns how many of the first `at` messages can be kept so that no tool call lacks its result: `at`, or the index of
/// the assistant message whose calls are not all answered by the results that directly follow it.
#[must_use]
pub fn complete_calls_prefix(messages: &[StoredMessage], at: usize) -> usize {
    let at = at.min(messages.len());
    // Walk back over the results at the end of the range to the message that made the calls.
    let mut start = at;
    while start > 0 && messages[start - 1].role() == Role::ToolResult {
        start -= 1;
    }
    let Some(caller) = start.checked_sub(1).and_then(|i| messages[i].to_message().ok()) else {
        return at;
    };
    if calls_without_result(caller.tool_calls, &messages[start..at]).is_empty() { at } else { start - 1 }
}
