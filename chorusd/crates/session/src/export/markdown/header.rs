//! Writes the lines before the first message.

use std::io::{self, Write};

use chorus_proto::{SessionHeader, TokenPair};

use super::super::ParentSession;
use crate::markdown::one_line;

/// Writes the header as lines for people.
pub(super) fn write(out: &mut impl Write, header: &SessionHeader, parent: Option<&ParentSession>) -> io::Result<()> {
    let title = header.description.as_deref().map(one_line).filter(|title| !title.is_empty());
    writeln!(out, "# {}\n", title.as_deref().unwrap_or(&header.session_id))?;
    let mut fact = |name: &str, value: &str| writeln!(out, "**{name}:** {}", one_line(value));
    fact("Session ID", &header.session_id)?;
    fact("UUID", &header.id.to_string())?;
    fact("Date", &header.started_at.to_string())?;
    fact("Agent", &header.agent_name)?;
    if let Some(model) = &header.model {
        fact("Model", model)?;
    }
    fact("Saved", &format!("{} ({})", header.saved_at, header.trigger.as_str()))?;
    if let Some(id) = header.parent_id {
        let name = parent.map_or_else(|| id.to_string(), |parent| parent.session_id.clone());
        fact("Resumed From", &name)?;
        fact("Previous Session", parent.map_or(&id.to_string(), |parent| &parent.file))?;
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
