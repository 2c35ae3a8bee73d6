//! Edits of notes as people make them.

use chorus_proto::methods::session_branching::Side;
use chorus_proto::{Item, ItemSource, WorkingSet};

use super::conflict_sides::{ConflictSides, is_statement};
use super::{NoteChange, NoteList, NoteRef};

/// An edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteEdit {
    /// Adds a note, unless the list has one with the same text.
    Add { list: NoteList, item: Item },
    /// Replaces the text of a note; it counts as added by hand from then on.
    Edit { note: NoteRef, text: String },
    /// Removes an open task that is done.
    Done { note: NoteRef },
    /// Removes a note.
    Remove { note: NoteRef },
    /// Settles a conflict: removes it and the statement of the other side, and adds a decision with this id that says
    /// so.
    Resolve { note: NoteRef, keep: Side, id: String },
}

/// Why an edit is impossible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteError {
    NotFound(String),
    /// The number needs a letter that says which list it counts in.
    NeedsLetter(String),
    /// The note is in another list than the edit is about.
    WrongKind {
        number: String,
        list: NoteList,
    },
    /// The two sides of the conflict cannot be told apart.
    NoSides(String),
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    /// The changes to record; none if the note existed already.
    pub changes: Vec<NoteChange>,
    pub list: NoteList,
    /// The note as it is after the edit, or was before its removal.
    pub item: Item,
    /// How lists name it, or named it.
    pub number: String,
    /// For a resolved conflict: the statement that was kept, and the notes that said otherwise and were removed.
    pub resolution: Option<(String, Vec<(NoteList, Item)>)>,
}

impl NoteEdit {
    /// Finds out what the edit changes in a working set.
    ///
    /// # Errors
    /// There is no such note, or the edit does not fit it.
    pub fn apply(self, set: &WorkingSet) -> Result<AppliedEdit, NoteError> {
        match self {
            Self::Add { list, item } => Ok(add(set, list, item)),
            Self::Edit { note, text } => {
                let (list, index) = find(&note, set)?;
                let old = &list.items(set)[index];
                if list == NoteList::Conflicts {
                    return Err(NoteError::WrongKind { number: list.number(set, index), list });
                }
                let item = Item { text, source: ItemSource::Hand, ..old.clone() };
                let change = NoteChange::Replace { list, item: item.clone() };
                Ok(AppliedEdit { changes: vec![change], list, item, number: list.number(set, index), resolution: None })
            }
            Self::Done { note } => {
                let (list, index) = find(&note, set)?;
                if list != NoteList::OpenTasks {
                    return Err(NoteError::WrongKind { number: list.number(set, index), list });
                }
                Ok(remove(set, list, index))
            }
            Self::Remove { note } => {
                let (list, index) = find(&note, set)?;
                Ok(remove(set, list, index))
            }
            Self::Resolve { note, keep, id } => resolve(set, &note, keep, id),
        }
    }
}

fn find(note: &NoteRef, set: &WorkingSet) -> Result<(NoteList, usize), NoteError> {
    if note.needs_letter() {
        return Err(NoteError::NeedsLetter(note.text.clone()));
    }
    note.find(set).ok_or_else(|| NoteError::NotFound(note.text.clone()))
}

fn add(set: &WorkingSet, list: NoteList, item: Item) -> AppliedEdit {
    let items = list.items(set);
    // Facts may be pinned twice, as they always could.
    let known = (list != NoteList::PinnedFacts).then(|| items.iter().position(|known| known.text == item.text));
    match known.flatten() {
        Some(index) if items[index].source == ItemSource::Hand => AppliedEdit {
            changes: Vec::new(),
            list,
            item: items[index].clone(),
            number: list.number(set, index),
            resolution: None,
        },
        // What a person adds as well is a person's from then on.
        Some(index) => {
            let item = Item { source: ItemSource::Hand, ..items[index].clone() };
            let changes = vec![NoteChange::Replace { list, item: item.clone() }];
            AppliedEdit { changes, list, item, number: list.number(set, index), resolution: None }
        }
        None => AppliedEdit {
            changes: vec![NoteChange::Add { list, item: item.clone() }],
            list,
            item,
            number: list.number(set, items.len()),
            resolution: None,
        },
    }
}

fn remove(set: &WorkingSet, list: NoteList, index: usize) -> AppliedEdit {
    let item = list.items(set)[index].clone();
    AppliedEdit {
        changes: vec![removal(list, &item, index)],
        list,
        number: list.number(set, index),
        item,
        resolution: None,
    }
}

/// Pinned facts come from people only, so nothing would find them again.
fn removal(list: NoteList, item: &Item, at: usize) -> NoteChange {
    NoteChange::Remove { list, id: item.id.clone(), at, close: list != NoteList::PinnedFacts }
}

fn resolve(set: &WorkingSet, note: &NoteRef, keep: Side, id: String) -> Result<AppliedEdit, NoteError> {
    let (list, index) = find(note, set)?;
    let number = list.number(set, index);
    if list != NoteList::Conflicts {
        return Err(NoteError::WrongKind { number, list });
    }
    let conflict = set.conflicts[index].clone();
    let Some(ConflictSides { a, b }) = ConflictSides::parse(&conflict.text) else {
        return Err(NoteError::NoSides(number));
    };
    let (kept, lost) = match keep {
        Side::A => (a, b),
        Side::B => (b, a),
    };
    let mut changes = vec![removal(list, &conflict, index)];
    let mut removed = Vec::new();
    for list in [NoteList::PinnedFacts, NoteList::Facts, NoteList::Decisions, NoteList::OpenTasks] {
        // From the end, so that the indices before it stay.
        for (at, item) in list.items(set).iter().enumerate().rev() {
            if is_statement(&lost, &item.text) && !is_statement(&kept, &item.text) {
                changes.push(removal(list, item, at));
                removed.push((list, item.clone()));
            }
        }
    }
    let text = format!("“{kept}” holds, not “{lost}”");
    let item = Item { id, text, source: ItemSource::Hand, message_id: None };
    changes.push(NoteChange::Add { list: NoteList::Decisions, item });
    Ok(AppliedEdit { changes, list, item: conflict, number, resolution: Some((kept, removed)) })
}
