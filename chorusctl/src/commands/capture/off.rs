//! `chorusctl capture off`: turns capture off.

use chorus_proto::methods::capture::{Off, OffParams};

use super::report;
use crate::app::App;
use crate::error::Error;
use crate::ui::Table;

/// Turn capture off; what was captured stays
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Programs, e.g. claude-code, codex [default: all of them]
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
}

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Off>(&OffParams { sources: args.sources }, |app, status| {
        report::print(Table::new(report::COLUMNS), app, &status)
    })
}
