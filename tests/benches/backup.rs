//! Backup of 1,000 sessions of 100 KB into a directory, the first time and again, against `cp -a` of the same home.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use chorus_tests::chat::Chat as _;
use chorus_tests::ctl::chorusctl;
use chorus_tests::many::multiply;
use chorus_tests::measure::{paired, report, time, undisturbed};
use chorus_tests::{Daemon, Home, home};

const SESSIONS: usize = 1000;
const BYTES: usize = 100_000;
const ROUNDS: usize = 7;

fn copy(home: &Home, to: &Path) -> Duration {
    time(|| {
        let done = Command::new("cp").arg("-a").arg(&home.path).arg(to).status().expect("cp runs");
        assert!(done.success());
        // A backup is on the disk when it says so.
        assert!(Command::new("sync").arg("-f").arg(to).status().expect("sync runs").success());
    })
}

fn back_up(home: &Home, to: &Path) -> Duration {
    let to = to.to_str().expect("a path");
    time(|| _ = chorusctl(home, ["backup", to]).ok())
}

fn main() {
    let home = home!();
    undisturbed();
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", &"words and more ".repeat(BYTES / 15));
    let session = client.save("a", "first").header.session_id;
    multiply(&home, "a", &session, SESSIONS - 1);
    let number = Cell::new(0);
    let place = |name: &str| -> PathBuf {
        number.set(number.get() + 1);
        home.outside().join(format!("{name}-{}", number.get()))
    };
    let floor = || copy(&home, &place("floor"));
    report(paired("back up 1,000 sessions of 100 KB", 3.0, ROUNDS, floor, || back_up(&home, &place("backup"))));
    let kept = place("kept");
    back_up(&home, &kept);
    report(paired("back them up again, nothing new", 1.0, ROUNDS, floor, || back_up(&home, &kept)));
}
