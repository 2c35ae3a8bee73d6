//! `daemon install`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::ctl::{self, chorusctl};
use chorus_tests::{Daemon, Home, Output, skip};

use crate::home;

/// Lets systemd check the units, which stand in one directory.
fn verify(home: &Home, units: &[&Path]) -> Option<Output> {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skip("systemd-analyze is not installed");
        return None;
    }
    let mut command = home.command("systemd-analyze");
    // What the user's manager has; without it there is none to ask.
    command.env("XDG_RUNTIME_DIR", home.temp_dir()).args(["verify", "--user"]).args(units);
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
    if let Some(verdict) = verify(&home, &[&path]) {
        assert_eq!((verdict.status, &*verdict.stdout, &*verdict.stderr), (0, "", ""), "{unit}");
    }
}

#[test]
fn a_socket_and_a_nightly_export_are_written_on_request() {
    let home = home();
    let target = home.temp_dir().join("exported 100%");
    let args = ["daemon", "install", "--socket-activation", "--nightly-export", target.to_str().expect("UTF-8")];
    let shown = chorusctl(&home, args).expect_success();
    assert!(shown.contains("systemctl --user enable --now chorusd.socket chorus-export.timer"), "{shown}");
    let units = home.user_home.join(".config/systemd/user");
    let read = |name: &str| fs::read_to_string(units.join(name)).expect("a unit");
    let socket = read("chorusd.socket");
    let listen = format!("ListenStream={}", home.socket().display());
    assert!(socket.lines().any(|line| line == listen), "{socket}");
    let export = read("chorus-export.service");
    let start = export.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    assert!(start.ends_with(&format!("--output \"{}\"", target.display().to_string().replace('%', "%%"))), "{start}");
    let names = ["chorusd.service", "chorusd.socket", "chorus-export.service", "chorus-export.timer"];
    let paths = names.map(|name| units.join(name));
    if let Some(verdict) = verify(&home, &paths.each_ref().map(|path| &**path)) {
        assert_eq!((verdict.status, &*verdict.stdout, &*verdict.stderr), (0, "", ""));
        // What it starts needs a socket and files. Some of the rest a manager of a user cannot give.
        let mut command = home.command("systemd-analyze");
        command
            .args(["security", "--offline=true", "--threshold=70", "--no-pager"])
            .arg(units.join("chorus-export.service"));
        let rated = ctl::run_command(command, b"");
        assert_eq!(rated.status, 0, "{}{}", rated.stdout, rated.stderr);
    }
    // The command does what the timer is for. It starts no daemon.
    let command = || {
        let mut command = home.command("sh");
        command.args(["-c", &format!("exec {}", start.replace("%%", "%"))]);
        ctl::run_command(command, b"")
    };
    command().expect_failure(4);
    let daemon = Daemon::start(&home);
    let mut client = daemon.client();
    client.init("a");
    client.append("a", "Hello.");
    client.save("a", "Greeting");
    command().expect_success();
    assert_eq!(fs::read_dir(&target).expect("a directory").count(), 1);
    drop(daemon);
    let printed = chorusctl(&home, ["daemon", "install", "--print", "--socket-activation"]).expect_success();
    assert!(
        printed.contains(&format!("\n# {}/chorusd.socket\n", units.display())) && printed.contains(&socket),
        "{printed}"
    );
}

#[test]
fn a_unit_of_somebody_elses_stops_all_of_them() {
    let home = home();
    let units = home.user_home.join(".config/systemd/user");
    fs::create_dir_all(&units).expect("a directory");
    fs::write(units.join("chorus-export.timer"), "[Timer]\nOnCalendar=weekly\n").expect("a unit");
    let args = ["daemon", "install", "--nightly-export", "exported"];
    let output = chorusctl(&home, args);
    let error = output.expect_failure_with_hint(7);
    assert!(error.contains("chorus-export.timer exists"), "{error}");
    assert_eq!(fs::read_dir(&units).expect("a directory").count(), 1, "others were written");
}

#[test]
fn launchd_gets_a_property_list() {
    let home = home();
    let mut command = home.command(home.bins.chorusctl);
    command.env("CHORUS_HOME", home.temp_dir().join("a <b> & c")).args(["daemon", "install", "--launchd"]);
    let shown = ctl::run_command(command, b"").expect_success();
    assert!(shown.contains("launchctl load -w"), "{shown}");
    let path = home.user_home.join("Library/LaunchAgents/chorusd.plist");
    let script = "import plistlib, sys; p = plistlib.load(open(sys.argv[1], 'rb')); \
                  print(p['Label'], p['ProgramArguments'][0], p['EnvironmentVariables']['CHORUS_HOME'], p['Umask'], sep='\\n')";
    let mut python = home.command("python3");
    python.args(["-c", script]).arg(&path);
    let read = ctl::run_command(python, b"").expect_success();
    let program = fs::canonicalize(home.bins.chorusd).expect("chorusd");
    let due = format!("chorusd\n{}\n{}\n63\n", program.display(), home.temp_dir().join("a <b> & c").display());
    assert_eq!(read, due);
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
    if let Some(verdict) = verify(&home, &[&unit]) {
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
