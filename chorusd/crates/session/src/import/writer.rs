//! Writes messages of all formats to the sink. A session is opened with its first message, so that none is empty.

use std::io;

use chorus_proto::Message;
use jiff::Timestamp;

use super::sink::{ImportSink, ImportedMetadata};

/// The state that every importer needs.
pub(super) struct SessionWriter<'a> {
    /// The time of messages to which the source gives none.
    pub now: Timestamp,
    pub new_id: &'a mut dyn FnMut() -> String,
    pub sink: &'a mut dyn ImportSink,
    open: bool,
    message_count: u64,
    /// Reused buffer for the serialised message.
    buffer: Vec<u8>,
}

impl<'a> SessionWriter<'a> {
    pub(super) fn new(now: Timestamp, new_id: &'a mut dyn FnMut() -> String, sink: &'a mut dyn ImportSink) -> Self {
        Self { now, new_id, sink, open: false, message_count: 0, buffer: Vec::new() }
    }

    /// Returns the number of messages written so far, in all sessions.
    pub(super) fn message_count(&self) -> u64 {
        self.message_count
    }

    /// Writes a message that an importer built.
    pub(super) fn write_message(&mut self, message: &Message) -> io::Result<()> {
        let mut json = std::mem::take(&mut self.buffer);
        json.clear();
        json.shrink_to(1 << 20);
        serde_json::to_writer(&mut json, message)?;
        let done = self.write_serialized(message, &json);
        self.buffer = json;
        done
    }

    /// Writes a message together with its serialised form from the source.
    pub(super) fn write_serialized(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        if !self.open {
            self.sink.begin_session()?;
            self.open = true;
        }
        self.message_count += 1;
        self.sink.add_message(message, json)
    }

    /// Ends the session if one is open.
    pub(super) fn end_session(&mut self, about: ImportedMetadata) -> io::Result<()> {
        if !self.open {
            return Ok(());
        }
        self.open = false;
        self.sink.end_session(about)
    }

    pub(super) fn skip(&mut self, line: u64, reason: impl Into<String>) {
        self.sink.report_skipped(line, reason.into());
    }
}
