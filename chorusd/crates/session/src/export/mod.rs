//! Exports sessions as a session file (JSON), as one message a line (JSONL), as Markdown, as an HTML page, or as the file
//! of another program that continues the conversation.

mod chunk_writer;
mod coding_tools;
pub mod html;
pub mod markdown;
mod message_list;
mod progress;

use std::io::{self, Write};

use chorus_proto::methods::export::{ExportFormat, ExportTarget};
use chorus_proto::{Message, Role, SessionHeader, Trigger};
use jiff::{SignedDuration, Timestamp};

use super::SessionFile;
use super::file::{write_end, write_header, write_message};
use crate::stored_message::StoredMessage;
pub use chunk_writer::ChunkWriter;
pub use message_list::MessageList;
pub use progress::Progress;

/// The session that the exported one continues, as far as the export names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentSession {
    pub session_id: String,
    pub queries: u64,
    /// Token estimate of the session.
    pub tokens: u64,
    /// The imported session that the parent is, or continues.
    pub import: Option<ImportedSession>,
}

/// An imported session whose messages are part of the exported one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSession {
    pub session_id: String,
    /// Name of the agent that holds it, usually the program that it came from.
    pub agent_name: String,
    pub model: Option<String>,
}

impl ImportedSession {
    /// Formats `codex: 2026-11-24_941d38 (gpt-5)`.
    fn to_line(&self) -> String {
        let model = self.model.as_ref().map_or_else(String::new, |model| format!(" ({model})"));
        format!("{}: {}{model}", self.agent_name, self.session_id)
    }
}

/// A session being exported.
///
/// A text consists of frames and passes: the first frame, then something of each message, then the next frame, and so on.
/// So Markdown has the messages themselves in its first pass and their metadata in its second one, and a page has its
/// table of contents before the messages, and no text is ever held as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Export<'a> {
    pub header: &'a SessionHeader,
    /// The session that this one continues, if it is known.
    pub parent: Option<&'a ParentSession>,
    /// Time of the first message.
    pub first_at: Option<Timestamp>,
    pub form: ExportFormat,
    /// Leaves out the block of data at the end of Markdown.
    pub plain: bool,
    /// The live conversation, which no session holds as it is.
    pub live: bool,
    /// The conversation of the other program, if the format is one of another program.
    pub target: Option<&'a ExportTarget>,
}

