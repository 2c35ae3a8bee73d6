//! `chorusctl`, the command line of Chorus: parses the command line, sends requests to `chorusd`, and prints the
//! results.
//!
//! Each subcommand is a module under [`commands`]. It returns errors as [`error::Error`]; only [`main`] prints them and
//! sets the exit status.

#![warn(unreachable_pub)]

pub mod agent_select;
pub mod app;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod c_main;
pub mod cli;
pub mod coding_tools;
pub mod commands;
pub mod complete;
pub mod connect;
pub mod conversation_select;
mod done_report;
pub mod error;
mod first_agent;
mod host_select;
mod new_conversation;
mod no_answer;
mod older_daemon;
pub mod print_pages;
mod reconnect;
pub mod ui;
mod unknown_command;
mod version_difference;

use std::io::Write as _;

use app::App;
use chorus_proto::error::exit;
use cli::GlobalOptions;
use error::Error;
use unknown_command::UnknownCommand;

/// Runs the program and returns its exit status.
#[must_use]
pub fn main() -> u8 {
    if let Some(ended) = complete::complete_if_requested() {
        return ended;
    }
    let parsed = cli::parse_fast_path(std::env::args_os().skip(1)).map_or_else(|| cli::parse(std::env::args_os()), Ok);
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return report_usage_error(&error),
    };
    let mut app = App::new(cli.global);
    let done = commands::run(cli.command, &mut app);
    // Flush output that was written before an error, then print the error.
    let flushed = app.stdout.finish();
    let done = done.and(flushed).map_err(|error| error.with_done(app.done));
    exit_code(done.map_err(|error| version_difference::explain(error, &mut app)), &app)
}

/// Prints help and version to standard output and usage errors to standard error; ignores it if either is closed.
fn report_usage_error(error: &clap::Error) -> u8 {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if !error.use_stderr() {
        let printed = error.print().and_then(|()| std::io::stdout().flush()).map_err(Error::for_stdout);
        let app = App::new(GlobalOptions { json: cli::asks_for_json(&arguments), ..GlobalOptions::default() });
        return exit_code(printed, &app);
    }
    let tree = cli::command_tree();
    let mut app = App::new(GlobalOptions { json: cli::asks_for_json(&arguments), ..GlobalOptions::default() });
    if let Some(plain) = cli::number_error(error) {
        return exit_code(Err(plain), &app);
    }
    let Some(UnknownCommand { path, word, rest }) = unknown_command::find(error, &tree, &arguments) else {
        if app.stderr.is_json() {
            return exit_code(Err(Error::from(error)), &app);
        }
        let _ = error.print();
        return u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
    };
    let printed = if word == "help" {
        // `chorusctl context help save` is `chorusctl help context save`.
        let command: Vec<String> = path.into_iter().chain(rest).filter(|word| !word.starts_with('-')).collect();
        commands::help::print(&command, &mut app).and_then(|()| app.stdout.flush())
    } else {
        Err(unknown_command::error(&tree, &path, &word))
    };
    exit_code(printed, &app)
}

/// Prints the error, if any, and returns the exit status.
fn exit_code(result: Result<(), Error>, app: &App) -> u8 {
    match result {
        Ok(()) => exit::SUCCESS,
        Err(error) => {
            error.print(app.stderr);
            error.exit_status()
        }
    }
}
