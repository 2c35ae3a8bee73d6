//! What lies where the socket belongs.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use chorus_tests::ctl::run_command;
use chorus_tests::{Daemon, Home, RawConnection};

use crate::home;

/// Starts a daemon that must refuse, and gives what it wrote.
fn refused(home: &Home, status: i32) -> String {
    refused_at(home, &home.socket(), status)
}

fn refused_at(home: &Home, socket: &Path, status: i32) -> String {
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_SOCKET", socket);
    let (ended, said) = Daemon::try_start(home, command).expect_err("a daemon that refuses to start");
    assert_eq!(ended.code(), Some(status), "{said}");
    assert!(said.contains("error: "), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

fn with_run_directory() -> Home {
    let home = home();
    home.create();
    let run = home.path.join("run");
    fs::create_dir(&run).expect("run/");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).expect("its mode");
    home
}

#[test]
fn a_regular_file_is_left_alone() {
    let home = with_run_directory();
    fs::write(home.socket(), "precious").expect("a file");
    refused(&home, 7);
    assert_eq!(fs::read_to_string(home.socket()).expect("still there"), "precious");
}

#[test]
fn a_directory_is_left_alone() {
    let home = with_run_directory();
    fs::create_dir(home.socket()).expect("a directory");
    fs::write(home.socket().join("inside"), "precious").expect("a file");
    refused(&home, 7);
    assert_eq!(fs::read_to_string(home.socket().join("inside")).expect("still there"), "precious");
}

#[test]
fn a_symlink_is_left_alone_wherever_it_leads() {
    let home = with_run_directory();
    for target in ["nowhere", "file"] {
        let target = home.temp_dir().join(target);
        if target.ends_with("file") {
            fs::write(&target, "precious").expect("a file");
        }
        symlink(&target, home.socket()).expect("a symlink");
        refused(&home, 7);
        assert_eq!(fs::read_link(home.socket()).expect("still a symlink"), target);
        assert_eq!(target.exists(), target.ends_with("file"), "nothing was made at its end");
        fs::remove_file(home.socket()).expect("removed");
    }
}

#[test]
fn a_symlink_to_a_stale_socket_is_left_alone() {
    let home = with_run_directory();
    let target = home.temp_dir().join("stale.sock");
    drop(UnixListener::bind(&target).expect("a socket"));
    symlink(&target, home.socket()).expect("a symlink");
    refused(&home, 7);
    assert!(fs::symlink_metadata(&target).expect("still there").file_type().is_socket());
}

#[test]
fn a_stale_socket_is_replaced() {
    let home = with_run_directory();
    drop(UnixListener::bind(home.socket()).expect("a socket"));
    let daemon = Daemon::start(&home);
    daemon.raw_connection().check_hello();
    let mode = fs::metadata(home.socket()).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}

#[test]
fn a_live_socket_of_another_program_is_left_alone() {
    let home = with_run_directory();
    let foreign = UnixListener::bind(home.socket()).expect("a socket");
    refused(&home, 7);
    UnixStream::connect(home.socket()).expect("the other program still listens");
    drop(foreign);
}

#[test]
fn a_second_daemon_of_the_same_home_is_refused_wherever_its_socket_is() {
    let home = home();
    let mut daemon = Daemon::start(&home);
    refused(&home, 7);
    refused_at(&home, &home.temp_dir().join("other.sock"), 7);
    assert!(!home.temp_dir().join("other.sock").exists());
    daemon.assert_alive();
}

#[test]
fn two_homes_cannot_share_a_socket() {
    let (one, two) = (home(), home());
    let mut daemon = Daemon::start(&one);
    refused_at(&two, &one.socket(), 7);
    daemon.assert_alive();
}

#[test]
fn a_path_that_no_socket_can_have_is_refused_with_its_length() {
    let home = home();
    let long = home.temp_dir().join("d".repeat(108)).join("chorusd.sock");
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_SOCKET", &long);
    let (status, said) = Daemon::try_start(&home, command).expect_err("refused");
    assert!(status.code().is_some_and(|code| code != 0), "{status}");
    assert!(said.contains("error: ") && said.contains("107"), "{said}");
    let mut status = home.command(home.bins.chorusctl);
    status.env("CHORUS_SOCKET", &long).args(["--no-autostart", "status"]);
    let said = run_command(status, b"");
    assert!(said.status != 0 && said.stderr.contains("error: "), "{said:?}");
}

#[test]
fn a_path_of_107_bytes_works() {
    let home = home();
    let mut path = home.temp_dir().join("x").into_os_string();
    path.push("x".repeat(107 - path.len()));
    let mut command = home.command(home.bins.chorusd);
    command.env("CHORUS_SOCKET", &path);
    let _daemon = Daemon::start_command(&home, command);
    RawConnection::connect(Path::new(&path)).check_hello();
}

#[test]
fn the_socket_is_gone_after_an_orderly_stop() {
    let home = home();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.terminate().code(), Some(0));
    assert!(!home.socket().exists());
}
