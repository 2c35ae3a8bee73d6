//! Edits and checks while no daemon runs, and of a file with which none can start.

use std::fs;

use chorus_tests::Daemon;
use chorus_tests::ctl::chorusctl;

use super::text;
use crate::home;
use crate::settings::set;

#[test]
fn a_file_that_keeps_the_daemon_from_starting_can_be_mended() {
    let home = home();
    home.write_config("# top\nmax_conections = 7\n\n[defaults]\nwindow_messages = \"many\"\n");
    let check = chorusctl(&home, ["config", "check"]);
    let stderr = check.expect_failure_with_hint(2);
    assert!(stderr.contains("config.toml, line 2, column 1: unknown key `max_conections`"), "{stderr}");
    assert!(stderr.contains("did you mean `max_connections`?"), "{stderr}");
    let set = chorusctl(&home, ["config", "set", "max_connections", "7"]);
    assert!(set.expect_failure_with_hint(2).contains("line 2, column 1"), "{set:?}");
    home.write_config("# top\n[defaults]\nwindow_messages = \"many\"\n");
    let said = chorusctl(&home, ["config", "set", "defaults.window_messages", "20"]);
    assert!(said.status == 0 && said.stderr.contains("no daemon is running"), "{said:?}");
    assert_eq!(text(&home), "# top\n[defaults]\nwindow_messages = 20\n");
    assert_eq!(home.running_pid(), None, "a daemon was started");
    assert!(chorusctl(&home, ["config", "check"]).expect_success().contains("is valid"));
}

#[test]
fn another_file_can_be_checked() {
    let home = home();
    let file = home.temp_dir().join("next.toml");
    fs::write(&file, "[aliases]\nä = \"x/y\"\nfast = 3\n").expect("a file");
    let said = chorusctl(&home, ["config", "check", &file.display().to_string()]);
    assert!(said.expect_failure_with_hint(2).contains("next.toml, line 2, column 1: "), "{said:?}");
    fs::write(&file, "default_model = \"x/y\"\n").expect("a file");
    let said = chorusctl(&home, ["config", "check", &file.display().to_string()]).expect_success();
    assert!(said.contains("next.toml is valid"), "{said}");
    chorusctl(&home, ["config", "check", "/nonexistent/config.toml"]).expect_failure_with_hint(3);
    let json = chorusctl(&home, ["config", "check", "--json"]).expect_json();
    assert_eq!(json["exists"], false);
}

#[test]
fn a_stored_setting_is_removed_without_a_running_daemon_too() {
    let home = home();
    let daemon = Daemon::start(&home);
    set(&mut daemon.client(), "idle_timeout", "45m");
    assert!(daemon.terminate().success());
    let said = chorusctl(&home, ["--no-autostart", "config", "set", "defaults.idle_timeout", "20m"]);
    assert!(said.status == 0 && said.stderr.contains("settings set idle_timeout"), "{said:?}");
    let said = chorusctl(&home, ["config", "set", "defaults.idle_timeout", "10m"]);
    assert!(said.stdout.contains("removed the stored setting 45m"), "{said:?}");
    assert_eq!(chorusctl(&home, ["config", "get", "defaults.idle_timeout"]).expect_success(), "10m\n");
    chorusctl(&home, ["daemon", "stop"]).expect_success();
}

#[test]
fn a_new_file_is_private() {
    use std::os::unix::fs::MetadataExt as _;
    let home = home();
    let said = chorusctl(&home, ["config", "set", "max_connections", "64"]).expect_success();
    assert!(said.contains("a new file"), "{said}");
    let file = home.path.join("config.toml");
    assert_eq!(fs::metadata(&file).expect("the file").mode() & 0o777, 0o600);
    assert_eq!(text(&home), "max_connections = 64\n");
}
