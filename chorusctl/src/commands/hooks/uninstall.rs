//! `chorusctl hooks uninstall`: removes the hooks from the settings of a coding tool.

use super::Tool;
use super::install::print_json;
use super::settings::Settings;
use crate::app::App;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

/// Remove the hooks from the settings of a coding tool
///
/// Shows the change and asks. Other hooks and settings stay the same, and the file as it was before the first change stays next to it (with
/// the suffix .before-chorus).
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
    let is_changed = !settings.installed()?.is_empty();
    if is_changed {
        let text = settings.without().ok_or_else(|| {
            Error::failed(format!("cannot change {} safely; nothing was changed", settings.file.shown_path()))
                .with_hint("remove the commands with `hooks run claude-code` by hand")
        })?;
        settings.file.replace(&text, "hooks uninstall", args.yes, app)?;
    }
    if app.stdout.format() != OutputFormat::Text {
        return print_json(&settings, is_changed, app);
    }
    let path = settings.file.shown_path();
    if !is_changed {
        return app.stdout.status_line(&format!("not installed in Claude Code ({path})"));
    }
    app.stdout.status_line("removed from Claude Code")
}
