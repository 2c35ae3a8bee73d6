//! `chorusctl`, the command line of Chorus: it reads the command line, asks `chorusd`, and shows the answer.
//!
//! Every verb is one file under [`commands`], named as its handler in the daemon. A command returns what went
//! wrong as a [`error::Failure`]; only [`main`] prints it and decides how the process ends.

use std::process::ExitCode;

use clap::Parser as _;

pub mod agent_select;
pub mod app;
pub mod cli;
pub mod commands;
pub mod complete;
pub mod connect;
pub mod error;
pub mod paged_result;
pub mod ui;

use app::App;
use cli::Cli;

/// The whole program.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(ended) = complete::complete_if_requested() {
        return ended;
    }
    let parsed = cli::parse_fast_path(std::env::args_os().skip(1)).map_or_else(Cli::try_parse, Ok);
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output and usage errors to standard error; who closed either wants neither.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(chorus_proto::error::exit::USAGE));
        }
    };
    let mut app = App::new(cli.global);
    let done = commands::run(cli.command, &mut app);
    // What was written before a failure is shown before it is told.
    let flushed = app.stdout.flush();
    match done.and(flushed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print(app.stderr);
            ExitCode::from(failure.exit_status())
        }
    }
}
