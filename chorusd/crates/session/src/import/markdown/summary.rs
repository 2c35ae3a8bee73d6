//! Reads the lines between the markers of the summary.

use chorus_proto::SummarySource;

use super::super::sink::ImportedMetadata;
use crate::markdown::{SUMMARY_END, SummaryBlock};

/// Bytes of the summary that are read, far more than any useful summary has.
const MAX_SUMMARY_BYTES: usize = 1 << 20;

/// The lines of the block so far.
#[derive(Debug)]
pub(super) struct SummaryReader {
    /// Number of its first line.
    number: u64,
    lines: Vec<String>,
    size: usize,
}

impl SummaryReader {
    pub(super) fn new(number: u64) -> Self {
        Self { number, lines: Vec::new(), size: 0 }
    }

    /// Reads the next line. Returns whether more may follow.
    pub(super) fn read_line(&mut self, line: &str) -> bool {
        if line.trim() == SUMMARY_END {
            return false;
        }
        self.size += line.len() + 1;
        if self.size <= MAX_SUMMARY_BYTES {
            self.lines.push(line.to_owned());
        }
        true
    }

    /// Returns a problem and its line. `ended` is true if the end marker was found.
    pub(super) fn skipped_reason(&self, ended: bool) -> Option<(u64, &'static str)> {
        if !ended {
            return Some((self.number, "the summary has no end marker; read up to the next message"));
        }
        (self.size > MAX_SUMMARY_BYTES)
            .then_some((self.number, "the summary is longer than 1 MiB; the rest was skipped"))
    }

    /// Copies the contents to `about`.
    pub(super) fn finish(self, about: &mut ImportedMetadata) {
        let summary = SummaryBlock::parse(self.lines.iter().map(String::as_str));
        if summary.is_empty() {
            return;
        }
        about.summary = summary.to_text();
        about.summary_source = Some(SummarySource::Given);
        about.working_set = Some(summary.working_set());
    }
}
