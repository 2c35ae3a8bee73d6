//! Sessions as text for the outside: the session file itself, one message a line, or Markdown.

pub mod markdown;
mod piece;

use std::io::{self, Write};

use chorus_proto::methods::export::ExportFormat;
pub use piece::Piece;

use super::SessionFile;
use super::file::{write_end, write_header, write_message};

/// Writes all of a session.
///
/// # Errors
/// What the writer says.
pub fn write(out: &mut impl Write, file: &SessionFile, form: ExportFormat) -> io::Result<()> {
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
        ExportFormat::Md => markdown::write(out, file),
    }
}
