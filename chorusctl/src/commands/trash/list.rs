//! `chorusctl trash list`: lists the contents of the trash.

use chorus_proto::methods::trash::{List, ListParams};

use super::{kind_name, short_id};
use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};

/// List deleted items, newest first (default)
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 5] = [
    Column::new("ID").whole(),
    Column::new("DELETED").whole(),
    Column::new("WHAT"),
    Column::new("AGENT").optional(),
    Column::new("NAME").flexible(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let mut table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<List>(&ListParams {})?;
        return print_pages::print_entries(&mut app.stdout, &raw, "entries");
    }
    app.call_and_print::<List>(&ListParams {}, |app, result| {
        if result.entries.is_empty() {
            app.stderr.line("the trash is empty");
            return Ok(());
        }
        for entry in &result.entries {
            let deleted = app.stdout.clock().local_date_time(entry.deleted_at);
            table.add_row([
                Cell::new(Style::Id, short_id(entry)),
                Cell::from(deleted).sorted_by_time(entry.deleted_at),
                kind_name(entry).into(),
                sanitize::one_line(entry.agent_name.as_deref().unwrap_or_default()).into(),
                sanitize::one_line(&entry.name).into(),
            ]);
        }
        table.write(&mut app.stdout)
    })
}
