//! Sessions as text for the outside: the session file itself, one message a line, Markdown, or a page for a browser.

pub mod html;
pub mod markdown;
mod piece;

use std::io::{self, Write};

use chorus_proto::methods::export::ExportFormat;
pub use piece::Piece;

use super::SessionFile;
use super::file::{write_end, write_header, write_message};

/// The session that another one goes on from, as far as a reader wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub session_id: String,
    pub queries: u64,
    /// Estimated.
    pub tokens: u64,
    /// Where its file is.
    pub file: String,
}

/// Writes all of a session; `parent` is the one it goes on from, where that is known.
///
/// # Errors
/// What the writer says.
pub fn write(out: &mut impl Write, file: &SessionFile, parent: Option<&Parent>, form: ExportFormat) -> io::Result<()> {
    match form {
        ExportFormat::Json => {
            write_header(out, &file.header)?;
            for (index, message) in file.messages.iter().enumerate() {
                write_message(out, message.json(), index == 0)?;
            }
            write_end(out)
        }
        ExportFormat::Jsonl => file.messages.iter().try_for_each(|message| {
            out.write_all(message.json())?;
            out.write_all(b"\n")
        }),
        ExportFormat::Md => markdown::write(out, file, parent),
        ExportFormat::Html => html::write(out, file, parent),
    }
}
