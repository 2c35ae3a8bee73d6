//! Whose home, whose socket, and who may connect.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use chorus_tests::ctl::run_command;
use chorus_tests::process::is_root;
use chorus_tests::{Daemon, Home, Need, RawConnection, skip_without};

use crate::home;

const NOBODY: u32 = 65534;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

fn refused(home: &Home, status: i32) -> String {
    let command = home.command(home.bins.chorusd);
    let (ended, said) = Daemon::try_start(home, command).expect_err("a daemon that refuses to start");
    assert_eq!(ended.code(), Some(status), "{said}");
    assert!(said.contains("error: "), "{said}");
    said
}

#[test]
fn a_home_that_others_may_write_is_refused() {
    for open in [0o777, 0o770, 0o702] {
        let home = home();
        home.create();
        mode(&home.path, open);
        let said = refused(&home, 6);
        assert!(said.contains("hint: "), "{said}");
        assert_eq!(fs::read_dir(&home.path).expect("the home").count(), 0, "nothing was made in it");
        assert_eq!(fs::metadata(&home.path).expect("the home").permissions().mode() & 0o777, open);
    }
}

#[test]
fn a_home_of_somebody_else_is_refused() {
    if !is_root() {
        return skip_without(Need::Root, "only root can give a directory away");
    }
    let home = home();
    home.create();
    chown(&home.path, Some(NOBODY), Some(NOBODY)).expect("given away");
    refused(&home, 6);
}

#[test]
fn a_home_that_is_a_file_is_refused() {
    let home = home();
    fs::write(&home.path, "precious").expect("a file");
    let (ended, said) = Daemon::try_start(&home, home.command(home.bins.chorusd)).expect_err("refused");
    assert!(ended.code().is_some_and(|code| code != 0) && said.contains("error: "), "{ended} {said}");
    assert_eq!(fs::read_to_string(&home.path).expect("still there"), "precious");
}

#[test]
fn a_home_on_a_read_only_file_system_is_a_clear_error() {
    let home = home();
    Daemon::start(&home).terminate();
    let script =
        r#"mount --bind "$CHORUS_HOME" "$CHORUS_HOME" && mount -o remount,ro,bind "$CHORUS_HOME" && exec "$0""#;
    let mut probe = home.command("unshare");
    probe.args(["-m", "sh", "-c", script, "true"]);
    if !is_root() || run_command(probe, b"").status != 0 {
        return skip_without(Need::Mount, "no mount namespaces here");
    }
    let mut command = home.command("unshare");
    command.args(["-m", "sh", "-c", script, home.bins.chorusd]);
    let (ended, said) = Daemon::try_start(&home, command).expect_err("refused");
    assert!(ended.code().is_some_and(|code| code != 0), "{ended}");
    assert!(said.contains("error: ") && !said.contains("panicked"), "{said}");
    Daemon::start(&home).raw_connection().check_hello();
}

#[test]
fn another_user_is_refused_even_where_the_socket_can_be_reached() {
    if !is_root() {
        return skip_without(Need::Root, "only root can become another user");
    }
    let home = home();
    let mut daemon = Daemon::start(&home);
    let open = [home.temp_dir(), &home.path, &home.path.join("run")];
    open.iter().for_each(|path| mode(path, 0o755));
    mode(&home.socket(), 0o777);
    let program = home.temp_dir().join("chorusctl");
    fs::copy(home.bins.chorusctl, &program).expect("a program that the other user can read");
    mode(&program, 0o755);
    let mut command = home.command(program.to_str().expect("a plain path"));
    command.args(["--no-autostart", "status"]).uid(NOBODY).gid(NOBODY).current_dir("/");
    let said = run_command(command, b"");
    said.expect_failure(6);
    daemon.assert_alive();
}

#[test]
fn without_chorus_home_everything_is_in_the_users_home() {
    let home = home();
    let mut command = home.command(home.bins.chorusd);
    command.env_remove("CHORUS_HOME");
    let _daemon = Daemon::start_command(&home, command);
    let default = home.user_home.join(".chorus-agents");
    RawConnection::connect(&default.join("run/chorusd.sock")).check_hello();
    assert_eq!(fs::metadata(&default).expect("the home").permissions().mode() & 0o777, 0o700);
    assert!(!home.path.exists());
}

#[test]
fn the_runtime_directory_holds_the_socket_where_it_is_ours() {
    let home = home();
    let runtime = home.temp_dir().join("runtime");
    fs::create_dir(&runtime).expect("a directory");
    mode(&runtime, 0o700);
    let mut command = home.command(home.bins.chorusd);
    command.env_remove("CHORUS_HOME").env("XDG_RUNTIME_DIR", &runtime);
    let _daemon = Daemon::start_command(&home, command);
    RawConnection::connect(&runtime.join("chorus/chorusd.sock")).check_hello();
}

/// As `su` leaves it behind: the home has a place of its own.
#[test]
fn a_runtime_directory_of_somebody_else_is_left_alone() {
    if !is_root() {
        return skip_without(Need::Root, "only root can give a directory away");
    }
    let home = home();
    let runtime = home.temp_dir().join("runtime");
    fs::create_dir(&runtime).expect("a directory");
    mode(&runtime, 0o700);
    chown(&runtime, Some(NOBODY), Some(NOBODY)).expect("given away");
    let mut command = home.command(home.bins.chorusd);
    command.env_remove("CHORUS_HOME").env("XDG_RUNTIME_DIR", &runtime);
    let _daemon = Daemon::start_command(&home, command);
    RawConnection::connect(&home.user_home.join(".chorus-agents/run/chorusd.sock")).check_hello();
    assert_eq!(fs::read_dir(&runtime).expect("the directory").count(), 0, "nothing was made in it");
}

#[test]
fn a_socket_directory_of_somebody_else_is_refused() {
    if !is_root() {
        return skip_without(Need::Root, "only root can give a directory away");
    }
    let home = home();
    let directory = home.temp_dir().join("theirs");
    fs::create_dir(&directory).expect("a directory");
    chown(&directory, Some(NOBODY), Some(NOBODY)).expect("given away");
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_SOCKET", directory.join("chorusd.sock"));
    let (ended, said) = Daemon::try_start(&home, command).expect_err("refused");
    assert_eq!(ended.code(), Some(6), "{said}");
    assert_eq!(fs::read_dir(&directory).expect("the directory").count(), 0, "nothing was made in it");
}
