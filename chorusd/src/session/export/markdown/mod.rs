//! A session as Markdown: a head, a section for each query, and the summary that a fresh conversation can go on from.

mod besides;
mod facts;
mod talk;

use std::io::{self, Write};

use super::Parent;
use crate::message::Stored;
use crate::session::SessionFile;
use crate::session::markdown::Summary;
use crate::summary::findings;
use talk::Talk;

/// The newest messages that are looked at for decisions and tasks.
const NEWEST: usize = 2000;

/// Decisions and tasks that are taken from them, of each.
const FOUND: usize = 10;

/// Writes a session; `parent` is the one it goes on from, where that is known.
///
/// # Errors
/// What the writer says.
pub fn write(out: &mut impl Write, file: &SessionFile, parent: Option<&Parent>) -> io::Result<()> {
    facts::write(out, &file.header, parent)?;
    let mut talk = Talk::new(out, &file.header, parent);
    for message in &file.messages {
        talk.message(&message.to_message()?)?;
    }
    let written = talk.end()?;
    let summary = summary(file);
    if summary.is_empty() {
        return Ok(());
    }
    if written {
        out.write_all(b"---\n\n")?;
    }
    out.write_all(summary.block().as_bytes())
}

/// What the session says of itself; where it names neither decisions nor tasks, those that its messages name.
fn summary(file: &SessionFile) -> Summary {
    let set = &file.header.working_set;
    let mut summary = Summary::of(file.header.summary.as_deref(), set);
    if summary.decisions.is_empty() && summary.pending.is_empty() {
        let newest = &file.messages[file.messages.len().saturating_sub(NEWEST)..];
        let found = findings(newest.iter().filter_map(|message: &Stored| message.to_message().ok()), set, FOUND);
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
    summary
}
