//! `chorusctl memory list`: lists an agent's memory in the order in which its model is shown it.

use chorus_proto::methods::memory::{List, ListParams, ListResult, MemoryEntry};

use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::units::format_token_count;
use crate::ui::{Table, TableArgs};

/// List an agent's memories, in the order in which its model sees them (default)
///
/// Memories that people added come first, then those of agents, each newest first. The model sees as many as fit; the list counts and
/// names the rest.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Maximum number of entries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    table: TableArgs,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let mut table = Table::with_args(super::COLUMNS, &args.table, app.stdout.format())?;
    // Sorted or filtered, all entries count, and as many as wanted are shown.
    let limit = args.limit.filter(|_| !args.table.rows.needs_all_rows());
    table.limit_rows(args.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
    let agent = app.agent();
    let params = |offset| ListParams { agent: agent.clone(), offset: Some(offset), limit };
    if limit.is_none() && app.stdout.format() != OutputFormat::Text {
        return print_pages::print_all_pages::<List, _>(app, "entries", &params(0), params);
    }
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<List>(&params(0))?;
        return print_pages::print_entries(&mut app.stdout, &raw, "entries");
    }
    app.call_and_print::<List>(&params(0), |app, first| {
        let (mut entries, mut next) = (first.entries, first.next);
        while let Some(offset) = next.filter(|_| limit.is_none()) {
            let page = app.call::<List>(&params(offset))?;
            entries.extend(page.entries);
            next = page.next.filter(|next| *next > offset);
        }
        print_entries(table, &ListResult { entries: Vec::new(), ..first }, &entries, app)
    })
}

fn print_entries(table: Table, result: &ListResult, entries: &[MemoryEntry], app: &mut App) -> Result<(), Error> {
    if result.total == 0 {
        app.stderr.line("no memories; add one: chorusctl memory add TEXT");
        return Ok(());
    }
    super::write_table(table, entries, &mut app.stdout)?;
    app.stdout.flush()?;
    let used = format!("{} of {}", result.tokens, format_token_count(result.token_budget));
    if result.shown < result.total {
        app.stderr.line(&format!("the model sees {} of {} entries ({used})", result.shown, result.total));
    }
    Ok(())
}
