//! What older messages leave behind when no model is asked: the files, decisions and to-dos that they name, found by rules. The same
//! messages leave the same behind, whoever asks and whenever.

mod cues;
mod paths;

use chorus_proto::{Item, ItemSource, Message, Role, WorkingSet};

use super::digest::ends;
use super::items::{Kind, List};
use super::sentence::sentences;

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
#[must_use]
pub fn findings(messages: impl IntoIterator<Item = Message>, known: &WorkingSet, most: usize) -> Findings {
    let list = |kind, known: &[Item]| List::new(kind, ItemSource::Rule, known, most);
    let mut decisions = list(Kind::Decision, &known.decisions);
    let mut tasks = list(Kind::OpenTask, &known.open_tasks);
    let mut files = list(Kind::File, &known.files_touched);
    for message in messages {
        if message.generated || !matches!(message.role, Role::User | Role::Assistant) {
            continue;
        }
        if decisions.full() && tasks.full() && files.full() {
            break;
        }
        let text = ends(&message.content, EDGE, EDGE);
        if !files.full() {
            paths::in_text(&text, |path| files.add(path, &message.id));
            for call in &message.tool_calls {
                paths::in_params(call.params.get(), |path| files.add(path, &message.id));
            }
        }
        if decisions.full() && tasks.full() {
            continue;
        }
        // Most texts decide nothing and leave nothing to do, and need not be taken apart.
        let lower = text.to_lowercase();
        if !cues::may_tell(&lower) {
            continue;
        }
        for line in text.lines() {
            if let Some(task) = cues::open_box(line) {
                tasks.add(task, &message.id);
            }
        }
        for sentence in sentences(&text) {
            // A question decides nothing, and leaves nothing to do.
            if sentence.text.ends_with(['?', '？']) {
                continue;
            }
            if cues::is_task(&sentence.words) && !cues::is_box(&sentence.text) {
                tasks.add(&sentence.text, &message.id);
            } else if cues::is_decision(&sentence.words) {
                decisions.add(&sentence.text, &message.id);
            }
        }
    }
    Findings { decisions: decisions.items, open_tasks: tasks.items, files_touched: files.items }
}

#[cfg(test)]
mod tests;
