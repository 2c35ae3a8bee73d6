//! Writes the lines before the first message.

use std::io::{self, Write};

use chorus_proto::TokenPair;

use super::super::Export;
use crate::markdown::one_line;

/// Writes the header as lines for people.
pub(super) fn write(out: &mut impl Write, text: &Export<'_>) -> io::Result<()> {
    let header = text.header;
    let title = header.description.as_deref().map(one_line).filter(|title| !title.is_empty());
    writeln!(out, "# {}\n", title.as_deref().unwrap_or(&header.session_id))?;
    let mut fact = |name: &str, value: &str| writeln!(out, "**{name}:** {}", one_line(value));
    fact("Session ID", &header.session_id)?;
    fact("UUID", &header.id.to_string())?;
    fact("Date", &text.began_at().to_string())?;
    match header.source.as_ref().and_then(|source| Some((source.known_program()?, &source.conversation))) {
        Some((program, conversation)) => fact("Imported From", &format!("{program}: {conversation}"))?,
        None => fact("Agent", &header.agent_name)?,
    }
    if let Some(model) = &header.model {
        fact("Model", model)?;
    }
    fact("Saved", &text.saved_line(" ", |at| at.to_string()))?;
    if let Some(id) = header.parent_id {
        let name = text.parent.map_or_else(|| id.to_string(), |parent| parent.session_id.clone());
        fact("Resumed From", &name)?;
        fact("Previous Session", &id.to_string())?;
    }
    if let Some(import) = text.import() {
        fact("Imported From", &import.to_line())?;
    }
    fact("Total Queries", &header.query_count.to_string())?;
    fact("Total Messages", &header.message_count.to_string())?;
    if header.restoration_tokens != TokenPair::default() {
        let TokenPair { input, output } = header.restoration_tokens;
        let sum = input.saturating_add(output);
        fact("Restoration", &format!("{sum} tokens (in: {input}, out: {output})"))?;
    }
    if !header.tags.is_empty() {
        fact("Tags", &header.tags.join(", "))?;
    }
    out.write_all(b"\n")
}
