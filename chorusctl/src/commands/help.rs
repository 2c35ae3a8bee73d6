//! `chorusctl help`: prints the help of a command.

use clap::error::ErrorKind;

use crate::app::App;
use crate::cli;
use crate::error::Error;
use crate::unknown_command;

/// Show the help of a command
///
/// The same as `chorusctl COMMAND --help`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command, for example `context save`
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub fn run(args: &Args, app: &mut App) -> Result<(), Error> {
    print(&args.command, app)
}

/// Prints the help of the command with this full name.
pub fn print(name: &[String], app: &mut App) -> Result<(), Error> {
    let program = std::env::args().next().unwrap_or_default();
    let arguments = std::iter::once(program.as_str()).chain(name.iter().map(String::as_str)).chain(["--help"]);
    let mut command = cli::command();
    match command.try_get_matches_from_mut(arguments) {
        Err(help) if help.kind() == ErrorKind::DisplayHelp => {
            let help = help.render();
            let text = if app.stdout.has_color() { help.ansi().to_string() } else { help.to_string() };
            app.stdout.text(&text)
        }
        Err(error) => {
            let tree = cli::command_tree();
            let unknown = unknown_command::find(&error, &tree, name);
            Err(unknown.map_or_else(
                || Error::usage(format!("no help for `{}`", name.join(" "))),
                |unknown| unknown_command::error(&tree, &unknown.path, &unknown.word),
            ))
        }
        // `--help` never parses.
        Ok(_) => Ok(()),
    }
}
