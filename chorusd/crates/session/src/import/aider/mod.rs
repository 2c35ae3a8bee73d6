//! Imports `.aider.chat.history.md`, to which aider appends every run in a directory. Each run becomes a session.

mod notice;
mod run;

use std::collections::HashMap;
use std::io::{self, BufRead};

use super::error::ImportError;
use super::line_reader::{LINE_TOO_LONG, LineReader};
use super::writer::SessionWriter;
use run::Run;

const PROGRAM: &str = "aider";

/// The beginning of the line with which a run begins. The local time follows.
const RUN_START: &str = "# aider chat started at ";

/// Returns whether the first line that is not blank begins a run.
pub(super) fn is_history(source: &mut impl BufRead) -> io::Result<bool> {
    let mut lines = LineReader::new(source);
    let line = lines.next()?;
    Ok(line.and_then(|line| line.bytes).is_some_and(|bytes| bytes.starts_with(RUN_START.as_bytes())))
}

/// Imports all runs.
pub(super) fn import(source: &mut impl BufRead, writer: &mut SessionWriter<'_>) -> Result<(), ImportError> {
    let mut lines = LineReader::new(source);
    let mut run: Option<Run> = None;
    let mut starts = HashMap::new();
    while let Some(line) = lines.next()? {
        writer.sink.report_progress(line.offset);
        let text = match line.bytes.ok_or(LINE_TOO_LONG).map(String::from_utf8_lossy) {
            Ok(text) => text,
            Err(reason) => {
                writer.skip(line.number, reason);
                continue;
            }
        };
        if let Some(started) = text.strip_prefix(RUN_START).and_then(|time| time.trim().parse().ok()) {
            if let Some(run) = run.replace(Run::new(started, line.number)) {
                run.finish(&mut starts, writer)?;
            }
        } else if let Some(run) = &mut run {
            run.add_line(line.number, &text, writer)?;
        }
    }
    if let Some(run) = run {
        run.finish(&mut starts, writer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
