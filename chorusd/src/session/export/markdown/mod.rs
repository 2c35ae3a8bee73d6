//! A session as Markdown: a head, a section for each query, and the summary that a fresh conversation can go on from.

mod front_matter;
mod messages;
mod metadata;

use std::io::{self, Write};

use chorus_proto::SessionHeader;

use super::{Export, ParentSession};
use crate::message::StoredMessage;
use crate::session::markdown::SummaryBlock;
use crate::summary::collect_findings;
pub use messages::SectionWriter;

/// The newest messages that are looked at for decisions and tasks.
const MAX_SCANNED_MESSAGES: u64 = 2000;

/// Decisions and tasks that are taken from them, of each.
const MAX_FINDINGS: usize = 10;

/// Writes what stands before the messages.
pub(super) fn write_start(
    out: &mut impl Write,
    header: &SessionHeader,
    parent: Option<&ParentSession>,
) -> io::Result<()> {
    front_matter::write(out, header, parent)
}

/// Writes what stands behind them; `newest` gives the last ones.
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

/// What the session says of itself; where it names neither decisions nor tasks, those that its messages name.
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
