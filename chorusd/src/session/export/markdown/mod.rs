//! A session as Markdown: a head, a section for each query, and the summary that a fresh conversation can go on from.

mod besides;
mod facts;
mod talk;

use std::io::{self, Write};

use chorus_proto::SessionHeader;

use super::{Parent, Text};
use crate::message::Stored;
use crate::session::markdown::Summary;
use crate::summary::findings;
pub use talk::Talk;

/// The newest messages that are looked at for decisions and tasks.
const NEWEST: u64 = 2000;

/// Decisions and tasks that are taken from them, of each.
const FOUND: usize = 10;

/// Writes what stands before the messages.
pub(super) fn begin(out: &mut impl Write, header: &SessionHeader, parent: Option<&Parent>) -> io::Result<()> {
    facts::write(out, header, parent)
}

/// Writes what stands behind them; `newest` gives the last ones.
pub(super) fn end(
    out: &mut impl Write,
    text: &Text<'_>,
    talk: Talk,
    newest: impl FnOnce(u64) -> io::Result<Vec<Stored>>,
) -> io::Result<()> {
    let written = talk.end(out, text.header)?;
    let summary = summary(text.header, newest)?;
    if summary.is_empty() {
        return Ok(());
    }
    if written {
        out.write_all(b"---\n\n")?;
    }
    out.write_all(summary.block().as_bytes())
}

/// What the session says of itself; where it names neither decisions nor tasks, those that its messages name.
fn summary(header: &SessionHeader, newest: impl FnOnce(u64) -> io::Result<Vec<Stored>>) -> io::Result<Summary> {
    let set = &header.working_set;
    let mut summary = Summary::of(header.summary.as_deref(), set);
    if summary.decisions.is_empty() && summary.pending.is_empty() {
        let newest = newest(NEWEST)?;
        let found = findings(&newest, set, FOUND);
        let said = Summary::of(
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
