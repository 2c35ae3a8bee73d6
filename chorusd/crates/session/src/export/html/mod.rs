//! Exports a session as a single HTML page: what it is about, the questions as a table of contents, and the messages. The
//! page fetches nothing, runs no script, and shows HTML in messages as text, never as markup.

mod contents;
mod header;
mod markdown;
mod message;
mod params;
mod text;

use std::io::{self, Write};

use jiff::tz::TimeZone;

use super::Export;
use crate::stored_message::StoredMessage;
pub(super) use contents::write_entry as write_contents_entry;
pub use header::STYLE;
pub use message::{MessageStyle, write_message as write_shown_message};
pub use text::show_invisible;

/// Writes the part before the table of contents, the one between it and the messages, or the one after the messages.
pub(super) fn write_frame(out: &mut impl Write, text: &Export<'_>, frame: u8) -> io::Result<()> {
    match frame {
        0 => {
            header::write(out, text)?;
            contents::write_start(out, text.header)
        }
        1 => {
            contents::write_end(out, text.header)?;
            out.write_all(b"<main>\n")
        }
        _ => out.write_all(b"</main>\n</body>\n</html>\n"),
    }
}

/// Writes a message. `number` counts from 1.
pub(super) fn write_message(
    out: &mut impl Write,
    text: &Export<'_>,
    number: u64,
    message: &StoredMessage,
) -> io::Result<()> {
    let message = message.to_message()?;
    let style = MessageStyle { agent_name: &text.header.agent_name, link: "", zone: &TimeZone::UTC };
    write_shown_message(out, number, &message, text.reply_model(&message), &style)
}

#[cfg(test)]
mod tests;
