//! What the daemon tells the socket of `$NOTIFY_SOCKET`.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Hello, HelloParams};
use chorus_tests::client_ext::ClientExt as _;
use chorus_tests::frozen_disk::FrozenDisk;
use chorus_tests::{DEADLINE, Daemon, Home, Need, skip_without};

use crate::home;

/// The other end.
struct Manager(UnixDatagram);

impl Manager {
    fn at(address: &SocketAddr) -> Self {
        let socket = UnixDatagram::bind_addr(address).expect("a socket");
        socket.set_read_timeout(Some(DEADLINE)).expect("a time-out");
        Self(socket)
    }

    /// The next message, where one comes within `patience`.
    fn hear(&self, patience: Duration) -> Option<String> {
        let mut buffer = [0; 4096];
        self.0.set_read_timeout(Some(patience)).expect("a time-out");
        match self.0.recv(&mut buffer) {
            Ok(length) => Some(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(e) => panic!("{e}"),
        }
    }

    /// The first message that has the line `line`.
    fn wait_for(&self, line: &str) -> String {
        loop {
            let message = self.hear(DEADLINE).unwrap_or_else(|| panic!("no {line}"));
            if message.lines().any(|there| there == line) {
                return message;
            }
        }
    }

    /// What came already is of no interest.
    fn forget(&self) {
        while self.hear(Duration::from_millis(1)).is_some() {}
    }
}

fn start(home: &Home, address: &str, watchdog: Option<Duration>) -> Daemon {
    let mut command = home.command(home.bins.chorusd);
    command.env("NOTIFY_SOCKET", address);
    if let Some(limit) = watchdog {
        command.env("WATCHDOG_USEC", limit.as_micros().to_string());
    }
    Daemon::start_command(home, command)
}

#[test]
fn ready_comes_when_the_socket_answers_and_stopping_when_it_ends() {
    let home = home();
    home.create();
    let path = home.temp_dir().join("notify");
    let manager = Manager::at(&SocketAddr::from_pathname(&path).expect("an address"));
    let (daemon, ready) = std::thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            let ready = manager.wait_for("READY=1");
            let mut client = Client::connect(&home.socket()).expect("ready, so it accepts");
            client.call::<Hello>(&HelloParams::default()).expect("ready, so it answers");
            ready
        });
        let daemon = start(&home, path.to_str().expect("UTF-8"), None);
        (daemon, hearing.join().expect("the manager"))
    });
    assert!(ready.lines().any(|line| line.starts_with("STATUS=")), "{ready}");
    daemon.client().init("a");
    daemon.client().append("a", "unsaved");
    assert_eq!(manager.hear(Duration::from_millis(1)), None, "nobody asked for signs of life");
    assert_eq!(daemon.terminate().code(), Some(0));
    manager.wait_for("STOPPING=1");
}

#[test]
fn an_abstract_socket_is_one_too_and_a_missing_one_no_hindrance() {
    let home = home();
    let name = format!("chorus-{}", std::process::id());
    let manager = Manager::at(&SocketAddr::from_abstract_name(&name).expect("an address"));
    start(&home, &format!("@{name}"), None).terminate();
    manager.wait_for("READY=1");
    start(&home, "/nowhere/at/all", None).raw_connection().check_hello();
}

#[test]
fn signs_of_life_stop_while_the_writer_of_the_journal_is_stuck() {
    let home = home();
    let path = home.temp_dir().join("notify");
    let manager = Manager::at(&SocketAddr::from_pathname(&path).expect("an address"));
    let limit = Duration::from_millis(300);
    let mut daemon = start(&home, path.to_str().expect("UTF-8"), Some(limit));
    manager.wait_for("WATCHDOG=1");
    manager.wait_for("WATCHDOG=1");
    let Some(holder) = FrozenDisk::freeze(&home, daemon.pid) else {
        return skip_without(Need::Ptrace, "strace cannot be used here");
    };
    manager.forget();
    assert_eq!(manager.hear(limit * 3), None, "a sign of life though nothing can be written");
    daemon.assert_alive();
    drop(holder);
    manager.wait_for("WATCHDOG=1");
}
