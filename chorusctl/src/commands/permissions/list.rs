//! `chorusctl permissions list`: lists the permission profiles.

use chorus_proto::methods::permissions::{BashMode, List, ListParams};

use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};

/// List permission profiles (default)
///
/// Lists the presets, then those of `[permissions.NAME]` in config.toml, with the agents that use them. A profile that belongs to one
/// agent is not listed: `chorusctl agent config NAME permissions` shows it.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 5] = [
    Column::new("PROFILE"),
    Column::new("DEFAULT"),
    Column::new("BASH").optional(),
    Column::new("NETWORK").optional(),
    Column::new("AGENTS").flexible(),
];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let mut table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<List>(&ListParams {})?;
        return print_pages::print_entries(&mut app.stdout, &raw, "profiles");
    }
    app.call_and_print::<List>(&ListParams {}, |app, found| {
        for profile in &found.profiles {
            let bash = match profile.bash {
                BashMode::Parsed => "parsed",
                BashMode::Whole => "whole",
            };
            table.add_row([
                Cell::new(Style::Strong, sanitize::one_line(&profile.name)),
                profile.default.as_str().into(),
                bash.into(),
                if profile.network { "yes" } else { "no" }.into(),
                sanitize::one_line(&profile.agents.join(", ")).into(),
            ]);
        }
        table.write(&mut app.stdout)
    })
}
