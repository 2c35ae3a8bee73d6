//! The working set of a context: what stays visible to the model when messages leave the window.

use jiff::Timestamp;
use uuid::Uuid;

use crate::{Role, wire};

/// Origin of an item of the working set.
#[wire(Copy, PartialEq, Eq)]
pub enum ItemSource {
    Hand,
    Model,
    Rule,
}

/// One fact, decision, task, topic, file or conflict.
#[wire(PartialEq, Eq)]
pub struct Item {
    pub id: String,
    pub text: String,
    pub source: ItemSource,
    /// The message that it was taken from.
    #[serde(default)]
    pub message_id: Option<String>,
}

/// Tokens of the working set, and their limit.
#[wire(Copy, Default, PartialEq, Eq)]
pub struct TokenBudget {
    pub used: u64,
    pub limit: u64,
}

/// The compact state of a context.
#[wire(Default, PartialEq, Eq)]
#[serde(default)]
pub struct WorkingSet {
    pub background: Option<String>,
    pub summary: Option<String>,
    pub topics: Vec<Item>,
    pub pinned_facts: Vec<Item>,
    /// Facts that compactions found. The model sees them; they are never pinned automatically.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Item>,
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
    pub conflicts: Vec<Item>,
    /// Notes that are done or were removed. They are not shown, and are not found again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Item>,
    pub token_budget: TokenBudget,
    /// Passages that were recalled from the agent's past; null if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalled: Option<Recall>,
}

impl WorkingSet {
    /// Removes the texts of what was recalled. What remains says which messages they are.
    pub fn clear_recalled_texts(&mut self) {
        for passage in self.recalled.iter_mut().flat_map(|recalled| &mut recalled.passages) {
            passage.text.clear();
        }
    }
}

/// The passages that were recalled from the agent's past for a window.
#[wire(Default, PartialEq, Eq)]
pub struct Recall {
    /// Index of the first message of the window.
    pub window_start: u64,
    /// Best first.
    pub passages: Vec<RecalledPassage>,
}

/// A message, or a part of one, that was said in an earlier conversation.
#[wire(PartialEq, Eq)]
pub struct RecalledPassage {
    /// The saved session; null if it was said in a live conversation.
    pub session: Option<Uuid>,
    /// The name of the session, or of the live conversation.
    pub name: String,
    /// Number of the message there, from 1.
    pub message: u64,
    pub role: Role,
    /// Name of the author, or of the agent; null if nobody is named.
    pub speaker: Option<String>,
    pub at: Timestamp,
    /// On one line. Empty in saved sessions, which say only where it was said.
    #[serde(default)]
    pub text: String,
}

/// The effect of a compaction on the window. The record is unchanged.
#[wire(Default, PartialEq, Eq)]
pub struct Receipt {
    /// Estimated tokens of the visible messages and the working set.
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Messages that were moved to the working set.
    pub left: u64,
    /// Messages that stayed.
    pub kept: u64,
    /// Ids of the first and the last message that left.
    pub from: Option<String>,
    pub to: Option<String>,
    /// The pinned facts; all of them stay.
    pub pins: Vec<String>,
    /// Who chose what is kept of these messages: `model` or `rule`; null in receipts of older versions.
    #[omit_empty]
    pub source: Option<ItemSource>,
    /// Why it was not the model, or not the model alone, if the agent has one.
    #[omit_empty]
    pub fallback: Option<String>,
    /// New facts that may be worth remembering beyond this conversation. They are not remembered automatically.
    #[omit_empty]
    pub offered: Vec<String>,
    /// Open tasks that the model considers done; they left the working set.
    #[omit_empty]
    pub done: Vec<String>,
    /// Items that no longer fit into the working set: the oldest of each list that exceeded its share.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dropped: u64,
    /// Decisions and open tasks that the window shows shortened or leaves out for want of room. The working set has
    /// them in full.
    #[serde(default, skip_serializing_if = "is_none")]
    pub condensed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}
