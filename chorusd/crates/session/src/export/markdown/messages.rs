//! Writes the messages, in a section for each query.

use std::io::{self, Write};

use chorus_proto::{Message, Role, SessionHeader, TokenPair};
use jiff::Timestamp;

use super::super::{Export, ParentSession};
use super::metadata::MessageMetadata;
use crate::markdown::{
    BlockKind, MESSAGE_COMMENT, Section, Timing, is_safe_text, one_line, render_comment, speaker_label,
};

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
        out.write_all(
            render_comment(MESSAGE_COMMENT, &serde_json::to_string(&MessageMetadata::new(message))?).as_bytes(),
        )?;
        write_content(out, text.header, message)?;
        for call in &message.tool_calls {
            let holds = BlockKind::Call { id: call.id.clone(), name: call.name.clone() };
            writeln!(out, "{}", holds.render(call.params.get()))?;
        }
        Ok(())
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
        writeln!(out, "---\n\n{}\n", section.heading(at))?;
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
    let Some(ParentSession { session_id, queries, tokens, file }) = text.parent else {
        return writeln!(out, "**Context:** Resumed from {id}\n");
    };
    let queries = format!("{queries} {}", if *queries == 1 { "query" } else { "queries" });
    writeln!(out, "**Context:** Resumed from {session_id} ({queries}, {} tokens)", format_thousands(*tokens))?;
    writeln!(out, "**Previous Session:** {}\n", one_line(file))
}

fn write_content(out: &mut impl Write, header: &SessionHeader, message: &Message) -> io::Result<()> {
    let speaker = message_speaker(header, message);
    let content = &message.content;
    if content.is_empty() {
        writeln!(out, "{speaker}\n")
    } else if message.role == Role::ToolResult || !is_safe_text(content) {
        writeln!(out, "{speaker}\n\n{}", BlockKind::Content.render(content))
    } else if starts_block(content) {
        writeln!(out, "{speaker}\n\n{content}\n")
    } else {
        writeln!(out, "{speaker} {content}\n")
    }
}

fn message_speaker(header: &SessionHeader, message: &Message) -> String {
    let author = message.author.as_ref().map(|author| &*author.name);
    match message.role {
        Role::System => speaker_label("System"),
        Role::User => speaker_label(author.unwrap_or("You")),
        Role::Assistant => speaker_label(author.unwrap_or(&header.agent_name)),
        Role::ToolResult => match &message.name {
            Some(name) => speaker_label(&format!("Tool result ({name})")),
            None => speaker_label("Tool result"),
        },
    }
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
