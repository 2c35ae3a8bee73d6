//! Imports many files: reports each cause of a failure once, and the totals at the end.

use std::collections::HashMap;
use std::path::Path;

use chorus_proto::error::exit;
use chorus_proto::methods::daemon::{Hello, HelloParams};
use chorus_proto::methods::import::{CommitResult, ImportFormat};

use super::import::{self, ImportOptions};
use super::imported_files::{FileState, ImportedFiles};
use super::transcripts;
use crate::app::{App, parse_result};
use crate::commands::format;
use crate::error::Error;
use crate::print_pages;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{group_digits, pluralize};

/// More files than this are not reported one by one.
pub(super) const MIN_FILES: usize = 20;

/// How the files of an import were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChoice {
    /// The user named each of them.
    Named,
    /// They are in a directory that the user named.
    Below,
    /// They are transcripts on this machine; others, with this many conversations, have not changed since their import.
    Found { known: u64 },
}

/// The counts of an import.
#[derive(Debug, Default)]
struct Totals {
    files: u64,
    conversations: u64,
    messages: u64,
    known: u64,
    skipped_lines: u64,
    secrets: u64,
    failed: u64,
    first_failure: Option<u8>,
    /// The short id of the last conversation.
    last_id: String,
    /// How many files failed for each reason.
    causes: HashMap<String, u64>,
}

/// Returns the record of the files that were imported into the home of the daemon.
pub(super) fn imported_files(app: &mut App) -> Result<ImportedFiles, Error> {
    let home = app.call::<Hello>(&HelloParams::default())?.home;
    Ok(ImportedFiles::open(Path::new(&home)))
}

/// Imports `files`. Leaves out conversations that were imported before, unless the user named the files or the agent.
///
/// # Errors
/// The exit status of the first file that failed; at once if the daemon cannot be reached.
pub(super) fn run(
    app: &mut App,
    files: &[String],
    (from, redact): (ImportFormat, bool),
    choice: FileChoice,
) -> Result<(), Error> {
    let is_search = choice != FileChoice::Named;
    let options =
        ImportOptions { from, redact, skip_known: is_search && app.named_agent().is_none(), has_progress_bar: false };
    let mut files: Vec<&String> = files.iter().collect();
    if is_search {
        // The newest comes last, so that it is the first in the history.
        files.sort_by_cached_key(|file| transcripts::began_at(file));
    }
    let mut imported = imported_files(app)?;
    let mut progress = ProgressBar::new("import".to_owned(), &["importing"], !app.global.quiet);
    let mut totals = Totals::default();
    if let FileChoice::Found { known } = choice {
        totals.known = known;
    }
    let mut results = Vec::new();
    for (done, file) in files.iter().copied().enumerate() {
        progress.update(done as u64, files.len() as u64, "files");
        let state = FileState::of(Path::new(file));
        match import::import_file(app, file, options) {
            Ok(raw) => {
                let result: CommitResult = parse_result(&raw)?;
                imported.add(file, state, Some(result.sessions.len() as u64 + result.known.unwrap_or(0)));
                totals.add(&result);
                match app.stdout.format() {
                    OutputFormat::Json => results.push((file, raw)),
                    OutputFormat::Jsonl => print_pages::print_entries(&mut app.stdout, &raw, "sessions")?,
                    OutputFormat::Text => {}
                }
            }
            Err(failure) if failure.exit_status() == exit::NO_DAEMON || failure.is_stdout_closed() => {
                return Err(failure);
            }
            Err(failure) => {
                if import::is_unreadable(&failure) {
                    imported.add(file, state, None);
                }
                progress.clear();
                totals.report_failure(app, file, failure);
            }
        }
    }
    progress.finish();
    if app.stdout.format() == OutputFormat::Json {
        import::print_combined_json(app, &results)?;
    }
    totals.print(app, redact)?;
    totals.first_failure.map_or(Ok(()), |status| Err(Error::reported(status)))
}

impl Totals {
    fn add(&mut self, result: &CommitResult) {
        self.files += 1;
        self.conversations += result.sessions.len() as u64;
        self.messages += result.sessions.iter().map(|session| session.header.message_count).sum::<u64>();
        self.known += result.known.unwrap_or(0);
        if let Some(session) = result.sessions.last() {
            self.last_id.clone_from(&session.short_id);
        }
        self.skipped_lines += result.skipped_total;
        self.secrets += result.secrets_found.unwrap_or(0);
    }

    /// Prints a failure, unless another file failed for the same reason.
    fn report_failure(&mut self, app: &App, file: &str, failure: Error) {
        self.failed += 1;
        self.first_failure.get_or_insert(failure.exit_status());
        let cause = failure.message().replace(file, "FILE");
        let count = self.causes.entry(cause).or_default();
        *count += 1;
        if *count == 1 {
            failure.with_context(file).print(app.stderr);
        }
    }

    fn print(&self, app: &mut App, redact: bool) -> Result<(), Error> {
        for (cause, count) in self.causes.iter().filter(|(_, count)| **count > 1) {
            let more = pluralize(count - 1, "other file");
            app.stderr.line(&format!("same error for {more}: {}", sanitize::one_line(cause)));
        }
        let conversations = pluralize(self.conversations, "conversation");
        let messages = match self.messages {
            1 => "1 message".to_owned(),
            count => format!("{} messages", group_digits(count)),
        };
        let files = pluralize(self.files, "file");
        let mut line = format!("imported {conversations} ({messages}) from {files}");
        let counts = [
            (self.known, "already imported", ""),
            (self.failed, "files failed", "file failed"),
            (self.skipped_lines, "lines skipped", "line skipped"),
        ];
        for (count, many, one) in counts {
            if count > 0 {
                let what = if count == 1 && !one.is_empty() { one } else { many };
                line.push_str(&format!("; {} {what}", group_digits(count)));
            }
        }
        if self.conversations == 0 && self.known > 0 && self.failed == 0 {
            line = format!("{} already imported; nothing new", pluralize(self.known, "conversation"));
        }
        if app.stdout.format() == OutputFormat::Text {
            app.stdout.status_line(&line)?;
            app.stdout.flush()?;
        }
        if self.secrets > 0 && !redact {
            app.stderr.warning(&format::found_secrets(self.secrets));
            app.stderr
                .hint("use --redact to remove secrets; `chorusctl session purge` deletes a conversation permanently");
        }
        import::print_next_step(app, self.conversations, self.known, &self.last_id);
        Ok(())
    }
}
