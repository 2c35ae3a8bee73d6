//! `chorusctl mcp uninstall`: removes the server from the configuration of a coding tool.

use super::install::print_json;
use super::tool::Tool;
use super::tool_config::ToolConfig;
use crate::app::App;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

/// Remove the server from the configuration of a coding tool
///
/// Shows the change and asks. The rest of the file stays the same, and the file as it was before the first change stays next to it
/// (with the suffix .before-chorus).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Coding tool
    #[arg(value_enum)]
    tool: Tool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    let config = ToolConfig::read(args.tool)?;
    let title = args.tool.title();
    let is_changed = config.entry()?.is_some();
    if is_changed {
        let text = config.without_entry().ok_or_else(|| {
            Error::failed(format!("cannot change {} safely; nothing was changed", config.file.shown_path()))
                .with_hint(format!("remove `chorus` from `{}` by hand", args.tool.servers_key()))
        })?;
        config.file.replace(&text, "mcp uninstall", args.yes, app)?;
    }
    if app.stdout.format() != OutputFormat::Text {
        return print_json(args.tool, &config, is_changed, app);
    }
    if !is_changed {
        return app.stdout.status_line(&format!("not installed in {title} ({})", config.file.shown_path()));
    }
    app.stdout.status_line(&format!("removed from {title}"))
}
