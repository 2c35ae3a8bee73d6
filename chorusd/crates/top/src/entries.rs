//! The parts of a conversation as they are shown: messages, tool calls, the start of outputs.

use chorus_proto::message::{Message, Role};
use chorus_proto::methods::send::{ToolOutput, TurnEvent};
use chorus_proto::tool_gist::{display_name, gist};
use chorus_terminal_text::{sanitize, text, units};
use jiff::Timestamp;

/// The limit on characters of the start and of the end of a text that are shown; the record has the rest.
const MAX_START_CHARS: usize = 4 << 10;
const MAX_END_CHARS: usize = 28 << 10;
/// The limit on lines of a tool's output that are shown.
const MAX_OUTPUT_LINES: usize = 6;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    User,
    Agent,
    System,
    Tool,
    Output,
    /// An output that is an error.
    Failed,
    Note,
}

/// A part of a conversation.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// The message that it comes from.
    pub(crate) message: Option<String>,
    /// Who says it; empty if the entry continues the one before.
    pub(crate) who: String,
    pub(crate) at: Option<Timestamp>,
    /// Not sanitized.
    text: String,
    /// Lines of the text for a width.
    wrapped: Option<(usize, Vec<String>)>,
}

impl Entry {
    fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, message: None, who: String::new(), at: None, text: text.into(), wrapped: None }
    }

    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self::new(Kind::Note, text)
    }

    fn said_by(mut self, who: impl Into<String>) -> Self {
        self.who = who.into();
        self
    }

    fn append(&mut self, more: &str) {
        self.text.push_str(more);
        self.wrapped = None;
    }

    /// Returns the lines of the text, sanitized and wrapped.
    pub(crate) fn lines(&mut self, width: usize) -> &[String] {
        if self.wrapped.as_ref().is_none_or(|(of, _)| *of != width) {
            self.wrapped = Some((width, wrap(&self.text, width)));
        }
        self.wrapped.as_ref().map_or(&[], |(_, lines)| lines)
    }
}

fn wrap(shown: &str, width: usize) -> Vec<String> {
    let lines = |part: &str| -> Vec<String> {
        let safe = sanitize::multi_line(part);
        text::wrap(&safe, width).into_iter().map(|line| line.into_owned()).collect()
    };
    let shown = shown.trim_end();
    // Most texts are short enough in bytes.
    if shown.len() <= MAX_START_CHARS + MAX_END_CHARS {
        return lines(shown);
    }
    let start = shown.char_indices().nth(MAX_START_CHARS).map_or(shown.len(), |(at, _)| at);
    let end = shown.char_indices().nth_back(MAX_END_CHARS - 1).map_or(0, |(at, _)| at);
    if end <= start {
        return lines(shown);
    }
    let mut wrapped = lines(&shown[..start]);
    wrapped.push(format!("… {} are not shown here …", units::format_bytes((end - start) as u64)));
    wrapped.extend(lines(&shown[end..]));
    wrapped
}

/// Returns the entries of messages.
pub(crate) fn of_messages(messages: &[Message], agent: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut is_agent_named = false;
    for message in messages {
        let first = entries.len();
        match message.role {
            Role::ToolResult => {
                let kind = if message.is_error { Kind::Failed } else { Kind::Output };
                entries.push(Entry::new(kind, output_text(&message.content, message.content.lines().count())));
            }
            Role::Assistant => {
                if !message.content.trim().is_empty() {
                    let who = if is_agent_named { "" } else { agent };
                    entries.push(Entry::new(Kind::Agent, message.content.trim_start()).said_by(who));
                    is_agent_named = true;
                }
                entries.extend(message.tool_calls.iter().map(|call| tool(&call.name, &gist(call))));
            }
            Role::User | Role::System => {
                is_agent_named = false;
                let author = message.author.as_ref().map(|author| &*author.name);
                entries.push(said(message.role, &message.content, author));
            }
        }
        if let Some(entry) = entries.get_mut(first) {
            entry.message = Some(message.id.clone());
            entry.at = Some(message.timestamp);
        }
    }
    entries
}

fn said(role: Role, text: &str, author: Option<&str>) -> Entry {
    let (kind, who) = match role {
        Role::User => (Kind::User, author.unwrap_or("you")),
        Role::Assistant => (Kind::Agent, author.unwrap_or("assistant")),
        Role::System | Role::ToolResult => (Kind::System, author.unwrap_or("system")),
    };
    Entry::new(kind, text).said_by(sanitize::one_line(who))
}

fn tool(name: &str, gist: &str) -> Entry {
    let line = format!("→ {}  {}", display_name(name), gist.split_whitespace().collect::<Vec<_>>().join(" "));
    Entry::new(Kind::Tool, line)
}

/// Returns the first lines of an output, and how many lines there are in all.
fn output_text(output: &str, lines: usize) -> String {
    let mut shown: Vec<&str> = output.lines().take(MAX_OUTPUT_LINES).collect();
    if shown.is_empty() {
        shown.push("(no output)");
    }
    let more = lines.saturating_sub(shown.len());
    let mut text = shown.join("\n");
    if more > 0 {
        text.push_str(&format!("\n… {more} more {}", if more == 1 { "line" } else { "lines" }));
    }
    text
}

fn result_text(output: Option<&ToolOutput>, is_error: bool) -> String {
    match output {
        Some(output) => {
            let lines = usize::try_from(output.lines).unwrap_or(usize::MAX);
            output_text(output.diff.as_deref().unwrap_or(&output.text), lines)
        }
        None => if is_error { "failed" } else { "done" }.to_owned(),
    }
}

/// Adds a piece of a running turn.
pub(crate) fn push_piece(entries: &mut Vec<Entry>, event: &TurnEvent, agent: &str) {
    match event {
        TurnEvent::Text(text) => {
            let is_named = entries.iter().rev().take_while(|entry| entry.kind != Kind::User).any(is_reply);
            match entries.last_mut() {
                Some(last) if is_reply(last) && last.message.is_none() => last.append(text),
                _ if text.trim().is_empty() => {}
                _ => {
                    let who = if is_named { "" } else { agent };
                    entries.push(Entry::new(Kind::Agent, text.trim_start()).said_by(who));
                }
            }
        }
        TurnEvent::Tool { name, gist, .. } => entries.push(tool(name, gist.as_deref().unwrap_or_default())),
        TurnEvent::Result { is_error, output, .. } => {
            let kind = if *is_error { Kind::Failed } else { Kind::Output };
            entries.push(Entry::new(kind, result_text(output.as_deref(), *is_error)));
        }
        TurnEvent::Decided { status, by, .. } => {
            let by = by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
            entries.push(Entry::note(format!("{}{by}", status.as_str())));
        }
        TurnEvent::Note(text) => entries.push(Entry::note(text.clone())),
        TurnEvent::Message { id, role, text, author } if *role != Role::ToolResult => {
            let mut entry = said(*role, text, author.as_deref());
            entry.message = Some(id.clone());
            entries.push(entry);
        }
        _ => {}
    }
}

fn is_reply(entry: &Entry) -> bool {
    entry.kind == Kind::Agent
}
