//! `chorusctl session export`: writes sessions to standard output or into files.

use std::path::{Path, PathBuf};

use chorus_proto::methods::export::{ExportFormat, Select, SelectParams, SelectResult};
use chorus_proto::shell_word::shell_word;
use clap::ValueEnum;
use serde::de::DeserializeOwned;
use serde_json::json;

use self::agent_dirs::AgentDirs;
use self::atomic_file_writer::{OutputDir, WriteOutcome};
use self::parallel_writer::{JobOutcome, write_parallel};
use self::session_text::TextForm;
use crate::app::{App, parse_result};
use crate::coding_tools::{CodingTool, ToolSession};
use crate::error::Error;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;

/// Selects the live conversation.
const LIVE: &str = "@";

mod agent_dirs;
mod atomic_file_writer;
mod coding_tool;
mod html_index;
mod parallel_writer;
mod selected_session;
mod session_file_check;
mod session_text;

pub use selected_session::ExportSession;
pub use session_text::fetch_pieces;

/// Export saved conversations to standard output or to files
///
/// One named session is written to standard output unless a file is given: `export SESSION page.html` writes a web page, `export page.html`
/// one of the live conversation. An existing file is replaced only with --output.
/// Several are written to a directory, one file each, named
/// after the session; with --as html, index.html lists the pages in it by the date of the conversation. Files that are already up to date are not touched; others are replaced atomically. If nothing is new, nothing is
/// printed, so you can run it from cron:
///
///   chorusctl export --since 2d --all-agents --output ~/conversations
///
/// With --as claude-code, codex or gemini, the named sessions are written to where that tool looks for its conversations, and can be
/// continued there. No file of it is replaced. opencode takes the file with `opencode import`. `resume-in` also starts the tool.
///
/// `@` is the live conversation as it is now, also if it is not saved yet; `@NAME` is that of the conversation NAME. Exporting it saves nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Sessions to export, and a file for the only one [default: all sessions of the agent]
    #[arg(value_name = "SESSION|FILE")]
    sessions: Vec<String>,
    /// Only sessions saved since then: 7d, 1h30m, yesterday, or a date
    #[arg(long, value_name = "WHEN", conflicts_with = "sessions")]
    since: Option<String>,
    /// Sessions of all agents, with one directory per agent
    #[arg(long, conflicts_with = "sessions")]
    all_agents: bool,
    /// Format: json (the session file), jsonl (one message per line), md (Markdown), html (a web page), claude-code, codex, gemini or
    /// opencode (a conversation of that tool) [default: by the name of the output file; json if that has no extension]
    #[arg(long = "as", value_enum, value_name = "FORM", hide_possible_values = true)]
    form: Option<Form>,
    /// With --as md: leave out the block of data at the end, from which an import restores times, ids and tool calls
    #[arg(long)]
    plain: bool,
    /// With the format of a tool: directory to continue in [default: that of the conversation, the agent's workspace, or the current one]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Output file (`-` is standard output), or the directory for several
    #[arg(long, short, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
}

