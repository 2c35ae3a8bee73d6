//! `chorusctl session export`.

use std::path::{Path, PathBuf};

use chorus_proto::methods::export::{ExportFormat, Select, SelectParams, SelectResult};
use clap::ValueEnum;
use serde_json::json;

use self::folder::{Folder, Put};
use self::owners::Owners;
use self::selected::Selected;
use self::together::{Done, together};
use crate::app::{App, read};
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::progress::Progress;
use crate::ui::safe;
use crate::ui::words::count;

mod folder;
mod owners;
mod selected;
mod text;
mod together;

/// Write saved conversations to standard output or into files
///
/// One named session goes to standard output unless --output says otherwise. Several go into a directory, one file
/// each, named after the session. Files that are there already and say the same are left alone; the others are
/// replaced whole. When nothing is new nothing is printed, so a cron line can run it every day:
///
///   chorusctl session export --since 2d --all-agents --output ~/conversations
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sessions [default: all of the agent]
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,
    /// Only what was saved since: 7d, 1h30m, or a date
    #[arg(long, value_name = "WHEN", conflicts_with = "sessions")]
    since: Option<String>,
    /// Sessions of every agent, each agent's in a directory of its own
    #[arg(long, conflicts_with = "sessions")]
    all_agents: bool,
    /// The form: json (the session file), jsonl (a message a line), md (Markdown), html (a page for a browser)
    #[arg(long = "as", value_enum, default_value_t, value_name = "FORM", hide_possible_values = true)]
    form: Form,
    /// The file, or the directory for several
    #[arg(long, short, value_name = "FILE|DIR")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Form {
    /// The session file
    #[default]
    Json,
    /// A message a line
    Jsonl,
    /// Markdown
    Md,
    /// A page for a browser
    Html,
}

impl From<Form> for ExportFormat {
    fn from(form: Form) -> Self {
        match form {
            Form::Json => Self::Json,
            Form::Jsonl => Self::Jsonl,
            Form::Md => Self::Md,
            Form::Html => Self::Html,
        }
    }
}

/// Exports them. One that fails does not keep the others in.
///
/// # Errors
/// Of the first session that failed, or why there is nothing to export.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let form = args.form.into();
    let one = args.sessions.len() == 1;
    match args.output.clone() {
        Some(output) if !one || output.is_dir() || ends_in_slash(&output) => into_folder(args, app, form, &output),
        Some(output) => into_file(args, app, form, &output),
        None if one => to_stdout(args, app, form),
        None => {
            Err(Failure::usage("several sessions do not go to standard output").hint("name a directory: --output DIR"))
        }
    }
}

fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn to_stdout(args: Args, app: &mut App, form: ExportFormat) -> Result<(), Failure> {
    let session = only(select(args, app)?)?;
    let bytes = text::whole(app, &session, form)?;
    let text = String::from_utf8_lossy(&bytes);
    match form {
        ExportFormat::Md | ExportFormat::Html if app.out.width().is_some() => app.out.text(&safe::clean(&text)),
        ExportFormat::Md | ExportFormat::Html => app.out.text(&text),
        ExportFormat::Json | ExportFormat::Jsonl => app.out.json(&text),
    }
}

fn into_file(args: Args, app: &mut App, form: ExportFormat, output: &Path) -> Result<(), Failure> {
    let session = only(select(args, app)?)?;
    let bytes = text::whole(app, &session, form)?;
    let name = output
        .file_name()
        .ok_or_else(|| Failure::usage(format!("{} is no file", output.display())).hint("name the file to write"))?;
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match Folder::new(parent).put(Path::new(name), &bytes)? {
        Put::Written => report(app, &[output.to_owned()], 0, output),
        Put::Same => report(app, &[], 1, output),
    }
}

fn only(mut sessions: Vec<Selected>) -> Result<Selected, Failure> {
    sessions.pop().ok_or_else(|| Failure::failed("the daemon named no session"))
}

