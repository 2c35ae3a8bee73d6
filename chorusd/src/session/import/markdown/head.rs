//! What stands before the first message.

use jiff::Timestamp;

use super::super::chorus;
use super::super::sink::About;
use super::super::values::time_of;
use super::section::Names;
use crate::session::markdown::{SESSION, commented, labelled};

/// The head of a file.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub about: About,
    /// Whether a comment said all of it.
    pub complete: bool,
    pub names: Names,
}

impl Head {
    /// Takes a line before the first message.
    pub fn line(&mut self, line: &str) {
        if let Some(json) = commented(SESSION, line) {
            if let Some(about) = chorus::about(json.as_bytes()) {
                self.about = about;
                self.complete = true;
            }
        } else if self.complete {
            // The lines for people say less.
        } else if let Some(title) = line.strip_prefix("# ") {
            self.about.description.get_or_insert_with(|| title.trim().to_owned());
        } else if let Some((name, value)) = labelled(line) {
            self.fact(name, value.trim());
        }
    }

    fn fact(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let about = &mut self.about;
        match name {
            "UUID" => about.id = value.parse().ok(),
            "Date" => about.started_at = time_of(value),
            "Agent" => self.names.agent = Some(value.to_owned()),
            "Model" => about.model = Some(value.to_owned()),
            "Resumed From" => about.parent_id = value.parse().ok(),
            "Tags" => about.tags = value.split(", ").map(str::to_owned).collect(),
            _ => {}
        }
    }

    /// When the conversation began, as the file says.
    pub fn date(&self) -> Option<Timestamp> {
        self.about.started_at
    }
}
