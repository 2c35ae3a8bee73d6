//! The working set of a context: what stays visible to the model when messages leave the window.

use crate::wire;

/// Who put an item into the working set.
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
    /// The message it was taken from.
    #[serde(default)]
    pub message_id: Option<String>,
}

/// Tokens the working set takes, and may take.
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
    /// Facts that compactions found. They are shown, and never pinned by themselves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Item>,
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
    pub conflicts: Vec<Item>,
    pub token_budget: TokenBudget,
}

/// What a compaction did to the window. The record is as it was.
#[wire(Default, PartialEq, Eq)]
pub struct Receipt {
    /// Estimated tokens of the messages that could be shown, with the working set.
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Messages that gave way to the working set.
    pub left: u64,
    /// Messages behind them.
    pub kept: u64,
    /// Ids of the first and the last message that left.
    pub from: Option<String>,
    pub to: Option<String>,
    /// The pinned facts that stayed: all there are.
    pub pins: Vec<String>,
    /// Who chose what is kept of the messages that left: `model` or `rule`; null in receipts of older versions.
    #[omit_empty]
    pub source: Option<ItemSource>,
    /// Why it was not the model, or not the model alone, where there is one.
    #[omit_empty]
    pub fallback: Option<String>,
    /// New facts that are worth remembering beyond this conversation. Nothing remembers them by itself.
    #[omit_empty]
    pub offered: Vec<String>,
    /// Open tasks that the model took for done: they left the working set.
    #[omit_empty]
    pub done: Vec<String>,
    /// Items that left the working set for want of room: the oldest of each list that had more than its share.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dropped: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}
