//! `chorusctl session import`: imports conversations of other programs.

use std::io::Read;
use std::path::Path;

use chorus_proto::Session;
use chorus_proto::error::exit;
use chorus_proto::methods::Method;
use chorus_proto::methods::capture::{Status, StatusParams};
use chorus_proto::methods::import::{
    Add, Begin, BeginParams, Commit, CommitParams, CommitResult, ImportFormat, ImportOutcome, ImportedConversation,
    Skipped,
};
use chorus_tool_files::{ConversationInfo, read_info};
use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::bulk_import::{self, FileChoice};
use super::databases;
use super::import_chunks::ImportChunks;
use super::import_totals::ImportTotals;
use super::imported_files::{FileLookup, FileState};
use super::transcript_source::open_source;
use super::{task_files, transcripts};
use crate::app::{App, parse_result};
use crate::commands::{format, project};
use crate::error::{Error, os_error_text};
use crate::print_pages;
use crate::ui::confirm;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::{group_digits, pluralize};
use crate::ui::{Style, sanitize};

/// Maximum number of skipped lines that are printed one by one.
const MAX_SKIPPED_SHOWN: usize = 20;

/// Import conversations from other programs
///
/// Without FILE, finds the transcripts of Claude Code, Codex, Gemini CLI, opencode, GitHub Copilot CLI, pi, OpenClaw, Hermes, goose,
/// Cline, Roo Code, Kilo Code, Amp, VS Code and Cursor on this machine, and asks before it imports those that are new or changed since their import. A directory is searched for transcripts in the same way. Importing a conversation again adds what is new,
/// or says that it is up to date; if earlier messages have changed, it is saved as another session, a new revision. Unreadable lines
/// are skipped and reported; the import of a file succeeds if at least one message was read. Imported conversations belong to an agent
/// named after their program, unless you name one with --agent.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files or directories to import; `-` reads standard input [default: the transcripts on this machine]
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Format: auto (detect), chorus, claude-code, codex, gemini, opencode, copilot, pi, hermes, goose, chatgpt,
    /// claude-ai, librechat, open-webui, amp, aider, cline, gemini-apps, vscode-chat, cursor, openai, markdown
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", hide_possible_values = true)]
    from: SourceFormat,
    /// Redact secrets (default: keep and report them; while capture is on, redact in files that you do not name); a
    /// conversation that was imported before stays redacted or not
    #[arg(long, conflicts_with = "no_redact")]
    redact: bool,
    /// Keep secrets, also while capture is on
    #[arg(long)]
    no_redact: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum SourceFormat {
    /// Detect the format
    #[default]
    Auto,
    /// A Chorus session file
    Chorus,
    /// A Claude Code transcript
    ClaudeCode,
    /// OpenAI chat messages, as a JSON list or one per line
    Openai,
    /// A Codex rollout
    Codex,
    /// Markdown, as written by export
    Markdown,
    /// ChatGPT's export (conversations.json)
    Chatgpt,
    /// A goose session
    Goose,
    /// A chat of Gemini CLI
    Gemini,
    /// A conversation of opencode, as `opencode export` writes it
    Opencode,
    /// The events of a session of GitHub Copilot CLI
    Copilot,
    /// A session of pi or OpenClaw
    Pi,
    /// Sessions of Hermes, as `hermes sessions export` writes them
    Hermes,
    /// The export of claude.ai (conversations.json)
    ClaudeAi,
    /// A conversation that LibreChat exported (JSON)
    Librechat,
    /// Chats that Open WebUI exported (JSON)
    OpenWebui,
    /// A thread of Amp, as `amp threads export` writes it (JSON)
    Amp,
    /// The history of aider (`.aider.chat.history.md`)
    Aider,
    /// A task of Cline, Roo Code or Kilo Code
    Cline,
    /// Conversations with the Gemini app from Google Takeout (JSON)
    GeminiApps,
    /// A chat session of VS Code (JSON, or JSONL of changes)
    VscodeChat,
    /// A transcript of Cursor's agent, or a conversation of the editor, as Chorus reads it from its database
    Cursor,
}

impl From<SourceFormat> for ImportFormat {
    fn from(from: SourceFormat) -> Self {
        match from {
            SourceFormat::Auto => Self::Auto,
            SourceFormat::Chorus => Self::Chorus,
            SourceFormat::ClaudeCode => Self::ClaudeCode,
            SourceFormat::Openai => Self::Openai,
            SourceFormat::Codex => Self::Codex,
            SourceFormat::Markdown => Self::Markdown,
            SourceFormat::Chatgpt => Self::Chatgpt,
            SourceFormat::Goose => Self::Goose,
            SourceFormat::Gemini => Self::Gemini,
            SourceFormat::Opencode => Self::Opencode,
            SourceFormat::Copilot => Self::Copilot,
            SourceFormat::Pi => Self::Pi,
            SourceFormat::Hermes => Self::Hermes,
            SourceFormat::ClaudeAi => Self::ClaudeAi,
            SourceFormat::Cursor => Self::Cursor,
            SourceFormat::VscodeChat => Self::VscodeChat,
            SourceFormat::GeminiApps => Self::GeminiApps,
            SourceFormat::Cline => Self::Cline,
            SourceFormat::Aider => Self::Aider,
            SourceFormat::Amp => Self::Amp,
            SourceFormat::OpenWebui => Self::OpenWebui,
            SourceFormat::Librechat => Self::Librechat,
        }
    }
}

