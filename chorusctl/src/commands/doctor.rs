//! `chorusctl doctor`.

use chorus_proto::error::exit;
use chorus_proto::methods::doctor::{Check, Doctor, DoctorParams, DoctorResult, Rebuilt, Salvaged, Verdict};

use crate::app::{App, read};
use crate::connect;
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::paint::Style;
use crate::ui::safe;
use crate::ui::words::count;

/// Check databases, files, models and the machine
///
/// No provider is asked; `chorusctl models validate` does that. Exit status 0 where nothing failed, 1 otherwise. What is only informed of is what a sandbox would find here.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Make the index of agents and sessions anew from their directories and files first
    ///
    /// Works without a daemon too, and then sets a damaged chorus.db aside (chorus.db.damaged-TIME). Nothing is removed.
    #[arg(long)]
    rebuild: bool,
    /// Make sessions of everything that a damaged live.db still has, and restore them as live conversations
    ///
    /// Works without a daemon too, and then sets aside a live.db that cannot be opened (db/damaged-TIME). Nothing is removed: messages
    /// that were rewound are in the sessions as well, and the damaged files stay.
    #[arg(long, conflicts_with = "rebuild")]
    salvage: bool,
}

/// Checks, and shows what was found.
///
/// # Errors
/// A check that failed, or why nothing could be checked.
pub fn run(args: &Args, app: &mut App) -> Result<(), Failure> {
    let raw = match connect::reach(app.places()?, &app.global)? {
        // The daemon may be the one that cannot start.
        None if args.rebuild => connect::repair("--rebuild", app.global.socket.as_deref())?,
        None if args.salvage => connect::repair("--salvage", app.global.socket.as_deref())?,
        None => app.call_raw::<Doctor>(&DoctorParams::default())?,
        Some(client) => {
            app.connected(client);
            app.call_raw::<Doctor>(&DoctorParams { rebuild: args.rebuild, salvage: args.salvage })?
        }
    };
    let result: DoctorResult = read(&raw)?;
    match app.out.format() {
        Format::Text => show(app, &result)?,
        Format::Json | Format::Jsonl => app.out.json_line(&raw)?,
    }
    let failed = result.checks.iter().any(|check| check.verdict == Verdict::Fail);
    let unread = result.salvaged.as_ref().is_some_and(|salvaged| !salvaged.nothing_readable.is_empty());
    if failed || unread { Err(Failure::told(exit::FAILED)) } else { Ok(()) }
}

fn show(app: &mut App, result: &DoctorResult) -> Result<(), Failure> {
    let width = result.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for check in &result.checks {
        line(app, check, width)?;
    }
    if let Some(salvaged) = &result.salvaged {
        tell_salvaged(app, salvaged)?;
    }
    result.rebuilt.as_ref().map_or(Ok(()), |rebuilt| tell(app, rebuilt))
}

fn tell_salvaged(app: &mut App, salvaged: &Salvaged) -> Result<(), Failure> {
    let Salvaged { sessions, messages, expected, unreadable, restored, set_aside, nothing_readable } = salvaged;
    let expected = expected.map(|expected| format!("{expected} expected"));
    let lost = (*unreadable > 0).then(|| format!("{} unreadable", count(*unreadable, "record")));
    let notes: Vec<String> = expected.into_iter().chain(lost).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    app.out.done(&format!("salvaged: {}, {}{notes}", count(*sessions, "session"), count(*messages, "message")))?;
    if !restored.is_empty() {
        app.out.done(&format!("live again: {}", safe::one_line(&restored.join(", "))))?;
    }
    for dir in set_aside {
        app.out.done(&format!("the damaged files are kept in {}", safe::one_line(dir)))?;
    }
    for dir in nothing_readable {
        app.out.done(&format!("nothing readable in {}: keep it, it is the only copy", safe::one_line(dir)))?;
    }
    Ok(())
}

fn line(app: &mut App, check: &Check, width: usize) -> Result<(), Failure> {
    let (word, style) = match check.verdict {
        Verdict::Ok => ("ok  ", Style::Good),
        Verdict::Warn => ("warn", Style::Strong),
        Verdict::Fail => ("FAIL", Style::Bad),
        Verdict::Info => ("info", Style::Faint),
    };
    let name = format!("{:width$}", safe::one_line(&check.name));
    let verdict = app.out.paint(style, word).to_string();
    writeln!(app.out, "{verdict}  {name}  {}", safe::one_line(&check.text))?;
    let Some(hint) = &check.hint else { return Ok(()) };
    writeln!(app.out, "      {:width$}  hint: {}", "", safe::one_line(hint))
}

fn tell(app: &mut App, rebuilt: &Rebuilt) -> Result<(), Failure> {
    let (agents, sessions) = (count(rebuilt.agents, "agent"), count(rebuilt.sessions, "session"));
    let corrupt = if rebuilt.corrupt > 0 { format!(" ({} corrupt)", rebuilt.corrupt) } else { String::new() };
    app.out.done(&format!("rebuilt: {agents}, {sessions}{corrupt}, in {} ms", rebuilt.duration_ms))?;
    let Some(aside) = &rebuilt.set_aside else { return Ok(()) };
    app.out.done(&format!("the damaged database is kept as {}", safe::one_line(aside)))
}
