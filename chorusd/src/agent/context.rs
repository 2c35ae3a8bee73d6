//! The live conversation of an agent.

use std::sync::Arc;

use chorus_proto::{ContextInfo, Item, ItemSource, Receipt, Role, TokenPair, WorkingSet};
use jiff::Timestamp;
use uuid::Uuid;

use super::compaction::{AppliedCompaction, Compaction, DerivedState, MIN_KEPT_MESSAGES};
use super::tool_pairing::calls_without_result;
use crate::clock::Ticks;
use crate::message::{ContextNo, StoredMessage, Totals};

/// When a context is put away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    /// On the clock that counts sleep: when it is, and what tells this deadline from all others.
    pub due: Ticks,
    /// The time of day that this was expected to be: shown, and kept for restarts.
    pub at: Timestamp,
}

/// A live context in memory.
#[derive(Debug, Clone)]
pub struct Context {
    pub number: ContextNo,
    pub started_at: Timestamp,
    pub last_activity_at: Timestamp,
    pub deadline: Option<Deadline>,
    /// The session it was restored out of.
    pub parent: Option<Uuid>,
    /// Shared with whoever reads it beside: a copy of the context costs no copy of the conversation.
    pub messages: Arc<Vec<StoredMessage>>,
    pub totals: Totals,
    /// The first messages, as many as `saved_session` holds.
    pub saved: u64,
    pub saved_session: Option<Uuid>,
    /// The facts that are pinned in that session, or where there is none, in the one that it goes on from.
    pub saved_pins: Vec<Item>,
    /// The session that the journal refers to instead of holding its messages.
    pub base_session: Option<Uuid>,
    pub working_set: WorkingSet,
    /// What rewinds took out, the last one at the end.
    pub rewound: Vec<Rewound>,
    /// What took messages out of the window, the last one at the end.
    pub compactions: Vec<AppliedCompaction>,
    /// With fewer messages the window is not compacted by itself: somebody has just taken a compaction back.
    pub no_auto_compaction_below: u64,
    /// What resuming cost.
    pub restoration: TokenPair,
}

/// Messages that a rewind took out.
#[derive(Debug, Clone)]
pub struct Rewound {
    pub messages: Vec<StoredMessage>,
    /// Compactions that ended behind what is left, the last one first.
    pub compactions: Vec<Compaction>,
    /// `saved` before.
    pub saved: u64,
}

/// Which messages a page is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRange {
    /// The newest ones.
    Last(u64),
    /// From an index, at most so many.
    From { offset: u64, limit: u64 },
}

/// How much fits into an answer whose frame may have so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBudget {
    /// Bytes of messages in a page: there is room to spare for the rest.
    pub page_bytes: usize,
    /// Bytes of one message, with what the answer has around it.
    pub message_bytes: usize,
}

impl PageBudget {
    #[must_use]
    pub fn from_max_frame(max_frame: usize) -> Self {
        Self { page_bytes: (max_frame / 4 * 3).min(4 << 20), message_bytes: max_frame / 16 * 15 }
    }
}

impl Context {
    /// Messages that no session holds yet.
    #[must_use]
    pub fn unsaved(&self) -> u64 {
        self.totals.messages.saturating_sub(self.saved)
    }

    /// Whether all that was said in it are the words that a link of a chain opens with.
    #[must_use]
    pub fn has_only_opening_message(&self) -> bool {
        let begun = self.parent.is_some() && self.working_set.background.is_some() && self.saved_session.is_none();
        begun && self.totals.messages == 1 && self.totals.queries == 0
    }

    /// Whether somebody would miss something that no session holds: a message, or a fact that was pinned or unpinned since.
    #[must_use]
    pub fn has_unsaved_changes(&self) -> bool {
        let pins = self.totals.messages > 0 && self.working_set.pinned_facts != self.saved_pins;
        pins || (self.unsaved() > 0 && !self.has_only_opening_message())
    }

    /// Takes messages that are durable.
    pub fn push(&mut self, messages: Vec<StoredMessage>, at: Timestamp, deadline: Option<Deadline>) {
        self.totals.merge(Totals::count(&messages));
        Arc::make_mut(&mut self.messages).extend(messages);
        self.last_activity_at = at;
        self.deadline = deadline;
        // There is no way back over what was said since.
        self.rewound.clear();
    }

    /// Takes note that `session` holds the first `count` messages, and what is pinned.
    pub fn mark_saved(&mut self, session: Uuid, count: u64) {
        (self.saved, self.saved_session) = (count, Some(session));
        self.saved_pins.clone_from(&self.working_set.pinned_facts);
        // What a rewind took out is not in that session, whatever the one before it held.
        for rewound in &mut self.rewound {
            rewound.saved = count;
        }
    }

