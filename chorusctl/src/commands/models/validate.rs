//! `chorusctl models validate`.

use chorus_proto::error::exit;
use chorus_proto::methods::models::{Discovery, ModelsParams, ModelsResult, Validate};

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

/// Ask every provider for its models, which tests its key; nothing is paid for
///
/// With `local = true` in `[discovery]` of config.toml, servers on the usual ports of this machine are looked for too.
/// Exit status 0 where every provider answered, 1 otherwise.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Asks, and shows what was found.
///
/// # Errors
/// A provider that failed, or why none could be asked.
pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    let raw = app.call_raw::<Validate>(&ModelsParams {})?;
    let found: ModelsResult = parse_result(&raw)?;
    match app.stdout.format() {
        OutputFormat::Text => super::print_models(app, &found)?,
        OutputFormat::Json | OutputFormat::Jsonl => app.stdout.json_line(&raw)?,
    }
    let failed = found.providers.iter().any(|provider| provider.found == Discovery::Failed);
    if failed { Err(Error::reported(exit::FAILED)) } else { Ok(()) }
}
