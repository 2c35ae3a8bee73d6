//! Finds the message of each record among the visible lines.
//!
//! In a file as it was exported the records say exactly where messages begin. If the file was edited, a message begins at
//! the label of its speaker, and messages that were removed are passed over.

use std::io::{self, BufRead, Seek};

use super::super::chorus;
use super::super::sink::ImportedMetadata;
use super::super::writer::SessionWriter;
use super::data::{DataBlock, RecordReader};
use crate::markdown::{DataHeader, MessageRecord, Section, is_call_label, message_label, parse_speaker_label};

/// Number of records in which the label of a line is searched for, in an edited file.
const MAX_LOOKAHEAD: usize = 64;

/// Assigns records to messages.
#[derive(Debug)]
pub(super) struct Guide {
    records: RecordReader,
    edited: bool,
    queries: u64,
    agent: String,
    /// Lines of the current message that look like a label and are yet to come.
    labels_left: u64,
    /// Number of records whose message is not in the text.
    missing: u64,
}

/// The start of a message.
#[derive(Debug)]
pub(super) enum MessageStart {
    Recorded(Box<MessageRecord>),
    /// The record of the message is invalid.
    Unrecorded,
}

impl Guide {
    /// Reads the first line of the block. Returns the session's metadata with the guide, or `None` if it is invalid.
    pub(super) fn open(
        source: &mut (impl BufRead + Seek),
        block: &DataBlock,
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<Option<(ImportedMetadata, Self)>> {
        let Some((json, records)) = RecordReader::open(source, block, writer)? else { return Ok(None) };
        let read = serde_json::from_str::<DataHeader<'_>>(&json).ok().and_then(|header| {
            let about = chorus::parse_header_metadata(header.session.get().as_bytes())?;
            about.id.filter(|id| id.to_string() == block.session_id)?;
            let agent = chorus::parse_agent_name(header.session.get()).unwrap_or_default();
            let edited = header.text_bytes != block.text_bytes;
            let (queries, labels_left, missing) = (header.queries, 0, 0);
            Some((about, edited, queries, agent, labels_left, missing))
        });
        let Some((about, edited, queries, agent, labels_left, missing)) = read else {
            writer.skip(records.line() - 1, "the block of data is damaged or of another session; it was not used");
            return Ok(None);
        };
        Ok(Some((about, Self { records, edited, queries, agent, labels_left, missing })))
    }

    /// Returns the name of the agent.
    pub(super) fn agent(&self) -> &str {
        &self.agent
    }

    /// Advances to the records of a section. Returns whether there are any.
    pub(super) fn open_section(
        &mut self,
        section: Section,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<bool> {
        self.labels_left = 0;
        let Section::Query(number) = section else {
            let next = self.records.peek(1, source, writer)?.front();
            return Ok(next.is_some_and(|record| record.as_ref().is_none_or(|record| record.query.is_none())));
        };
        if number > self.queries {
            return Ok(false);
        }
        loop {
            let Some(next) = self.records.peek(1, source, writer)?.front() else { return Ok(false) };
            match next.as_ref().and_then(|record| record.query) {
                Some(query) if query == number => return Ok(true),
                Some(query) if query > number => return Ok(false),
                _ => {
                    self.missing += u64::from(next.is_some());
                    self.records.pop();
                }
            }
        }
    }

    /// Returns the message that starts with `line`, which is outside of any block. `is_first` is true until the section has
    /// a message.
    pub(super) fn match_line(
        &mut self,
        line: &str,
        is_first: bool,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<Option<MessageStart>> {
        if parse_speaker_label(line).is_none() || is_call_label(line) {
            let starts = self.edited && is_first && !matches!(line.trim(), "" | "---");
            return if starts { self.take(0, source, writer) } else { Ok(None) };
        }
        if !self.edited && self.labels_left > 0 {
            self.labels_left -= 1;
            return Ok(None);
        }
        let count = if self.edited { MAX_LOOKAHEAD } else { 1 };
        let agent = &self.agent;
        let records = self.records.peek(count, source, writer)?;
        let opens_section = |at: usize| records[at].as_ref().is_some_and(|record| record.query.is_some());
        // The first record of a section may be one that opens it.
        let end = (usize::from(is_first)..records.len().min(count)).find(|at| opens_section(*at));
        let end = end.unwrap_or(records.len().min(count));
        let found = match self.edited {
            false => (end > 0).then_some(0),
            true => {
                let has_label =
                    |at: &usize| records[*at].as_ref().is_some_and(|record| is_label_of(record, agent, line));
                (0..end).find(has_label).or((is_first && end > 0).then_some(0))
            }
        };
        found.map_or(Ok(None), |at| self.take(at, source, writer))
    }

    /// Reports the records that have no message.
    pub(super) fn finish(
        mut self,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<()> {
        while !self.records.peek(1, source, writer)?.is_empty() {
            self.missing += u64::from(self.records.pop().is_some());
        }
        match self.missing {
            0 => {}
            1 => writer.skip(self.records.line(), "the text of 1 message is missing; its data was not used"),
            count => {
                let reason = format!("the texts of {count} messages are missing; their data was not used");
                writer.skip(self.records.line(), reason);
            }
        }
        Ok(())
    }

    /// Takes the record at a position, and drops those before it.
    fn take(
        &mut self,
        at: usize,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<Option<MessageStart>> {
        if self.records.peek(at + 1, source, writer)?.len() <= at {
            return Ok(None);
        }
        for _ in 0..at {
            self.missing += u64::from(self.records.pop().is_some());
        }
        Ok(Some(match self.records.pop() {
            Some(record) => {
                self.labels_left = record.labels;
                MessageStart::Recorded(Box::new(record))
            }
            None => MessageStart::Unrecorded,
        }))
    }
}

/// Returns whether the line begins with the label of the message.
fn is_label_of(record: &MessageRecord, agent: &str, line: &str) -> bool {
    let message = &record.message;
    let author = message.author.as_ref().map(|author| &*author.name);
    // Earlier files have the agent's name before imported replies, too.
    message.imported_from().into_iter().chain([agent]).any(|agent| {
        let label = message_label(agent, message.role, author, message.name.as_deref());
        line.strip_prefix(&*label).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
}
