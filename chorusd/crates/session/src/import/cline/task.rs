//! A task that is being read.

use std::io;

use serde_json::value::RawValue;

use super::message::MessageReader;
use super::requests::Requests;
use super::ui_messages::{ShownMessage, parse_request};
use crate::file::derived_id;
use crate::import::json_values::parse_timestamp;
use crate::import::raw_object::{RawObject, list_entries};
use crate::import::sink::ImportedMetadata;
use crate::import::turn_entry::TurnEntry;
use crate::import::writer::SessionWriter;

/// Programs by the names of their extensions.
const PROGRAMS: [(&str, &str); 3] = [("claude-dev", "cline"), ("roo-cline", "roo"), ("kilo-code", "kilo")];

/// Reads the parts of a task in the order in which they come.
#[derive(Debug)]
pub(super) struct TaskReader {
    about: ImportedMetadata,
    program: &'static str,
    /// The session that started this one.
    parent: Option<String>,
    requests: Requests,
    messages: MessageReader,
    /// What the person saw, in case that there is no transcript.
    shown: Vec<ShownMessage>,
    /// The number of the last entry.
    entries: u64,
}

impl Default for TaskReader {
    fn default() -> Self {
        Self {
            about: ImportedMetadata::default(),
            program: "cline",
            parent: None,
            requests: Requests::default(),
            messages: MessageReader::default(),
            shown: Vec::new(),
            entries: 0,
        }
    }
}

impl TaskReader {
    pub(super) fn next_entry(&self) -> u64 {
        self.entries + 1
    }

    /// Reads a field that describes the task.
    pub(super) fn set_field(&mut self, key: &str, value: &RawValue) {
        let Some(fields) = RawObject::from_value(value) else {
            if key == "sessionId" {
                self.about.conversation = serde_json::from_str(value.get()).ok().or(self.about.conversation.take());
            }
            return;
        };
        match key {
            "cline" => self.read_description(&fields),
            "origin" => self.parent = fields.get_filled("parentThreadId"),
            _ => {}
        }
    }

    fn read_description(&mut self, fields: &RawObject<'_>) {
        let extension = fields.get_text("extension").unwrap_or_default();
        let known = PROGRAMS.iter().find(|(name, _)| extension.contains(name));
        self.program = known.map_or(self.program, |(_, program)| program);
        let about = &mut self.about;
        about.conversation = fields.get_filled("task");
        let part = |name: &str| fields.get(name).and_then(RawObject::from_value);
        if let Some(item) = part("history_item") {
            about.project = item.get_filled("workspace").or_else(|| item.get_filled("cwdOnTaskInitialization"));
            about.model = item.get_filled("modelId");
            self.parent = item.get_filled("parentTaskId");
            if known.is_none() && item.has("number") {
                self.program = "roo";
            }
        }
        let used = part("task_metadata").and_then(|metadata| {
            let last = list_entries(metadata.get("model_usage")?)?.pop().and_then(RawObject::from_value)?;
            last.get_filled("model_id")
        });
        about.model = used.or(about.model.take());
        if let Some(session) = part("session") {
            about.conversation = session.get_filled("session_id").or(about.conversation.take());
            about.project = session.get_filled("cwd").or_else(|| session.get_filled("workspace_root"));
            about.model = session.get_filled("model");
            about.started_at = session.get("started_at").and_then(parse_timestamp);
            let metadata = session.get("metadata").and_then(RawObject::from_value);
            about.description = metadata.as_ref().and_then(|metadata| metadata.get_filled("title"));
            about.branch =
                metadata.and_then(|metadata| RawObject::from_value(metadata.get("git")?)?.get_filled("branch"));
        }
    }

    /// Reads what the person saw.
    pub(super) fn add_ui_message(&mut self, fields: &RawObject<'_>) {
        self.entries += 1;
        let Some(at) = fields.get("ts").and_then(parse_timestamp) else { return };
        let after = fields.get_parsed("conversationHistoryIndex");
        let request = parse_request(fields);
        self.requests.add(at, after, request.as_deref().and_then(RawObject::from_value).as_ref());
        self.shown.extend(ShownMessage::parse(fields, at));
    }

    /// Parses a message of the transcript, counted from 1. Returns the reason if it is not one.
    pub(super) fn parse_message(&mut self, number: u64, fields: &RawObject<'_>) -> Result<Vec<TurnEntry>, String> {
        self.entries = number;
        let number = i64::try_from(number - 1).unwrap_or(i64::MAX);
        let entries = self.messages.parse(self.program, number, &self.requests, fields)?;
        let model = entries.iter().find_map(|entry| entry.model.clone());
        self.about.model = model.or(self.about.model.take());
        Ok(entries)
    }

    /// Writes what the person saw, if there was no transcript.
    pub(super) fn write_ui_messages(&mut self, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        let mut is_first = true;
        for (number, message) in (1_u64..).zip(std::mem::take(&mut self.shown)) {
            let mut entry = message.into_entry(self.program, std::mem::take(&mut is_first));
            entry.id = Some(number.to_string());
            entry.write(writer)?;
        }
        Ok(())
    }

    /// Returns what is known of the task.
    pub(super) fn finish(self) -> ImportedMetadata {
        let mut about = self.about;
        let id = |id: &str| id.parse().unwrap_or_else(|_| derived_id(&format!("{}/{id}", self.program)));
        about.id = about.conversation.as_deref().map(id);
        about.program = Some(self.program.to_owned());
        about.project = about.project.or(self.messages.directory);
        if let (Some(parent), Some(own)) = (self.parent, &about.conversation) {
            about.parent_id = Some(id(&parent));
            about.conversation = Some(format!("{parent}/{own}"));
            about.side_chain = true;
            about.tags = vec!["side-chain".into()];
        }
        about
    }
}
