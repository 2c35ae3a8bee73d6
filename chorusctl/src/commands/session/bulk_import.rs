//! Imports many files: reports each cause of a failure once, and the totals at the end.

use std::path::Path;

use chorus_proto::error::exit;
use chorus_proto::methods::daemon::{Hello, HelloParams};
use chorus_proto::methods::import::{CommitResult, ImportFormat};

use super::import::{self, ImportOptions};
use super::import_totals::ImportTotals;
use super::imported_files::{FileState, ImportedFiles};
use super::transcripts;
use crate::app::{App, parse_result};
use crate::error::Error;
use crate::print_pages;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;

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

/// Returns the record of the files that were imported into the home of the daemon.
pub(super) fn imported_files(app: &mut App) -> Result<ImportedFiles, Error> {
    let home = app.call::<Hello>(&HelloParams::default())?.home;
    Ok(ImportedFiles::open(Path::new(&home)))
}

/// Imports `files`. Those of a directory that have not changed since their import are not read, unless the user named an
/// agent.
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
    let options = ImportOptions { from, redact, skip_known: is_search, as_capture: false, has_progress_bar: false };
    let mut files: Vec<&String> = files.iter().collect();
    if is_search {
        // The newest comes last, so that it is the first in the history. Subagents of Cursor come after the conversations that they belong
        // to: its transcripts do not say when they began.
        files.sort_by_cached_key(|file| (transcripts::is_cursor_subagent(file), transcripts::began_at(file)));
    }
    let mut imported = imported_files(app)?;
    let mut progress = ProgressBar::new("import".to_owned(), &["importing"], !app.global.quiet);
    let mut totals = ImportTotals::default();
    match choice {
        FileChoice::Found { known } => totals.count_unchanged(known),
        FileChoice::Below if app.named_agent().is_none() => files.retain(|file| match imported.conversations(file) {
            Some(conversations) => {
                totals.count_unchanged(conversations);
                false
            }
            None => true,
        }),
        FileChoice::Below | FileChoice::Named => {}
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
    totals.exit()
}