impl Export<'_> {
    /// Returns when the conversation began. In a restored context the messages are older than the context.
    fn began_at(&self) -> Timestamp {
        let started_at = self.header.started_at;
        // A first message that started the context is a few milliseconds older than the context.
        let is_older = |first: &Timestamp| started_at.duration_since(*first) >= SignedDuration::from_secs(1);
        self.first_at.filter(is_older).unwrap_or(started_at)
    }

    /// Returns when the conversation was held last, by which lists are sorted. An import of an earlier version only says when the
    /// conversation began.
    fn held_at(&self) -> Timestamp {
        let SessionHeader { source, trigger, started_at, .. } = self.header;
        if source.is_none() && *trigger == Trigger::Import { *started_at } else { self.header.held_at() }
    }

    /// Says when and why the session was saved, with the time as `format` writes it.
    fn saved_line(&self, separator: &str, format: impl FnOnce(Timestamp) -> String) -> String {
        let SessionHeader { saved_at, trigger, .. } = self.header;
        let at = format(*saved_at);
        if self.live {
            format!("not yet (live conversation of {at})")
        } else {
            format!("{at}{separator}{}", trigger.reason())
        }
    }

    /// Returns the imported session that this one continues.
    fn import(&self) -> Option<&ImportedSession> {
        self.parent?.import.as_ref()
    }

    /// Returns the model that wrote a message, if that is known. The session's model wrote only the replies of its agent.
    fn reply_model(&self, message: &Message) -> Option<&str> {
        if message.role != Role::Assistant || message.generated {
            return None;
        }
        match message.imported_from() {
            Some(_) if self.header.trigger != Trigger::Import => self.import()?.model.as_deref(),
            _ => self.header.model.as_deref(),
        }
    }

    /// Returns the number of frames. There is a pass over all messages after each of them except the last one.
    #[must_use]
    pub fn frames(&self) -> u8 {
        match self.form {
            ExportFormat::Md if self.plain => 2,
            ExportFormat::Md | ExportFormat::Html => 3,
            _ => 2,
        }
    }

    /// Writes the next frame. `messages` are those of the session.
    pub fn write_frame(
        &self,
        out: &mut impl Write,
        progress: &mut Progress,
        messages: &dyn MessageList,
    ) -> io::Result<()> {
        match (self.form, progress.frames) {
            (ExportFormat::Json, 0) => write_header(out, self.header)?,
            (ExportFormat::Json, _) => write_end(out)?,
            (ExportFormat::Jsonl, _) => {}
            (ExportFormat::Md, frame) => markdown::write_frame(out, self, frame, progress, messages)?,
            (ExportFormat::Html, frame) => html::write_frame(out, self, frame)?,
            _ => coding_tools::write_frame(out, self, progress, messages)?,
        }
        progress.frames += 1;
        progress.messages = 0;
        Ok(())
    }

    /// Writes the part of the next message in this pass. `messages` are all of the session.
    ///
    /// # Errors
    /// Fails if the writer fails or the message cannot be parsed. `progress` must not be used after that.
    pub fn write_message(
        &self,
        out: &mut impl Write,
        progress: &mut Progress,
        messages: &dyn MessageList,
        message: &StoredMessage,
    ) -> io::Result<()> {
        let number = progress.messages + 1;
        match (self.form, progress.frames) {
            (ExportFormat::Json, _) => write_message(out, message.json(), progress.messages == 0)?,
            (ExportFormat::Jsonl, _) => {
                out.write_all(message.json())?;
                out.write_all(b"\n")?;
            }
            (ExportFormat::Md, 1) => markdown::write_message(out, self, progress, message)?,
            (ExportFormat::Md, _) => markdown::write_record(out, progress, message)?,
            (ExportFormat::Html, 1) => html::write_contents_entry(out, self.header, number, message)?,
            (ExportFormat::Html, _) => html::write_message(out, self, number, message)?,
            _ => coding_tools::write_message(out, self, progress, messages, message)?,
        }
        progress.messages = number;
        Ok(())
    }
}

/// Writes a whole session. `parent` is the session that it continues, if that is known.
pub fn write(
    out: &mut impl Write,
    file: &SessionFile,
    parent: Option<&ParentSession>,
    form: ExportFormat,
) -> io::Result<()> {
    write_whole(out, file, export_of(file, parent, form, false))
}

/// Writes a whole session as the file of another program.
pub fn write_for_tool(
    out: &mut impl Write,
    file: &SessionFile,
    form: ExportFormat,
    target: &ExportTarget,
) -> io::Result<()> {
    write_whole(out, file, Export { target: Some(target), ..export_of(file, None, form, false) })
}

/// Writes a whole session as Markdown without the block of data at its end.
pub fn write_plain(out: &mut impl Write, file: &SessionFile) -> io::Result<()> {
    write_whole(out, file, export_of(file, None, ExportFormat::Md, true))
}

fn export_of<'a>(
    file: &'a SessionFile,
    parent: Option<&'a ParentSession>,
    form: ExportFormat,
    plain: bool,
) -> Export<'a> {
    let first_at = file.messages.first().and_then(|message| Some(message.to_message().ok()?.timestamp));
    Export { header: &file.header, parent, first_at, form, plain, live: false, target: None }
}

fn write_whole(out: &mut impl Write, file: &SessionFile, text: Export<'_>) -> io::Result<()> {
    let mut progress = Progress::default();
    for frame in 0..text.frames() {
        text.write_frame(out, &mut progress, &file.messages)?;
        if frame + 1 < text.frames() {
            for message in &file.messages {
                text.write_message(out, &mut progress, &file.messages, message)?;
            }
        }
    }
    Ok(())
}
