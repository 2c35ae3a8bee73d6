//! `chorusctl models list`: lists the models that were discovered.

use chorus_proto::methods::models::{List, ModelsParams};

use crate::app::App;
use crate::error::Error;
use crate::print_pages;
use crate::ui::stdout::OutputFormat;
use crate::ui::{Table, TableArgs};

/// List models (default)
///
/// The daemon asks the providers when it starts and when you run `chorusctl models validate`. The list has the context length and the
/// prices if they are known: from `[prices]` in config.toml, otherwise from the provider.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    #[command(flatten)]
    table: TableArgs,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let table = Table::with_args(super::COLUMNS, &args.table, app.stdout.format())?;
    if app.stdout.format() == OutputFormat::Jsonl {
        let raw = app.call_raw::<List>(&ModelsParams {})?;
        return print_pages::print_entries(&mut app.stdout, &raw, "providers");
    }
    app.call_and_print::<List>(&ModelsParams {}, |app, found| super::print_models(table, app, &found))
}
