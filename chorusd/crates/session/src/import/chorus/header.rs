//! Parses the header fields of a session file.

use chorus_proto::{SessionSource, SummarySource, TokenPair, Trigger, WorkingSet};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::json_values::parse_timestamp;
use super::super::sink::ImportedMetadata;

/// The fields of a session file that an import takes over. A field of the wrong type counts as missing.
#[derive(Debug, Default)]
pub(super) struct HeaderParser {
    metadata: ImportedMetadata,
    /// The id in schema 1.
    session_id: Option<String>,
    /// `timestamp` of schema 1.
    time: Option<Timestamp>,
}

impl HeaderParser {
    /// Returns whether [`HeaderParser::set_field`] knows the field.
    pub(super) fn is_known_field(key: &str) -> bool {
        matches!(
            key,
            "id" | "session_id"
                | "source"
                | "description"
                | "summary"
                | "summary_source"
                | "saved_at"
                | "timestamp"
                | "started_at"
                | "trigger"
                | "model"
                | "parent_id"
                | "tags"
                | "working_set"
                | "restoration_tokens"
        )
    }

    /// Sets one field.
    pub(super) fn set_field(&mut self, key: &str, value: &[u8]) {
        let about = &mut self.metadata;
        match key {
            "id" => about.id = parse_value(value),
            "session_id" => self.session_id = parse_value(value),
            "source" => {
                if let Some(source) = parse_value::<SessionSource>(value) {
                    (about.program, about.conversation) = (Some(source.program), Some(source.conversation));
                    (about.project, about.branch) = (source.project, source.branch);
                    about.redacted = source.redacted;
                }
            }
            "description" => about.description = parse_value(value),
            "summary" => about.summary = parse_value(value),
            "summary_source" => about.summary_source = parse_value::<SummarySource>(value),
            "saved_at" => about.saved_at = parse_time(value),
            "timestamp" => self.time = parse_time(value),
            "started_at" => about.started_at = parse_time(value),
            "trigger" => about.trigger = parse_value::<Trigger>(value),
            "model" => about.model = parse_value(value),
            "parent_id" => about.parent_id = parse_value(value),
            "tags" => about.tags = parse_value(value).unwrap_or_default(),
            "working_set" => about.working_set = parse_value::<WorkingSet>(value),
            "restoration_tokens" => about.restoration_tokens = parse_value::<TokenPair>(value),
            _ => {}
        }
    }

    /// Returns the time for messages that have none.
    pub(super) fn default_message_time(&self) -> Option<Timestamp> {
        self.metadata.saved_at.or(self.time)
    }

    /// Returns the metadata, with the fields of schema 1 converted to schema 2.
    pub(super) fn into_metadata(self) -> ImportedMetadata {
        let mut about = self.metadata;
        about.saved_at = about.saved_at.or(self.time);
        let named: Option<Uuid> = self.session_id.as_deref().and_then(|id| id.parse().ok());
        about.id = about.id.or(named);
        about.conversation = about.conversation.or_else(|| about.id.map(|id| id.to_string()));
        about.session_id = self.session_id.filter(|id| is_session_id(id));
        about
    }
}

fn parse_value<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    serde_json::from_slice(value).ok()
}

fn parse_time(value: &[u8]) -> Option<Timestamp> {
    parse_timestamp(serde_json::from_slice::<&RawValue>(value).ok()?)
}

/// Returns whether `id` has the form `<YYYY-MM-DD>_<slug>`. It becomes a file name, so nothing else is accepted.
fn is_session_id(id: &str) -> bool {
    let Some((date, slug)) = id.split_once('_') else { return false };
    date.len() == 10
        && date
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() })
        && (1..=64).contains(&slug.len())
        && slug.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}
