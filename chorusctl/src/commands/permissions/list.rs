//! `chorusctl permissions list`: lists the permission profiles.

use chorus_proto::methods::permissions::{BashMode, List, ListParams};

use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Style, Table, sanitize};

/// List permission profiles (default)
///
/// Lists the presets, then those of `[permissions.NAME]` in config.toml, with the agents that use them. A profile that belongs to one
/// agent is not listed: `chorusctl agent config NAME permissions` shows it.
#[derive(Debug, Default, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<List>(&ListParams {})?;
        return print_pages::print_entries(&mut app.stdout, &raw, "profiles");
    }
    app.call_and_print::<List>(&ListParams {}, |app, found| {
        let mut table = Table::new([
            Column::new("PROFILE"),
            Column::new("DEFAULT"),
            Column::new("BASH"),
            Column::new("NETWORK"),
            Column::new("AGENTS").flexible(),
        ]);
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
