//! `cargo xtask profile`: where the time of one operation goes, stage by stage.

use crate::error::{Error, Result};
use crate::shell::{Shell, Step};

/// The operations of tests/profile/operations.rs.
const OPERATIONS: [&str; 8] = ["append", "appends", "save", "restore", "status", "turn", "start", "expiry"];

/// Profile one operation
///
/// Repeats it on a daemon of its own while `perf` takes samples, and prints the processor time of each stage. `appends` are
/// those of 64 clients at once, a start is one with 10,000 agents, an expiry that of as many contexts. The first run builds
/// the programs with their symbols, in target/profiling. Keep the machine idle meanwhile.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Operation
    #[arg(value_parser = OPERATIONS)]
    operation: String,
}

pub fn run(args: &Args, shell: &Shell) -> Result<()> {
    if !shell.dry_run && !shell.succeeds(&Step::new("perf").args(["record", "--quiet", "--output", "-", "true"])) {
        return Err(Error::new("perf cannot take samples here")
            .hint("install it (the package linux-perf), and set /proc/sys/kernel/perf_event_paranoid to 1 or less"));
    }
    let bench = ["bench", "-p", "chorus-tests", "--profile", "profiling", "--bench", "profile", "--"];
    shell.run(&shell.cargo().args(bench).arg(&args.operation))
}
