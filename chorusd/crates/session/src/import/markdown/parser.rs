//! Parses a Markdown file line by line into messages.

use std::io::{self, BufRead, Seek};

use chorus_proto::Role;
use jiff::Timestamp;

use super::super::line_reader::LINE_TOO_LONG;
use super::super::sink::ImportedMetadata;
use super::super::writer::SessionWriter;
use super::call_ids::OpenCalls;
use super::guide::{Guide, MessageStart};
use super::header::FileHeader;
use super::line_classifier::{OpenSection, SectionLine, label_role, tool_result_name};
use super::message_builder::MessageBuilder;
use super::summary;
use crate::markdown::message_heading::Heading;
use crate::markdown::{HeadingTime, MESSAGE_COMMENT, SUMMARY_START, Section, Timing, parse_comment};

/// State of a conversation that is being parsed.
#[derive(Debug, Default)]
pub(super) struct Parser {
    head: FileHeader,
    shape: HeadingStyle,
    guide: Option<Guide>,
    open_calls: OpenCalls,
    section: Option<OpenSection>,
    message: Option<MessageBuilder>,
    summary: Option<summary::SummaryReader>,
    /// The start of the last section.
    section_start: Option<Timestamp>,
}

/// The style of headings that counts, decided by the first heading.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum HeadingStyle {
    #[default]
    Undecided,
    /// A heading for each message.
    Messages,
    /// A heading for each query.
    Sections,
}

impl Parser {
    /// Starts with what the block of data says, if there is one.
    pub(super) fn new(guided: Option<(ImportedMetadata, Guide)>) -> Self {
        let mut parser = Self::default();
        if let Some((about, guide)) = guided {
            parser.head.about = about;
            parser.head.complete = true;
            parser.head.names.agent = Some(guide.agent().to_owned());
            parser.shape = HeadingStyle::Sections;
            parser.guide = Some(guide);
        }
        parser
    }

