//! A session as one page for a browser: nothing is fetched, no script runs, and every byte of what was said is only text.

mod header;
mod markdown;
mod message;
mod params;
mod text;

use std::io::{self, Write};

use chorus_proto::SessionHeader;

use super::ParentSession;

/// Writes what stands before the messages.
pub(super) fn write_start(
    out: &mut impl Write,
    header: &SessionHeader,
    parent: Option<&ParentSession>,
) -> io::Result<()> {
    header::write(out, header, parent)?;
    out.write_all(b"<main>\n")
}

pub(super) use message::write as message;

/// Writes what stands behind them.
pub(super) fn write_end(out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"</main>\n</body>\n</html>\n")
}

#[cfg(test)]
mod tests;
