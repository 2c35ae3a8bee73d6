//! The messages, in a section for each query.

use std::io::{self, Write};

use chorus_proto::{Message, Role, SessionHeader, TokenPair};
use jiff::Timestamp;

use super::super::{Parent, Text};
use super::besides::Besides;
use crate::session::markdown::{Holds, MESSAGE, Section, Times, comment, is_plain, label, one_line};

/// How far the messages are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct Talk {
    queries: u64,
    open: Option<Open>,
}

/// A section that is being written.
#[derive(Debug, Clone, Copy)]
struct Open {
    section: Section,
    first: Timestamp,
    last: Timestamp,
    times: Times,
}

impl Talk {
    /// Writes the next message.
    pub(in super::super) fn message(
        &mut self,
        out: &mut impl Write,
        text: &Text<'_>,
        message: &Message,
    ) -> io::Result<()> {
        if message.role == Role::User {
            self.queries += 1;
            self.section(out, text, Section::Query(self.queries), message.timestamp)?;
        } else if self.open.is_none() {
            self.section(out, text, beginning(text.header, message), message.timestamp)?;
        }
        if let Some(open) = &mut self.open {
            open.last = message.timestamp;
            open.times.add(message.usage.as_ref().unwrap_or(&chorus_proto::Usage::default()));
        }
        out.write_all(comment(MESSAGE, &serde_json::to_string(&Besides::of(message))?).as_bytes())?;
        content(out, text.header, message)?;
        for call in &message.tool_calls {
            let holds = Holds::Call { id: call.id.clone(), name: call.name.clone() };
            writeln!(out, "{}", holds.around(call.params.get()))?;
        }
        Ok(())
    }

    /// Ends the last section; whether there was one.
    pub(super) fn end(self, out: &mut impl Write, header: &SessionHeader) -> io::Result<bool> {
        self.close(out, header)?;
        Ok(self.open.is_some())
    }

    fn section(&mut self, out: &mut impl Write, text: &Text<'_>, section: Section, at: Timestamp) -> io::Result<()> {
        self.close(out, text.header)?;
        writeln!(out, "---\n\n{}\n", section.heading(at))?;
        if section == Section::Restored {
            context(out, text)?;
        }
        self.open = Some(Open { section, first: at, last: at, times: Times::default() });
        Ok(())
    }

    /// Writes what the open section took.
    fn close(&self, out: &mut impl Write, header: &SessionHeader) -> io::Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let mut times = open.times;
        let spent = header.restoration_tokens;
        if open.section == Section::Restored && spent != TokenPair::default() {
            times.tokens = Some(spent);
        }
        // Where no call said how long it took, the time that passed is what is known.
        let passed = u64::try_from(open.last.duration_since(open.first).as_millis()).ok().filter(|ms| *ms > 0);
        times.duration_ms = times.duration_ms.or(passed);
        times.line().map_or(Ok(()), |line| writeln!(out, "{line}\n"))
    }
}

/// What messages before the first query are.
fn beginning(header: &SessionHeader, first: &Message) -> Section {
    let resumed = header.parent_id.is_some() || header.restoration_tokens != TokenPair::default();
    if resumed && first.role == Role::Assistant { Section::Restored } else { Section::Opening }
}

/// Where a context that goes on comes from.
fn context(out: &mut impl Write, text: &Text<'_>) -> io::Result<()> {
    let Some(id) = text.header.parent_id else { return Ok(()) };
    let Some(Parent { session_id, queries, tokens, file }) = text.parent else {
        return writeln!(out, "**Context:** Resumed from {id}\n");
    };
    let queries = format!("{queries} {}", if *queries == 1 { "query" } else { "queries" });
    writeln!(out, "**Context:** Resumed from {session_id} ({queries}, {} tokens)", short(*tokens))?;
    writeln!(out, "**Previous Session:** {}\n", one_line(file))
}

fn content(out: &mut impl Write, header: &SessionHeader, message: &Message) -> io::Result<()> {
    let speaker = speaker(header, message);
    let content = &message.content;
    if content.is_empty() {
        writeln!(out, "{speaker}\n")
    } else if message.role == Role::ToolResult || !is_plain(content) {
        writeln!(out, "{speaker}\n\n{}", Holds::Content.around(content))
    } else if begins_a_block(content) {
        writeln!(out, "{speaker}\n\n{content}\n")
    } else {
        writeln!(out, "{speaker} {content}\n")
    }
}

fn speaker(header: &SessionHeader, message: &Message) -> String {
    let author = message.author.as_ref().map(|author| &*author.name);
    match message.role {
        Role::System => label("System"),
        Role::User => label(author.unwrap_or("You")),
        Role::Assistant => label(author.unwrap_or(&header.agent_name)),
        Role::ToolResult => match &message.name {
            Some(name) => label(&format!("Tool result ({name})")),
            None => label("Tool result"),
        },
    }
}

/// Whether the first line would be no paragraph, so that the name before it would spoil it.
fn begins_a_block(content: &str) -> bool {
    content.starts_with(|c: char| {
        c.is_ascii_digit() || matches!(c, '#' | '-' | '*' | '+' | '>' | '`' | '~' | '|' | '<' | '=')
    })
}

/// `2300` as `2.3K`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        _ => format!("{}.{}K", tokens / 1000, tokens % 1000 / 100),
    }
}
