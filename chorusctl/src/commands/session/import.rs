//! `chorusctl session import`: imports conversations of other programs.

use std::path::Path;

use chorus_proto::Session;
use chorus_proto::error::exit;
use chorus_proto::methods::capture::{Status, StatusParams};
use chorus_proto::methods::import::{CommitResult, ImportFormat, ImportOutcome, ImportedConversation, Skipped};
use clap::ValueEnum;
use serde_json::value::RawValue;

use super::bulk_import::{self, FileChoice};
use super::file_import::{ImportOptions, import_file};
use super::import_totals::ImportTotals;
use super::imported_files::{FileLookup, FileState};
use super::transcripts;
use crate::app::{App, parse_result};
use crate::commands::{format, project};
use crate::error::Error;
use crate::print_pages;
use crate::ui::confirm;
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
    #[value(alias = "md")]
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
