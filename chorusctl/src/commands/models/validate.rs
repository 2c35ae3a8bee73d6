//! `chorusctl models validate`: asks every provider for its models.

use chorus_proto::error::exit;
use chorus_proto::methods::models::{Discovery, ModelsParams, ModelsResult, Validate};

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::Table;
use crate::ui::stdout::OutputFormat;

/// Test each provider's API key by listing its models (free of charge)
///
/// With `local = true` in `[discovery]` of config.toml, also looks for servers on the usual ports of this machine. The exit status is 0
/// if every provider replied, otherwise 1.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    let raw = app.call_raw::<Validate>(&ModelsParams {})?;
    let found: ModelsResult = parse_result(&raw)?;
    match app.stdout.format() {
        OutputFormat::Text => super::print_models(Table::new(super::COLUMNS), app, &found)?,
        OutputFormat::Json | OutputFormat::Jsonl => app.stdout.json_line(&raw)?,
    }
    let failed = found.providers.iter().any(|provider| provider.found == Discovery::Failed);
    if failed { Err(Error::reported(exit::FAILED)) } else { Ok(()) }
}
