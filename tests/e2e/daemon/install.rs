//! `daemon install`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use chorus_tests::ctl::{self, chorusctl};
use chorus_tests::{Home, Output, skip};

use crate::home;

fn verify(home: &Home, unit: &Path) -> Option<Output> {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skip("systemd-analyze is not installed");
        return None;
    }
    let mut command = home.command("systemd-analyze");
    // What the user's manager has; without it there is none to ask.
    command.env("XDG_RUNTIME_DIR", home.temp_dir()).args(["verify", "--user"]).arg(unit);
    Some(ctl::run_command(command, b""))
}

#[test]
fn the_unit_is_written_says_what_to_enable_and_is_understood() {
    let home = home();
    let said = chorusctl(&home, ["daemon", "install"]).expect_success();
    let path = home.user_home.join(".config/systemd/user/chorusd.service");
    for word in [path.to_str().expect("UTF-8"), "systemctl --user enable --now chorusd", "loginctl enable-linger"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let unit = fs::read_to_string(&path).expect("the unit");
    assert_eq!(chorusctl(&home, ["daemon", "install", "--print"]).expect_success(), unit);
    let program = fs::canonicalize(home.bins.chorusd).expect("chorusd");
    let set = format!("Environment=CHORUS_HOME={}", home.path.display());
    let start = format!("ExecStart={}", program.display());
    let due = [
        "Type=notify",
        "WatchdogSec=60",
        "Restart=on-failure",
        "RestartPreventExitStatus=2 6 7",
        "TimeoutStopSec=30",
        "UMask=0077",
        "Delegate=memory pids",
        &set,
        &start,
    ];
    for line in due {
        assert!(unit.lines().any(|there| there == line), "{line}: {unit}");
    }
    // A sandbox below must still find its namespaces, and a setuid bwrap its bit.
    let settings = || unit.lines().filter(|line| !line.starts_with('#'));
    for key in ["NoNewPrivileges", "RestrictNamespaces", "PrivateUsers", "SystemCallFilter", "LockPersonality"] {
        assert!(!settings().any(|line| line.starts_with(key)), "{key}");
    }
    assert_eq!(fs::metadata(&path).expect("the unit").permissions().mode() & 0o022, 0);
    assert!(!home.path.exists(), "a daemon was started for it");
    if let Some(verdict) = verify(&home, &path) {
        assert_eq!((verdict.status, &*verdict.stdout, &*verdict.stderr), (0, "", ""), "{unit}");
    }
}

#[test]
fn strange_paths_are_understood_too() {
    let home = home();
    let (odd, config) = (home.temp_dir().join("100% odd $HOME"), home.temp_dir().join("config dir"));
    fs::create_dir(&odd).expect("a directory");
    let program = odd.join("chorus d");
    std::os::unix::fs::symlink(home.bins.chorusd, &program).expect("a link");
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUSD", &program).env("CHORUS_HOME", odd.join("a \"home\"")).env("XDG_CONFIG_HOME", &config);
    command.args(["daemon", "install", "--socket", "a \"b\".sock"]);
    ctl::run_command(command, b"").expect_success();
    let unit = config.join("systemd/user/chorusd.service");
    let text = fs::read_to_string(&unit).expect("the unit");
    assert!(text.contains(&format!("{}/a \\\"b\\\".sock\"", home.user_home.display())), "{text}");
    if let Some(verdict) = verify(&home, &unit) {
        assert_eq!((verdict.status, &*verdict.stderr), (0, ""), "{text}");
    }
}

#[test]
fn a_unit_of_somebody_elses_is_left_alone() {
    let home = home();
    let path = home.user_home.join(".config/systemd/user/chorusd.service");
    fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    fs::write(&path, "[Service]\nExecStart=/bin/true\n").expect("a unit");
    chorusctl(&home, ["daemon", "install"]).expect_failure_with_hint(7);
    assert_eq!(fs::read_to_string(&path).expect("the unit"), "[Service]\nExecStart=/bin/true\n");
    fs::remove_file(&path).expect("gone");
    chorusctl(&home, ["daemon", "install"]).expect_success();
    chorusctl(&home, ["daemon", "install"]).expect_success();
}

#[test]
fn what_cannot_stand_in_a_unit_is_refused() {
    let home = home();
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUS_HOME", "/tmp/a\nExecStartPre=/bin/evil").args(["daemon", "install", "--print"]);
    ctl::run_command(command, b"").expect_failure(1);
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUSD", "no-such-chorusd").args(["daemon", "install"]);
    ctl::run_command(command, b"").expect_failure_with_hint(3);
}
