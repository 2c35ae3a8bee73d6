//! The operations `notes.*`: what is known in the live context, and the facts in the memories of its agent.

pub mod add;
pub mod done;
pub mod edit;
pub mod list;
pub mod resolve;
pub mod rm;

use std::collections::HashMap;

use chorus_agent_core::AgentSettings;
use chorus_agent_core::event::EditedNotes;
use chorus_agent_core::window::working_set_block::fit_to_window;
use chorus_base::error::{Error, Result};
use chorus_proto::methods::memory::{MemoryEntry, MemorySource};
use chorus_proto::methods::notes::{Note, NoteKind, NoteScope, NoteView};
use chorus_proto::{ErrorKind, Item, ItemSource, WorkingSet};
use chorus_session::notes::NoteList;
use chorus_session::selector::MIN_PREFIX;

/// The limit on a note in bytes.
const MAX_NOTE_BYTES: usize = 4096;

/// Trims the text of a note. `what` names it in the error.
pub(super) fn validate_text(what: &str, text: &str) -> Result<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_NOTE_BYTES {
        return Err(Error::invalid(format!("{what} must have 1 to {MAX_NOTE_BYTES} bytes"))
            .hint("shorten it to one or two sentences"));
    }
    Ok(text.to_owned())
}

/// How the window of an agent shows the notes of its live context.
struct ShownNotes(HashMap<(NoteList, String), String>);

impl ShownNotes {
    fn new(settings: &AgentSettings, set: &WorkingSet) -> Self {
        let shown = fit_to_window(set, settings.window.tokens);
        let all = NoteList::ALL.into_iter().flat_map(|list| {
            list.items(&shown).iter().map(move |item| ((list, item.id.clone()), item.text.clone())).collect::<Vec<_>>()
        });
        Self(all.collect())
    }

    fn view(&self, list: NoteList, item: &Item) -> NoteView {
        match self.0.get(&(list, item.id.clone())) {
            None => NoteView::LeftOut,
            Some(text) if *text == item.text => NoteView::Full,
            Some(_) => NoteView::Shortened,
        }
    }
}

/// Converts an item of the live context. `number` is how lists name it.
fn to_note(list: NoteList, item: Item, number: String, shown: NoteView) -> Note {
    let kind = match list {
        NoteList::PinnedFacts | NoteList::Facts => NoteKind::Fact,
        NoteList::Decisions => NoteKind::Decision,
        NoteList::OpenTasks => NoteKind::Task,
        NoteList::FilesTouched => NoteKind::File,
        NoteList::Conflicts => NoteKind::Conflict,
    };
    Note {
        note: number,
        kind,
        scope: NoteScope::Here,
        id: item.id,
        text: item.text,
        source: item.source,
        message_id: item.message_id,
        shown,
        path: None,
        project: None,
    }
}

/// Converts the note that an edit is about.
fn to_edited_note(settings: &AgentSettings, edited: &EditedNotes) -> Note {
    let EditedNotes { working_set, edit } = edited;
    let shown = ShownNotes::new(settings, working_set).view(edit.list, &edit.item);
    to_note(edit.list, edit.item.clone(), edit.number.clone(), shown)
}

/// Converts an entry of the memory.
fn memory_to_note(entry: MemoryEntry) -> Note {
    Note {
        note: entry.short_id,
        kind: NoteKind::Fact,
        scope: if entry.project.is_some() { NoteScope::Project } else { NoteScope::Agent },
        id: entry.id.to_string(),
        text: entry.text,
        source: if entry.source == MemorySource::Hand { ItemSource::Hand } else { ItemSource::Model },
        message_id: entry.message_id,
        shown: if entry.shown { NoteView::Full } else { NoteView::LeftOut },
        path: entry.path,
        project: entry.project,
    }
}

/// Returns whether a name that is no note of the live context may be the id of a memory entry. Such an id may consist of
/// digits alone, like a number without its letter, which is `invalid_params`.
fn may_be_memory(failure: &Error, note: &str) -> bool {
    matches!(failure.kind, ErrorKind::NotFound | ErrorKind::InvalidParams)
        && note.len() >= MIN_PREFIX
        && note.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
