//! `chorusctl hooks install`: adds the hooks to the settings of a coding tool.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::Tool;
use super::settings::{Settings, wanted};
use crate::app::App;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

/// Add the hooks to the settings of a coding tool
///
/// Shows the change and asks. Other hooks and settings stay the same, and the file as it was before the first change is saved next to it (with
/// the suffix .before-chorus). Conversations that start afterwards use them.
///
/// The tool runs this chorusctl, with the current values of CHORUS_HOME, CHORUS_SOCKET and CHORUS_CONFIG if they are set.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Coding tool: claude-code
    #[arg(value_enum, value_name = "TOOL", hide_possible_values = true)]
    tool: Tool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    let settings = Settings::read(args.tool)?;
    let hooks = wanted(app)?;
    let installed = settings.installed()?;
    let has = |(event, group): &(&str, Value)| installed.iter().any(|(at, held)| at == event && held == group);
    let is_changed = installed.len() != hooks.len() || !hooks.iter().all(has);
    if is_changed {
        let text = settings.with(&hooks).ok_or_else(|| {
            Error::failed(format!("cannot change {} safely; nothing was changed", settings.file.shown_path()))
                .with_hint("`hooks` in it must be an object with lists, as Claude Code needs it")
        })?;
        settings.file.replace(&text, "hooks install", args.yes, app)?;
    }
    if app.stdout.format() != OutputFormat::Text {
        return print_json(&settings, is_changed, app);
    }
    let path = settings.file.shown_path();
    if !is_changed {
        return app.stdout.status_line(&format!("already installed in Claude Code ({path})"));
    }
    app.stdout.status_line("installed in Claude Code, for conversations that start from now on")
}

/// Prints the result as JSON.
pub(super) fn print_json(settings: &Settings, is_changed: bool, app: &mut App) -> Result<(), Error> {
    let result = json!({"tool": "claude-code", "file": settings.file.path, "changed": is_changed});
    let raw = to_raw_value(&result).map_err(|error| Error::failed(error.to_string()))?;
    app.stdout.json_line(&raw)
}
