//! Codex rollouts: JSONL in which every line wraps an item of the conversation, or, in older ones, is the item itself.
//!
//! Only the items are read, and what calls cost. Other events repeat the items for a screen, and a turn's context says little but the
//! model.

mod draft;
mod item;
mod tokens;

use std::borrow::Cow;
use std::io::BufRead;

use chorus_proto::{NewMessage, Role};

use super::error::ImportError;
use super::fields::Fields;
use super::lines::{Lines, TOO_LONG};
use super::sink::About;
use super::values::{source, timestamp};
use super::writer::Writer;
use draft::Drafts;
use item::Item;
use tokens::Tokens;

/// Whether a line is one of a rollout.
pub(super) fn is_line(fields: &Fields<'_>) -> bool {
    let Some(kind) = fields.text("type") else {
        return fields.has("record_type") || is_bare_start(fields);
    };
    match kind.as_ref() {
        "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted" => fields.has("payload"),
        "message" => {
            let content = fields.get("content").map_or("", |content| content.get());
            content.contains("\"input_text\"") || content.contains("\"output_text\"")
        }
        kind => item::is_call(kind) || fields.has("call_id") && item::is_output(kind),
    }
}

/// The first line of an older rollout.
fn is_bare_start(fields: &Fields<'_>) -> bool {
    let has = |name: &str| fields.iter().any(|(key, _)| key == name);
    has("id") && has("timestamp") && (has("instructions") || has("git")) && !has("role") && !has("messages")
}

/// Reads one conversation.
pub(super) fn import(source: &mut impl BufRead, writer: &mut Writer<'_>) -> Result<(), ImportError> {
    let mut about = About::default();
    let mut drafts = Drafts::new(writer.now);
    let mut tokens = Tokens::default();
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next()? {
        writer.sink.progress(line.offset);
        let number = line.number;
        let fields = line.bytes.ok_or_else(|| TOO_LONG.to_owned()).and_then(Fields::read);
        if let Err(reason) = fields.and_then(|fields| take(&fields, &mut about, (&mut drafts, &mut tokens), writer)) {
            writer.skip(number, reason);
        }
        for message in drafts.ready() {
            let message = message.complete(&mut *writer.new_id, writer.now);
            writer.message(&message)?;
        }
    }
    drafts.end();
    for message in drafts.ready() {
        let message = message.complete(&mut *writer.new_id, writer.now);
        writer.message(&message)?;
    }
    writer.end(about)?;
    Ok(())
}

/// Takes one line; the reason, where it is none.
fn take(
    fields: &Fields<'_>,
    about: &mut About,
    (drafts, tokens): (&mut Drafts, &mut Tokens),
    writer: &Writer<'_>,
) -> Result<(), String> {
    if let Some(at) = fields.get("timestamp").and_then(timestamp) {
        drafts.at(at);
    }
    let payload = fields.get("payload").and_then(Fields::of);
    let kind = fields.text("type").unwrap_or(Cow::Borrowed(""));
    match (kind.as_ref(), &payload) {
        ("session_meta", Some(meta)) => start(meta, about),
        ("turn_context", Some(context)) => about.model = context.text("model").map(Into::into).or(about.model.take()),
        ("event_msg", Some(event)) if event.text("type").is_some_and(|kind| kind == "token_count") => {
            if let Some(usage) = tokens.of_event(event) {
                drafts.cost(usage);
            }
        }
        ("event_msg", _) => {}
        ("compacted", Some(compacted)) => {
            // What came before stays in the record; the account of it is a message like others.
            if let Some(text) = compacted.text("message").filter(|text| !text.is_empty()) {
                drafts.message(NewMessage { source: Some(source("codex")), ..NewMessage::text(Role::System, text) });
            }
        }
        ("response_item", Some(payload)) => drafts.item(Item::read(payload, fields.get("payload"))?),
        ("", _) if fields.has("record_type") => {}
        ("", _) if is_bare_start(fields) => start(fields, about),
        ("session_meta" | "turn_context" | "compacted" | "response_item", None) => return Err("no payload".into()),
        ("", _) => return Err("no type".into()),
        _ if payload.is_some() => {}
        _ => drafts.item(Item::read(fields, None)?),
    }
    about.started_at = about.started_at.or(drafts.time().filter(|at| *at != writer.now));
    Ok(())
}

/// What the first line says; a rollout that goes on from another has that one's too, further down.
fn start(meta: &Fields<'_>, about: &mut About) {
    if about.id.is_none() {
        about.id = meta.text("id").and_then(|id| id.parse().ok());
        about.started_at = meta.get("timestamp").and_then(timestamp);
    }
}

#[cfg(test)]
mod tests;
