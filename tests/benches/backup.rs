//! Bench: backup of 1,000 sessions of 100 KB into a directory, first and again, compared with `cp -a` of the same home.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use chorus_tests::bulk_data::copy_session;
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::measure::{measure_paired, print_report, time, use_realtime_scheduler};
use chorus_tests::{Daemon, Home, home};

const SESSIONS: usize = 1000;
const BYTES: usize = 100_000;
const ROUNDS: usize = 7;

fn copy_home(home: &Home, to: &Path) -> Duration {
    time(|| {
        let done = Command::new("cp").arg("-a").arg(&home.path).arg(to).status().expect("cp runs");
        assert!(done.success());
        // A finished backup is on the disk, so the copy must be synced, too.
        assert!(Command::new("sync").arg("-f").arg(to).status().expect("sync runs").success());
    })
}

fn time_backup(home: &Home, to: &Path) -> Duration {
    let to = to.to_str().expect("a path");
    time(|| _ = chorusctl(home, ["backup", to]).expect_success())
}

fn main() {
    let home = home!();
    use_realtime_scheduler();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", &"words and more ".repeat(BYTES / 15));
    let session = client.save("a", "first").header.session_id;
    copy_session(&home, "a", &session, SESSIONS - 1);
    let number = Cell::new(0);
    let place = |name: &str| -> PathBuf {
        number.set(number.get() + 1);
        home.temp_dir().join(format!("{name}-{}", number.get()))
    };
    let floor = || copy_home(&home, &place("floor"));
    print_report(measure_paired("back up 1,000 sessions of 100 KB", 3.0, ROUNDS, floor, || {
        time_backup(&home, &place("backup"))
    }));
    let kept = place("kept");
    time_backup(&home, &kept);
    print_report(measure_paired("back them up again, nothing new", 1.0, ROUNDS, floor, || time_backup(&home, &kept)));
}
