//! `cargo xtask profile OPERATION`: where the processor time of one operation goes, by stage, from samples of `perf`.

mod operations;
mod perf;
mod report;
mod stages;

use chorus_tests::home;
use chorus_tests::measure::print_report;

use operations::Operation;

fn main() {
    // `cargo bench` adds an option of its own.
    let named = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let Some(operation) = named.as_deref().and_then(Operation::parse) else {
        let names = Operation::ALL.map(|(name, _)| name).join(", ");
        print_report(format_args!("operations to profile: {names}"));
        return;
    };
    let home = home!();
    let measured = operations::measure(operation, &home);
    report::print(operation, &measured);
}
