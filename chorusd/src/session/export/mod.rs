//! Sessions as text for the outside: the session file itself, one message a line, Markdown, or a page for a browser.

pub mod html;
pub mod markdown;
mod piece;

use std::io::{self, Write};

use chorus_proto::SessionHeader;
use chorus_proto::methods::export::ExportFormat;
pub use piece::Piece;

use super::SessionFile;
use super::file::{write_end, write_header, write_message};
use crate::message::Stored;

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

/// A session on its way out.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    pub header: &'a SessionHeader,
    /// The session it goes on from, where that is known.
    pub parent: Option<&'a Parent>,
    pub form: ExportFormat,
}

/// How far a text is written: all that the rest depends on besides the rest of the messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Messages that are written.
    pub messages: u64,
    talk: markdown::Talk,
}

impl Text<'_> {
    /// Writes what stands before the first message.
    ///
    /// # Errors
    /// What the writer says.
    pub fn begin(&self, out: &mut impl Write) -> io::Result<()> {
        match self.form {
            ExportFormat::Json => write_header(out, self.header),
            ExportFormat::Jsonl => Ok(()),
            ExportFormat::Md => markdown::begin(out, self.header, self.parent),
            ExportFormat::Html => html::begin(out, self.header, self.parent),
        }
    }

    /// Writes the next message.
    ///
    /// # Errors
    /// What the writer says, or a message that cannot be read; `progress` is of no use then.
    pub fn message(&self, out: &mut impl Write, progress: &mut Progress, message: &Stored) -> io::Result<()> {
        match self.form {
            ExportFormat::Json => write_message(out, message.json(), progress.messages == 0)?,
            ExportFormat::Jsonl => {
                out.write_all(message.json())?;
                out.write_all(b"\n")?;
            }
            ExportFormat::Md => progress.talk.message(out, self, &message.to_message()?)?,
            ExportFormat::Html => {
                html::message(out, progress.messages + 1, &message.to_message()?, &self.header.agent_name)?;
            }
        }
        progress.messages += 1;
        Ok(())
    }

    /// Writes what stands behind the last message. `newest` gives the last ones, as many as it is asked for.
    ///
    /// # Errors
    /// What the writer or `newest` says.
    pub fn end(
        &self,
        out: &mut impl Write,
        progress: Progress,
        newest: impl FnOnce(u64) -> io::Result<Vec<Stored>>,
    ) -> io::Result<()> {
        match self.form {
            ExportFormat::Json => write_end(out),
            ExportFormat::Jsonl => Ok(()),
            ExportFormat::Md => markdown::end(out, self, progress.talk, newest),
            ExportFormat::Html => html::end(out),
        }
    }
}

/// Writes all of a session; `parent` is the one it goes on from, where that is known.
///
/// # Errors
/// What the writer says.
pub fn write(out: &mut impl Write, file: &SessionFile, parent: Option<&Parent>, form: ExportFormat) -> io::Result<()> {
    let text = Text { header: &file.header, parent, form };
    let mut progress = Progress::default();
    text.begin(out)?;
    file.messages.iter().try_for_each(|message| text.message(out, &mut progress, message))?;
    text.end(out, progress, |count| {
        let first = file.messages.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        Ok(file.messages[first..].to_vec())
    })
}
