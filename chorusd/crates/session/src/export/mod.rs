//! Exports sessions as a session file (JSON), as one message a line (JSONL), as Markdown or as an HTML page.

mod chunk_writer;
pub mod html;
pub mod markdown;

use std::io::{self, Write};

use chorus_proto::SessionHeader;
use chorus_proto::methods::export::ExportFormat;

use super::SessionFile;
use super::file::{write_end, write_header, write_message};
use crate::stored_message::StoredMessage;
pub use chunk_writer::ChunkWriter;

/// The session that the exported one continues, as far as the export names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentSession {
    pub session_id: String,
    pub queries: u64,
    /// Token estimate of the session.
    pub tokens: u64,
    /// Path of its file.
    pub file: String,
}

/// A session being exported.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    pub header: &'a SessionHeader,
    /// The session that this one continues, if it is known.
    pub parent: Option<&'a ParentSession>,
    pub form: ExportFormat,
}

/// State of an export between two messages: everything that the rest of the text depends on besides the rest of the
/// messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Number of messages written so far.
    pub messages: u64,
    sections: markdown::SectionWriter,
}

impl Export<'_> {
    /// Writes everything before the first message.
    pub fn write_start(&self, out: &mut impl Write) -> io::Result<()> {
        match self.form {
            ExportFormat::Json => write_header(out, self.header),
            ExportFormat::Jsonl => Ok(()),
            ExportFormat::Md => markdown::write_start(out, self.header, self.parent),
            ExportFormat::Html => html::write_start(out, self.header, self.parent),
        }
    }

    /// Writes the next message.
    ///
    /// # Errors
    /// Fails if the writer fails or the message cannot be parsed. `progress` must not be used after that.
    pub fn write_message(
        &self,
        out: &mut impl Write,
        progress: &mut Progress,
        message: &StoredMessage,
    ) -> io::Result<()> {
        match self.form {
            ExportFormat::Json => write_message(out, message.json(), progress.messages == 0)?,
            ExportFormat::Jsonl => {
                out.write_all(message.json())?;
                out.write_all(b"\n")?;
            }
            ExportFormat::Md => progress.sections.write_message(out, self, &message.to_message()?)?,
            ExportFormat::Html => {
                html::message(out, progress.messages + 1, &message.to_message()?, &self.header.agent_name)?;
            }
        }
        progress.messages += 1;
        Ok(())
    }

    /// Writes everything after the last message. `newest` returns that many of the last messages.
    pub fn write_end(
        &self,
        out: &mut impl Write,
        progress: Progress,
        newest: impl FnOnce(u64) -> io::Result<Vec<StoredMessage>>,
    ) -> io::Result<()> {
        match self.form {
            ExportFormat::Json => write_end(out),
            ExportFormat::Jsonl => Ok(()),
            ExportFormat::Md => markdown::write_end(out, self, progress.sections, newest),
            ExportFormat::Html => html::write_end(out),
        }
    }
}

/// Writes a whole session. `parent` is the session that it continues, if that is known.
pub fn write(
    out: &mut impl Write,
    file: &SessionFile,
    parent: Option<&ParentSession>,
    form: ExportFormat,
) -> io::Result<()> {
    let text = Export { header: &file.header, parent, form };
    let mut progress = Progress::default();
    text.write_start(out)?;
    file.messages.iter().try_for_each(|message| text.write_message(out, &mut progress, message))?;
    text.write_end(out, progress, |count| {
        let first = file.messages.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        Ok(file.messages[first..].to_vec())
    })
}
