//! Writes messages of all formats to the sink. A session is opened with its first message, so that none is empty.

use std::io;

use chorus_proto::Message;
use jiff::Timestamp;

use super::imported_call::ImportedCall;
use super::sink::{ImportSink, ImportedMetadata};

/// The state that every importer needs.
pub(super) struct SessionWriter<'a> {
    /// The time of messages to which the source gives none.
    pub now: Timestamp,
    pub new_id: &'a mut dyn FnMut() -> String,
    pub sink: &'a mut dyn ImportSink,
    /// Set by an importer that reports model calls with [`Self::report_calls`]. Otherwise the messages tell of them.
    pub reports_calls: bool,
    open: bool,
    message_count: u64,
    /// The number of calls that messages told of.
    call_count: u64,
    /// Reused buffer for the serialised message.
    buffer: Vec<u8>,
}

impl<'a> SessionWriter<'a> {
    pub(super) fn new(now: Timestamp, new_id: &'a mut dyn FnMut() -> String, sink: &'a mut dyn ImportSink) -> Self {
        Self {
            now,
            new_id,
            sink,
            reports_calls: false,
            open: false,
            message_count: 0,
            call_count: 0,
            buffer: Vec::new(),
        }
    }

    /// Returns the number of messages written so far, in all sessions.
    pub(super) fn message_count(&self) -> u64 {
        self.message_count
    }

    /// Returns the number of model calls that messages told of so far, in all sessions.
    pub(super) fn call_count(&self) -> u64 {
        self.call_count
    }

    /// Writes a message that an importer built.
    pub(super) fn write_message(&mut self, message: &Message) -> io::Result<()> {
        self.write_reply(message, |_| {})
    }

    /// Writes a message; `complete` adds to the model call what the message does not say.
    pub(super) fn write_reply(
        &mut self,
        message: &Message,
        complete: impl FnOnce(&mut ImportedCall),
    ) -> io::Result<()> {
        let mut json = std::mem::take(&mut self.buffer);
        json.clear();
        json.shrink_to(1 << 20);
        serde_json::to_writer(&mut json, message)?;
        let done = self.write(message, &json, complete);
        self.buffer = json;
        done
    }

    /// Writes a message together with its serialised form from the source.
    pub(super) fn write_serialized(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        self.write(message, json, |_| {})
    }

    fn write(&mut self, message: &Message, json: &[u8], complete: impl FnOnce(&mut ImportedCall)) -> io::Result<()> {
        if !self.open {
            self.sink.begin_session()?;
            self.open = true;
        }
        self.message_count += 1;
        if !self.reports_calls
            && let Some(mut call) = ImportedCall::from_message(message, self.now)
        {
            complete(&mut call);
            self.call_count += 1;
            self.sink.add_call(call);
        }
        self.sink.add_message(message, json)
    }

    /// Reports model calls of the open session. Without one, they stay in the list.
    pub(super) fn report_calls(&mut self, calls: &mut Vec<ImportedCall>) {
        if self.open {
            self.report_each(calls.drain(..));
        }
    }

    /// Reports model calls of the open session. Without one, they are dropped.
    pub(super) fn report_each(&mut self, calls: impl Iterator<Item = ImportedCall>) {
        if self.open {
            calls.for_each(|call| self.sink.add_call(call));
        }
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

    /// Reports a line that was read, but is not part of the conversation.
    pub(super) fn leave_out(&mut self, line: u64, reason: impl Into<String>) {
        self.sink.report_left_out(line, reason.into());
    }
}
