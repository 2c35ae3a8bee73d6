//! Reads the lines before the first message.

use jiff::Timestamp;

use super::super::chorus;
use super::super::json_values::parse_time_text;
use super::super::sink::ImportedMetadata;
use super::line_classifier::SpeakerNames;
use crate::markdown::{SESSION_COMMENT, parse_comment, parse_speaker_label};

/// The metadata at the start of a file.
#[derive(Debug, Default)]
pub(super) struct FileHeader {
    pub about: ImportedMetadata,
    /// A comment contained all metadata.
    pub complete: bool,
    pub names: SpeakerNames,
}

impl FileHeader {
    /// Reads a line before the first message.
    pub(super) fn read_line(&mut self, line: &str) {
        if let Some(json) = parse_comment(SESSION_COMMENT, line) {
            if let Some(about) = chorus::parse_header_metadata(json.as_bytes()) {
                self.about = about;
                self.complete = true;
            }
        } else if self.complete {
            // The visible lines contain less than the comment.
        } else if let Some(title) = line.strip_prefix("# ") {
            self.about.description.get_or_insert_with(|| title.trim().to_owned());
        } else if let Some((name, value)) = parse_speaker_label(line) {
            self.set_field(name, value.trim());
        }
    }

    fn set_field(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let about = &mut self.about;
        match name {
            "UUID" => {
                about.id = value.parse().ok();
                about.conversation = about.id.map(|id| id.to_string());
            }
            "Date" => about.started_at = parse_time_text(value),
            "Agent" => self.names.agent = Some(value.to_owned()),
            "Imported From" => {
                self.names.imported_from = value.split_once(": ").map(|(program, _)| program.to_owned());
            }
            "Model" => about.model = Some(value.to_owned()),
            "Resumed From" | "Previous Session" => about.parent_id = value.parse().ok().or(about.parent_id),
            "Tags" => about.tags = value.split(", ").map(str::to_owned).collect(),
            _ => {}
        }
    }

    /// Returns the start of the conversation according to the file.
    pub(super) fn started_at(&self) -> Option<Timestamp> {
        self.about.started_at
    }
}
