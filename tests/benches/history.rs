//! Bench: the whole `chorusctl context history` process with 1,000,000 sessions, compared with `chorusctl status`.

use std::process::{Command, Stdio};
use std::time::Duration;

use chorus_proto::methods::context::{History, HistoryParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::{DEADLINE, Daemon, Home, home, wait_until};
use rusqlite::Connection;

const SESSIONS: u64 = 1_000_000;
const ROUNDS: usize = 400;

/// Multiplies the only session row of the catalog. The files do not exist, which the list does not check.
fn multiply_rows(home: &Home) {
    let catalog = Connection::open(home.path.join("db/chorus.db")).expect("the catalog");
    catalog
        .execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
             INSERT INTO sessions
             SELECT randomblob(16), agent_id, printf('2026-01-01_copy-%d', n), saved_at - n * 1000000,
                    json_set(header, '$.session_id', printf('2026-01-01_copy-%d', n)), sha256, file_stamp, NULL, last_used_at,
                    place - n * 1000000
             FROM sessions, n",
            [SESSIONS - 1],
        )
        .expect("a million rows");
}

fn run_chorusctl(home: &Home, arguments: &[&str]) -> Duration {
    let mut command: Command = home.command(home.bins.chorusctl);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    time(|| assert!(command.status().expect("it runs").success()))
}

fn main() {
    let home = home!();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "The nightly import dropped every row whose country was empty.");
    client.save("a", "The nightly import");
    assert!(daemon.terminate().success());
    multiply_rows(&home);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    let params = HistoryParams { agent: Some("a".into()), ..HistoryParams::default() };
    // The catalog sync after a start reads every row; wait until it is done.
    wait_until("the start to calm down", DEADLINE * 4, || {
        let took = time(|| assert_eq!(client.call::<History>(&params).expect("a page").total, SESSIONS));
        (took < Duration::from_millis(5)).then_some(())
    });
    use_realtime_scheduler();
    let status = || run_chorusctl(&home, &["status"]);
    print_report(measure_paired("context history, 1,000,000 sessions", 1.15, ROUNDS, status, || {
        run_chorusctl(&home, &["context", "history"])
    }));
    let all = ["context", "history", "--all-agents"];
    print_report(measure_paired("... of all agents", 1.15, ROUNDS, status, || run_chorusctl(&home, &all)));
    let second = ["context", "history", "--page", "2"];
    print_report(measure_paired("... its second page", 1.15, ROUNDS, status, || run_chorusctl(&home, &second)));
    let words = ["context", "history", "nightly", "copy-777777"];
    print_report(measure_paired("... by two words", f64::INFINITY, 20, status, || run_chorusctl(&home, &words)));
    let last = ["context", "history", "--page", "100000"];
    print_report(measure_paired("... its last page", f64::INFINITY, 20, status, || run_chorusctl(&home, &last)));
}
