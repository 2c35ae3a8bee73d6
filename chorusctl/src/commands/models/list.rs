//! `chorusctl models list`.

use chorus_proto::methods::models::{List, ModelsParams};

use crate::app::App;
use crate::error::Failure;
use crate::reply;
use crate::ui::out::Format;

/// List the models that were found; the same as no command
///
/// Providers are asked when the daemon starts and by `chorusctl models validate`. With context length and prices where
/// they are known: from `[prices]` of config.toml, else as the provider tells.
#[derive(Debug, clap::Args)]
pub struct Args {}

/// Lists them.
///
/// # Errors
/// Why there is no list.
pub fn run(_: Args, app: &mut App) -> Result<(), Failure> {
    if app.out.format() == Format::Jsonl {
        let raw = app.call_raw::<List>(&ModelsParams {})?;
        return reply::lines(&mut app.out, &raw, "providers");
    }
    app.answer::<List>(&ModelsParams {}, |app, found| super::show(app, &found))
}
