//! Measures against a floor: the time that the machine needs for the same work without Chorus.
//!
//! Floor and Chorus are measured in turn, so that other load affects both. The result is the ratio of the two medians.

use std::fmt;
use std::time::{Duration, Instant};

/// Returns how long `work` takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// Returns the median of `times`.
#[must_use]
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Times of Chorus and of its floor.
#[derive(Debug, Clone)]
pub struct Measurement {
    pub name: String,
    pub floor: Duration,
    pub ours: Duration,
    /// Highest ratio that is promised; infinite if there is no target.
    pub target: f64,
}

impl Measurement {
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.floor.as_secs_f64()
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, floor, ours, ratio) = (&self.name, self.floor, self.ours, self.ratio());
        write!(f, "{name:<44} floor {floor:>10.3?}  chorus {ours:>10.3?}  ratio {ratio:>5.2}")?;
        if self.target.is_infinite() {
            return Ok(());
        }
        let verdict = if ratio <= self.target { "met" } else { "MISSED" };
        write!(f, "  target {:.2}  {verdict}", self.target)
    }
}

/// Measures `floor` and `ours` in turn, `rounds` times each after a warm-up of a tenth. Both return the time that they
/// measured, so that preparations do not count.
pub fn measure_paired(
    name: impl Into<String>,
    target: f64,
    rounds: usize,
    mut floor: impl FnMut() -> Duration,
    mut ours: impl FnMut() -> Duration,
) -> Measurement {
    for _ in 0..rounds.div_ceil(10) {
        floor();
        ours();
    }
    let (floor, ours) = (0..rounds).map(|_| (floor(), ours())).unzip();
    Measurement { name: name.into(), floor: median(floor), ours: median(ours), target }
}

/// Prints a line of the report.
#[expect(clippy::print_stdout, reason = "the report is what a bench is for")]
pub fn print_report(line: impl fmt::Display) {
    println!("{line}");
}

/// Returns true if each core is kept computing meanwhile, as `cargo xtask bench --busy` does.
#[must_use]
pub fn is_machine_busy() -> bool {
    std::env::var_os("CHORUS_BENCH_BUSY").is_some()
}

/// Switches this process and its children to a real-time scheduler, if permitted, so that other processes do not
/// disturb the measurement. Not with `CHORUS_BENCH_BUSY`, where they are meant to.
pub fn use_realtime_scheduler() {
    if is_machine_busy() {
        return print_report("(on a busy machine)");
    }
    let pid = std::process::id().to_string();
    let chrt = std::process::Command::new("chrt").args(["-f", "-p", "20", &pid]).output();
    if chrt.is_ok_and(|done| done.status.success()) {
        print_report("(under chrt -f 20)");
    }
}

/// Switches this process and its children to the ordinary scheduler, under which all threads share the processors.
pub fn use_ordinary_scheduler() {
    let pid = std::process::id().to_string();
    // Without chrt it has the ordinary one already.
    let _ = std::process::Command::new("chrt").args(["-o", "-p", "0", &pid]).output();
}
