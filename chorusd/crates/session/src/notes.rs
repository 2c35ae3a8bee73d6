//! Notes: the lists of a working set that people edit. An edit ([`NoteEdit`]) names a note as people do; applied to a
//! working set it becomes changes ([`NoteChange`]), which the journal stores.

mod conflict_sides;
mod edit;
mod note_ref;

use chorus_proto::{Item, ItemSource, WorkingSet};
use serde::{Deserialize, Serialize};

pub use conflict_sides::ConflictSides;
pub use edit::{AppliedEdit, NoteEdit, NoteError};
pub use note_ref::NoteRef;

/// Largest number of closed items that a working set remembers; the oldest are forgotten first.
const MAX_CLOSED_ITEMS: usize = 500;

/// A list of a working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteList {
    PinnedFacts,
    Facts,
    Decisions,
    OpenTasks,
    FilesTouched,
    Conflicts,
}

impl NoteList {
    /// All lists, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::PinnedFacts, Self::Facts, Self::Decisions, Self::OpenTasks, Self::FilesTouched, Self::Conflicts];

    /// Returns the items of the list.
    #[must_use]
    pub fn items(self, set: &WorkingSet) -> &Vec<Item> {
        match self {
            Self::PinnedFacts => &set.pinned_facts,
            Self::Facts => &set.facts,
            Self::Decisions => &set.decisions,
            Self::OpenTasks => &set.open_tasks,
            Self::FilesTouched => &set.files_touched,
            Self::Conflicts => &set.conflicts,
        }
    }

    /// Returns how lists name the item at `index`: a letter and a number.
    #[must_use]
    pub fn number(self, set: &WorkingSet, index: usize) -> String {
        let (letter, before) = match self {
            Self::PinnedFacts => ('f', 0),
            Self::Facts => ('f', set.pinned_facts.len()),
            Self::Decisions => ('d', 0),
            Self::OpenTasks => ('t', 0),
            Self::FilesTouched => ('p', 0),
            Self::Conflicts => ('c', 0),
        };
        format!("{letter}{}", before + index + 1)
    }

    fn items_mut(self, set: &mut WorkingSet) -> &mut Vec<Item> {
        match self {
            Self::PinnedFacts => &mut set.pinned_facts,
            Self::Facts => &mut set.facts,
            Self::Decisions => &mut set.decisions,
            Self::OpenTasks => &mut set.open_tasks,
            Self::FilesTouched => &mut set.files_touched,
            Self::Conflicts => &mut set.conflicts,
        }
    }
}

/// A change of one list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum NoteChange {
    /// Appends an item.
    Add { list: NoteList, item: Item },
    /// Replaces the item that has the same id.
    Replace { list: NoteList, item: Item },
    /// Removes an item. With `close` it is remembered as closed, so that rules and models do not find it again.
    /// `at` is its index; of items with the same id, it says which is meant.
    Remove {
        list: NoteList,
        id: String,
        at: usize,
        #[serde(default)]
        close: bool,
    },
}

/// Applies changes. Those that no longer fit, because there is no such item, are skipped.
pub fn apply_changes(set: &mut WorkingSet, changes: &[NoteChange]) {
    for change in changes {
        match change {
            NoteChange::Add { list, item } => list.items_mut(set).push(item.clone()),
            NoteChange::Replace { list, item } => {
                if let Some(old) = list.items_mut(set).iter_mut().find(|old| old.id == item.id) {
                    old.clone_from(item);
                }
            }
            NoteChange::Remove { list, id, at, close } => {
                let items = list.items_mut(set);
                let here = items.get(*at).is_some_and(|item| item.id == *id).then_some(*at);
                let Some(at) = here.or_else(|| items.iter().position(|item| item.id == *id)) else { continue };
                let item = items.remove(at);
                if *close {
                    close_items(set, [item]);
                }
            }
        }
    }
}

/// Returns whether a working set has notes of people; see [`has_same_notes`].
#[must_use]
pub fn has_notes(set: &WorkingSet) -> bool {
    !has_same_notes(set, &WorkingSet::default())
}

/// Returns whether two working sets have the same notes of people: pinned facts, what they added, and what was closed.
/// What rules and models found makes no difference.
#[must_use]
pub fn has_same_notes(one: &WorkingSet, other: &WorkingSet) -> bool {
    let by_hand = |set: &WorkingSet| -> Vec<Item> {
        let all = NoteList::ALL.into_iter().flat_map(|list| list.items(set).clone());
        all.filter(|item| item.source == ItemSource::Hand).collect()
    };
    one.pinned_facts == other.pinned_facts && one.closed == other.closed && by_hand(one) == by_hand(other)
}

/// Remembers items as closed.
pub fn close_items(set: &mut WorkingSet, items: impl IntoIterator<Item = Item>) {
    set.closed.extend(items);
    let over = set.closed.len().saturating_sub(MAX_CLOSED_ITEMS);
    set.closed.drain(..over);
}

#[cfg(test)]
mod tests;
