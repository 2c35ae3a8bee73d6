//! Shared helpers of the format tests: a sink that records what it receives.

use std::io::{self, Cursor};

use chorus_proto::Message;
use chorus_proto::methods::import::ImportFormat;
use jiff::Timestamp;

use super::{ImportError, ImportSink, ImportedCall, ImportedMetadata, import};

/// One imported session.
#[derive(Debug, Default)]
pub(super) struct ImportedSession {
    pub messages: Vec<Message>,
    pub json: Vec<String>,
    pub calls: Vec<ImportedCall>,
    pub about: ImportedMetadata,
}

impl ImportedSession {
    /// Returns `role: text` for each message, for short comparisons.
    pub(super) fn role_texts(&self) -> Vec<String> {
        self.messages.iter().map(|message| format!("{}: {}", message.role.as_str(), message.content)).collect()
    }
}

/// Records everything that an import passes to it.
#[derive(Debug, Default)]
pub(super) struct RecordingSink {
    pub sessions: Vec<ImportedSession>,
    /// All lines that were not imported.
    pub skipped: Vec<(u64, String)>,
    /// How many of them were read.
    pub left_out: usize,
    pub format: ImportFormat,
    open: bool,
}

impl ImportSink for RecordingSink {
    fn begin_session(&mut self) -> io::Result<()> {
        assert!(!self.open, "a session begins inside another");
        self.open = true;
        self.sessions.push(ImportedSession::default());
        Ok(())
    }

    fn add_message(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        assert!(self.open);
        assert!(!json.contains(&b'\n'), "a message on several lines");
        let again: Message = serde_json::from_slice(json).expect("the serialised form is a message");
        assert_eq!((&again.id, &again.content), (&message.id, &message.content));
        let session = self.sessions.last_mut().expect("open");
        session.messages.push(message.clone());
        session.json.push(String::from_utf8(json.to_vec()).expect("UTF-8"));
        Ok(())
    }

    fn add_call(&mut self, call: ImportedCall) {
        assert!(self.open);
        let calls = &mut self.sessions.last_mut().expect("open").calls;
        match calls.iter_mut().find(|known| known.key == call.key) {
            Some(known) => {
                known.input_tokens = known.input_tokens.max(call.input_tokens);
                known.output_tokens = known.output_tokens.max(call.output_tokens);
            }
            None => calls.push(call),
        }
    }

    fn end_session(&mut self, about: ImportedMetadata) -> io::Result<()> {
        assert!(std::mem::take(&mut self.open), "an end without a beginning");
        self.sessions.last_mut().expect("open").about = about;
        Ok(())
    }

    fn report_skipped(&mut self, line: u64, reason: String) {
        self.skipped.push((line, reason));
    }

    fn report_left_out(&mut self, line: u64, reason: String) {
        self.left_out += 1;
        self.skipped.push((line, reason));
    }
}

/// The current time in every test import.
pub(super) fn now() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().expect("a time")
}

/// Imports `text` with the new ids `new-1`, `new-2` and so on.
pub(super) fn import_as(format: ImportFormat, text: impl AsRef<[u8]>) -> Result<RecordingSink, ImportError> {
    let mut memory = RecordingSink::default();
    let format = import_into(&mut memory, format, text.as_ref())?;
    memory.format = format;
    assert!(!memory.open, "a session was not ended");
    Ok(memory)
}

/// Imports `text` into `memory`, so that a test sees what a failed import has skipped.
pub(super) fn import_into(
    memory: &mut RecordingSink,
    format: ImportFormat,
    text: &[u8],
) -> Result<ImportFormat, ImportError> {
    let mut count = 0;
    let mut new_id = || {
        count += 1;
        format!("new-{count}")
    };
    import(&mut Cursor::new(text), format, now(), &mut new_id, memory)
}
