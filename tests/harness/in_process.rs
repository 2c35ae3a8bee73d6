//! A `chorusd` inside the test's own process, by a clock that the test moves; real socket, databases and files.

use std::path::PathBuf;
use std::sync::mpsc as blocking;
use std::thread::JoinHandle;

use chorus_proto::paths::InstancePaths;
use chorus_proto::{Client, ErrorKind};
use chorusd::daemon;
use chorusd::error::Result;
use tokio::sync::mpsc;

use crate::home::Home;
use crate::manual_clock::ManualClock;
use crate::wait::{DEADLINE, wait_until};

/// Dropping it stops it in order.
#[derive(Debug)]
pub struct InProcessDaemon {
    socket: PathBuf,
    stop: mpsc::Sender<&'static str>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl InProcessDaemon {
    /// Starts it by `hands` and waits until it takes connections. The lock of one that has ended may be held for a moment:
    /// by a process that another test has forked and that has not begun its program yet.
    ///
    /// # Panics
    /// Where it does not become ready.
    #[must_use]
    pub fn start(home: &Home, hands: &ManualClock) -> Self {
        wait_until("the lock of the home to be free", DEADLINE, || match Self::try_start(home, hands) {
            Ok(inside) => Some(inside),
            Err(failure) if failure.kind == ErrorKind::AlreadyExists => None,
            Err(failure) => panic!("the daemon is not ready: {failure:?}"),
        })
    }

    fn try_start(home: &Home, hands: &ManualClock) -> Result<Self> {
        let places = InstancePaths {
            home: home.path.clone(),
            socket: home.socket(),
            config: home.path.join("config.toml"),
            socket_is_explicit: false,
        };
        let (stop, stops) = mpsc::channel(2);
        let (say, ready) = blocking::sync_channel(1);
        let clock = hands.clock();
        let program = PathBuf::from(home.bins.chorusd);
        let thread = std::thread::spawn(move || {
            daemon::run_in_process(&places, &program, clock, stops, || {
                _ = say.send(());
            })
        });
        let started = ready.recv_timeout(DEADLINE);
        let inside = Self { socket: home.socket(), stop, thread: Some(thread) };
        if started.is_err() {
            inside.stop()?;
            panic!("the daemon ended before it was ready");
        }
        Ok(inside)
    }

    /// A client with a time-out.
    ///
    /// # Panics
    /// Where the daemon does not accept.
    #[must_use]
    pub fn client(&self) -> Client {
        let client = Client::connect(&self.socket).expect("the daemon accepts");
        client.set_timeout(Some(DEADLINE)).expect("a time-out");
        client
    }

    /// An orderly stop, and how it ended.
    ///
    /// # Errors
    /// Why the daemon had to end.
    ///
    /// # Panics
    /// Where the daemon did.
    pub fn stop(mut self) -> Result<()> {
        self.stop_and_join().expect("a thread to wait for").expect("the daemon's thread")
    }

    /// A stop that is asked for twice: it ends at once, and this process goes on without it.
    ///
    /// # Panics
    /// Where the daemon did.
    pub fn stop_at_once(mut self) {
        _ = self.stop.try_send("the test");
        _ = self.stop_and_join();
    }

    fn stop_and_join(&mut self) -> Option<std::thread::Result<Result<()>>> {
        _ = self.stop.try_send("the test");
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for InProcessDaemon {
    fn drop(&mut self) {
        _ = self.stop_and_join();
    }
}
