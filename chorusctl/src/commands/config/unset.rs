//! `chorusctl config unset`: removes a key from config.toml.

use chorus_proto::error::exit;
use chorus_proto::methods::config::SetParams;

use super::apply;
use crate::app::App;
use crate::commands::agent::show::value_text;
use crate::error::Error;
use crate::ui::{Style, sanitize};

/// Remove a key from config.toml
///
/// Also removes a table with its keys, such as providers.local, and a value of `settings set`. Other lines stay, comments included.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Key with its table, or a table
    key: String,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let change = apply::change(app, "config unset", &SetParams { key: args.key, value: None })?;
    let result = &change.result;
    let key = sanitize::one_line(&result.key);
    if !result.changed && result.removed_setting.is_none() {
        return Err(Error::new(
            exit::NOTHING_TO_DO,
            format!("{key} is not set in {}", sanitize::one_line(&result.file)),
        )
        .with_hint("see where its value comes from: chorusctl config show --origin"));
    }
    if apply::print_json(app, &change)? {
        return Ok(());
    }
    let key = app.stdout.style(Style::Strong, &key);
    let line = match &result.setting {
        Some(setting) if !result.restart => {
            let value = sanitize::one_line(&value_text(&setting.value));
            format!("{key}: {value} ({})", setting.from.as_str())
        }
        _ => format!("{key}: removed from {}", sanitize::one_line(&result.file)),
    };
    app.stdout.status_line(&line)?;
    apply::print_consequences(app, &change)
}