impl Args {
    /// Selects one session.
    fn for_session(session: String) -> Self {
        Self {
            sessions: vec![session],
            since: None,
            all_agents: false,
            form: None,
            plain: false,
            project: None,
            output: None,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    /// The session file
    Json,
    /// One message per line
    Jsonl,
    /// Markdown
    #[value(alias = "markdown")]
    Md,
    /// A web page
    Html,
    /// A conversation of Claude Code
    ClaudeCode,
    /// A conversation of Codex
    Codex,
    /// A conversation of Gemini CLI
    Gemini,
    /// A conversation for `opencode import`
    Opencode,
}

impl From<Form> for ExportFormat {
    fn from(form: Form) -> Self {
        match form {
            Form::Json => Self::Json,
            Form::Jsonl => Self::Jsonl,
            Form::Md => Self::Md,
            Form::Html => Self::Html,
            Form::ClaudeCode => Self::ClaudeCode,
            Form::Codex => Self::Codex,
            Form::Gemini => Self::Gemini,
            Form::Opencode => Self::Opencode,
        }
    }
}

/// Exports the sessions. If one fails, the others are still exported.
///
/// # Errors
/// The exit status of the first session that failed.
pub fn run(mut args: Args, app: &mut App) -> Result<(), Error> {
    take_output_file(&mut args)?;
    let named = args.output.as_deref().filter(|path| names_file(path)).and_then(form_of_name);
    let form = TextForm {
        form: args.form.map(ExportFormat::from).or(named).unwrap_or_default(),
        plain: args.plain,
        has_files: !app.is_remote(),
    };
    if form.plain && form.form != ExportFormat::Md {
        return Err(Error::usage("--plain is for Markdown only").with_hint("add --as md"));
    }
    if let Some(tool) = CodingTool::of_format(form.form) {
        return coding_tool::export(args, app, tool);
    }
    if args.project.is_some() {
        return Err(Error::usage(
            "--project is the directory in which a coding tool continues the conversation; it does not select conversations",
        )
        .with_hint("use it with --as claude-code, codex, gemini or opencode, or leave it out"));
    }
    let one = args.sessions.len() == 1;
    check_output_name(&args, one)?;
    match args.output.clone().filter(|output| output != Path::new("-")) {
        Some(output) if !one || output.is_dir() || ends_in_slash(&output) => export_to_dir(args, app, form, &output),
        Some(output) => export_to_file(args, app, form, &output),
        None if one => export_to_stdout(args, app, form),
        None => Err(Error::usage("cannot write several sessions to standard output").with_hint(
            "the live conversation to a file: chorusctl export page.html; all to a directory: --output DIR",
        )),
    }
}

/// Refuses an output whose name says something else than what would be written: a file of a format for several sessions, or one of an
/// unknown format for one.
fn check_output_name(args: &Args, one: bool) -> Result<(), Error> {
    let Some(output) = args.output.as_deref().filter(|output| *output != Path::new("-")) else { return Ok(()) };
    if output.is_dir() || ends_in_slash(output) {
        return Ok(());
    }
    let shown = output.to_string_lossy();
    if !one && names_file(output) {
        return Err(Error::usage(format!("{shown} is the name of a file, and several conversations need a directory"))
            .with_hint(format!(
                "name a directory: --output {}",
                shell_word(&format!("{}/", output.with_extension("").to_string_lossy()))
            )));
    }
    if one
        && args.form.is_none()
        && form_of_name(output).is_none()
        && let Some(extension) = output.extension()
    {
        return Err(Error::usage(format!("{shown}: .{} names no format of an export", extension.to_string_lossy()))
            .with_hint("name the format, for example --as md, or a file that ends with .json, .jsonl, .md or .html"));
    }
    Ok(())
}

/// Takes the file from `export page.html` and `export SESSION page.html`. Without a session it gets the live
/// conversation.
///
/// # Errors
/// The file exists. Only `--output` replaces a file.
fn take_output_file(args: &mut Args) -> Result<(), Error> {
    let is_filtered = args.since.is_some() || args.all_agents;
    if args.output.is_none()
        && args.sessions.len() <= 2
        && let Some(file) = args.sessions.pop_if(|last| names_file(Path::new(last)))
    {
        if Path::new(&file).exists() {
            return Err(Error::usage(format!("{file} exists")).with_hint("to replace it, put --output before its name"));
        }
        args.output = Some(file.into());
    }
    if args.sessions.is_empty() && !is_filtered && args.output.as_deref().is_some_and(names_file) {
        args.sessions.push(LIVE.to_owned());
    }
    Ok(())
}

/// Returns true for a path with the extension of an export that is not a directory.
fn names_file(path: &Path) -> bool {
    form_of_name(path).is_some() && !path.is_dir() && !ends_in_slash(path)
}

/// Returns the format that the extension of a file stands for.
fn form_of_name(path: &Path) -> Option<ExportFormat> {
    let forms = [ExportFormat::Json, ExportFormat::Jsonl, ExportFormat::Md, ExportFormat::Html];
    forms.into_iter().find(|form| path.extension().is_some_and(|extension| extension == form.extension()))
}

fn names_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "html")
}

fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Writes the JSON of a session to standard output, piece by piece, or to `output`.
///
/// # Errors
/// As [`run`]; the session changed while it was printed.
pub fn print_json(app: &mut App, session: String, output: Option<PathBuf>) -> Result<(), Error> {
    let has_files = !app.is_remote();
    let form = TextForm { form: ExportFormat::Json, plain: false, has_files };
    let args = Args { form: Some(Form::Json), ..Args::for_session(session) };
    if let Some(output) = output.filter(|output| output != Path::new("-")) {
        return export_to_file(args, app, form, &output);
    }
    let session: ExportSession = single_session(select_sessions(args, app)?)?;
    if let Some(bytes) = session_text::read_session_file(&session, form) {
        return app.stdout.json(&String::from_utf8_lossy(&bytes));
    }
    session_text::print_pieces(app, &session)
}

