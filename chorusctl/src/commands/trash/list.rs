//! `chorusctl trash list`.

use chorus_proto::methods::trash::{List, ListParams};

use super::{kind, short};
use crate::app::App;
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;
use crate::ui::{Cell, Column, Style, Table, safe};

/// List what was deleted, newest first
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Lists it.
///
/// # Errors
/// Why there is no list.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    if app.out.format() == Format::Jsonl {
        let raw = app.call_raw::<List>(&ListParams {})?;
        return reply::lines(&mut app.out, &raw, "entries");
    }
    app.answer::<List>(&ListParams {}, |app, result| {
        if result.entries.is_empty() {
            app.notes.line("the trash is empty");
            return Ok(());
        }
        let mut table = Table::new([
            Column::new("ID"),
            Column::new("DELETED"),
            Column::new("WHAT"),
            Column::new("AGENT"),
            Column::new("NAME").flexible(),
        ]);
        for entry in &result.entries {
            let deleted = app.out.clock().local(entry.deleted_at);
            table.row([
                Cell::new(Style::Id, short(entry)),
                deleted.into(),
                kind(entry).into(),
                safe::one_line(entry.agent_name.as_deref().unwrap_or_default()).into(),
                safe::one_line(&entry.name).into(),
            ]);
        }
        table.write(&mut app.out)
    })
}
