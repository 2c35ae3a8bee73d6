//! `chorusctl doctor`: checks databases, files, models and the machine.

mod secrets;
mod size;

use chorus_proto::error::exit;
use chorus_proto::methods::daemon::{Hello, HelloParams};
use chorus_proto::methods::doctor::{Check, Doctor, DoctorParams, DoctorResult, Rebuilt, Salvaged, Verdict};

use serde_json::value::RawValue;

use crate::app::{App, parse_result};
use crate::commands::offline_chorusd::{OfflineWork, run_chorusd};
use crate::connect;
use crate::error::Error;
use crate::no_answer;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;
use crate::ui::stdout::OutputFormat;
use crate::ui::style::Style;
use crate::ui::units::pluralize;
use crate::ui::{sanitize, text};

/// Check the installation for problems
///
/// Checks databases, files, models and the machine. Does not contact providers; use `chorusctl models validate` for that. The exit status
/// is 0 if nothing failed, otherwise 1. Lines marked "info" describe the sandbox.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// First rebuild the index of agents and sessions from their directories and files
    ///
    /// Also works without a daemon, and then moves a damaged chorus.db aside (chorus.db.damaged-TIME). Nothing is removed.
    #[arg(long)]
    rebuild: bool,
    /// Save everything that a damaged live.db still contains as sessions, and load them as live conversations
    ///
    /// Also works without a daemon, and then moves aside a live.db that cannot be opened (db/damaged-TIME). Nothing is removed: the sessions
    /// also contain messages that were rewound, and the damaged files stay.
    #[arg(long, conflicts_with = "rebuild")]
    salvage: bool,
    /// Instead find keys, tokens and passwords in everything that is stored
    ///
    /// Searches saved, live and deleted conversations, memory, notes, schedules and the files of the home, of all agents or of the one that --agent names. Not
    /// the workspaces. Secrets are named by kind and fingerprint, never shown. The exit status is 1 if there are any.
    #[arg(long, conflicts_with_all = ["rebuild", "salvage"])]
    secrets: bool,
    /// Instead show what takes room on the disk
    #[arg(long, conflicts_with_all = ["rebuild", "salvage", "secrets"])]
    size: bool,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    if args.secrets || args.size {
        ensure_answer(app)?;
    }
    if args.secrets {
        return secrets::run(app);
    }
    if args.size {
        return size::run(app);
    }
    if app.is_remote() && (args.rebuild || args.salvage) {
        app.refuse_host(if args.rebuild { "doctor --rebuild" } else { "doctor --salvage" })?;
    }
    let running = if app.is_remote() { None } else { connect::connect_if_running(app.paths()?, &app.global)? };
    let raw = match running {
        // Repairs run `chorusd` directly, because the damage may keep the daemon from starting.
        None if args.rebuild => rebuild_offline(app)?,
        None if args.salvage => connect::run_repair("--salvage", app.global.socket.as_deref())?,
        None => app.call_raw::<Doctor>(&DoctorParams::default())?,
        Some(client) => {
            app.set_client(client);
            ensure_answer(app)?;
            let advice = "the daemon continues in the background; check the result: chorusctl doctor";
            let progress = ProgressBar::new("rebuild".into(), &["reading"], !app.global.quiet)
                .with_interruption(Interruption::explain(app.stderr, advice).after_report());
            let params = DoctorParams { rebuild: args.rebuild, salvage: args.salvage };
            app.call_with_progress::<Doctor>(&params, progress)?
        }
    };
    let result: DoctorResult = parse_result(&raw)?;
    match app.stdout.format() {
        OutputFormat::Text => print_report(app, &result)?,
        OutputFormat::Json | OutputFormat::Jsonl => app.stdout.json_line(&raw)?,
    }
    let failed = result.checks.iter().any(|check| check.verdict == Verdict::Fail);
    let unread = result.salvaged.as_ref().is_some_and(|salvaged| !salvaged.nothing_readable.is_empty());
    if failed || unread { Err(Error::reported(exit::FAILED)) } else { Ok(()) }
}