    /// Where a rewind of `turns` user turns cuts: the index of the user message that the first of them begins with.
    #[must_use]
    pub fn rewind_index(&self, turns: u64) -> Option<usize> {
        let nth = usize::try_from(turns.checked_sub(1)?).ok()?;
        let users = self.messages.iter().enumerate().rev().filter(|(_, message)| message.role() == Role::User);
        users.map(|(index, _)| index).nth(nth)
    }

    /// Keeps only the first `keep` messages; [`Context::unrewind`] brings the others back.
    pub fn rewind(&mut self, keep: usize) {
        let keep = keep.min(self.messages.len());
        let messages = Arc::make_mut(&mut self.messages).split_off(keep);
        self.totals = Totals::count(&self.messages);
        // A window that would begin behind its end shows again what there is.
        let mut compactions = Vec::new();
        while let Some(done) = self.compactions.pop_if(|done| done.compaction.upto >= self.totals.messages) {
            done.previous.apply_to(&mut self.working_set);
            compactions.push(done.compaction);
        }
        self.rewound.push(Rewound { messages, compactions, saved: self.saved });
        // What follows is not what the session holds after this point.
        self.saved = self.saved.min(self.totals.messages);
    }

    /// Takes the last rewind back; false where there is none.
    pub fn unrewind(&mut self) -> bool {
        let Some(rewound) = self.rewound.pop() else { return false };
        Arc::make_mut(&mut self.messages).extend(rewound.messages);
        self.totals = Totals::count(&self.messages);
        self.saved = rewound.saved;
        for compaction in rewound.compactions.into_iter().rev() {
            self.compact(compaction);
        }
        true
    }

    /// The number of the message that the window begins with, at the earliest.
    #[must_use]
    pub fn window_start(&self) -> usize {
        let upto = self.compactions.last().map_or(0, |done| done.compaction.upto);
        usize::try_from(upto).unwrap_or(usize::MAX).min(self.messages.len())
    }

    /// Lets older messages leave the window.
    pub fn compact(&mut self, compaction: Compaction) {
        let before = DerivedState::from_working_set(&self.working_set);
        compaction.derived.clone().apply_to(&mut self.working_set);
        self.compactions.push(AppliedCompaction { compaction, previous: before });
    }

    /// Takes the last compaction back; what it had done, or `None` where there is none.
    pub fn uncompact(&mut self) -> Option<Receipt> {
        let done = self.compactions.pop()?;
        done.previous.apply_to(&mut self.working_set);
        self.no_auto_compaction_below = (self.messages.len() + MIN_KEPT_MESSAGES) as u64;
        Some(done.compaction.receipt)
    }

    /// Facts that are pinned.
    #[must_use]
    pub fn pin_count(&self) -> u64 {
        self.working_set.pinned_facts.len() as u64
    }

    /// The context in numbers.
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

    /// Takes the next message; false where it has no room for it.
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

/// The messages of a page and the offset of the next one. A page is cut before it has more bytes than there is room for.
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
    (page.messages, (next < count).then_some(next))
}

/// The message, or what is shown of it where no frame holds it, as an import may bring it.
#[must_use]
pub fn fit_message(message: &StoredMessage, room: PageBudget) -> StoredMessage {
    if message.json().len() > room.message_bytes { oversized_placeholder(message) } else { message.clone() }
}

/// What is shown of a message that no frame holds.
fn oversized_placeholder(message: &StoredMessage) -> StoredMessage {
    let Ok(mut shown) = message.to_message() else { return message.clone() };
    shown.content =
        format!("(a message of {} bytes, too long to be shown here; an export has it)", message.json().len());
    shown.generated = true;
    shown.tool_calls.clear();
    shown.attachments.clear();
    shown.provider = None;
    StoredMessage::new(&shown).unwrap_or_else(|_| message.clone())
}

/// How many of the first `at` messages can be kept so that no call lacks its result: the cut goes back to before the
/// assistant message whose calls are not all answered by what directly follows it.
#[must_use]
pub fn complete_calls_prefix(messages: &[StoredMessage], at: usize) -> usize {
    let at = at.min(messages.len());
    // Walk back over the results that end the cut to the message that made the calls.
    let mut start = at;
    while start > 0 && messages[start - 1].role() == Role::ToolResult {
        start -= 1;
    }
    let Some(caller) = start.checked_sub(1).and_then(|i| messages[i].to_message().ok()) else {
        return at;
    };
    if calls_without_result(caller.tool_calls, &messages[start..at]).is_empty() { at } else { start - 1 }
}

/// The working set with one more fact pinned by hand.
#[must_use]
pub fn with_pinned_fact(set: &WorkingSet, id: String, text: String) -> WorkingSet {
    let mut set = set.clone();
    set.pinned_facts.push(Item { id, text, source: ItemSource::Hand, message_id: None });
    set
}
