//! What is kept of the answer.

use chorus_proto::{Item, ItemSource, WorkingSet};
use serde_json::Value;

use super::found::Found;
use super::piece::{Piece, Source};
use crate::summary::answer::{HUGE, Unusable, is_invisible, is_refusal, without_thoughts};
use crate::summary::fit::cut;
use crate::summary::items::{Kind, List};

/// Items of each kind that are taken from one piece.
const MOST: usize = 20;

/// The longest summary of a piece, and each side of a contradiction, in characters.
const SUMMARY: usize = 600;
const SIDE: usize = 108;

/// Reads what a model said to a piece: JSON of the form, wherever it stands in the text. What names no message of the piece is thrown
/// away, and so is what is `known`.
///
/// # Errors
/// Why it cannot be used.
pub fn read(answer: &str, piece: &Piece, known: &WorkingSet) -> Result<Found, Unusable> {
    if answer.len() > HUGE {
        return Err("is far too long");
    }
    let answer = without_thoughts(answer);
    let Some(Value::Object(fields)) = object(answer) else {
        return Err(if is_refusal(answer.trim()) { "is a refusal" } else { "is no JSON object" });
    };
    let all = |field: &str| fields.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let list = |kind, field: &str, known: &[Item]| {
        let mut list = List::new(kind, ItemSource::Model, known, MOST);
        for (text, source) in all(field).iter().filter_map(|item| said(item, piece)).filter(|(_, from)| !from.known) {
            list.add(&text, &source.message);
        }
        list.items
    };
    let mut conflicts = List::new(Kind::Conflict, ItemSource::Model, &known.conflicts, MOST);
    for conflict in all("conflicts") {
        let sides = conflict.get("earlier").zip(conflict.get("later"));
        let sides = sides.and_then(|(earlier, later)| said(earlier, piece).zip(said(later, piece)));
        if let Some(((earlier, _), (later, source))) = sides.filter(|(_, (_, later))| !later.known) {
            let both = format!("earlier: {}; later: {}", cut(&earlier, SIDE), cut(&later, SIDE));
            conflicts.add(&both, &source.message);
        }
    }
    let pinned = [&known.pinned_facts[..], &known.facts].concat();
    let summary = fields.get("background").and_then(Value::as_str).map(|text| cut(&line(text), SUMMARY));
    let done = all("done").iter().filter_map(|said| source(said, piece)?.task.clone()).collect();
    let found = Found {
        summary: summary.filter(|text| text.chars().any(char::is_alphanumeric) && !is_refusal(text)),
        topics: list(Kind::Topic, "topics", &known.topics),
        facts: list(Kind::Fact, "facts", &pinned),
        decisions: list(Kind::Decision, "decisions", &known.decisions),
        open_tasks: list(Kind::OpenTask, "pending", &known.open_tasks),
        files_touched: list(Kind::File, "files", &known.files_touched),
        conflicts: conflicts.items,
        done,
    };
    if found.is_empty() { Err("says nothing") } else { Ok(found) }
}

/// The object in a text: models that nothing holds to the form put words and fences around it.
fn object(text: &str) -> Option<Value> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    serde_json::from_str(text.get(start..=end)?).ok()
}

/// The text of an item and where it comes from; `None` where that is nowhere.
fn said<'a>(item: &Value, piece: &'a Piece) -> Option<(String, &'a Source)> {
    let source = source(item.get("source")?, piece)?;
    let text = line(item.get("text")?.as_str()?);
    text.chars().any(char::is_alphanumeric).then_some((text, source))
}

/// What a number stands for.
fn source<'a>(number: &Value, piece: &'a Piece) -> Option<&'a Source> {
    let number = number.as_u64().or_else(|| number.as_str()?.trim().parse().ok())?;
    piece.sources.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

/// The text on one line, without what nobody sees.
fn line(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let plain = shown.replace(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'), " ");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