fn export_to_stdout(args: Args, app: &mut App, form: TextForm) -> Result<(), Error> {
    let session: ExportSession = single_session(select_sessions(args, app)?)?;
    let bytes = session_text::read_session(app, &session, form)?;
    let text = String::from_utf8_lossy(&bytes);
    match form.form {
        ExportFormat::Md | ExportFormat::Html if app.stdout.width().is_some() => {
            app.stdout.text(&sanitize::multi_line(&text))
        }
        ExportFormat::Md | ExportFormat::Html => app.stdout.text(&text),
        _ => app.stdout.json(&text),
    }
}

fn export_to_file(args: Args, app: &mut App, form: TextForm, output: &Path) -> Result<(), Error> {
    let session: ExportSession = single_session(select_sessions(args, app)?)?;
    let bytes = session_text::read_session(app, &session, form)?;
    match write_output(output, &bytes)? {
        WriteOutcome::Written => print_report(app, &[output.to_owned()], 0, output, Some(&session)),
        WriteOutcome::Unchanged => print_report(app, &[], 1, output, Some(&session)),
    }
}

/// Prints a web page, or writes it to `output`, which it replaces.
pub fn print_page_or_write(app: &mut App, page: &str, output: Option<&Path>) -> Result<(), Error> {
    let Some(output) = output.filter(|output| *output != Path::new("-")) else { return app.stdout.text(page) };
    let said = match write_output(output, page.as_bytes())? {
        WriteOutcome::Written => "wrote",
        WriteOutcome::Unchanged => "already up to date:",
    };
    app.stdout.status_line(&format!("{said} {}", sanitize::one_line(&output.to_string_lossy())))
}

/// Writes a file, whose directory is created if needed.
fn write_output(output: &Path, bytes: &[u8]) -> Result<WriteOutcome, Error> {
    let name = output.file_name().ok_or_else(|| {
        Error::usage(format!("{} is not a file", output.display())).with_hint("use --output with a file name")
    })?;
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    OutputDir::new(parent).write_file(Path::new(name), bytes)
}

/// Selects the session to continue in another tool.
pub fn select_for_tool(app: &mut App, session: String) -> Result<ToolSession, Error> {
    single_session(select_sessions(Args::for_session(session), app)?)
}

fn single_session<S>(mut sessions: Vec<S>) -> Result<S, Error> {
    sessions.pop().ok_or_else(|| Error::failed("the daemon returned no session"))
}

fn export_to_dir(args: Args, app: &mut App, form: TextForm, output: &Path) -> Result<(), Error> {
    let named = !args.sessions.is_empty();
    let owners = if args.all_agents { Some(AgentDirs::fetch(app)?) } else { None };
    let folder = OutputDir::new(output);
    let advice = "the files that are there are complete; the same command writes the rest";
    let mut progress = ProgressBar::new("export".into(), &["writing"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, advice));
    let (mut written, mut same, mut failed) = (Vec::new(), 0, None);
    let mut sessions: Vec<ExportSession> = select_sessions(args, app)?;
    // Unless it was named, skip a session whose file went with its agent: there is nothing to export.
    sessions.retain(|session| named || session.available || session.corrupt.is_some());
    let (mut jobs, mut done) = (Vec::new(), 0);
    for session in sessions {
        match session_path(&session, owners.as_ref(), form) {
            Ok(path) => jobs.push((session, path)),
            Err(failure) => _ = failed.get_or_insert(report_failure(app, failure, &session)),
        }
    }
    let total = jobs.len() as u64;
    write_parallel(&folder, &jobs, form, |at, became| {
        done += 1;
        progress.update(done, total, "sessions");
        let Some((session, path)) = jobs.get(at) else { return };
        let put = match became {
            JobOutcome::Written(put) => Ok(put),
            JobOutcome::FetchNeeded => {
                session_text::fetch_session(app, session, form).and_then(|bytes| folder.write_file(path, &bytes))
            }
            JobOutcome::Failed(failure) => Err(failure),
        };
        match put {
            Ok(WriteOutcome::Unchanged) => same += 1,
            Ok(WriteOutcome::Written) => written.push(at),
            Err(failure) => _ = failed.get_or_insert(report_failure(app, failure, session)),
        }
    })?;
    progress.finish();
    written.sort_unstable();
    let written: Vec<_> = written.iter().filter_map(|at| Some(output.join(&jobs.get(*at)?.1))).collect();
    if form.form == ExportFormat::Html {
        update_index(app, &folder, output, written.is_empty());
    }
    print_report(app, &written, same, output, None)?;
    failed.map_or(Ok(()), |status| Err(Error::reported(status)))
}