    /// Reads the next line.
    pub(super) fn read_line(
        &mut self,
        line: &str,
        number: u64,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<()> {
        if let Some(draft) = self.message.as_mut().filter(|draft| draft.in_block()) {
            draft.add_line(line);
            return Ok(());
        }
        if self.summary.is_some() && self.starts_message_or_section(line) {
            self.finish_summary(false, writer);
        }
        if let Some(lines) = &mut self.summary {
            if !lines.read_line(line) {
                self.finish_summary(true, writer);
            }
            return Ok(());
        }
        if self.shape != HeadingStyle::Sections
            && let Some(heading) = Heading::parse(line)
        {
            self.finish_message(writer, false)?;
            self.shape = HeadingStyle::Messages;
            self.message = Some(MessageBuilder::from_heading(heading, number));
            return Ok(());
        }
        if self.shape == HeadingStyle::Messages {
            self.add_text(line);
            return Ok(());
        }
        if let Some((section, time)) = Section::parse(line) {
            self.finish_message(writer, true)?;
            self.shape = HeadingStyle::Sections;
            let recorded = match &mut self.guide {
                Some(guide) => guide.open_section(section, source, writer)?,
                None => false,
            };
            self.open_section(section, time, recorded);
            return Ok(());
        }
        if self.section.as_ref().is_some_and(|section| section.recorded) {
            return self.read_recorded_line(line, number, source, writer);
        }
        self.read_section_line(line, number, writer)
    }

    /// Ends the text before the block of data.
    pub(super) fn end_text(&mut self, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        self.finish_message(writer, false)?;
        self.finish_summary(false, writer);
        self.section = None;
        Ok(())
    }

    /// Finishes the conversation. Returns its metadata.
    pub(super) fn into_metadata(
        mut self,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<ImportedMetadata> {
        self.end_text(writer)?;
        if let Some(guide) = self.guide {
            guide.finish(source, writer)?;
        }
        Ok(self.head.about)
    }

    fn open_section(&mut self, section: Section, time: Option<HeadingTime>, recorded: bool) {
        let before = self.section_start.or(self.head.started_at());
        let at = time.map_or(before, |time| time.resolve(before));
        self.section_start = at.or(self.section_start);
        self.section = Some(OpenSection { section, at, commented: false, recorded, resumed_from: None });
    }

    /// Reads a line of a section whose messages have records.
    fn read_recorded_line(
        &mut self,
        line: &str,
        number: u64,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<()> {
        if self.starts_summary(line, number, writer)? {
            return Ok(());
        }
        let (Some(section), Some(guide)) = (&mut self.section, &mut self.guide) else { return Ok(()) };
        if let Some(times) = Timing::parse(line) {
            if let Some(draft) = &mut self.message {
                draft.add_timing_line(line, Some(times));
            }
            return Ok(());
        }
        if self.head.about.parent_id.is_some() && section.is_resumed_from(line, number) {
            return Ok(());
        }
        let Some(start) = guide.match_line(line, self.message.is_none(), source, writer)? else {
            self.add_text(line);
            return Ok(());
        };
        let at = section.at;
        self.finish_message(writer, false)?;
        let mut draft = match start {
            MessageStart::Recorded(record) => MessageBuilder::from_record(*record, number),
            MessageStart::Unrecorded => {
                let role = label_role(line, self.head.names.agent.as_deref());
                MessageBuilder::from_record(crate::markdown::MessageRecord::of_role(role, at), number)
            }
        };
        draft.add_line(line);
        self.message = Some(draft);
        Ok(())
    }

    /// Begins the summary if the line is its first one.
    fn starts_summary(&mut self, line: &str, number: u64, writer: &mut SessionWriter<'_>) -> io::Result<bool> {
        if line.trim_end() != SUMMARY_START {
            return Ok(false);
        }
        self.finish_message(writer, true)?;
        self.summary = Some(summary::SummaryReader::new(number));
        // Text after the summary belongs to no message.
        self.section = None;
        Ok(true)
    }

    fn read_section_line(&mut self, line: &str, number: u64, writer: &mut SessionWriter<'_>) -> io::Result<()> {
        if self.starts_summary(line, number, writer)? {
            return Ok(());
        }
        if self.section.is_none() && parse_comment(MESSAGE_COMMENT, line).is_some() {
            self.shape = HeadingStyle::Sections;
            self.open_section(Section::Opening, None, false);
        }
        let Some(section) = &mut self.section else {
            if self.shape == HeadingStyle::Undecided {
                self.head.read_line(line);
            }
            return Ok(());
        };
        if let Some(json) = parse_comment(MESSAGE_COMMENT, line) {
            let read = serde_json::from_str(json);
            section.commented = read.is_ok();
            self.finish_message(writer, false)?;
            match read {
                Ok(besides) => self.message = Some(MessageBuilder::from_comment(besides, number)),
                Err(error) => writer.skip(number, format!("invalid comment: {error}")),
            }
            return Ok(());
        }
        if let Some(times) = Timing::parse(line) {
            if section.section == Section::Restored && !self.head.complete {
                self.head.about.restoration_tokens = times.tokens;
            }
            let own = section.section != Section::Restored;
            if let Some(draft) = &mut self.message {
                draft.add_timing_line(line, Some(times).filter(|_| own));
            }
            return Ok(());
        }
        if section.commented {
            self.add_text(line);
            return Ok(());
        }
        let before: Option<Role> = self.message.as_ref().map(|draft| draft.role);
        let at = section.at;
        match section.classify_line(line, &mut self.head.names, before) {
            SectionLine::Message(role, text) => {
                self.finish_message(writer, false)?;
                let tool = if role == Role::ToolResult { tool_result_name(line) } else { None };
                self.message = Some(MessageBuilder::from_label(role, tool, text, at, number));
            }
            SectionLine::Metadata => {}
            SectionLine::Text => self.add_text(line),
        }
        Ok(())
    }

    fn add_text(&mut self, line: &str) {
        if let Some(draft) = &mut self.message {
            draft.add_line(line);
        }
    }

    /// Returns whether a message or a section begins, which cannot be part of a summary.
    fn starts_message_or_section(&self, line: &str) -> bool {
        let headed = self.shape != HeadingStyle::Sections && Heading::parse(line).is_some();
        headed || Section::parse(line).is_some() || parse_comment(MESSAGE_COMMENT, line).is_some()
    }

    /// Finishes the summary. `ended` is true if its end marker was found.
    fn finish_summary(&mut self, ended: bool, writer: &mut SessionWriter<'_>) {
        let Some(lines) = self.summary.take() else { return };
        if let Some((line, reason)) = lines.skipped_reason(ended) {
            writer.skip(line, reason);
        }
        if !self.head.complete {
            lines.finish(&mut self.head.about);
        }
    }

    /// Writes the open message. `ruled` is true if the section ends here.
    fn finish_message(&mut self, writer: &mut SessionWriter<'_>, ruled: bool) -> io::Result<()> {
        let Some(draft) = self.message.take() else { return Ok(()) };
        let number = draft.number;
        let read = draft.finish(ruled);
        for (line, reason) in read.skipped {
            writer.skip(line, reason);
        }
        let Some(mut message) = read.message else {
            writer.skip(number, LINE_TOO_LONG);
            return Ok(());
        };
        if read.paired_by_name {
            self.open_calls.pair(&mut message);
        }
        let message = message.complete(&mut *writer.new_id, writer.now);
        writer.write_message(&message)
    }
}
