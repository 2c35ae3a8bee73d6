//! Prints where the time of an operation goes, as a table of docs/PERFORMANCE.md.

use std::collections::HashMap;
use std::time::Duration;

use chorus_tests::measure::print_report;

use crate::operations::{Measured, Operation};
use crate::stages::stage_of;

/// Stages with a lower share are left out.
const MIN_SHARE: f64 = 0.005;

/// Prints the times on the clock, and the processor time of each stage.
pub fn print(operation: Operation, measured: &Measured) {
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    print_report(format_args!("{operation:?}: {:.0} us on the clock (median)", micros(measured.clock)));
    for (name, floor) in &measured.floors {
        print_report(format_args!("  of this, {name}: {:.0} us", micros(*floor)));
    }
    let mut stages: HashMap<&str, usize> = HashMap::new();
    for sample in &measured.samples {
        *stages.entry(stage_of(operation, sample)).or_default() += 1;
    }
    let all = measured.samples.len();
    let of_daemon = operation != Operation::Status;
    let whole = if of_daemon { format!(" of {:.0} us", micros(measured.daemon)) } else { String::new() };
    print_report(format_args!("\n| stage | processor time{whole} | share |\n|---|---|---|"));
    let mut stages: Vec<_> = stages.into_iter().collect();
    stages.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (name, count) in stages {
        let share = count as f64 / all as f64;
        if share < MIN_SHARE {
            continue;
        }
        let time = if of_daemon { format!("{:.1} us", micros(measured.daemon) * share) } else { String::new() };
        print_report(format_args!("| {name} | {time} | {:.0} % |", share * 100.0));
    }
    print_report(format_args!("\n{all} samples"));
}
