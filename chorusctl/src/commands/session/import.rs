//! `chorusctl session import`.

use std::fs::File;
use std::io::{self, Read};

use chorus_proto::Session;
use chorus_proto::methods::Method;
use chorus_proto::methods::import::{
    Add, Begin, BeginParams, Commit, CommitParams, CommitResult, ImportFormat, Skipped,
};
use clap::ValueEnum;
use serde_json::value::RawValue;

use super::upload::Chunks;
use crate::app::{App, read};
use crate::commands::describe;
use crate::error::{Failure, plain};
use crate::reply;
use crate::ui::out::Format;
use crate::ui::progress::Progress;
use crate::ui::words::count;
use crate::ui::{Style, safe};

/// Skipped lines that are told one by one.
const TOLD: usize = 20;

/// Save conversations of other programs as sessions
///
/// Lines that cannot be read are skipped and told; the import succeeds if one message came in.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files to import; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// What wrote them: auto (look at the file), chorus, claude-code, codex, openai, chatgpt, goose, markdown
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", hide_possible_values = true)]
    from: From,
    /// Replace secrets such as keys and tokens; else they are kept and counted
    #[arg(long)]
    redact: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum From {
    /// Look at the file
    #[default]
    Auto,
    /// A session file of Chorus
    Chorus,
    /// A Claude Code transcript
    ClaudeCode,
    /// OpenAI chat messages, as a JSON list or one a line
    Openai,
    /// A Codex rollout
    Codex,
    /// Markdown, as an export writes it
    Markdown,
    /// ChatGPT's export, conversations.json
    Chatgpt,
    /// A session of goose
    Goose,
}

impl std::convert::From<From> for ImportFormat {
    fn from(from: From) -> Self {
        match from {
            From::Auto => Self::Auto,
            From::Chorus => Self::Chorus,
            From::ClaudeCode => Self::ClaudeCode,
            From::Openai => Self::Openai,
            From::Codex => Self::Codex,
            From::Markdown => Self::Markdown,
            From::Chatgpt => Self::Chatgpt,
            From::Goose => Self::Goose,
        }
    }
}

/// Imports them, one after the other; a file that fails does not keep the others out.
///
/// # Errors
/// Of the first file that failed.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let several = args.files.len() > 1;
    let mut first_failure = None;
    let mut results = Vec::new();
    for file in &args.files {
        match import(app, file, args.from.into(), args.redact) {
            Ok(result) if several || app.out.format() != Format::Json => {
                tell(app, file, &result, (several, args.redact))?;
                results.push((file, result));
            }
            Ok(result) => {
                warn(app, None, &read(&result)?);
                return app.out.json_line(&result);
            }
            Err(failure) if several => {
                let failure = failure.at(file);
                failure.tell(app.notes);
                first_failure.get_or_insert(failure.status());
            }
            Err(failure) => return Err(failure),
        }
    }
    if several && app.out.format() == Format::Json {
        together(app, &results)?;
    }
    first_failure.map_or(Ok(()), |status| Err(Failure::told(status)))
}

/// Sends a file to be imported; the result of the commit as it came.
///
/// # Errors
/// A file that cannot be read, or what the daemon says.
pub fn import(app: &mut App, file: &str, from: ImportFormat, redact: bool) -> Result<Box<RawValue>, Failure> {
    let (source, size) = open(file)?;
    let name = (file != "-").then(|| file.to_owned());
    let agent = app.agent();
    let import = app.call::<Begin>(&BeginParams { agent, from, file: name })?.import;
    let label = if file == "-" { "standard input" } else { file.rsplit('/').next().unwrap_or(file) };
    let mut progress = Progress::new(safe::one_line(label), !app.global.quiet);
    let mut chunks = Chunks::new(import, source);
    let mut sent = 0;
    while let Some((chunk, length)) =
        chunks.next().map_err(|error| Failure::failed(format!("failed to read: {}", plain(&error))))?
    {
        app.call::<Add>(&chunk)?;
        sent += length;
        progress.show(sent, size, "bytes");
    }
    let commit = CommitParams { import, redact };
    let result = app.client()?.call_raw(Commit::NAME, &commit, &mut |at| progress.show(at.done, at.total, &at.unit));
    progress.finish();
    Ok(result?)
}

