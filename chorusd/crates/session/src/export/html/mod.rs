//! Exports a session as a single HTML page. The page fetches nothing, runs no script, and shows all message text as
//! text, never as markup.

mod header;
mod markdown;
mod message;
mod params;
mod text;

use std::io::{self, Write};

use chorus_proto::SessionHeader;

use super::ParentSession;

/// Writes everything before the messages.
pub(super) fn write_start(
    out: &mut impl Write,
    header: &SessionHeader,
    parent: Option<&ParentSession>,
) -> io::Result<()> {
    header::write(out, header, parent)?;
    out.write_all(b"<main>\n")
}

pub(super) use message::write as message;

/// Writes everything after the messages.
pub(super) fn write_end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"</main>\n</body>\n</html>\n")
}

#[cfg(test)]
mod tests;
