//! `cargo xtask bench`: the benches as docs/PERFORMANCE.md measures them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism, spawn};

use crate::chart::{self, Ratio};
use crate::error::{Error, Result};
use crate::shell::{Shell, Step};
use crate::workspace::{names, select};

/// Ahead of all other processes, so that they do not disturb the measurement.
const REAL_TIME: [&str; 3] = ["chrt", "-f", "20"];

/// Run all benches, or some of them
///
/// Runs them one after the other, under `chrt -f 20` if that is permitted. Keep the machine idle meanwhile, or have it
/// kept busy.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Benches, the names of tests/benches/ [default: all]
    #[arg(value_name = "NAME")]
    benches: Vec<String>,
    /// Draw the ratios that have a target as an SVG
    #[arg(long, value_name = "FILE")]
    chart: Option<PathBuf>,
    /// Compute on every core meanwhile, and leave `chrt` out
    #[arg(long)]
    busy: bool,
}

/// Threads that compute, one for each core, until this is dropped.
struct BusyCores {
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyCores {
    fn start() -> Self {
        let stopped = Arc::<AtomicBool>::default();
        let compute = |stopped: Arc<AtomicBool>| {
            move || {
                while !stopped.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = (0..cores).map(|_| spawn(compute(stopped.clone()))).collect();
        Self { stopped, threads }
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
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
    let real_time = !args.busy && shell.succeeds(&Step::new(program).args(options).arg("true"));
    if args.busy {
        shell.say("each core computes beside the benches");
    } else if !real_time {
        shell.say("chrt -f 20 is not permitted here: other processes may disturb the figures");
    }
    let _cores = (args.busy && !shell.dry_run).then(BusyCores::start);
    let mut ratios = Vec::new();
    for bench in benches {
        let step = shell.cargo().args(["bench", "-p", "chorus-tests", "--bench", &bench]);
        let step = match real_time {
            true => step.under(REAL_TIME),
            // Benches ask for it themselves, too.
            false if args.busy => step.env("CHORUS_BENCH_BUSY", "1"),
            false => step,
        };
        match &args.chart {
            Some(_) => ratios.extend(shell.run_and_read(&step)?.lines().filter_map(Ratio::parse)),
            None => shell.run(&step)?,
        }
    }
    let Some(file) = args.chart.as_ref().filter(|_| !shell.dry_run) else { return Ok(()) };
    std::fs::write(shell.root.join(file), chart::draw(&ratios))
        .map_err(|error| Error::new(format!("cannot write {}: {error}", file.display())).hint("choose another FILE"))
}
