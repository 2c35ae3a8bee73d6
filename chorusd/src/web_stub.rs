//! Stands for the pages in a program that was built without them.

use std::process::ExitCode;

use chorus_base::error::Error;

use crate::cli::print_error;

/// Reports that they are left out, if the arguments of the program ask for them.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == "web").then(|| {
        let failure = Error::invalid("this chorusd was built without the pages for the browser");
        print_error(&failure.hint("build it with the feature `web`, or use `chorusctl top`"))
    })
}
