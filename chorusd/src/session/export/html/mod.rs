//! A session as one page for a browser: nothing is fetched, no script runs, and every byte of what was said is only text.

mod head;
mod message;
mod params;
mod rich;
mod text;

use std::io::{self, Write};

use super::Parent;
use crate::session::SessionFile;

/// Writes a session; `parent` is the one it goes on from, where that is known.
///
/// # Errors
/// What the writer says.
pub fn write(out: &mut impl Write, file: &SessionFile, parent: Option<&Parent>) -> io::Result<()> {
    head::write(out, &file.header, parent)?;
    out.write_all(b"<main>\n")?;
    for (index, stored) in file.messages.iter().enumerate() {
        message::write(out, index + 1, &stored.to_message()?, &file.header.agent_name)?;
    }
    out.write_all(b"</main>\n</body>\n</html>\n")
}

#[cfg(test)]
mod tests;