/// Ensures that the daemon answers at all: checks may take long.
fn ensure_answer(app: &mut App) -> Result<(), Error> {
    app.answer_limit = Some(no_answer::PATIENCE);
    app.within_answer_limit(|client| client.call::<Hello>(&HelloParams::default()))?.map_err(Error::from)?;
    app.answer_limit = None;
    Ok(())
}

/// Lets `chorusd` rebuild the index of a home without a daemon. One of an earlier release does not report its progress.
fn rebuild_offline(app: &App) -> Result<Box<RawValue>, Error> {
    let work = OfflineWork {
        label: "rebuild",
        phases: &["reading"],
        if_interrupted: "the index is as it was; run the same command again",
    };
    match run_chorusd(app, work, &["--rebuild", "--progress"], None) {
        Err(failure) if failure.message().contains("--progress") => {
            connect::run_repair("--rebuild", app.global.socket.as_deref())
        }
        rebuilt => rebuilt,
    }
}

fn print_report(app: &mut App, result: &DoctorResult) -> Result<(), Error> {
    let width = result.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    for check in &result.checks {
        print_check(app, check, width)?;
    }
    if let Some(salvaged) = &result.salvaged {
        print_salvaged(app, salvaged)?;
    }
    result.rebuilt.as_ref().map_or(Ok(()), |rebuilt| print_rebuilt(app, rebuilt))
}

fn print_salvaged(app: &mut App, salvaged: &Salvaged) -> Result<(), Error> {
    let Salvaged { sessions, messages, expected, unreadable, restored, set_aside, nothing_readable } = salvaged;
    let expected = expected.map(|expected| format!("{expected} expected"));
    let lost = (*unreadable > 0).then(|| format!("{} unreadable", pluralize(*unreadable, "record")));
    let notes: Vec<String> = expected.into_iter().chain(lost).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    app.stdout.status_line(&format!(
        "salvaged: {}, {}{notes}",
        pluralize(*sessions, "session"),
        pluralize(*messages, "message")
    ))?;
    if !restored.is_empty() {
        app.stdout
            .status_line(&format!("loaded as live conversations: {}", sanitize::one_line(&restored.join(", "))))?;
    }
    for dir in set_aside {
        app.stdout.status_line(&format!("kept the damaged files in {}", sanitize::one_line(dir)))?;
    }
    for dir in nothing_readable {
        app.stdout
            .status_line(&format!("nothing readable in {}; keep it, it is the only copy", sanitize::one_line(dir)))?;
    }
    Ok(())
}

fn print_check(app: &mut App, check: &Check, width: usize) -> Result<(), Error> {
    let (word, style) = match check.verdict {
        Verdict::Ok => ("ok  ", Style::Good),
        Verdict::Warn => ("warn", Style::Strong),
        Verdict::Fail => ("FAIL", Style::Bad),
        Verdict::Info => ("info", Style::Faint),
    };
    let name = format!("{:width$}", sanitize::one_line(&check.name));
    let verdict = app.stdout.style(style, word).to_string();
    let indent = " ".repeat(width + 8);
    let room = app.stdout.width().map_or(usize::MAX, |columns| columns.saturating_sub(indent.len()).max(20));
    let hint = check.hint.as_ref().map(|hint| format!("hint: {}", sanitize::one_line(hint)));
    let mut first = true;
    for text in std::iter::once(sanitize::one_line(&check.text)).chain(hint) {
        for line in text::wrap(&text, room) {
            match std::mem::take(&mut first) {
                true => writeln!(app.stdout, "{verdict}  {name}  {line}")?,
                false => writeln!(app.stdout, "{indent}{line}")?,
            }
        }
    }
    Ok(())
}

fn print_rebuilt(app: &mut App, rebuilt: &Rebuilt) -> Result<(), Error> {
    let (agents, sessions) = (pluralize(rebuilt.agents, "agent"), pluralize(rebuilt.sessions, "session"));
    let corrupt = if rebuilt.corrupt > 0 { format!(" ({} corrupt)", rebuilt.corrupt) } else { String::new() };
    app.stdout.status_line(&format!("rebuilt: {agents}, {sessions}{corrupt}, in {} ms", rebuilt.duration_ms))?;
    let Some(aside) = &rebuilt.set_aside else { return Ok(()) };
    app.stdout.status_line(&format!("kept the damaged database as {}", sanitize::one_line(aside)))
}
