//! Bench: the whole `chorusctl status` process, compared with a minimal program that connects, sends one request and
//! prints the answer.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, Home, home};

const ROUNDS: usize = 400;

/// Builds the floor program, which uses no crates.
fn build_floor(home: &Home) -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/floor/status.rs");
    let program = home.temp_dir().join("floor");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let built = Command::new(rustc).args(["-O", "--edition", "2024", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("rustc").success());
    program
}

fn time_run(command: &mut Command) -> Duration {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    time(|| assert!(command.status().expect("it runs").success()))
}

fn main() {
    let home = home!();
    let floor = build_floor(&home);
    let daemon = Daemon::start(&home);
    for n in 0..3 {
        daemon.client().init(&format!("agent-{n}"));
        daemon.client().append(&format!("agent-{n}"), "hello");
    }
    use_realtime_scheduler();
    for (name, arguments) in [("chorusctl status", &["status"][..]), ("chorusctl --json status", &["--json", "status"])]
    {
        let ratio = measure_paired(
            name,
            1.25,
            ROUNDS,
            || time_run(home.command(floor.to_str().expect("a plain path")).arg(home.socket())),
            || time_run(home.command(home.bins.chorusctl).args(arguments)),
        );
        print_report(ratio);
    }
}
