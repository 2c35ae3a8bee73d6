//! Exports a session as Markdown: a header, a section for each query, and the summary from which a new conversation can
//! continue.

mod header;
mod messages;
mod metadata;

use std::io::{self, Write};

use chorus_proto::SessionHeader;

use super::{Export, ParentSession};
use crate::markdown::SummaryBlock;
use crate::stored_message::StoredMessage;
use crate::summary::collect_findings;
pub(crate) use messages::SectionWriter;

/// Number of the newest messages that are searched for decisions and open tasks.
const MAX_SCANNED_MESSAGES: u64 = 2000;

/// Largest number of decisions and of open tasks that are taken from them.
const MAX_FINDINGS: usize = 10;

/// Writes everything before the messages.
pub(super) fn write_start(
    out: &mut impl Write,
    header: &SessionHeader,
    parent: Option<&ParentSession>,
) -> io::Result<()> {
    header::write(out, header, parent)
}

/// Writes everything after the messages. `newest` returns that many of the last messages.
pub(super) fn write_end(
    out: &mut impl Write,
    text: &Export<'_>,
    talk: SectionWriter,
    newest: impl FnOnce(u64) -> io::Result<Vec<StoredMessage>>,
) -> io::Result<()> {
    let written = talk.finish(out, text.header)?;
    let summary = build_summary(text.header, newest)?;
    if summary.is_empty() {
        return Ok(());
    }
    if written {
        out.write_all(b"---\n\n")?;
    }
    out.write_all(summary.render().as_bytes())
}

/// Builds the summary from the header. If the header names neither decisions nor open tasks, takes those that the
/// messages name.
fn build_summary(
    header: &SessionHeader,
    newest: impl FnOnce(u64) -> io::Result<Vec<StoredMessage>>,
) -> io::Result<SummaryBlock> {
    let set = &header.working_set;
    let mut summary = SummaryBlock::new(header.summary.as_deref(), set);
    if summary.decisions.is_empty() && summary.pending.is_empty() {
        let newest = newest(MAX_SCANNED_MESSAGES)?;
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
