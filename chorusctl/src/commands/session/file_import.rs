//! Imports one file: uploads it, or each conversation of a database, and commits the import.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use chorus_proto::error::exit;
use chorus_proto::methods::Method;
use chorus_proto::methods::import::{Add, Begin, BeginParams, Commit, CommitParams, CommitResult, ImportFormat};
use chorus_tool_files::{ConversationInfo, read_info};
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::import_chunks::ImportChunks;
use super::transcript_source::open_source;
use super::{databases, task_files};
use crate::app::{App, parse_result};
use crate::connect;
use crate::error::{Error, os_error_text};
use crate::reconnect::RETRY_LIMIT;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::sanitize;

/// Said if an import is interrupted: each file is imported whole or not at all, and what is imported is found again.
pub const HOW_TO_CONTINUE: &str = "run the same command again; nothing is imported twice";

/// Attempts to import a file in whose middle the connection is lost.
const MAX_RECONNECTIONS: usize = 2;

/// Time between two attempts to connect.
const DAEMON_POLL: Duration = Duration::from_millis(100);

/// How a file is imported.
#[derive(Debug, Clone, Copy)]
pub struct ImportOptions {
    pub from: ImportFormat,
    pub redact: bool,
    /// Leave out conversations that were imported before.
    pub skip_known: bool,
    /// Leave out what was deleted here, or is excluded from capture.
    pub as_capture: bool,
    pub has_progress_bar: bool,
}

/// Returns true if the failure means that nothing in the file can be imported.
pub fn is_unreadable(failure: &Error) -> bool {
    failure.exit_status() == exit::USAGE
}

/// Imports a file as [`import_file_once`]. If the connection to the daemon is lost in the middle, connects again as soon as it is back, and
/// sends the file again: what it has of it already is not imported twice.
pub fn import_file(app: &mut App, file: &str, options: ImportOptions) -> Result<Box<RawValue>, Error> {
    let mut failure = match import_file_once(app, file, options) {
        Err(failure) if failure.is_connection_lost() => failure,
        result => return result,
    };
    // Standard input cannot be read again.
    let attempts = if file == "-" || app.is_remote() { 0 } else { MAX_RECONNECTIONS };
    for _ in 0..attempts {
        app.disconnect();
        if !app.global.quiet {
            app.stderr.line("lost the connection to the daemon; trying again (start it: chorusctl daemon start)");
        }
        if !wait_for_daemon(app)? {
            break;
        }
        match import_file_once(app, file, options) {
            Err(again) if again.is_connection_lost() => failure = again,
            result => return result,
        }
    }
    Err(failure.with_hint(HOW_TO_CONTINUE))
}

