//! Writes the messages, in a section for each query.

use std::io::{self, Write};

use chorus_proto::{Message, Role, SessionHeader, TokenPair};
use jiff::Timestamp;

use super::super::{Export, ParentSession};
use crate::markdown::{BlockKind, Section, Timing, call_label, is_safe_text, message_label, parse_speaker_label};

/// State of the sections between two messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SectionWriter {
    queries: u64,
    open: Option<OpenSection>,
}

/// The section that is being written.
#[derive(Debug, Clone, Copy)]
struct OpenSection {
    section: Section,
    first: Timestamp,
    last: Timestamp,
    times: Timing,
}

impl SectionWriter {
    /// Writes the next message.
    pub(in super::super) fn write_message(
        &mut self,
        out: &mut impl Write,
        text: &Export<'_>,
        message: &Message,
    ) -> io::Result<()> {
        if message.role == Role::User {
            self.queries += 1;
            self.open_section(out, text, Section::Query(self.queries), message.timestamp)?;
        } else if self.open.is_none() {
            self.open_section(out, text, first_section(text.header, message), message.timestamp)?;
        }
        if let Some(open) = &mut self.open {
            open.last = message.timestamp;
            open.times.add_usage(message.usage.as_ref().unwrap_or(&chorus_proto::Usage::default()));
        }
        write_content(out, text.header, message)?;
        for call in &message.tool_calls {
            writeln!(out, "{}\n\n{}", call_label(&call.name), BlockKind::Call.render(call.params.get()))?;
        }
        Ok(())
    }

    /// Returns the number of queries so far.
    pub(super) fn queries(&self) -> u64 {
        self.queries
    }

    /// Closes the last section. Returns whether there was one.
    pub(super) fn finish(self, out: &mut impl Write, header: &SessionHeader) -> io::Result<bool> {
        self.close_section(out, header)?;
        Ok(self.open.is_some())
    }

    fn open_section(
        &mut self,
        out: &mut impl Write,
        text: &Export<'_>,
        section: Section,
        at: Timestamp,
    ) -> io::Result<()> {
        self.close_section(out, text.header)?;
        let before = self.open.map_or_else(|| text.began_at(), |open| open.first);
        writeln!(out, "---\n\n{}\n", section.heading(at, before))?;
        if section == Section::Restored {
            write_resumed_from(out, text)?;
        }
        self.open = Some(OpenSection { section, first: at, last: at, times: Timing::default() });
        Ok(())
    }

    /// Writes the duration and tokens of the open section.
    fn close_section(&self, out: &mut impl Write, header: &SessionHeader) -> io::Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let mut times = open.times;
        let spent = header.restoration_tokens;
        if open.section == Section::Restored && spent != TokenPair::default() {
            times.tokens = Some(spent);
        }
        // If no model call has a duration, uses the time between the first and the last message.
        let passed = u64::try_from(open.last.duration_since(open.first).as_millis()).ok().filter(|ms| *ms > 0);
        times.duration_ms = times.duration_ms.or(passed);
        times.to_line().map_or(Ok(()), |line| writeln!(out, "{line}\n"))
    }
}

/// Returns the section for messages before the first query.
fn first_section(header: &SessionHeader, first: &Message) -> Section {
    let resumed = header.parent_id.is_some() || header.restoration_tokens != TokenPair::default();
    if resumed && first.role == Role::Assistant { Section::Restored } else { Section::Opening }
}

/// Writes from which session this context was resumed.
fn write_resumed_from(out: &mut impl Write, text: &Export<'_>) -> io::Result<()> {
    let Some(id) = text.header.parent_id else { return Ok(()) };
    let Some(ParentSession { session_id, queries, tokens, .. }) = text.parent else {
        return writeln!(out, "**Context:** Resumed from {id}\n");
    };
    let queries = format!("{queries} {}", if *queries == 1 { "query" } else { "queries" });
    writeln!(out, "**Context:** Resumed from {session_id} ({queries}, {} tokens)", format_thousands(*tokens))?;
    writeln!(out, "**Previous Session:** {id}\n")
}

fn write_content(out: &mut impl Write, header: &SessionHeader, message: &Message) -> io::Result<()> {
    let author = message.author.as_ref().map(|author| &*author.name);
    let agent = message.imported_from().unwrap_or(&header.agent_name);
    let speaker = message_label(agent, message.role, author, message.name.as_deref());
    let content = visible_text(message);
    if content.is_empty() {
        writeln!(out, "{speaker}\n")
    } else if needs_block(message) {
        writeln!(out, "{speaker}\n\n{}", BlockKind::Content.render(content))
    } else if starts_block(content) {
        writeln!(out, "{speaker}\n\n{content}\n")
    } else {
        writeln!(out, "{speaker} {content}\n")
    }
}

/// Returns whether the text of the message stands in a fenced block.
fn needs_block(message: &Message) -> bool {
    message.role == Role::ToolResult || !is_safe_text(message.content.trim())
}

/// Returns the text as it is shown: outside of a block without the white space around it, which the record holds.
fn visible_text(message: &Message) -> &str {
    let text = message.content.trim();
    if text.is_empty() || !needs_block(message) { text } else { &message.content }
}

/// Returns the white space before and after the shown text.
pub(super) fn hidden_space(message: &Message) -> (&str, &str) {
    let (content, text) = (message.content.as_str(), visible_text(message));
    match content.find(text).filter(|_| !text.is_empty()) {
        Some(start) => (&content[..start], &content[start + text.len()..]),
        None => ("", content),
    }
}

/// Counts the lines of the shown text that look like the label of a speaker. Only those outside of a block could be
/// taken for the start of another message.
pub(super) fn count_labels(message: &Message) -> u64 {
    let text = message.content.trim();
    let labels = text.split('\n').filter(|line| parse_speaker_label(line).is_some()).count() as u64;
    if labels == 0 || needs_block(message) { 0 } else { labels }
}

/// Returns whether the first line starts a block other than a paragraph, which a speaker label before it would break.
fn starts_block(content: &str) -> bool {
    content.starts_with(|c: char| {
        c.is_ascii_digit() || matches!(c, '#' | '-' | '*' | '+' | '>' | '`' | '~' | '|' | '<' | '=')
    })
}

/// Formats a count, for example `2300` as `2.3K`.
fn format_thousands(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        _ => format!("{}.{}K", tokens / 1000, tokens % 1000 / 100),
    }
}
