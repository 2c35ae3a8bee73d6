//! Between the formats and the sink: sessions open at their first message, so that none is empty.

use std::io;

use chorus_proto::Message;
use jiff::Timestamp;

use super::sink::{About, Sink};

/// What every format needs while it reads.
pub(super) struct Writer<'a> {
    /// Stands in where a source gives no time.
    pub now: Timestamp,
    pub new_id: &'a mut dyn FnMut() -> String,
    pub sink: &'a mut dyn Sink,
    open: bool,
    written: u64,
    /// The serialised message, reused.
    json: Vec<u8>,
}

impl<'a> Writer<'a> {
    pub fn new(now: Timestamp, new_id: &'a mut dyn FnMut() -> String, sink: &'a mut dyn Sink) -> Self {
        Self { now, new_id, sink, open: false, written: 0, json: Vec::new() }
    }

    /// Messages written so far, in all sessions.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes a message that was built here.
    pub fn message(&mut self, message: &Message) -> io::Result<()> {
        let mut json = std::mem::take(&mut self.json);
        json.clear();
        json.shrink_to(1 << 20);
        serde_json::to_writer(&mut json, message)?;
        let done = self.kept(message, &json);
        self.json = json;
        done
    }

    /// Writes a message whose serialised form came with it.
    pub fn kept(&mut self, message: &Message, json: &[u8]) -> io::Result<()> {
        if !self.open {
            self.sink.begin()?;
            self.open = true;
        }
        self.written += 1;
        self.sink.message(message, json)
    }

    /// Ends the session, if one is open.
    pub fn end(&mut self, about: About) -> io::Result<()> {
        if !self.open {
            return Ok(());
        }
        self.open = false;
        self.sink.end(about)
    }

    pub fn skip(&mut self, line: u64, reason: impl Into<String>) {
        self.sink.skip(line, reason.into());
    }
}
