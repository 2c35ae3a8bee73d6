//! `cargo xtask bench`: the benches as docs/PERFORMANCE.md measures them.

use crate::error::Result;
use crate::shell::{Shell, Step};
use crate::workspace::{names, select};

/// Ahead of all other processes, so that they do not disturb the measurement.
const REAL_TIME: [&str; 3] = ["chrt", "-f", "20"];

/// Run all benches, or some of them
///
/// Runs them one after the other, under `chrt -f 20` if that is permitted. Keep the machine idle meanwhile.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Benches, the names of tests/benches/ [default: all]
    #[arg(value_name = "NAME")]
    benches: Vec<String>,
}

pub fn run(args: &Args, shell: &Shell) -> Result<()> {
    let known = names(&shell.root.join("tests/benches"), |path| {
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        path.file_stem().filter(|_| is_source).map(|name| name.to_string_lossy().into_owned())
    })?;
    let benches = select("bench", &args.benches, known)?;
    let named = benches.iter().flat_map(|bench| ["--bench", bench]);
    shell.run(&shell.cargo().args(["bench", "-p", "chorus-tests", "--no-run"]).args(named))?;
    let [program, options @ ..] = REAL_TIME;
    let real_time = shell.succeeds(&Step::new(program).args(options).arg("true"));
    if !real_time {
        shell.say("chrt -f 20 is not permitted here: other processes may disturb the figures");
    }
    for bench in benches {
        let step = shell.cargo().args(["bench", "-p", "chorus-tests", "--bench", &bench]);
        shell.run(&if real_time { step.under(REAL_TIME) } else { step })?;
    }
    Ok(())
}
