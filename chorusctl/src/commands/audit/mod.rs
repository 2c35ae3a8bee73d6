//! `chorusctl audit`: prints the audit log; `audit verify` checks it.

use chorus_proto::methods::audit::{Audit, AuditParams, AuditResult, AuditRow};
use clap::Subcommand;

use crate::app::App;
use crate::commands::agent::show::value_text;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, RowArgs, Style, Table, sanitize, text};

mod sentence;
pub mod verify;

/// Column in which the sentences begin.
const INDENT: usize = 26;
/// Narrowest sentence; a narrower terminal wraps by itself.
const MIN_SENTENCE_WIDTH: usize = 20;

/// Show the audit log
///
/// Shows who decided about each action and why, and what each change changed, newest last. --json prints the entries as they
/// are stored. --agent selects the agents that have or had that name, including deleted ones. With
/// --columns, --sort or --filter, the entries are a table.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Only entries since then: 7d, 1h30m, yesterday, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only the newest N entries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    rows: RowArgs,
}

const COLUMNS: [Column; 7] = [
    Column::new("ID").align_right(),
    Column::new("WHEN").whole(),
    Column::new("AGENT"),
    Column::new("DECISION").optional(),
    Column::new("BY").optional(),
    Column::new("ACTION").flexible(),
    Column::new("REASON").flexible().optional(),
];

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
    let mut table = Table::arranged(COLUMNS, &args.rows, app.stdout.format())?;
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
            OutputFormat::Text if args.rows.is_given() => {
                page.rows.iter().for_each(|row| table.add_row(table_row(app, row)));
            }
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
        OutputFormat::Text if args.rows.is_given() => table.write(&mut app.stdout),
        _ => Ok(()),
    }
}

fn print_json(app: &mut App, value: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::value::to_raw_value(value).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&text)
}

fn table_row(app: &mut App, row: &AuditRow) -> [Cell; 7] {
    [
        row.id.to_string().into(),
        Cell::from(app.stdout.clock().local_date_time(row.at)).sorted_by_time(row.at),
        sanitize::one_line(&row.agent).into(),
        Cell::new(decision_style(&row.decision), sanitize::one_line(&row.decision)),
        sanitize::one_line(&row.user).into(),
        sanitize::one_line(&row.action).into(),
        sanitize::one_line(&row.rule).into(),
    ]
}

fn decision_style(decision: &str) -> Style {
    match decision {
        "allow" | "approved" | "approved_always" | "approved_pattern" | "approved_turn" => Style::Good,
        "deny" | "refused" | "expired" | "withdrawn" | "lost" | "not_changed" => Style::Bad,
        _ => Style::Strong,
    }
}

fn print_row(app: &mut App, row: &AuditRow) -> Result<(), Error> {
    let said = sentence::describe(row);
    let style = decision_style(&row.decision);
    let time = app.stdout.clock().local_date_time(row.at);
    let lines = wrap(app, &sanitize::one_line(&said.text));
    let mut lead = format!("{:>6}  {time}  ", row.id);
    for (at, line) in lines.iter().enumerate() {
        // The words that say how it was decided stand near the start.
        match line.split_once(&said.verb).filter(|_| at == 0) {
            Some((before, after)) => {
                writeln!(app.stdout, "{lead}{before}{}{after}", app.stdout.style(style, &said.verb))?;
            }
            None => writeln!(app.stdout, "{lead}{line}")?,
        }
        lead = " ".repeat(INDENT);
    }
    for line in wrap(app, &sanitize::one_line(&said.reason)) {
        writeln!(app.stdout, "{lead}{}", app.stdout.style(Style::Faint, &line))?;
    }
    for (name, value) in [("before", &row.old), ("after", &row.new)] {
        let value = match value {
            Some(value) => sanitize::one_line(&readable(value)),
            None if row.old.is_some() || row.new.is_some() => "-".to_owned(),
            None => continue,
        };
        for (at, line) in wrap(app, &format!("{name}: {value}")).iter().enumerate() {
            writeln!(app.stdout, "{lead}{}{line}", if at == 0 { "" } else { "  " })?;
        }
    }
    Ok(())
}

/// Formats the JSON of a setting; text stays quoted, lists are read as in `agent config`.
fn readable(json: &str) -> String {
    match serde_json::from_str(json) {
        Ok(list @ serde_json::Value::Array(_)) => value_text(&list),
        _ => json.to_owned(),
    }
}

/// Wraps a text to the room beside the time.
fn wrap(app: &App, line: &str) -> Vec<String> {
    match app.stdout.width() {
        _ if line.is_empty() => Vec::new(),
        Some(width) => {
            let room = width.saturating_sub(INDENT + 2).max(MIN_SENTENCE_WIDTH);
            text::wrap(line, room).into_iter().map(std::borrow::Cow::into_owned).collect()
        }
        None => vec![line.to_owned()],
    }
}
