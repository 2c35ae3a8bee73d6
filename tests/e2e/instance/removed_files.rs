//! Files and directories that are removed while the daemon runs are there again within about a second.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::lock_file::{self, LockHolder};
use chorus_tests::ctl::run_command;
use chorus_tests::{DEADLINE, Daemon, Home, Output, wait_until};

use crate::home;

/// Three times as long as it takes: other tests run beside.
const SOON: Duration = Duration::from_secs(3);

fn soon<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    let found = wait_until(what, DEADLINE, condition);
    assert!(begun.elapsed() < SOON, "{what} took {:?}", begun.elapsed());
    found
}

fn holder(home: &Path) -> LockHolder {
    lock_file::lock_holder(home).expect("a lock that is held")
}

#[test]
fn a_socket_that_was_removed_is_bound_again_at_the_same_path() {
    let home = home();
    let daemon = Daemon::start(&home);
    let mut before = daemon.raw_connection();
    for round in 0..3 {
        match round {
            0 => fs::remove_file(home.socket()).expect("the socket"),
            1 => fs::rename(home.socket(), home.temp_dir().join("away.sock")).expect("the socket"),
            _ => fs::remove_dir_all(home.path.join("run")).expect("run/"),
        }
        soon("the socket to be there again", || Client::connect(&home.socket()).ok());
        let mode = fs::metadata(home.socket()).expect("the socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
        assert_eq!(home.running_pid(), Some(daemon.pid));
    }
    before.check_hello();
    soon("the lock file to be there again", || {
        lock_file::lock_holder(&home.path).filter(|found| found.socket.is_some())
    });
    assert_eq!(holder(&home.path).pid, Some(daemon.pid));
    assert_eq!(daemon.terminate().code(), Some(0));
    assert!(!home.socket().exists(), "the new one is removed in the end");
}

/// A default instance that listens in a runtime directory, and a command line in the same environment.
struct Session {
    home: Home,
    runtime: PathBuf,
}

impl Session {
    fn new() -> Self {
        let home = home();
        let runtime = home.temp_dir().join("runtime");
        fs::create_dir(&runtime).expect("a runtime directory");
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).expect("its mode");
        Self { home, runtime }
    }

    fn default_home(&self) -> PathBuf {
        self.home.user_home.join(".chorus-agents")
    }

    fn start(&self, named: Option<&Path>) -> Daemon {
        Daemon::start_command(&self.home, self.command(self.home.bins.chorusd, named))
    }

    fn command(&self, program: &str, named: Option<&Path>) -> std::process::Command {
        let mut command = self.home.command(program);
        command.env_remove("CHORUS_HOME").env("XDG_RUNTIME_DIR", &self.runtime);
        if let Some(named) = named {
            command.env("CHORUS_SOCKET", named);
        }
        command
    }

    fn ctl(&self, named: Option<&Path>, args: &[&str]) -> Output {
        let mut command = self.command(self.home.bins.chorusctl, named);
        command.arg("--no-autostart").args(args);
        run_command(command, b"")
    }

    /// The end of a login session: the directory is gone, and cannot be made.
    fn end(&self) {
        fs::remove_dir_all(&self.runtime).expect("the runtime directory");
        fs::write(&self.runtime, "").expect("a file in its place");
    }
}

/// The socket is gone for as long as the daemon has not looked.
#[test]
fn a_daemon_that_ran_before_is_not_called_started() {
    let session = Session::new();
    let daemon = session.start(None);
    fs::remove_dir_all(session.runtime.join("chorus")).expect("the socket's directory");
    let mut command = session.command(session.home.bins.chorusctl, None);
    command.args(["daemon", "start"]);
    let said = run_command(command, b"").expect_success();
    assert!(said.starts_with("already running: ") && said.contains(&format!("pid {}", daemon.pid)), "{said}");
}

#[test]
fn a_runtime_directory_that_comes_back_has_the_socket_again() {
    let session = Session::new();
    let _daemon = session.start(None);
    fs::remove_dir_all(session.runtime.join("chorus")).expect("the socket's directory");
    let socket = session.runtime.join("chorus/chorusd.sock");
    soon("the socket to be there again", || Client::connect(&socket).ok());
    assert_eq!(fs::metadata(session.runtime.join("chorus")).expect("made").permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_daemon_that_has_lost_its_runtime_directory_listens_in_its_home_and_is_found_there() {
    for named in [false, true] {
        let session = Session::new();
        let socket = session.runtime.join("chorus/chorusd.sock");
        let named = named.then_some(&*socket);
        let daemon = session.start(named);
        session.end();
        let fallback = session.default_home().join("run/chorusd.sock");
        soon("the fallback", || Client::connect(&fallback).ok());
        soon("the lock file to name it", || {
            (holder(&session.default_home()).socket.as_ref() == Some(&fallback)).then_some(())
        });
        let status = session.ctl(named, &["--json", "status"]).expect_json();
        assert_eq!(status["daemon"]["pid"], daemon.pid);
        assert_eq!(status["daemon"]["socket"], fallback.to_str().expect("UTF-8"));
        session.ctl(named, &["daemon", "status"]).expect_success();
        session.ctl(named, &["daemon", "stop"]).expect_success();
        assert!(!fallback.exists());
    }
}

/// A socket of another program in the place of ours is neither taken nor removed in the end.
#[test]
fn the_socket_of_another_program_in_the_same_place_is_left_alone() {
    let session = Session::new();
    let daemon = session.start(None);
    let socket = session.runtime.join("chorus/chorusd.sock");
    let other = session.home.temp_dir().join("other.sock");
    let listener = UnixListener::bind(&other).expect("a socket");
    fs::rename(&other, &socket).expect("in the place of ours");
    let fallback = session.default_home().join("run/chorusd.sock");
    soon("the fallback", || Client::connect(&fallback).ok());
    assert_eq!(daemon.terminate().code(), Some(0));
    UnixStream::connect(&socket).expect("the other program still listens");
    drop(listener);
}
