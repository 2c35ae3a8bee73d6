//! `chorusctl capture status`: shows what is captured and what could not be read.

use chorus_proto::methods::capture::{Status, StatusParams};

use super::report;
use crate::app::App;
use crate::error::Error;
use crate::ui::{Table, TableArgs};

/// Show what is captured and what could not be read (default)
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Programs, e.g. claude-code, codex [default: all of them]
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    #[command(flatten)]
    table: TableArgs,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let table = Table::with_args(report::COLUMNS, &args.table, app.stdout.format())?;
    app.call_and_print::<Status>(&StatusParams { sources: args.sources }, |app, status| {
        report::print(table, app, &status)?;
        if status.sources.iter().all(|source| !source.on) {
            app.stderr.hint("turn it on: chorusctl capture on");
        }
        Ok(())
    })
}