/// Imports the files one after the other. If one fails, the others are still imported.
///
/// # Errors
/// The exit status of the first file that failed.
pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    if args.files.is_empty() {
        return import_found(&args, app);
    }
    if args.files.iter().any(|file| Path::new(file).is_dir()) {
        let mut files = Vec::new();
        for file in args.files {
            match Path::new(&file).is_dir() {
                // The daemon, which has its own working directory, compares the paths with those that are excluded.
                true => files.extend(transcripts::below(Path::new(&project::absolute(&format!("{file}/"))))),
                false => files.push(file),
            }
        }
        let redact = redacts_found(args.redact, args.no_redact, app)?;
        return bulk_import::run(app, &files, (args.from.into(), redact), FileChoice::Below);
    }
    if args.files.len() > bulk_import::MIN_FILES {
        return bulk_import::run(app, &args.files, (args.from.into(), args.redact), FileChoice::Named);
    }
    import_named(&args, app)
}

/// Imports the transcripts on this machine that are new or changed since they were imported, after a question. With
/// --agent, imports all of them into that agent.
fn import_found(args: &Args, app: &mut App) -> Result<(), Error> {
    let mut found = transcripts::on_this_machine();
    if found.is_empty() {
        return Err(Error::new(exit::NOT_FOUND, format!("found no transcripts of {}", transcripts::program_names()))
            .with_hint("name the files: chorusctl import FILE"));
    }
    found.iter_mut().for_each(|found| transcripts::leave_out_copies(&mut found.files));
    let imported = bulk_import::imported_files(app)?;
    let kept = bulk_import::kept_sessions(app, &imported)?;
    let (mut files, mut not_kept, mut known, mut list) = (Vec::new(), Vec::new(), 0, Vec::new());
    for found in found {
        let before = files.len();
        for file in &found.files {
            match imported.look_up(file, &kept) {
                _ if app.named_agent().is_some() => files.push(file.clone()),
                FileLookup::New => files.push(file.clone()),
                FileLookup::NotKept => not_kept.push(file.clone()),
                FileLookup::Kept { conversations } => known += conversations,
            }
        }
        list.push(found.describe(files.len() - before));
    }
    if !files.is_empty() && !args.yes {
        confirm::ask_about("import", &list, &format!("Import {}?", pluralize(files.len() as u64, "transcript")))?;
    }
    files.append(&mut not_kept);
    let redact = redacts_found(args.redact, args.no_redact, app)?;
    bulk_import::run(app, &files, (args.from.into(), redact), FileChoice::Found { known })
}

/// Returns true if secrets are redacted in files that the user did not name: while capture is on, as capture does.
fn redacts_found(redact: bool, no_redact: bool, app: &mut App) -> Result<bool, Error> {
    if redact || no_redact {
        return Ok(redact);
    }
    let status = app.call::<Status>(&StatusParams::default())?;
    Ok(status.redact && status.sources.iter().any(|source| source.on))
}

/// Imports a few files that the user named, and prints each session.
fn import_named(args: &Args, app: &mut App) -> Result<(), Error> {
    let several = args.files.len() > 1;
    let mut results = Vec::new();
    let mut imported = None;
    let mut totals = ImportTotals::default();
    for file in &args.files {
        let options = ImportOptions {
            from: args.from.into(),
            redact: args.redact,
            skip_known: false,
            as_capture: false,
            has_progress_bar: true,
        };
        let state = FileState::of(Path::new(file));
        match import_file(app, file, options) {
            Ok(raw) => {
                let result: CommitResult = parse_result(&raw)?;
                if imported.is_none() {
                    imported = Some(bulk_import::imported_files(app)?);
                }
                if let Some(imported) = &mut imported {
                    imported.add(file, state, Some(&result));
                }
                if !several && app.stdout.format() == OutputFormat::Json {
                    print_warning(app, None, &result);
                    return app.stdout.json_line(&raw);
                }
                totals.add(&result);
                print_result(app, file, (&raw, &result), several)?;
                results.push((file, raw));
            }
            Err(failure) if several => {
                totals.count_failure(failure.exit_status());
                failure.with_context(file).print(app.stderr);
            }
            Err(failure) => return Err(failure),
        }
    }
    if several && app.stdout.format() == OutputFormat::Json {
        print_combined_json(app, &results)?;
    }
    totals.print(app, args.redact)?;
    totals.exit()
}

