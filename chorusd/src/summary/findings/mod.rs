//! What older messages leave behind when no model is asked: the files, decisions and to-dos that they name, found by rules. The same
//! messages leave the same behind, whoever asks and whenever.

mod cues;
mod paths;

use chorus_proto::{Item, ItemSource, Message, Role, WorkingSet};

use super::digest::ends;
use super::items::{Kind, List};
use super::sentence::sentences;
use crate::message::{Names, Stored};

/// Items of each kind that one compaction finds.
pub const MOST: usize = 10;

/// Bytes at both ends of a text that are looked at.
const EDGE: usize = 4096;

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
pub fn findings<'a>(messages: impl IntoIterator<Item = &'a Stored>, known: &WorkingSet, most: usize) -> Findings {
    let list = |kind, known: &[Item]| List::new(kind, ItemSource::Rule, known, most);
    let mut decisions = list(Kind::Decision, &known.decisions);
    let mut tasks = list(Kind::OpenTask, &known.open_tasks);
    let mut files = list(Kind::File, &known.files_touched);
    for stored in messages {
        if decisions.full() && tasks.full() && files.full() {
            break;
        }
        let names = stored.names(names);
        let (has_files, tells) = (names.files && !files.full(), names.decisions || names.tasks);
        let has_words = tells && !(decisions.full() && tasks.full());
        if !has_files && !has_words {
            continue;
        }
        let Ok(message) = stored.to_message() else { continue };
        let text = ends(&message.content, EDGE, EDGE);
        if has_files {
            in_message(&message, &text, |path| files.add(path, &message.id));
        }
        if !has_words {
            continue;
        }
        for line in text.lines() {
            if let Some(task) = cues::open_box(line) {
                tasks.add(task, &message.id);
            }
        }
        for sentence in sentences(&text) {
            if cues::asks(&sentence.text) || sentence.words.len() <= 2 {
                continue;
            }
            let tells = cues::tells(&sentence.text);
            if tells.task && !cues::is_box(&sentence.text) {
                tasks.add(&sentence.text, &message.id);
            } else if tells.decision {
                decisions.add(&sentence.text, &message.id);
            }
        }
    }
    Findings { decisions: decisions.items, open_tasks: tasks.items, files_touched: files.items }
}

/// What a message may name, by its cues alone.
fn names(stored: &Stored) -> Names {
    if !matches!(stored.role(), Role::User | Role::Assistant) {
        return Names::default();
    }
    let Some(message) = stored.to_message().ok().filter(|message| !message.generated) else { return Names::default() };
    let text = ends(&message.content, EDGE, EDGE);
    let cues::Tells { decision, task } = cues::tells(&text);
    let mut files = false;
    in_message(&message, &text, |_| files = true);
    Names { files, decisions: decision, tasks: task || text.contains("[ ]") }
}

/// Each path that a message names; `text` is as much as is looked at of what it says.
fn in_message(message: &Message, text: &str, mut found: impl FnMut(&str)) {
    paths::in_text(text, &mut found);
    for call in &message.tool_calls {
        paths::in_params(call.params.get(), &mut found);
    }
}

#[cfg(test)]
mod tests;
