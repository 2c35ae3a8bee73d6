//! `chorusctl`, the command line of Chorus: parses the command line, sends requests to `chorusd`, and prints the
//! results.
//!
//! Each subcommand is a module under [`commands`]. It returns errors as [`error::Error`]; only [`main`] prints them and
//! sets the exit status.

#![warn(unreachable_pub)]

use std::process::ExitCode;

use clap::Parser as _;

pub mod agent_select;
pub mod app;
pub mod cli;
pub mod commands;
pub mod complete;
pub mod connect;
pub mod error;
pub mod print_pages;
pub mod ui;

use app::App;
use cli::Cli;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(ended) = complete::complete_if_requested() {
        return ended;
    }
    let parsed = cli::parse_fast_path(std::env::args_os().skip(1)).map_or_else(Cli::try_parse, Ok);
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, usage errors to standard error. Ignore it if either is closed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(chorus_proto::error::exit::USAGE));
        }
    };
    let mut app = App::new(cli.global);
    let done = commands::run(cli.command, &mut app);
    // Flush output that was written before an error, then print the error.
    let flushed = app.stdout.flush();
    match done.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(app.stderr);
            ExitCode::from(failure.exit_status())
        }
    }
}
