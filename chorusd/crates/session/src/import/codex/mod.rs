//! Imports Codex rollouts: JSONL in which every line wraps an item of the conversation or, in older ones, is the item
//! itself.
//!
//! Reads only the items and the token counts. Other events repeat the items for display, and of a turn's context only
//! the model is of use.

mod item;
mod message_builder;
mod tokens;

use std::borrow::Cow;
use std::io::BufRead;

use chorus_proto::{NewMessage, Role};

use super::error::ImportError;
use super::json_values::{import_source, parse_timestamp};
use super::line_reader::{LINE_TOO_LONG, LineReader};
use super::raw_object::RawObject;
use super::sink::ImportedMetadata;
use super::writer::SessionWriter;
use item::Item;
use message_builder::MessageBuilder;
use tokens::TokenCounter;

/// Returns whether a line is one of a rollout.
pub(super) fn is_rollout_line(fields: &RawObject<'_>) -> bool {
    let Some(kind) = fields.get_text("type") else {
        return fields.has("record_type") || is_unwrapped_start(fields);
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

/// Returns whether a line is the first line of an older rollout.
fn is_unwrapped_start(fields: &RawObject<'_>) -> bool {
    let has = |name: &str| fields.iter().any(|(key, _)| key == name);
    has("id") && has("timestamp") && (has("instructions") || has("git")) && !has("role") && !has("messages")
}

/// Imports one conversation.
pub(super) fn import(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut about = ImportedMetadata::default();
    let mut drafts = MessageBuilder::new(writer.now);
    let mut tokens = TokenCounter::default();
    writer.reports_calls = true;
    let mut lines = LineReader::new(source);
    while let Some(line) = lines.next()? {
        writer.sink.report_progress(line.offset);
        let number = line.number;
        let fields = line.bytes.ok_or_else(|| LINE_TOO_LONG.to_owned()).and_then(RawObject::from_bytes);
        if let Err(reason) =
            fields.and_then(|fields| import_line(&fields, &mut about, (&mut drafts, &mut tokens), writer))
        {
            writer.skip(number, reason);
        }
        for message in drafts.take_ready() {
            let message = message.complete(&mut *writer.new_id, writer.now);
            writer.write_message(&message)?;
        }
        writer.report_calls(&mut tokens.calls);
    }
    drafts.finish();
    for message in drafts.take_ready() {
        let message = message.complete(&mut *writer.new_id, writer.now);
        writer.write_message(&message)?;
    }
    writer.report_calls(&mut tokens.calls);
    writer.end_session(about)?;
    Ok(())
}

/// Imports one line. Returns the reason if it cannot be parsed.
fn import_line(
    fields: &RawObject<'_>,
    about: &mut ImportedMetadata,
    (drafts, tokens): (&mut MessageBuilder, &mut TokenCounter),
    writer: &SessionWriter<'_>,
) -> Result<(), String> {
    if let Some(at) = fields.get("timestamp").and_then(parse_timestamp) {
        drafts.set_time(at);
    }
    let payload = fields.get("payload").and_then(RawObject::from_value);
    let kind = fields.get_text("type").unwrap_or(Cow::Borrowed(""));
    match (kind.as_ref(), &payload) {
        ("session_meta", Some(meta)) => {
            tokens.begin_turn(meta.get_text("id"));
            read_session_start(meta, about);
        }
        ("turn_context", Some(context)) => {
            tokens.begin_turn(context.get_text("turn_id"));
            about.model = context.get_text("model").map(Into::into).or(about.model.take());
            about.project =
                about.project.take().or_else(|| context.get_text("cwd").filter(|p| !p.is_empty()).map(Into::into));
        }
        ("event_msg", Some(event)) if event.get_text("type").is_some_and(|kind| kind == "token_count") => {
            let at = drafts.time().unwrap_or(writer.now);
            if let Some(usage) = tokens.read_event(event, at, about.model.as_deref()) {
                drafts.add_usage(usage);
            }
        }
        ("event_msg", _) => {}
        ("compacted", Some(compacted)) => {
            // The messages before a compaction stay in the file; its summary is a message like others.
            if let Some(text) = compacted.get_text("message").filter(|text| !text.is_empty()) {
                drafts.add_message(NewMessage {
                    source: Some(import_source("codex")),
                    ..NewMessage::text(Role::System, text)
                });
            }
        }
        ("response_item", Some(payload)) => drafts.add_item(Item::parse(payload, fields.get("payload"))?),
        ("", _) if fields.has("record_type") => {}
        ("", _) if is_unwrapped_start(fields) => read_session_start(fields, about),
        ("session_meta" | "turn_context" | "compacted" | "response_item", None) => return Err("no payload".into()),
        ("", _) => return Err("no type".into()),
        _ if payload.is_some() => {}
        _ => drafts.add_item(Item::parse(fields, None)?),
    }
    about.started_at = about.started_at.or(drafts.time().filter(|at| *at != writer.now));
    Ok(())
}

/// Reads the first line. A rollout that continues another one also has the first line of that one, further down.
fn read_session_start(meta: &RawObject<'_>, about: &mut ImportedMetadata) {
    if about.conversation.is_none() {
        let id = meta.get_text("id").filter(|id| !id.is_empty());
        about.id = id.as_ref().and_then(|id| id.parse().ok());
        about.conversation = id.map(Into::into);
        about.started_at = meta.get("timestamp").and_then(parse_timestamp);
        about.project = meta.get_text("cwd").filter(|path| !path.is_empty()).map(Into::into);
        about.branch = branch_of(meta);
    }
}

/// Returns the git branch that the first line names.
fn branch_of(meta: &RawObject<'_>) -> Option<String> {
    let git = meta.get("git").and_then(RawObject::from_value)?;
    git.get_text("branch").filter(|branch| !branch.is_empty()).map(Into::into)
}

#[cfg(test)]
mod tests;
