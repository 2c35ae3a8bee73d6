//! A conversation in a file of its own.

use std::io;

use chorus_proto::{Attachment, Role};

use super::PROGRAM;
use super::activity::conversation_id;
use crate::file::derived_id;
use crate::import::json_values::{minify_value, parse_timestamp};
use crate::import::raw_object::{RawObject, list_entries};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::TurnEntry;
use crate::import::writer::SessionWriter;

pub(super) fn import_conversation(
    number: u64,
    fields: &RawObject<'_>,
    writer: &mut SessionWriter<'_>,
) -> io::Result<()> {
    let Some(turns) = fields.get("conversation_turns").and_then(list_entries) else {
        writer.skip(number, "not a conversation: it has no conversation_turns");
        return Ok(());
    };
    let mut about = ImportedMetadata {
        description: fields.get_filled("title"),
        started_at: fields.get("creation_time").and_then(parse_timestamp),
        ..ImportedMetadata::default()
    };
    for (at, raw) in (1_u64..).zip(turns) {
        let turn = RawObject::from_value(raw);
        let part = |name: &str| turn.as_ref()?.get(name).and_then(RawObject::from_value);
        let mut entry = match (part("user_turn"), part("system_turn")) {
            (Some(turn), _) | (_, Some(turn)) if turn.has("turn_deleted_time") => continue,
            (Some(turn), _) => parse_prompt(&turn),
            (_, Some(turn)) => parse_answer(&turn),
            _ => {
                writer.skip(number, format!("turn {at}: neither of the user nor of the system"));
                continue;
            }
        };
        entry.id = Some(at.to_string());
        entry.at = entry.at.or(about.started_at);
        if let (Role::User, None, Some(started_at)) = (entry.role, &about.conversation, about.started_at.or(entry.at)) {
            let conversation = conversation_id(started_at, &entry.texts.concat());
            about.id = Some(derived_id(&format!("{PROGRAM}/{conversation}")));
            about.conversation = Some(conversation);
        }
        entry.write(writer)?;
    }
    writer.end_session(about)
}

fn parse_prompt(turn: &RawObject<'_>) -> TurnEntry {
    let mut entry = TurnEntry::new(PROGRAM, Role::User);
    entry.at = turn.get("turn_last_modified").and_then(parse_timestamp);
    entry.texts.extend(turn.get_filled("prompt"));
    add_images(turn, &mut entry);
    entry
}

fn parse_answer(turn: &RawObject<'_>) -> TurnEntry {
    let mut entry = TurnEntry::new(PROGRAM, Role::Assistant);
    entry.at = turn.get("turn_last_modified").and_then(parse_timestamp);
    for part in
        turn.get("text").and_then(list_entries).unwrap_or_default().into_iter().filter_map(RawObject::from_value)
    {
        entry.texts.extend(part.get_filled("data"));
        let cards = part.get("cards").and_then(list_entries).unwrap_or_default();
        entry
            .texts
            .extend(cards.into_iter().filter_map(RawObject::from_value).filter_map(|card| card.get_filled("content")));
    }
    add_images(turn, &mut entry);
    if let Some(thoughts) = turn.get("model_thoughts").filter(|thoughts| thoughts.get() != "[]") {
        entry.extra.push(("model_thoughts".into(), minify_value(thoughts)));
    }
    entry
}

/// Adds the names of images, which are beside the file in the archive.
fn add_images(turn: &RawObject<'_>, entry: &mut TurnEntry) {
    let names: Vec<String> = turn.get_parsed("images").unwrap_or_default();
    let attachment = |name| Attachment { name, media_type: None, size: None, path: None, url: None, data: None };
    entry.attachments.extend(names.into_iter().map(attachment));
}
