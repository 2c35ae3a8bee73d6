//! `chorusctl session expire`: moves sessions that were unused for long to the trash.

use chorus_proto::methods::session::{Expire, ExpireParams, ExpireResult};
use serde::Serialize;

use crate::app::App;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::pluralize;
use crate::ui::{Cell, Column, Style, Table, sanitize};

/// Move unused saved conversations to the trash
///
/// Moves sessions that were not used for a certain time: the sessions of all agents, or of the agent that --agent names. The time is
/// --unused-for or `sessions_unused_for` (`[retention]` in config.toml). If neither is set, nothing is moved. If the second is set, the
/// daemon also does this once a day. A session is kept if a live conversation was saved as it, was loaded from it or continues it.
/// `chorusctl trash restore` restores a session and counts as a use.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show what would be moved; change nothing
    #[arg(long)]
    dry_run: bool,
    /// Time without use, at least 1d [default: from config.toml]
    #[arg(long, value_name = "DURATION")]
    unused_for: Option<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let params = ExpireParams {
        agent: app.global.agent.clone(),
        unused_for: args.unused_for,
        dry_run: args.dry_run,
        ..Default::default()
    };
    let mut whole = app.call::<Expire>(&params)?;
    let gathered = collect_rest(app, params, &mut whole);
    print_result(app, &whole, args.dry_run)?;
    gathered
}

/// Repeats the call until no sessions are left, and collects the results.
fn collect_rest(app: &mut App, mut params: ExpireParams, whole: &mut ExpireResult) -> Result<(), Error> {
    let mut skipped = whole.sessions.len() as u64;
    while whole.left > 0 {
        params.offset = params.dry_run.then_some(skipped);
        let more = app.call::<Expire>(&params)?;
        // In a dry run the next offset follows from how much fewer are left, because some sessions may be gone by now.
        skipped += whole.left.saturating_sub(more.left).max(1);
        whole.left = more.left;
        whole.kept = more.kept;
        whole.sessions.extend(more.sessions);
    }
    Ok(())
}

fn print_result(app: &mut App, whole: &ExpireResult, dry_run: bool) -> Result<(), Error> {
    match app.stdout.format() {
        OutputFormat::Json => print_json(app, whole),
        OutputFormat::Jsonl => whole.sessions.iter().try_for_each(|session| print_json(app, session)),
        OutputFormat::Text => print_text(app, whole, dry_run),
    }
}

fn print_json(app: &mut App, value: &impl Serialize) -> Result<(), Error> {
    let raw = serde_json::value::to_raw_value(value).map_err(|error| Error::failed(error.to_string()))?;
    app.stdout.json_line(&raw)
}

fn print_text(app: &mut App, whole: &ExpireResult, dry_run: bool) -> Result<(), Error> {
    let Some(age) = whole.unused_for.as_deref().map(sanitize::one_line) else {
        app.stderr.line("nothing expires: `sessions_unused_for` is not set");
        app.stderr.hint("set it in [retention] of config.toml, or preview with --dry-run --unused-for 30d");
        return Ok(());
    };
    if !whole.sessions.is_empty() && !app.stdout.is_quiet() {
        let mut table = Table::new([
            Column::new("AGENT"),
            Column::new("LAST USED").whole(),
            Column::new("MESSAGES").align_right().optional(),
            Column::new("SESSION").flexible(),
        ]);
        for session in &whole.sessions {
            let used = app.stdout.clock().local_date_time(session.last_used_at);
            table.add_row([
                Cell::from(sanitize::one_line(&session.agent_name)),
                used.into(),
                session.message_count.to_string().into(),
                Cell::new(Style::Strong, sanitize::one_line(&session.session_id)),
            ]);
        }
        table.write(&mut app.stdout)?;
    }
    let sessions = pluralize(whole.sessions.len() as u64, "session");
    app.stdout.status_line(&match (whole.sessions.is_empty(), dry_run) {
        (true, _) => format!("no sessions unused for {age}"),
        (false, true) => format!("{sessions} unused for {age} would be moved to the trash"),
        (false, false) => format!("moved {sessions} unused for {age} to the trash"),
    })?;
    if whole.kept > 0 {
        app.stderr.line(&format!("kept {} that live conversations need", pluralize(whole.kept, "session")));
    }
    Ok(())
}
