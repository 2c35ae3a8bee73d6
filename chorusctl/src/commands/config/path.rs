//! `chorusctl config path`: prints the path of config.toml.

use serde_json::value::to_raw_value;

use super::offline;
use crate::app::App;
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

/// Print the path of config.toml
///
/// It is the file that the running daemon uses; if none is running, the one that it would read. The file need not exist.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    let file = offline::find_file(app)?;
    offline::warn_about_other_file(app, &file.path)?;
    if app.stdout.format() == OutputFormat::Text {
        return writeln!(app.stdout, "{}", sanitize::one_line(&file.path.to_string_lossy()));
    }
    let json = to_raw_value(&file).map_err(chorus_proto::CallError::from)?;
    app.stdout.json_line(&json)
}
