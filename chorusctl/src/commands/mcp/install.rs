//! `chorusctl mcp install`: adds the server to the configuration of a coding tool.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::tool::{ServerCommand, Tool};
use super::tool_config::ToolConfig;
use crate::app::App;
use crate::coding_tools::own_command;
use crate::error::Error;
use crate::ui::stdout::OutputFormat;

/// Add the server to the configuration of a coding tool
///
/// Shows the change and asks. Only this entry changes; the rest of the file stays the same, and the file as it was before the first
/// change is saved next to it (with the suffix .before-chorus). If the entry exists with other options, it is replaced.
///
/// The tool runs this chorusctl, with the current values of CHORUS_HOME, CHORUS_SOCKET and CHORUS_CONFIG if they are set.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Coding tool
    #[arg(value_enum)]
    tool: Tool,
    /// Let the tool's model change things, too: append, pin, remember, save, restore, resume
    #[arg(long)]
    write: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    let config = ToolConfig::read(args.tool)?;
    let entry = args.tool.entry(&server_command(args.write, app)?);
    let title = args.tool.title();
    let is_changed = config.entry()?.as_ref() != Some(&entry);
    if is_changed {
        let Some(text) = config.with_entry(&entry) else {
            app.stdout.text(&config.snippet(&entry))?;
            return Err(Error::failed(format!(
                "cannot change {} safely; nothing was changed",
                config.file.shown_path()
            ))
            .with_hint("add the entry above by hand"));
        };
        config.file.replace(&text, "mcp install", args.yes, app)?;
    }
    if app.stdout.format() != OutputFormat::Text {
        return print_json(args.tool, &config, is_changed, app);
    }
    if !is_changed {
        return app.stdout.status_line(&format!("already installed in {title} ({})", config.file.shown_path()));
    }
    app.stdout.status_line(&format!("installed in {title}; restart it to use the new tools"))
}

/// Prints the result as JSON.
pub(super) fn print_json(tool: Tool, config: &ToolConfig, is_changed: bool, app: &mut App) -> Result<(), Error> {
    let result = json!({"tool": tool.word(), "file": config.file.path, "changed": is_changed});
    let raw = to_raw_value(&result).map_err(|error| Error::failed(error.to_string()))?;
    app.stdout.json_line(&raw)
}

/// Returns the command that the tool is to run.
fn server_command(can_write: bool, app: &App) -> Result<ServerCommand, Error> {
    let mut args = vec!["mcp".to_owned()];
    if can_write {
        args.push("--write".to_owned());
    }
    for (name, value) in [("--agent", &app.global.agent), ("--conversation", &app.global.conversation)] {
        args.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
    }
    if let Some(socket) = &app.global.socket {
        args.extend(["--socket".to_owned(), own_command::absolute(socket.as_os_str())?]);
    }
    if app.global.no_autostart {
        args.push("--no-autostart".to_owned());
    }
    let env = own_command::instance_variables()?;
    Ok(ServerCommand { program: own_command::program()?.to_string_lossy().into_owned(), args, env })
}
