//! The lines between the marks of the summary.

use chorus_proto::SummarySource;

use super::super::sink::ImportedMetadata;
use crate::session::markdown::{SUMMARY_END, SummaryBlock};

/// Bytes of it that are read: far more than anybody goes on from.
const MAX_SUMMARY_BYTES: usize = 1 << 20;

/// The block, line by line.
#[derive(Debug)]
pub(super) struct SummaryReader {
    /// Line of its beginning.
    number: u64,
    lines: Vec<String>,
    size: usize,
}

impl SummaryReader {
    pub fn new(number: u64) -> Self {
        Self { number, lines: Vec::new(), size: 0 }
    }

    /// Takes the next line; whether more may follow.
    pub fn read_line(&mut self, line: &str) -> bool {
        if line.trim() == SUMMARY_END {
            return false;
        }
        self.size += line.len() + 1;
        if self.size <= MAX_SUMMARY_BYTES {
            self.lines.push(line.to_owned());
        }
        true
    }

    /// What is wrong with it, and on which line; `ended`: its end was there.
    pub fn skipped_reason(&self, ended: bool) -> Option<(u64, &'static str)> {
        if !ended {
            return Some((self.number, "the summary has no end; it is read up to the next message"));
        }
        (self.size > MAX_SUMMARY_BYTES)
            .then_some((self.number, "the summary is longer than 1 MiB; the rest of it is left out"))
    }

    /// Puts what it says into `about`.
    pub fn finish(self, about: &mut ImportedMetadata) {
        let summary = SummaryBlock::parse(self.lines.iter().map(String::as_str));
        if summary.is_empty() {
            return;
        }
        about.summary = summary.to_text();
        about.summary_source = Some(SummarySource::Given);
        about.working_set = Some(summary.working_set());
    }
}
