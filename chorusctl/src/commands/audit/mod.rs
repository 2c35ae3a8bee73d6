//! `chorusctl audit`: prints the audit log; `audit verify` checks it.

use chorus_proto::methods::audit::{Audit, AuditParams, AuditResult, AuditRow};
use clap::Subcommand;

use crate::app::App;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Style, sanitize};

pub mod verify;

/// Show the audit log
///
/// Lists every action with its decision and the rule or person behind it, and every change that an agent made to itself, newest last.
/// --agent selects the agents that have or had that name, including deleted ones.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Only entries since then: 7d, 1h30m, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only the newest N entries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Check that no entry was changed or removed
    Verify(verify::Args),
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.page_if_long();
    if let Some(Verb::Verify(args)) = args.verb {
        return verify::run(args, app);
    }
    let agent = app.global.agent.clone();
    let mut params = AuditParams { agent, since: args.since, limit: args.limit, after: None };
    let mut whole = AuditResult { rows: Vec::new(), next: None };
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut some = false;
    loop {
        let mut page = app.call::<Audit>(&params)?;
        page.rows.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= page.rows.len() as u64;
        some |= !page.rows.is_empty();
        match app.stdout.format() {
            OutputFormat::Json => whole.rows.extend(page.rows),
            OutputFormat::Jsonl => page.rows.iter().try_for_each(|row| print_json(app, row))?,
            OutputFormat::Text => page.rows.iter().try_for_each(|row| print_row(app, row))?,
        }
        match page.next.filter(|_| left > 0) {
            // `limit` chooses where the first page begins (the newest N); later pages continue after its last row.
            Some(next) => params = AuditParams { after: Some(next), limit: None, ..params },
            None => break,
        }
    }
    match app.stdout.format() {
        OutputFormat::Json => print_json(app, &whole),
        OutputFormat::Text if !some => {
            app.stderr.line("the audit log is empty");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn print_json(app: &mut App, value: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::value::to_raw_value(value).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&text)
}

fn print_row(app: &mut App, row: &AuditRow) -> Result<(), Error> {
    let time = app.stdout.clock().local_date_time(row.at);
    let style = match &*row.decision {
        "allow" | "approved" | "approved_always" => Style::Good,
        "deny" | "refused" | "expired" | "withdrawn" | "lost" => Style::Bad,
        _ => Style::Strong,
    };
    let decision = format!("{:<15}", sanitize::one_line(&row.decision));
    let (agent, action) = (sanitize::one_line(&row.agent), sanitize::one_line(&row.action));
    writeln!(app.stdout, "{:>6}  {time}  {}  {agent}  {action}", row.id, app.stdout.style(style, &decision))?;
    let why = [("", sanitize::one_line(&row.rule)), ("for ", sanitize::one_line(&row.user))];
    let why: Vec<String> =
        why.into_iter().filter(|(_, text)| !text.is_empty()).map(|(word, text)| format!("{word}{text}")).collect();
    writeln!(app.stdout, "        {}", why.join("; "))?;
    if row.old.is_some() || row.new.is_some() {
        let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), sanitize::one_line);
        writeln!(app.stdout, "        was {}", shown(&row.old))?;
        writeln!(app.stdout, "        is  {}", shown(&row.new))?;
    }
    Ok(())
}
