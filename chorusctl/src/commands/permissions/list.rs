//! `chorusctl permissions list`.

use chorus_proto::methods::permissions::{BashMode, List, ListParams};

use crate::app::App;
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;
use crate::ui::{Cell, Column, Style, Table, safe};

/// List the permission profiles; the same as no command
///
/// The presets, then those of `[permissions.NAME]` in config.toml, with the agents that have them. An agent with a
/// profile of its own is not listed: `chorusctl agent config NAME permissions` shows it.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Lists them.
///
/// # Errors
/// Why there is no list.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    if app.out.format() == Format::Jsonl {
        let raw = app.call_raw::<List>(&ListParams {})?;
        return reply::lines(&mut app.out, &raw, "profiles");
    }
    app.answer::<List>(&ListParams {}, |app, found| {
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
            table.row([
                Cell::new(Style::Strong, safe::one_line(&profile.name)),
                profile.default.as_str().into(),
                bash.into(),
                if profile.network { "yes" } else { "no" }.into(),
                safe::one_line(&profile.agents.join(", ")).into(),
            ]);
        }
        table.write(&mut app.out)
    })
}
