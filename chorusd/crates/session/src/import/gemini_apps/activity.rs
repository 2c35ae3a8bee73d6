//! Records of My Activity. They do not say which conversation they belong to: those that follow each other closely become one.

use std::io;

use chorus_base::hex::hex;
use chorus_proto::{Attachment, Role};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

use super::PROGRAM;
use crate::file::derived_id;
use crate::import::html_text::html_to_text;
use crate::import::json_values::parse_timestamp;
use crate::import::raw_object::{RawObject, list_entries};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::TurnEntry;
use crate::import::writer::SessionWriter;

/// A longer pause begins another conversation.
const MAX_PAUSE: SignedDuration = SignedDuration::from_mins(30);

/// The beginnings of titles of prompts, the longer first.
const PROMPT_VERBS: [&str; 8] =
    ["Prompted with: ", "Asked Gemini: ", "Asked Bard: ", "Prompted ", "Asked ", "Said ", "Branched ", "Answered "];

/// The beginnings of titles of other records.
const OTHER_VERBS: [&str; 12] = [
    "Used ",
    "Created ",
    "Added ",
    "Gave ",
    "Selected ",
    "Shared ",
    "Deleted ",
    "Viewed ",
    "Changed ",
    "Removed ",
    "Saved ",
    "Visited ",
];

/// Returns whether an object is a record of My Activity that has to do with Gemini, or with Bard as it was called before.
pub(in super::super) fn is_record(fields: &RawObject<'_>) -> bool {
    let products: Vec<String> = fields.get_parsed("products").unwrap_or_default();
    let names = products.into_iter().chain(fields.get_filled("header"));
    fields.has("time")
        && fields.has("title")
        && names.into_iter().any(|name| name.contains("Gemini") || name.contains("Bard"))
}

/// A prompt with its answer.
#[derive(Debug)]
pub(super) struct Record {
    at: Timestamp,
    prompt: String,
    answer: String,
    attachments: Vec<Attachment>,
}

/// Groups records, which the file has from the newest to the oldest.
#[derive(Debug, Default)]
pub(super) struct ActivityReader {
    group: Vec<Record>,
}

impl ActivityReader {
    /// Parses a record. Returns `None` for one that is not a prompt, and the reason if that cannot be told.
    pub(super) fn parse(&self, fields: &RawObject<'_>) -> Result<Option<Record>, String> {
        if !is_record(fields) {
            // Takeout can put the activities of all products into one file.
            return Ok(None);
        }
        let title = fields.get_text("title").unwrap_or_default().replace('\u{a0}', " ");
        let at = fields.get("time").and_then(parse_timestamp).ok_or("invalid time")?;
        let answers = fields.get("safeHtmlItem").and_then(list_entries).unwrap_or_default();
        let answers = answers.into_iter().filter_map(RawObject::from_value).filter_map(|item| item.get_text("html"));
        let answer = answers.map(|html| html_to_text(&html)).collect::<Vec<_>>().join("\n\n");
        let prompt = match PROMPT_VERBS.iter().find_map(|verb| title.strip_prefix(verb)) {
            Some(prompt) => without_files(prompt),
            None if OTHER_VERBS.iter().any(|verb| title.starts_with(verb)) => return Ok(None),
            // The verb of another language cannot be told from the prompt.
            None if !answer.is_empty() => title.as_str(),
            None => return Err("a record without an answer whose title does not begin as that of a prompt".into()),
        };
        Ok(Some(Record { at, prompt: prompt.trim().to_owned(), answer, attachments: parse_files(fields) }))
    }

    /// Adds a record to the conversation, or begins another one.
    pub(super) fn add(&mut self, record: Record, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        let pause = self.group.last().map(|last| last.at.duration_since(record.at).abs());
        if pause.is_some_and(|pause| pause > MAX_PAUSE) {
            self.finish(writer)?;
        }
        self.group.push(record);
        Ok(())
    }

    /// Writes the conversation, which is known by its first record.
    pub(super) fn finish(&mut self, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        let mut records = std::mem::take(&mut self.group);
        records.reverse();
        records.sort_by_key(|record| record.at);
        let Some(first) = records.first() else { return Ok(()) };
        let started_at = first.at;
        let conversation = conversation_id(started_at, &first.prompt);
        for (number, record) in (1_u64..).zip(records) {
            let mut question = TurnEntry::new(PROGRAM, Role::User);
            question.id = Some(number.to_string());
            question.at = Some(record.at);
            question.texts.push(record.prompt);
            question.attachments = record.attachments;
            question.write(writer)?;
            let mut reply = TurnEntry::new(PROGRAM, Role::Assistant);
            reply.id = Some(format!("{number}/reply"));
            reply.at = Some(record.at);
            reply.texts.extend(Some(record.answer).filter(|answer| !answer.is_empty()));
            reply.write(writer)?;
        }
        writer.end_session(ImportedMetadata {
            id: Some(derived_id(&format!("{PROGRAM}/{conversation}"))),
            conversation: Some(conversation),
            started_at: Some(started_at),
            ..ImportedMetadata::default()
        })
    }
}

/// Returns the id of a conversation that has none: its start, and the hash of its first prompt.
pub(super) fn conversation_id(started_at: Timestamp, prompt: &str) -> String {
    format!("{started_at}-{}", hex(&Sha256::digest(prompt.trim())[..4]))
}

/// Removes `Attached 2 files.` from the end of a prompt.
fn without_files(prompt: &str) -> &str {
    let trimmed = prompt.trim_end();
    let note = trimmed.strip_suffix(" files.").or_else(|| trimmed.strip_suffix(" file."));
    let before = note.and_then(|note| {
        let (before, count) = note.rsplit_once(' ')?;
        count.parse::<u32>().ok()?;
        before.strip_suffix("Attached")
    });
    before.unwrap_or(prompt)
}

/// Parses the names of the attached files, which are beside the file in the archive.
fn parse_files(fields: &RawObject<'_>) -> Vec<Attachment> {
    let list = |name: &str| fields.get_parsed::<Vec<String>>(name).unwrap_or_default();
    let one = fields.get_filled("imageFile");
    let names = one.into_iter().chain(list("attachedFiles")).chain(list("audioFiles"));
    let attachment = |name| Attachment { name, media_type: None, size: None, path: None, url: None, data: None };
    names.map(attachment).collect()
}
