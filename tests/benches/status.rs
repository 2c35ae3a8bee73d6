//! Bench: the whole `chorusctl status` process, compared with a minimal program that connects, sends one request and
//! prints the answer; the same of a static program, and of `pueue status`, if they are there.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::process::{kill, wait_for_exit};
use chorus_tests::{DEADLINE, Daemon, Home, home, wait_until};

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

/// Starts `pueued`, a daemon of the same kind, in this home; `None` if it is not installed.
fn start_pueue(home: &Home) -> Option<Child> {
    let mut command = home.command("pueued");
    let pueued = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let answers = || home.command("pueue").arg("status").output().is_ok_and(|done| done.status.success());
    wait_until("pueued", DEADLINE, || answers().then_some(()));
    Some(pueued)
}

/// A `chorusctl` that was linked statically, over the minimal program and over `pueue status` without tasks.
fn measure_static(home: &Home, floor: &str) {
    let Ok(chorusctl) = std::env::var("CHORUS_STATIC_CHORUSCTL") else {
        return print_report("CHORUS_STATIC_CHORUSCTL names no static chorusctl: its rows were skipped");
    };
    let measure = |name: &str, target, floor: &mut dyn FnMut() -> Duration, arguments: &[&str]| {
        let ours = || time_run(home.command(&chorusctl).args(arguments));
        print_report(measure_paired(name, target, ROUNDS, floor, ours));
    };
    let mut minimal = || time_run(home.command(floor).arg(home.socket()));
    measure("static chorusctl status", 0.85, &mut minimal, &["status"]);
    measure("static chorusctl --json status", 0.85, &mut minimal, &["--json", "status"]);
    let Some(mut pueued) = start_pueue(home) else {
        return print_report("pueue is not installed: its row was skipped");
    };
    let mut pueue = || time_run(home.command("pueue").arg("status"));
    measure("static chorusctl status, over pueue status", 0.5, &mut pueue, &["status"]);
    kill(pueued.id());
    wait_for_exit(&mut pueued, "pueued");
}

fn main() {
    let home = home!();
    let floor = build_floor(&home);
    let floor = floor.to_str().expect("a plain path");
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
            1.15,
            ROUNDS,
            || time_run(home.command(floor).arg(home.socket())),
            || time_run(home.command(home.bins.chorusctl).args(arguments)),
        );
        print_report(ratio);
    }
    measure_static(&home, floor);
}