/// The file and how long it is; 0 where nobody knows. `-` is standard input.
///
/// # Errors
/// A file that cannot be read.
pub fn open(file: &str) -> Result<(Box<dyn Read>, u64), Failure> {
    if file == "-" {
        return Ok((Box::new(io::stdin()), 0));
    }
    let failed = |error| Failure::file(file, &error);
    let opened = File::open(file).map_err(failed)?;
    let metadata = opened.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::usage(format!("{file} is a directory")).hint("name the files in it"));
    }
    Ok((Box::new(opened), metadata.len()))
}

fn tell(app: &mut App, file: &str, result: &RawValue, (several, redacted): (bool, bool)) -> Result<(), Failure> {
    match app.out.format() {
        Format::Json => {
            warn(app, several.then_some(file), &read(result)?);
            return Ok(());
        }
        Format::Jsonl => reply::lines(&mut app.out, result, "sessions")?,
        Format::Text => {}
    }
    let result: CommitResult = read(result)?;
    if app.out.format() == Format::Text {
        for session in &result.sessions {
            imported(app, session)?;
        }
        app.out.flush()?;
    }
    skipped(app, several.then_some(file), &result);
    if let Some(secrets) = result.secrets_found.filter(|found| *found > 0) {
        let secrets = count(secrets, "secret");
        if redacted {
            app.notes.line(&format!("{secrets} replaced"));
        } else {
            app.notes.warning(&format!("{secrets} found in what was imported"));
            app.notes.hint("import with --redact replaces them; `chorusctl session purge` forgets what came in");
        }
    }
    Ok(())
}

fn imported(app: &mut App, session: &Session) -> Result<(), Failure> {
    let short = safe::one_line(&session.short_id);
    let line = format!(
        "{}  {}  {}",
        app.out.paint(Style::Id, &short),
        app.out.paint(Style::Strong, &safe::one_line(&session.header.session_id)),
        count(session.header.message_count, "message"),
    );
    app.out.done(&line)?;
    describe::paragraph(&mut app.out, session.header.summary.as_deref().unwrap_or_default())
}

fn skipped(app: &App, name: Option<&str>, result: &CommitResult) {
    let file = name.map(|file| format!("{file}: ")).unwrap_or_default();
    for Skipped { line, reason } in result.skipped.iter().take(TOLD) {
        app.notes.line(&format!("{file}skipped line {line}: {reason}"));
    }
    let told = result.skipped.len().min(TOLD) as u64;
    if let Some(more) = result.skipped_total.checked_sub(told).filter(|more| *more > 0) {
        app.notes.line(&format!("{file}and {more} more"));
    }
    warn(app, name, result);
}

/// Says loudly that much of a file was skipped.
pub fn warn(app: &App, file: Option<&str>, result: &CommitResult) {
    let file = file.map(|file| format!("{file}: ")).unwrap_or_default();
    if let Some(warning) = &result.warning {
        app.notes.warning(&format!("{file}{}", safe::one_line(warning)));
        app.notes.hint("`--from FORMAT` names the format; `chorusctl session purge` forgets what came in");
    }
}

/// Several imports as one JSON value.
fn together(app: &mut App, results: &[(&String, Box<RawValue>)]) -> Result<(), Failure> {
    use serde_json::{Value, json};
    let (mut sessions, mut skipped) = (Vec::new(), Vec::new());
    let (mut skipped_total, mut secrets, mut warnings) = (0, None, Vec::new());
    for (file, result) in results {
        let result: CommitResult = read(result)?;
        sessions.extend(result.sessions);
        skipped.extend(result.skipped.iter().map(|at| json!({"file": file, "line": at.line, "reason": at.reason})));
        skipped_total += result.skipped_total;
        secrets = secrets.into_iter().chain(result.secrets_found).reduce(|a, b| a + b);
        warnings.extend(result.warning.map(|warning| json!({"file": file, "warning": warning})));
    }
    let mut whole: Value =
        json!({"sessions": sessions, "skipped": skipped, "skipped_total": skipped_total, "secrets_found": secrets});
    if !warnings.is_empty() {
        whole["warnings"] = warnings.into();
    }
    app.out.json(&whole.to_string())?;
    app.out.text("\n")
}
