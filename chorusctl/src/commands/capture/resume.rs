//! `chorusctl capture resume`: continues after a pause.

use chorus_proto::methods::capture::{Resume, ResumeParams};

use super::report;
use crate::app::App;
use crate::error::Error;
use crate::ui::Table;

/// Continue after a pause
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_: Args, app: &mut App) -> Result<(), Error> {
    app.call_and_print::<Resume>(&ResumeParams {}, |app, status| {
        report::print(Table::new(report::COLUMNS), app, &status)
    })
}
