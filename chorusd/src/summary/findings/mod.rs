//! What older messages leave behind when no model is asked: the files, decisions and to-dos that they name, found by rules. The same
//! messages leave the same behind, whoever asks and whenever.

mod lexicon;
mod paths;

use chorus_proto::{Item, ItemSource, Message, Role, WorkingSet};

use super::items::{ItemKind, ItemList};
use super::sample::head_and_tail;
use super::sentence::parse_sentences;
use crate::message::{FindingKinds, StoredMessage};

/// Items of each kind that one compaction finds.
pub const MAX_ITEMS_PER_KIND: usize = 10;

/// Bytes at both ends of a text that are looked at.
const EDGE_BYTES: usize = 4096;

/// What was found, in order of appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
}

/// What `messages` name, at most `most` of each kind, and nothing that `known` has. Files are taken from calls of tools and from
/// what people and models say; decisions and to-dos from what they say. What tools answer, and what Chorus wrote itself, is left out.
/// What a message can name at all is found out once, and kept with it.
#[must_use]
pub fn collect_findings<'a>(
    messages: impl IntoIterator<Item = &'a StoredMessage>,
    known: &WorkingSet,
    most: usize,
) -> Findings {
    let list = |kind, known: &[Item]| ItemList::new(kind, ItemSource::Rule, known, most);
    let mut decisions = list(ItemKind::Decision, &known.decisions);
    let mut tasks = list(ItemKind::OpenTask, &known.open_tasks);
    let mut files = list(ItemKind::File, &known.files_touched);
    for stored in messages {
        if decisions.is_full() && tasks.is_full() && files.is_full() {
            break;
        }
        let names = stored.finding_kinds(detect_names);
        let (has_files, tells) = (names.files && !files.is_full(), names.decisions || names.tasks);
        let has_words = tells && !(decisions.is_full() && tasks.is_full());
        if !has_files && !has_words {
            continue;
        }
        let Ok(message) = stored.to_message() else { continue };
        let text = head_and_tail(&message.content, EDGE_BYTES, EDGE_BYTES);
        if has_files {
            for_each_path(&message, &text, |path| files.add(path, &message.id));
        }
        if !has_words {
            continue;
        }
        for line in text.lines() {
            if let Some(task) = lexicon::open_checkbox_task(line) {
                tasks.add(task, &message.id);
            }
        }
        for sentence in parse_sentences(&text) {
            if lexicon::is_question(&sentence.text) || sentence.words.len() <= 2 {
                continue;
            }
            let tells = lexicon::find_cues(&sentence.text);
            if tells.task && !lexicon::is_checkbox(&sentence.text) {
                tasks.add(&sentence.text, &message.id);
            } else if tells.decision {
                decisions.add(&sentence.text, &message.id);
            }
        }
    }
    Findings { decisions: decisions.items, open_tasks: tasks.items, files_touched: files.items }
}

/// What a message may name, by its cues alone.
fn detect_names(stored: &StoredMessage) -> FindingKinds {
    if !matches!(stored.role(), Role::User | Role::Assistant) {
        return FindingKinds::default();
    }
    let Some(message) = stored.to_message().ok().filter(|message| !message.generated) else {
        return FindingKinds::default();
    };
    let text = head_and_tail(&message.content, EDGE_BYTES, EDGE_BYTES);
    let lexicon::CueMatches { decision, task } = lexicon::find_cues(&text);
    let mut files = false;
    for_each_path(&message, &text, |_| files = true);
    FindingKinds { files, decisions: decision, tasks: task || text.contains("[ ]") }
}

/// Each path that a message names; `text` is as much as is looked at of what it says.
fn for_each_path(message: &Message, text: &str, mut found: impl FnMut(&str)) {
    paths::for_each_in_text(text, &mut found);
    for call in &message.tool_calls {
        paths::for_each_in_params(call.params.get(), &mut found);
    }
}

#[cfg(test)]
mod tests;
