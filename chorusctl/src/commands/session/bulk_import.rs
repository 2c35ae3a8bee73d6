//! Imports many files: reports each cause of a failure once, and the totals at the end.

use std::collections::HashSet;
use std::path::Path;

use chorus_proto::error::exit;
use chorus_proto::methods::Method as _;
use chorus_proto::methods::agent::{List, ListParams};
use chorus_proto::methods::context::{History, HistoryParams, HistoryResult};
use chorus_proto::methods::daemon::{Hello, HelloParams};
use chorus_proto::methods::import::{CommitResult, ImportFormat};
use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::file_import::{self, ImportOptions};
use super::import;
use super::import_totals::ImportTotals;
use super::imported_files::{FileLookup, FileState, ImportedFiles};
use super::transcripts;
use crate::app::{App, parse_result};
use crate::error::Error;
use crate::print_pages;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;

/// More files than this are not reported one by one.
pub(super) const MIN_FILES: usize = 20;

/// Sessions per request.
const SESSIONS_PER_REQUEST: u64 = 1_000;

/// A session of the history.
#[derive(Debug, Deserialize)]
struct SessionId {
    id: Uuid,
    agent_id: Uuid,
}

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
    if app.is_remote() {
        return Ok(ImportedFiles::none());
    }
    let home = app.call::<Hello>(&HelloParams::default())?.home;
    Ok(ImportedFiles::open(Path::new(&home)))
}

/// Returns the ids of all sessions that there are; none if the record names none.
pub(super) fn kept_sessions(app: &mut App, imported: &ImportedFiles) -> Result<HashSet<Uuid>, Error> {
    let (mut kept, mut page) = (HashSet::new(), 1);
    if !imported.names_sessions() {
        return Ok(kept);
    }
    // The history also has the sessions of agents that were destroyed.
    let agents = app.call::<List>(&ListParams::default())?.agents;
    let agents: HashSet<Uuid> = agents.iter().map(|agent| agent.id).collect();
    loop {
        let limit = Some(SESSIONS_PER_REQUEST);
        let params =
            HistoryParams { all_agents: true, page: Some(page), limit, keep_numbers: true, ..HistoryParams::default() };
        let raw = app.client()?.call_raw(History::NAME, &params, &mut |_| {})?;
        let result: HistoryResult<SessionId> = parse_result(&raw)?;
        let present = result.sessions.iter().filter(|session| agents.contains(&session.agent_id));
        kept.extend(present.map(|session| session.id));
        if result.page >= result.pages {
            return Ok(kept);
        }
        page += 1;
    }
}

/// Imports a file.
///
/// # Errors
/// If nothing in it can be read, which is no error for capture; as [`file_import::import_file`].
fn import_readable(app: &mut App, file: &str, options: ImportOptions) -> Result<(Box<RawValue>, CommitResult), Error> {
    let raw = file_import::import_file(app, file, options)?;
    let result: CommitResult = parse_result(&raw)?;
    if result.sessions.is_empty() && result.known.is_none() && result.left_out.is_none() {
        let failure = Error::usage(format!("cannot import {file}: the file has no readable messages"));
        let reason = result.skipped.first().map(|skipped| format!("line {}: {}. ", skipped.line, skipped.reason));
        let reason = reason.unwrap_or_default();
        return Err(failure.with_hint(format!("{reason}if the detected format is wrong, set it with --from")));
    }
    Ok((raw, result))
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
    // Only a file that the user names brings back what was deleted.
    let options = ImportOptions { from, redact, skip_known: is_search, as_capture: is_search, has_progress_bar: false };
    let mut files: Vec<&String> = files.iter().collect();
    if is_search {
        // The newest comes last, so that it is the first in the history. Subagents of Cursor come after the conversations that they belong
        // to: its transcripts do not say when they began.
        files.sort_by_cached_key(|file| (transcripts::is_cursor_subagent(file), transcripts::began_at(file)));
    }
    let mut imported = imported_files(app)?;
    let mut progress = ProgressBar::new("import".to_owned(), &["importing"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, file_import::HOW_TO_CONTINUE));
    let mut totals = ImportTotals::default();
    match choice {
        FileChoice::Found { known } => totals.count_unchanged(known),
        FileChoice::Below if app.named_agent().is_none() => {
            let kept = kept_sessions(app, &imported)?;
            files.retain(|file| match imported.look_up(file, &kept) {
                FileLookup::Kept { conversations } => {
                    totals.count_unchanged(conversations);
                    false
                }
                FileLookup::New | FileLookup::NotKept => true,
            });
        }
        FileChoice::Below | FileChoice::Named => {}
    }
    let mut results = Vec::new();
    for (done, file) in files.iter().copied().enumerate() {
        progress.update(done as u64, files.len() as u64, "files");
        let state = FileState::of(Path::new(file));
        match import_readable(app, file, options) {
            Ok((raw, result)) => {
                imported.add(file, state, Some(&result));
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
                if file_import::is_unreadable(&failure) {
                    imported.add(file, state, None);
                }
                progress.suspend(|| totals.report_failure(app, file, failure));
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
