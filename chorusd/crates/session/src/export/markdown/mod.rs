//! Exports a session as Markdown: a header, a section for each query, the summary from which a new conversation can
//! continue, and a block with the data that an import needs besides.

mod counting_writer;
mod header;
mod messages;
mod metadata;

use std::io::{self, Write};

use chorus_proto::{Role, SessionHeader};

use self::counting_writer::CountingWriter;
use self::metadata::{MessageMetadata, Record};
use super::{Export, MessageList, Progress};
use crate::markdown::{DATA_END, DATA_START, SummaryBlock, render_data_line};
use crate::stored_message::StoredMessage;
use crate::summary::{FindingLimits, collect_findings};
pub(crate) use messages::SectionWriter;

/// Number of the newest messages that are searched for decisions and open tasks.
const MAX_SCANNED_MESSAGES: u64 = 2000;

/// Largest number of decisions and of open tasks that are taken from them.
const MAX_FINDINGS: FindingLimits = FindingLimits { statements: 10, files: 10 };

/// Writes the part before the messages, the one between them and their records, or the one after the records.
pub(super) fn write_frame(
    out: &mut impl Write,
    text: &Export<'_>,
    frame: u8,
    progress: &mut Progress,
    messages: &dyn MessageList,
) -> io::Result<()> {
    let mut counted = CountingWriter::new(out);
    match frame {
        0 => header::write(&mut counted, text)?,
        1 => write_end(&mut counted, text, progress.sections, messages)?,
        _ => return writeln!(out, "{DATA_END}"),
    }
    progress.text_bytes += counted.written();
    if frame == 1 && !text.plain { write_data_start(out, text.header, progress) } else { Ok(()) }
}

/// Writes the next message.
pub(super) fn write_message(
    out: &mut impl Write,
    text: &Export<'_>,
    progress: &mut Progress,
    message: &StoredMessage,
) -> io::Result<()> {
    let mut counted = CountingWriter::new(out);
    progress.sections.write_message(&mut counted, text, &message.to_message()?)?;
    progress.text_bytes += counted.written();
    Ok(())
}

/// Writes the record of the next message.
pub(super) fn write_record(out: &mut impl Write, progress: &mut Progress, message: &StoredMessage) -> io::Result<()> {
    let message = message.to_message()?;
    if message.role == Role::User {
        progress.recorded_queries += 1;
    }
    let (before, after) = messages::hidden_space(&message);
    let record = Record {
        query: (message.role == Role::User).then_some(progress.recorded_queries),
        labels: messages::count_labels(&message),
        before,
        after,
        calls: message.tool_calls.iter().map(|call| (&*call.id, &*call.name)).collect(),
        message: MessageMetadata::new(&message),
    };
    out.write_all(render_data_line(&serde_json::to_string(&record)?).as_bytes())
}

/// Writes everything between the messages and the block of data.
fn write_end(
    out: &mut impl Write,
    text: &Export<'_>,
    sections: SectionWriter,
    messages: &dyn MessageList,
) -> io::Result<()> {
    let written = sections.finish(out, text.header)?;
    let summary = build_summary(text.header, messages)?;
    if !summary.is_empty() {
        if written {
            out.write_all(b"---\n\n")?;
        }
        out.write_all(summary.render(text.header.parent_id.is_some()).as_bytes())?;
        if !text.plain {
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

fn write_data_start(out: &mut impl Write, header: &SessionHeader, progress: &Progress) -> io::Result<()> {
    let (session, bytes) = (serde_json::to_string(header)?, progress.text_bytes);
    let queries = progress.sections.queries();
    let line = format!("{{\"text_bytes\":{bytes},\"queries\":{queries},\"session\":{session}}}");
    writeln!(out, "{DATA_START}")?;
    out.write_all(render_data_line(&line).as_bytes())
}

/// Builds the summary from the header. If the header names neither decisions nor open tasks, takes those that the
/// messages name.
fn build_summary(header: &SessionHeader, messages: &dyn MessageList) -> io::Result<SummaryBlock> {
    let set = &header.working_set;
    let mut summary = SummaryBlock::new(header.summary.as_deref(), set);
    if summary.decisions.is_empty() && summary.pending.is_empty() {
        let newest = messages.newest(MAX_SCANNED_MESSAGES)?;
        let found = collect_findings(&newest, set, MAX_FINDINGS);
        let said = SummaryBlock::new(
            None,
            &chorus_proto::WorkingSet {
                decisions: found.decisions,
                open_tasks: found.open_tasks,
                ..chorus_proto::WorkingSet::default()
            },
        );
        (summary.decisions, summary.pending) = (said.decisions, said.pending);
    }
    Ok(summary)
}
