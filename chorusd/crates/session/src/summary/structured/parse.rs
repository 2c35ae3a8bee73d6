//! Parses the model's answer.

use chorus_proto::{Item, ItemSource, WorkingSet};
use serde_json::Value;

use super::chunk_prompt::{ChunkSource, TranscriptChunk};
use super::extraction::ExtractedItems;
use crate::summary::items::{ItemKind, ItemList};
use crate::summary::model_summary::{MAX_ANSWER_BYTES, RejectReason, is_invisible, is_refusal, strip_thinking};
use crate::summary::text_limit::truncate_chars;

/// Number of items of each kind that are taken from one chunk.
const MAX_ITEMS: usize = 20;

/// Length of the longest summary of a chunk, and of each side of a contradiction, in characters.
const MAX_SUMMARY_CHARS: usize = 600;
const MAX_SIDE_CHARS: usize = 108;

/// Parses a model's answer to a chunk: JSON that follows the schema, anywhere in the text. Drops items that refer to no
/// message of the chunk or are in `known`.
///
/// # Errors
/// Returns the reason if the answer is far too long, a refusal, no JSON object, or empty.
pub fn parse_extraction(
    answer: &str,
    piece: &TranscriptChunk,
    known: &WorkingSet,
) -> Result<ExtractedItems, RejectReason> {
    if answer.len() > MAX_ANSWER_BYTES {
        return Err("is far too long");
    }
    let answer = strip_thinking(answer);
    let Some(Value::Object(fields)) = parse_object(answer) else {
        return Err(if is_refusal(answer.trim()) { "is a refusal" } else { "is not a JSON object" });
    };
    let all = |field: &str| fields.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let closed = &known.closed;
    let list = |kind, field: &str, known: &[Item]| {
        let mut list = ItemList::new(kind, ItemSource::Model, known, closed, MAX_ITEMS);
        for (text, source) in
            all(field).iter().filter_map(|item| parse_item(item, piece)).filter(|(_, from)| !from.known)
        {
            list.add(&text, &source.message);
        }
        list.items
    };
    let mut conflicts = ItemList::new(ItemKind::Conflict, ItemSource::Model, &known.conflicts, closed, MAX_ITEMS);
    for conflict in all("conflicts") {
        let sides = conflict.get("earlier").zip(conflict.get("later"));
        let sides = sides.and_then(|(earlier, later)| parse_item(earlier, piece).zip(parse_item(later, piece)));
        if let Some(((earlier, _), (later, source))) = sides.filter(|(_, (_, later))| !later.known) {
            let both = format!(
                "earlier: {}; later: {}",
                truncate_chars(&earlier, MAX_SIDE_CHARS),
                truncate_chars(&later, MAX_SIDE_CHARS)
            );
            conflicts.add(&both, &source.message);
        }
    }
    let pinned = [&known.pinned_facts[..], &known.facts].concat();
    let summary = fields
        .get("background")
        .and_then(Value::as_str)
        .map(|text| truncate_chars(&clean_line(text), MAX_SUMMARY_CHARS));
    let done = all("done").iter().filter_map(|said| resolve_source(said, piece)?.task.clone()).collect();
    let found = ExtractedItems {
        summary: summary.filter(|text| text.chars().any(char::is_alphanumeric) && !is_refusal(text)),
        topics: list(ItemKind::Topic, "topics", &known.topics),
        facts: list(ItemKind::Fact, "facts", &pinned),
        decisions: list(ItemKind::Decision, "decisions", &known.decisions),
        open_tasks: list(ItemKind::OpenTask, "pending", &known.open_tasks),
        files_touched: list(ItemKind::File, "files", &known.files_touched),
        conflicts: conflicts.items,
        done,
    };
    if found.is_empty() { Err("has no content") } else { Ok(found) }
}

/// Finds the JSON object in a text. Models that are not forced to follow the schema add words and fences.
fn parse_object(text: &str) -> Option<Value> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(start..=end)?).ok()
}

/// Returns the text of an item and its source, or `None` if it has no valid source.
fn parse_item<'a>(item: &Value, piece: &'a TranscriptChunk) -> Option<(String, &'a ChunkSource)> {
    let source = resolve_source(item.get("source")?, piece)?;
    let text = clean_line(item.get("text")?.as_str()?);
    text.chars().any(char::is_alphanumeric).then_some((text, source))
}

/// Returns the source that a number refers to.
fn resolve_source<'a>(number: &Value, piece: &'a TranscriptChunk) -> Option<&'a ChunkSource> {
    let number = number.as_u64().or_else(|| number.as_str()?.trim().parse().ok())?;
    piece.sources.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

/// Joins the lines of a text and removes invisible characters.
fn clean_line(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let plain = shown.replace(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'), " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
