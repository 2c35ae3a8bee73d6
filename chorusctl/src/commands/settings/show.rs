//! `chorusctl settings show`: prints the effective configuration.

use chorus_proto::methods::settings::{From, Show, ShowParams};

use super::hint;
use crate::app::App;
use crate::commands::agent::show::value_text;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Cell, Column, Style, Table, TableArgs, sanitize};

/// Show every key with its value and its source (default)
///
/// A value comes from the environment, `settings set`, config.toml or the default, in this order. Secrets are hidden; for API keys the
/// source is shown.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    #[command(flatten)]
    table: TableArgs,
}

const COLUMNS: [Column; 3] = [Column::new("KEY"), Column::new("VALUE").flexible(), Column::new("FROM").flexible()];

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    hint(app, "this is now: chorusctl config");
    let mut table = Table::with_args(COLUMNS, &args.table, app.stdout.format())?;
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<Show>(&ShowParams {})?;
        return print_pages::print_entries(&mut app.stdout, &raw, "settings");
    }
    app.call_and_print::<Show>(&ShowParams {}, |app, found| {
        for setting in &found.settings {
            let from = match &setting.place {
                Some(place) if setting.from == From::Environment => format!("${place}"),
                Some(place) => place.clone(),
                None => setting.from.as_str().to_owned(),
            };
            let value = if setting.value.is_null() { "-".to_owned() } else { value_text(&setting.value) };
            table.add_row([
                Cell::new(Style::Strong, sanitize::one_line(&setting.key)),
                sanitize::one_line(&value).into(),
                sanitize::one_line(&from).into(),
            ]);
        }
        table.write(&mut app.stdout)?;
        let Some(file) = &found.file else { return Ok(()) };
        let missing = if file.exists { "" } else { " (no such file)" };
        writeln!(app.stdout, "\nconfiguration file: {}{missing}", sanitize::one_line(&file.path))
    })
}
