//! A session as Markdown.

use std::io::{self, Write};

use chorus_proto::{Attachment, Author, Message, Role, SessionHeader, Source, Usage};
use serde::Serialize;

use crate::session::SessionFile;
use crate::session::markdown::{Block, MESSAGE, SESSION, comment, heading, is_plain, one_line};

/// What a message says besides its role, time, text and calls. `provider` blocks are only in the JSON forms.
#[derive(Serialize)]
struct Besides<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a Author>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a Source>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a Usage>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    generated: bool,
}

impl<'a> Besides<'a> {
    fn of(message: &'a Message) -> Self {
        // The bytes of a picture are nothing to read.
        let attachments = message.attachments.iter().map(|of| Attachment { data: None, ..of.clone() });
        Self {
            id: &message.id,
            tool_call_id: message.tool_call_id.as_deref(),
            is_error: message.is_error,
            name: message.name.as_deref(),
            author: message.author.as_ref(),
            source: message.source.as_ref(),
            attachments: attachments.collect(),
            usage: message.usage.as_ref(),
            generated: message.generated,
        }
    }
}

/// Writes a session.
///
/// # Errors
/// What the writer says.
pub fn write(out: &mut impl Write, file: &SessionFile) -> io::Result<()> {
    write_facts(out, &file.header)?;
    file.messages.iter().try_for_each(|message| write_message(out, &message.to_message()?))
}

fn write_facts(out: &mut impl Write, header: &SessionHeader) -> io::Result<()> {
    out.write_all(comment(SESSION, &serde_json::to_string(header)?).as_bytes())?;
    let title = header.description.as_deref().map(one_line).filter(|title| !title.is_empty());
    writeln!(out, "\n# {}\n", title.as_deref().unwrap_or(&header.session_id))?;
    writeln!(out, "- session: {}", header.session_id)?;
    writeln!(out, "- id: {}", header.id)?;
    writeln!(out, "- agent: {}", one_line(&header.agent_name))?;
    writeln!(out, "- saved: {} ({})", header.saved_at, header.trigger.as_str())?;
    writeln!(out, "- started: {}", header.started_at)?;
    if let Some(model) = &header.model {
        writeln!(out, "- model: {}", one_line(model))?;
    }
    writeln!(out, "- messages: {}", header.message_count)?;
    if !header.tags.is_empty() {
        writeln!(out, "- tags: {}", header.tags.join(", "))?;
    }
    if let Some(parent) = header.parent_id {
        writeln!(out, "- continues: {parent}")?;
    }
    if let Some(summary) = &header.summary {
        out.write_all(b"\n")?;
        summary.lines().try_for_each(|line| writeln!(out, "> {line}"))?;
    }
    out.write_all(b"\n")
}

fn write_message(out: &mut impl Write, message: &Message) -> io::Result<()> {
    writeln!(out, "{}", heading(message))?;
    out.write_all(comment(MESSAGE, &serde_json::to_string(&Besides::of(message))?).as_bytes())?;
    out.write_all(b"\n")?;
    let content = &message.content;
    if !content.is_empty() && message.role != Role::ToolResult && is_plain(content) {
        write!(out, "{content}\n\n")?;
    } else if !content.is_empty() {
        writeln!(out, "{}", Block::Content.around(content))?;
    }
    for call in &message.tool_calls {
        let block = Block::Call { id: call.id.clone(), name: call.name.clone() };
        writeln!(out, "{}", block.around(call.params.get()))?;
    }
    Ok(())
}
