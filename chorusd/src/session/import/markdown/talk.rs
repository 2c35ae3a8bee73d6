//! Line after line becomes messages.

use std::io;

use chorus_proto::Role;
use jiff::Timestamp;

use super::super::lines::TOO_LONG;
use super::super::sink::About;
use super::super::writer::Writer;
use super::draft::Draft;
use super::head::Head;
use super::section::{Line, Open, following};
use super::summary;
use crate::session::markdown::headed::Heading;
use crate::session::markdown::{MESSAGE, SUMMARY_START, Section, Times, commented};

/// A conversation as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Talk {
    head: Head,
    shape: Shape,
    section: Option<Open>,
    draft: Option<Draft>,
    summary: Option<summary::Lines>,
    /// When the last section began.
    last: Option<Timestamp>,
}

/// Which headings count: those of the first kind that came.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Shape {
    #[default]
    Open,
    /// A heading for each message.
    Headed,
    /// A heading for each query.
    Sections,
}

impl Talk {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &str, number: u64, writer: &mut Writer<'_>) -> io::Result<()> {
        if let Some(draft) = self.draft.as_mut().filter(|draft| draft.in_block()) {
            draft.line(line);
            return Ok(());
        }
        if self.summary.is_some() && self.begins(line) {
            self.take_summary(false, writer);
        }
        if let Some(lines) = &mut self.summary {
            if !lines.line(line) {
                self.take_summary(true, writer);
            }
            return Ok(());
        }
        if self.shape != Shape::Sections
            && let Some(heading) = Heading::parse(line)
        {
            self.finish(writer, false)?;
            self.shape = Shape::Headed;
            self.draft = Some(Draft::headed(heading, number));
            return Ok(());
        }
        if self.shape == Shape::Headed {
            self.text(line);
            return Ok(());
        }
        if let Some((section, time)) = Section::parse(line) {
            self.finish(writer, true)?;
            self.shape = Shape::Sections;
            self.open(section, time);
            return Ok(());
        }
        self.in_section(line, number, writer)
    }

    /// Ends the conversation; what the file says of it.
    pub fn end(mut self, writer: &mut Writer<'_>) -> io::Result<About> {
        self.finish(writer, false)?;
        self.take_summary(false, writer);
        Ok(self.head.about)
    }

    fn open(&mut self, section: Section, time: Option<jiff::civil::Time>) {
        let at = match (time, self.last.or(self.head.date())) {
            (Some(time), Some(after)) => following(time, after),
            (_, after) => after,
        };
        self.last = at.or(self.last);
        self.section = Some(Open { section, at, commented: false });
    }

    fn in_section(&mut self, line: &str, number: u64, writer: &mut Writer<'_>) -> io::Result<()> {
        if line.trim_end() == SUMMARY_START {
            self.finish(writer, true)?;
            self.summary = Some(summary::Lines::new(number));
            // What stands behind it was said by nobody.
            self.section = None;
            return Ok(());
        }
        if self.section.is_none() && commented(MESSAGE, line).is_some() {
            self.shape = Shape::Sections;
            self.open(Section::Opening, None);
        }
        let Some(section) = &mut self.section else {
            if self.shape == Shape::Open {
                self.head.line(line);
            }
            return Ok(());
        };
        if let Some(json) = commented(MESSAGE, line) {
            let read = serde_json::from_str(json);
            section.commented = read.is_ok();
            self.finish(writer, false)?;
            match read {
                Ok(besides) => self.draft = Some(Draft::commented(besides, number)),
                Err(error) => writer.skip(number, format!("the comment cannot be read: {error}")),
            }
            return Ok(());
        }
        if let Some(times) = Times::parse(line) {
            if section.section == Section::Restored && !self.head.complete {
                self.head.about.restoration_tokens = times.tokens;
            }
            let own = section.section != Section::Restored;
            if let Some(draft) = &mut self.draft {
                draft.close(line, Some(times).filter(|_| own));
            }
            return Ok(());
        }
        if section.commented {
            self.text(line);
            return Ok(());
        }
        let before: Option<Role> = self.draft.as_ref().map(|draft| draft.role);
        let at = section.at;
        match section.read(line, &mut self.head.names, before) {
            Line::Speaks(role, text) => {
                self.finish(writer, false)?;
                self.draft = Some(Draft::labelled(role, text, at, number));
            }
            Line::Fact => {}
            Line::Text => self.text(line),
        }
        Ok(())
    }

    fn text(&mut self, line: &str) {
        if let Some(draft) = &mut self.draft {
            draft.line(line);
        }
    }

    /// Whether a line can be in no summary: a message or a section begins.
    fn begins(&self, line: &str) -> bool {
        let headed = self.shape != Shape::Sections && Heading::parse(line).is_some();
        headed || Section::parse(line).is_some() || commented(MESSAGE, line).is_some()
    }

    /// `ended`: its end was there.
    fn take_summary(&mut self, ended: bool, writer: &mut Writer<'_>) {
        let Some(lines) = self.summary.take() else { return };
        if let Some((line, reason)) = lines.skipped(ended) {
            writer.skip(line, reason);
        }
        if !self.head.complete {
            lines.finish(&mut self.head.about);
        }
    }

    /// Hands the open message on. `ruled`: a section ends here.
    fn finish(&mut self, writer: &mut Writer<'_>, ruled: bool) -> io::Result<()> {
        let Some(draft) = self.draft.take() else { return Ok(()) };
        let number = draft.number;
        let read = draft.finish(ruled);
        for (line, reason) in read.skipped {
            writer.skip(line, reason);
        }
        let Some(message) = read.message else {
            writer.skip(number, TOO_LONG);
            return Ok(());
        };
        let message = message.complete(&mut *writer.new_id, writer.now);
        writer.message(&message)
    }
}