/// Said if an import is interrupted: each file is imported whole or not at all, and what is imported is found again.
pub const HOW_TO_CONTINUE: &str = "run the same command again; nothing is imported twice";

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

/// Uploads a file, or each conversation of a database, and commits the import. Returns the unparsed result.
pub fn import_file(app: &mut App, file: &str, options: ImportOptions) -> Result<Box<RawValue>, Error> {
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

fn print_result(
    app: &mut App,
    file: &str,
    (raw, result): (&RawValue, &CommitResult),
    several: bool,
) -> Result<(), Error> {
    match app.stdout.format() {
        OutputFormat::Json => {
            print_warning(app, several.then_some(file), result);
            return Ok(());
        }
        OutputFormat::Jsonl => print_pages::print_entries(&mut app.stdout, raw, "sessions")?,
        OutputFormat::Text => {
            for (session, imported) in result.imported() {
                print_session(app, session, imported)?;
            }
            app.stdout.flush()?;
        }
    }
    print_skipped(app, several.then_some(file), result);
    Ok(())
}

fn print_session(app: &mut App, session: &Session, imported: ImportedConversation) -> Result<(), Error> {
    let header = &session.header;
    let effect = match imported.outcome {
        ImportOutcome::New => String::new(),
        ImportOutcome::Grown if imported.added == 0 => "  last reply completed".to_owned(),
        ImportOutcome::Grown => format!("  {} new", group_digits(imported.added)),
        ImportOutcome::UpToDate => "  up to date".to_owned(),
        ImportOutcome::Revision => {
            let revision = header.source.as_ref().map_or(0, |source| source.revision);
            format!("  revision {revision}: earlier messages have changed")
        }
    };
    let short = sanitize::one_line(&session.short_id);
    let line = format!(
        "{}  {}  {}{effect}",
        app.stdout.style(Style::Id, &short),
        app.stdout.style(Style::Strong, &sanitize::one_line(&header.session_id)),
        pluralize(header.message_count, "message"),
    );
    app.stdout.status_line(&line)?;
    if imported.outcome == ImportOutcome::UpToDate {
        return Ok(());
    }
    format::print_paragraph(&mut app.stdout, header.summary.as_deref().unwrap_or_default())
}

fn print_skipped(app: &App, name: Option<&str>, result: &CommitResult) {
    let file = name.map(|file| format!("{file}: ")).unwrap_or_default();
    for Skipped { line, reason, .. } in result.skipped.iter().take(MAX_SKIPPED_SHOWN) {
        app.stderr.line(&format!("{file}skipped line {line}: {reason}"));
    }
    let told = result.skipped.len().min(MAX_SKIPPED_SHOWN) as u64;
    if let Some(more) = result.skipped_total.checked_sub(told).filter(|more| *more > 0) {
        app.stderr.line(&format!("{file}and {more} more"));
    }
    print_warning(app, name, result);
}

/// Warns if much of a file was skipped.
pub fn print_warning(app: &App, file: Option<&str>, result: &CommitResult) {
    let file = file.map(|file| format!("{file}: ")).unwrap_or_default();
    if let Some(warning) = &result.warning {
        app.stderr.warning(&format!("{file}{}", sanitize::one_line(warning)));
        app.stderr.hint("set the format with --from; `chorusctl session purge` deletes a conversation permanently");
    }
}

/// Prints the results of several imports as one JSON value.
pub fn print_combined_json(app: &mut App, results: &[(&String, Box<RawValue>)]) -> Result<(), Error> {
    use serde_json::{Value, json};
    let (mut sessions, mut conversations, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    let (mut skipped_total, mut lines_left_out, mut left_out) = (0, 0, 0);
    let (mut secrets, mut warnings) = (None, Vec::new());
    for (file, result) in results {
        let result: CommitResult = parse_result(result)?;
        sessions.extend(result.sessions);
        conversations.extend(result.conversations);
        skipped.extend(result.skipped.iter().map(|at| {
            let mut skipped = json!({"file": file, "line": at.line, "reason": at.reason});
            if at.left_out {
                skipped["left_out"] = true.into();
            }
            skipped
        }));
        skipped_total += result.skipped_total;
        lines_left_out += result.lines_left_out.unwrap_or(0);
        left_out += result.left_out.unwrap_or(0);
        secrets = secrets.into_iter().chain(result.secrets_found).reduce(|a, b| a + b);
        warnings.extend(result.warning.map(|warning| json!({"file": file, "warning": warning})));
    }
    let mut whole: Value = json!({"sessions": sessions, "conversations": conversations, "skipped": skipped, "skipped_total": skipped_total, "secrets_found": secrets});
    for (name, count) in [("lines_left_out", lines_left_out), ("left_out", left_out)] {
        if count > 0 {
            whole[name] = count.into();
        }
    }
    if !warnings.is_empty() {
        whole["warnings"] = warnings.into();
    }
    app.stdout.json(&whole.to_string())?;
    app.stdout.text("\n")
}