/// Writes the index page of a directory. It is not needed for the pages, so an error is only a warning.
fn update_index(app: &mut App, folder: &OutputDir, output: &Path, nothing_new: bool) {
    let index = output.join(html_index::FILE_NAME);
    if !output.is_dir() || nothing_new && index.exists() {
        return;
    }
    if !html_index::may_replace(&index) {
        app.stderr.warning(&format!("{} is not an index of Chorus; it was not replaced", index.display()));
        return;
    }
    let page = html_index::render(output);
    let written = page.and_then(|page| folder.write_file(Path::new(html_index::FILE_NAME), page.as_bytes()));
    if let Err(error) = written {
        error.with_context("the index page").print(app.stderr);
    }
}

/// Prints why a session failed; returns the exit status.
fn report_failure(app: &mut App, failure: Error, session: &ExportSession) -> u8 {
    let failure = failure.with_context(&session.session_id);
    failure.print(app.stderr);
    failure.exit_status()
}

/// Returns the path of a session's file relative to the directory.
fn session_path(session: &ExportSession, owners: Option<&AgentDirs>, form: TextForm) -> Result<PathBuf, Error> {
    let name = &session.session_id;
    // The name comes from the daemon and becomes a file name: reject anything that could leave the directory.
    if name.contains('/') || name.starts_with('.') || name.is_empty() {
        return Err(Error::failed(format!("{name:?} is not a valid file name")));
    }
    let file = format!("{name}.{}", form.form.extension());
    match owners {
        Some(owners) => Ok(owners.dir_for(session)?.join(file)),
        None => Ok(file.into()),
    }
}

/// Lists all sessions to export before the first is written, so that a deletion meanwhile shifts no page.
fn select_sessions<S: DeserializeOwned>(args: Args, app: &mut App) -> Result<Vec<S>, Error> {
    let agent = if args.all_agents { None } else { app.agent() };
    let (session, all_agents, since) = (args.sessions, args.all_agents, args.since);
    let conversation = app.conversation();
    let mut params = SelectParams { conversation, agent, session, all_agents, since, offset: None };
    let mut sessions = Vec::new();
    loop {
        let page: SelectResult<S> = parse_result(&app.call_raw::<Select>(&params)?)?;
        sessions.extend(page.sessions);
        match page.next.filter(|next| Some(*next) > params.offset) {
            Some(next) => params.offset = Some(next),
            None => return Ok(sessions),
        }
    }
}

/// Prints what was written. `only` is the session of an export into one file.
fn print_report(
    app: &mut App,
    written: &[PathBuf],
    same: u64,
    output: &Path,
    only: Option<&ExportSession>,
) -> Result<(), Error> {
    match app.stdout.format() {
        OutputFormat::Text if written.is_empty() && same > 0 && output.is_file() => {
            app.stdout.status_line(&sanitize::one_line(&format!("already up to date: {}", output.display())))
        }
        OutputFormat::Text if written.is_empty() => Ok(()),
        OutputFormat::Text => {
            let count = || pluralize(written.len() as u64, "session");
            let what = only.map_or_else(count, ExportSession::describe);
            let mut line = format!("exported {what} to {}", output.display());
            if output.join(html_index::FILE_NAME).is_file() && written.iter().all(|path| names_page(path)) {
                line.push_str(&format!(" (open {})", output.join(html_index::FILE_NAME).display()));
            }
            app.stdout.status_line(&sanitize::one_line(&line))
        }
        OutputFormat::Json | OutputFormat::Jsonl => {
            let written: Vec<_> = written.iter().map(|path| path.to_string_lossy()).collect();
            app.stdout.json(&json!({"written": written, "unchanged": same}).to_string())?;
            app.stdout.text("\n")
        }
    }
}
