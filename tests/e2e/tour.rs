//! `chorusctl tour`: the whole story in a home of its own.

use std::fs;

use chorus_tests::ctl::run_command;

use crate::home;

#[test]
fn the_tour_runs_and_leaves_nothing() {
    let home = home();
    let temporary = home.temp_dir().join("tmp");
    fs::create_dir(&temporary).expect("a directory");
    let mut command = home.command(home.bins.chorusctl);
    command.arg("tour").env("TMPDIR", &temporary);
    let said = run_command(command, b"");
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    for verb in ["agent init", "chorusctl save", "chorusctl history", "chorusctl restore"] {
        assert!(said.stdout.contains(verb), "{verb}: {}", said.stdout);
    }
    assert_eq!(fs::read_dir(&temporary).expect("the directory").count(), 0, "something was left behind");
    assert!(!home.path.exists(), "the user's own home was touched");
    assert_eq!(home.running_pid(), None);
    let processes = fs::read_dir("/proc").expect("processes").filter_map(|entry| {
        let command = fs::read(entry.ok()?.path().join("environ")).ok()?;
        let command = String::from_utf8_lossy(&command).into_owned();
        command.contains(temporary.to_str()?).then_some(command)
    });
    assert_eq!(processes.count(), 0, "a process was left behind");
}
