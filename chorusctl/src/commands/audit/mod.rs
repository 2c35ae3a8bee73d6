//! `chorusctl audit`.

use chorus_proto::methods::audit::{Audit, AuditParams, AuditResult, AuditRow};
use clap::Subcommand;

use crate::app::App;
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::{Style, safe};

pub mod verify;

/// Show what was decided about what agents do
///
/// Every action with its decision, the rule or the person behind it, and every change of an agent by itself; the newest last. With
/// --agent only those of the agents that have or had that name, destroyed ones too.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Only what was decided since: 7d, 1h30m, or a date
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only the newest N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Check that nothing in the log was changed or taken out
    Verify(verify::Args),
}

/// Shows it, or checks it.
///
/// # Errors
/// Why it cannot be shown, or is not as it was written.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
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
        match app.out.format() {
            Format::Json => whole.rows.extend(page.rows),
            Format::Jsonl => page.rows.iter().try_for_each(|row| json_line(app, row))?,
            Format::Text => page.rows.iter().try_for_each(|row| text_line(app, row))?,
        }
        match page.next.filter(|_| left > 0) {
            // The first page began where the newest N do.
            Some(next) => params = AuditParams { after: Some(next), limit: None, ..params },
            None => break,
        }
    }
    match app.out.format() {
        Format::Json => json_line(app, &whole),
        Format::Text if !some => {
            app.notes.line("nothing was decided yet");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn json_line(app: &mut App, value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::value::to_raw_value(value).map_err(chorus_proto::CallError::from)?;
    app.out.json_line(&text)
}

fn text_line(app: &mut App, row: &AuditRow) -> Result<(), Failure> {
    let time = app.out.clock().local(row.at);
    let style = match &*row.decision {
        "allow" | "approved" | "approved_always" => Style::Good,
        "deny" | "refused" | "expired" | "withdrawn" | "lost" => Style::Bad,
        _ => Style::Strong,
    };
    let decision = format!("{:<15}", safe::one_line(&row.decision));
    let (agent, action) = (safe::one_line(&row.agent), safe::one_line(&row.action));
    writeln!(app.out, "{:>6}  {time}  {}  {agent}  {action}", row.id, app.out.paint(style, &decision))?;
    let why = [("", safe::one_line(&row.rule)), ("for ", safe::one_line(&row.user))];
    let why: Vec<String> =
        why.into_iter().filter(|(_, text)| !text.is_empty()).map(|(word, text)| format!("{word}{text}")).collect();
    writeln!(app.out, "        {}", why.join("; "))?;
    if row.old.is_some() || row.new.is_some() {
        let shown = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), safe::one_line);
        writeln!(app.out, "        was {}", shown(&row.old))?;
        writeln!(app.out, "        is  {}", shown(&row.new))?;
    }
    Ok(())
}