fn into_folder(args: Args, app: &mut App, form: ExportFormat, output: &Path) -> Result<(), Failure> {
    let named = !args.sessions.is_empty();
    let owners = if args.all_agents { Some(Owners::ask(app)?) } else { None };
    let folder = Folder::new(output);
    let mut progress = Progress::new("export".into(), !app.global.quiet);
    let (mut written, mut same, mut failed) = (Vec::new(), 0, None);
    let mut sessions = select(args, app)?;
    // The file of one that is not there went with its agent: there is nothing to export, and nobody asked for this one.
    sessions.retain(|session| named || session.available || session.corrupt.is_some());
    let (mut jobs, mut done) = (Vec::new(), 0);
    for session in sessions {
        match path(&session, owners.as_ref(), form) {
            Ok(path) => jobs.push((session, path)),
            Err(failure) => _ = failed.get_or_insert(tell(app, failure, &session)),
        }
    }
    let total = jobs.len() as u64;
    together(&folder, &jobs, form, |at, became| {
        done += 1;
        progress.show(done, total, "sessions");
        let Some((session, path)) = jobs.get(at) else { return };
        let put = match became {
            Done::Put(put) => Ok(put),
            Done::Ask => text::asked(app, session, form).and_then(|bytes| folder.put(path, &bytes)),
            Done::Failed(failure) => Err(failure),
        };
        match put {
            Ok(Put::Same) => same += 1,
            Ok(Put::Written) => written.push(at),
            Err(failure) => _ = failed.get_or_insert(tell(app, failure, session)),
        }
    })?;
    progress.finish();
    written.sort_unstable();
    let written: Vec<_> = written.iter().filter_map(|at| Some(output.join(&jobs.get(*at)?.1))).collect();
    report(app, &written, same, output)?;
    failed.map_or(Ok(()), |status| Err(Failure::told(status)))
}

/// Tells why one failed; the exit status that makes.
fn tell(app: &mut App, failure: Failure, session: &Selected) -> u8 {
    let failure = failure.at(&session.session_id);
    failure.tell(app.notes);
    failure.status()
}

/// Where in the directory a session goes.
fn path(session: &Selected, owners: Option<&Owners>, form: ExportFormat) -> Result<PathBuf, Failure> {
    let name = &session.session_id;
    // It becomes the name of a file, and came from one; whoever sends anything else means harm.
    if name.contains('/') || name.starts_with('.') || name.is_empty() {
        return Err(Failure::failed(format!("{name:?} cannot be the name of a file")));
    }
    let file = format!("{name}.{}", form.as_str());
    match owners {
        Some(owners) => Ok(owners.folder(session)?.join(file)),
        None => Ok(file.into()),
    }
}

/// All sessions that are meant, before the first is written: what is deleted meanwhile moves none off its page.
fn select(args: Args, app: &mut App) -> Result<Vec<Selected>, Failure> {
    let agent = if args.all_agents { None } else { app.agent() };
    let (session, all_agents, since) = (args.sessions, args.all_agents, args.since);
    let mut params = SelectParams { agent, session, all_agents, since, offset: None };
    let mut sessions = Vec::new();
    loop {
        let page: SelectResult<Selected> = read(&app.call_raw::<Select>(&params)?)?;
        sessions.extend(page.sessions);
        match page.next.filter(|next| Some(*next) > params.offset) {
            Some(next) => params.offset = Some(next),
            None => return Ok(sessions),
        }
    }
}

fn report(app: &mut App, written: &[PathBuf], same: u64, output: &Path) -> Result<(), Failure> {
    match app.out.format() {
        Format::Text if written.is_empty() => Ok(()),
        Format::Text => {
            let line = format!("exported {} to {}", count(written.len() as u64, "session"), output.display());
            app.out.done(&safe::one_line(&line))
        }
        Format::Json | Format::Jsonl => {
            let written: Vec<_> = written.iter().map(|path| path.to_string_lossy()).collect();
            app.out.json(&json!({"written": written, "unchanged": same}).to_string())?;
            app.out.text("\n")
        }
    }
}
