//! The counts of an import, and the line that sums it up.

use std::collections::HashMap;

use chorus_proto::methods::import::{CommitResult, ImportOutcome};

use crate::app::App;
use crate::commands::format;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{count_messages, group_digits, pluralize};

/// The counts of an import.
#[derive(Debug, Default)]
pub(super) struct ImportTotals {
    /// Files that were read.
    files: u64,
    new: u64,
    grown: u64,
    revisions: u64,
    up_to_date: u64,
    /// Conversations that were forgotten or excluded.
    left_out: u64,
    /// Messages of the new conversations.
    messages: u64,
    /// Messages that were added to others.
    added: u64,
    skipped_lines: u64,
    secrets: u64,
    failed: u64,
    first_failure: Option<u8>,
    /// The short id of the last conversation that is new or has changed.
    last_id: String,
    /// How many files failed for each reason.
    causes: HashMap<String, u64>,
}

impl ImportTotals {
    /// Counts the conversations of files that are not read because they have not changed.
    pub(super) fn count_unchanged(&mut self, conversations: u64) {
        self.up_to_date += conversations;
    }

    /// Counts the result of one file.
    pub(super) fn add(&mut self, result: &CommitResult) {
        self.files += 1;
        for (session, imported) in result.imported() {
            match imported.outcome {
                ImportOutcome::New => self.new += 1,
                ImportOutcome::Grown => self.grown += 1,
                ImportOutcome::Revision => self.revisions += 1,
                ImportOutcome::UpToDate => self.up_to_date += 1,
            }
            match imported.outcome {
                ImportOutcome::Grown => self.added += imported.added,
                _ => self.messages += imported.added,
            }
            if imported.outcome != ImportOutcome::UpToDate || self.last_id.is_empty() {
                self.last_id.clone_from(&session.short_id);
            }
        }
        self.up_to_date += result.known.unwrap_or(0);
        self.left_out += result.left_out.unwrap_or(0);
        self.skipped_lines += result.skipped_total - result.lines_left_out.unwrap_or(0);
        self.secrets += result.secrets_found.unwrap_or(0);
    }

    /// Counts a file that could not be imported.
    pub(super) fn count_failure(&mut self, status: u8) {
        self.failed += 1;
        self.first_failure.get_or_insert(status);
    }

    /// Prints a failure, unless another file failed for the same reason.
    pub(super) fn report_failure(&mut self, app: &App, file: &str, failure: Error) {
        self.count_failure(failure.exit_status());
        let cause = failure.message().replace(file, "FILE");
        let count = self.causes.entry(cause).or_default();
        *count += 1;
        if *count == 1 {
            failure.with_context(file).print(app.stderr);
        }
    }

    /// Returns the exit status of the first file that failed.
    pub(super) fn exit(&self) -> Result<(), Error> {
        self.first_failure.map_or(Ok(()), |status| Err(Error::reported(status)))
    }

    /// Prints what was imported and what to do next.
    pub(super) fn print(&self, app: &mut App, redact: bool) -> Result<(), Error> {
        for (cause, count) in self.causes.iter().filter(|(_, count)| **count > 1) {
            let more = pluralize(count - 1, "other file");
            app.stderr.line(&format!("same error for {more}: {}", sanitize::one_line(cause)));
        }
        if app.stdout.format() == OutputFormat::Text {
            app.stdout.status_line(&self.line())?;
            app.stdout.flush()?;
        }
        if self.secrets > 0 && redact {
            app.stderr.line(&format!("redacted {}", pluralize(self.secrets, "secret")));
        } else if self.secrets > 0 {
            app.stderr.warning(&format::found_secrets(self.secrets));
            app.stderr
                .hint("--redact removes them during an import; `chorusctl session scrub` from a saved conversation");
        }
        self.print_next_step(app);
        Ok(())
    }

    /// Returns `imported 3 conversations (40 messages) from 4 files; 1 with 2 new messages; 5 up to date`.
    fn line(&self) -> String {
        let saved = self.new + self.revisions;
        let files = pluralize(self.files, "file");
        let mut line = match (saved, self.grown, self.up_to_date, self.failed) {
            (0, 0, 1.., 0) => {
                let rest = self.left_out_part() + &self.skipped_line();
                return format!("{} up to date{rest}", pluralize(self.up_to_date, "conversation"));
            }
            (0, 1.., ..) => {
                format!(
                    "added {} to {} from {files}",
                    count_messages(self.added),
                    pluralize(self.grown, "conversation")
                )
            }
            _ => format!(
                "imported {} ({}) from {files}",
                pluralize(saved, "conversation"),
                count_messages(self.messages)
            ),
        };
        if saved > 0 && self.grown > 0 {
            line.push_str(&format!("; {} added to {}", count_messages(self.added), pluralize(self.grown, "other")));
        }
        if self.revisions > 0 {
            line.push_str(&format!("; {}", pluralize(self.revisions, "new revision")));
        }
        if self.up_to_date > 0 {
            line.push_str(&format!("; {} up to date", group_digits(self.up_to_date)));
        }
        line.push_str(&self.left_out_part());
        if self.failed > 0 {
            line.push_str(&format!("; {} failed", pluralize(self.failed, "file")));
        }
        line + &self.skipped_line()
    }

    fn left_out_part(&self) -> String {
        match self.left_out {
            0 => String::new(),
            count => format!("; {} left out: forgotten or excluded", group_digits(count)),
        }
    }

    fn skipped_line(&self) -> String {
        match self.skipped_lines {
            0 => String::new(),
            count => format!("; {} skipped", pluralize(count, "line")),
        }
    }

    fn print_next_step(&self, app: &App) {
        if app.stdout.format() != OutputFormat::Text || app.global.quiet {
            return;
        }
        match self.new + self.revisions + self.grown {
            0 if self.left_out > 0 => {
                app.stderr.hint("name its file to import one that was forgotten: chorusctl import FILE");
            }
            0 if self.up_to_date == 0 => {}
            0 | 1 if !self.last_id.is_empty() => {
                app.stderr.hint(&format!("continue it: chorusctl restore {}", sanitize::one_line(&self.last_id)));
            }
            _ => app.stderr.hint("find one: chorusctl history WORD; continue it: chorusctl restore ID"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ImportTotals;

    #[test]
    fn one_line_says_what_an_import_did() {
        let none = ImportTotals { files: 2, ..ImportTotals::default() };
        assert_eq!(none.line(), "imported 0 conversations (0 messages) from 2 files");
        let new = ImportTotals { new: 3, messages: 1234, skipped_lines: 1, ..none };
        assert_eq!(new.line(), "imported 3 conversations (1,234 messages) from 2 files; 1 line skipped");
        let all = ImportTotals { grown: 2, added: 1, revisions: 1, up_to_date: 4, failed: 1, ..new };
        assert_eq!(
            all.line(),
            "imported 4 conversations (1,234 messages) from 2 files; 1 message added to 2 others; 1 new revision; \
             4 up to date; 1 file failed; 1 line skipped"
        );
        let grown = ImportTotals { files: 1, grown: 1, added: 2, ..ImportTotals::default() };
        assert_eq!(grown.line(), "added 2 messages to 1 conversation from 1 file");
        let known = ImportTotals { files: 1, up_to_date: 1, ..ImportTotals::default() };
        assert_eq!(known.line(), "1 conversation up to date");
        let left_out = ImportTotals { left_out: 2, ..known };
        assert_eq!(left_out.line(), "1 conversation up to date; 2 left out: forgotten or excluded");
    }
}