/// Waits until the daemon is back, and starts none: somebody may have stopped it. Returns false if it stays away.
fn wait_for_daemon(app: &mut App) -> Result<bool, Error> {
    let deadline = Instant::now() + RETRY_LIMIT;
    loop {
        if let Some(client) = connect::connect_if_running(app.paths()?, &app.global)? {
            app.set_client(client);
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        std::thread::sleep(DAEMON_POLL);
    }
}

/// Uploads a file, or each conversation of a database, and commits the import. Returns the unparsed result.
pub fn import_file_once(app: &mut App, file: &str, options: ImportOptions) -> Result<Box<RawValue>, Error> {
    if databases::is_database(file) {
        return import_database(app, file, options);
    }
    let is_task = matches!(options.from, ImportFormat::Auto | ImportFormat::Cline) && file != "-";
    let task = if is_task { task_files::open(file).map_err(|error| Error::for_file(file, &error))? } else { None };
    let opened = match task {
        Some(document) => (document, 0),
        None => open_source(file)?,
    };
    upload(app, file, opened, options)
}

/// Imports the conversations of a database one by one. Those without messages are left out.
fn import_database(app: &mut App, file: &str, options: ImportOptions) -> Result<Box<RawValue>, Error> {
    let conversations = databases::list(file)?;
    let mut progress = ProgressBar::new(
        sanitize::one_line(file.rsplit('/').next().unwrap_or(file)),
        &["importing"],
        options.has_progress_bar && !app.global.quiet,
    )
    .with_interruption(Interruption::explain(app.stderr, HOW_TO_CONTINUE));
    let options = ImportOptions { has_progress_bar: false, ..options };
    let mut all: Option<CommitResult> = None;
    let mut first_failure = None;
    for (done, conversation) in conversations.iter().enumerate() {
        progress.update(done as u64, conversations.len() as u64, "conversations");
        let source = databases::open(file, &conversation.id)?;
        match upload(app, file, (Box::new(source), 0), options) {
            Ok(raw) => {
                let result: CommitResult = parse_result(&raw)?;
                match &mut all {
                    Some(all) => add_result(all, result),
                    None => all = Some(result),
                }
            }
            Err(failure) if is_unreadable(&failure) => {
                first_failure.get_or_insert(failure);
            }
            Err(failure) => return Err(failure),
        }
    }
    progress.finish();
    match (all, first_failure) {
        (Some(all), _) => serde_json::value::to_raw_value(&all).map_err(|error| Error::failed(error.to_string())),
        (None, Some(failure)) => Err(failure),
        (None, None) => Err(Error::usage(format!("{file} has no conversations"))),
    }
}

/// Adds the result of another conversation of the same file.
fn add_result(all: &mut CommitResult, more: CommitResult) {
    let sum = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).reduce(|a, b| a + b);
    all.sessions.extend(more.sessions);
    all.conversations.extend(more.conversations);
    all.skipped.extend(more.skipped);
    all.skipped_total += more.skipped_total;
    all.lines_left_out = all.lines_left_out.into_iter().chain(more.lines_left_out).reduce(|a, b| a + b);
    all.secrets_found = sum(all.secrets_found, more.secrets_found);
    all.known = sum(all.known, more.known);
    all.known_sessions.extend(more.known_sessions);
    all.left_out = sum(all.left_out, more.left_out);
    all.warning = all.warning.take().or(more.warning);
}

/// Uploads a source and commits the import.
fn upload(
    app: &mut App,
    file: &str,
    (source, size): (Box<dyn Read>, u64),
    options: ImportOptions,
) -> Result<Box<RawValue>, Error> {
    let ImportOptions { from, redact, skip_known, as_capture, has_progress_bar } = options;
    let name = (file != "-").then(|| file.to_owned());
    let agent = app.named_agent();
    // Each conversation of a database says what it is.
    let is_transcript = name.is_some() && !databases::is_database(file);
    let ConversationInfo { project, title } =
        if is_transcript { read_info(Path::new(file)) } else { Default::default() };
    let written_at = if is_transcript { written_at(file) } else { None };
    let import = app.call::<Begin>(&BeginParams { agent, from, file: name, project, title, written_at })?.import;
    let label = if file == "-" { "standard input" } else { file.rsplit('/').next().unwrap_or(file) };
    let mut progress =
        ProgressBar::new(sanitize::one_line(label), &["sending", "reading"], has_progress_bar && !app.global.quiet);
    if has_progress_bar {
        progress = progress.with_interruption(Interruption::explain(app.stderr, HOW_TO_CONTINUE));
    }
    let mut chunks = ImportChunks::new(import, source);
    let mut sent = 0;
    while let Some((chunk, length)) =
        chunks.next_chunk().map_err(|error| Error::failed(format!("failed to read: {}", os_error_text(&error))))?
    {
        app.call::<Add>(&chunk)?;
        sent += length;
        progress.update(sent, size, "bytes");
    }
    progress.next_phase();
    let commit = CommitParams { import, redact, skip_known, as_capture };
    let result = app.client()?.call_raw(Commit::NAME, &commit, &mut |at| progress.update(at.done, at.total, &at.unit));
    progress.finish();
    Ok(result?)
}

/// Returns when a file was last written.
fn written_at(file: &str) -> Option<Timestamp> {
    Timestamp::try_from(std::fs::metadata(file).ok()?.modified().ok()?).ok()
}
