//! Finds files, decisions and open tasks in messages by rules, without a model. The same messages always give the same
//! findings.

mod false_cues;
mod lexicon;
mod paths;

use chorus_proto::{Item, ItemSource, Message, Role, WorkingSet};

use super::item_marker::strip_markers;
use super::items::{ItemKind, ItemList};
use super::sample::head_and_tail;
use super::sentence::parse_sentences;
use crate::stored_message::{FindingKinds, StoredMessage};

/// Largest numbers of items that are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingLimits {
    /// Of decisions, and of open tasks.
    pub statements: usize,
    pub files: usize,
}

impl FindingLimits {
    /// What one compaction adds to a working set. Decisions and open tasks are carried on until they are done or
    /// removed, so there is room for many of them.
    pub const PER_COMPACTION: Self = Self { statements: 100, files: 10 };
    pub const UNLIMITED: Self = Self { statements: usize::MAX, files: usize::MAX };
}

/// Bytes at each end of a text that are examined.
const EDGE_BYTES: usize = 4096;

/// The findings, in order of appearance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub decisions: Vec<Item>,
    pub open_tasks: Vec<Item>,
    pub files_touched: Vec<Item>,
}

/// Collects what `messages` name: at most as many items as `limits` says, without those that `known` contains,
/// open or closed. Files come
/// from tool calls and from the text of users and models, decisions and open tasks only from text. Tool results and
/// messages that Chorus generated are left out. Which kinds a message can name at all is determined once and cached
/// with the message.
#[must_use]
pub fn collect_findings<'a>(
    messages: impl IntoIterator<Item = &'a StoredMessage>,
    known: &WorkingSet,
    limits: FindingLimits,
) -> Findings {
    let list = |kind, list: &[Item]| {
        let most = if kind == ItemKind::File { limits.files } else { limits.statements };
        ItemList::new(kind, ItemSource::Rule, list, &known.closed, most)
    };
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
                tasks.add(strip_markers(task), &message.id);
            }
        }
        for sentence in parse_sentences(&text) {
            let text = &*sentence.text;
            if lexicon::is_question(text) || sentence.words.len() <= 2 {
                continue;
            }
            let tells = lexicon::find_cues(text);
            let is_task = tells.task || (!tells.decision && lexicon::is_put_off(text));
            if is_task && !lexicon::is_checkbox(text) && !false_cues::is_no_task(text, message.role) {
                tasks.add(strip_markers(text), &message.id);
            } else if tells.decision && !false_cues::is_no_decision(text, message.role) {
                decisions.add(strip_markers(text), &message.id);
            }
        }
    }
    Findings { decisions: decisions.items, open_tasks: tasks.items, files_touched: files.items }
}

/// Determines by cues alone which kinds a message may name.
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
    let may_put_off = || ["yet", "later", "Later", "tomorrow", "Open:", "open:"].iter().any(|word| text.contains(word));
    FindingKinds { files, decisions: decision, tasks: task || text.contains("[ ]") || may_put_off() }
}

/// Calls `found` with each path that a message names. `text` is the part of its text that is examined.
fn for_each_path(message: &Message, text: &str, mut found: impl FnMut(&str)) {
    paths::for_each_in_text(text, &mut found);
    for call in &message.tool_calls {
        paths::for_each_in_params(call.params.get(), &mut found);
    }
}

#[cfg(test)]
mod tests;
