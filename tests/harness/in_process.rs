//! A `chorusd` inside the test's process with a manual clock; socket, databases and files are real.

use std::path::PathBuf;
use std::sync::mpsc as blocking;
use std::thread::JoinHandle;

use chorus_base::error::Result;
use chorus_clock::Clock;
use chorus_proto::paths::InstancePaths;
use chorus_proto::{Client, ErrorKind};
use chorusd::daemon;
use tokio::sync::mpsc;

use crate::home::Home;
use crate::manual_clock::ManualClock;
use crate::wait::{DEADLINE, wait_until};

/// A daemon in a thread. Dropping it stops it in order.
#[derive(Debug)]
pub struct InProcessDaemon {
    socket: PathBuf,
    stop: mpsc::Sender<&'static str>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl InProcessDaemon {
    /// Starts the daemon with the clock `hands` and waits until it accepts connections. Retries while the home is
    /// locked: a process that another test has forked but not yet executed may hold the lock of an earlier daemon for a
    /// moment.
    #[must_use]
    pub fn start(home: &Home, hands: &ManualClock) -> Self {
        Self::start_at(home, &hands.clock())
    }

    /// Does the same with any clock.
    #[must_use]
    pub fn start_at(home: &Home, clock: &Clock) -> Self {
        wait_until("the lock of the home to be free", DEADLINE, || match Self::try_start(home, clock.clone()) {
            Ok(inside) => Some(inside),
            Err(failure) if failure.kind == ErrorKind::AlreadyExists => None,
            Err(failure) => panic!("the daemon is not ready: {failure:?}"),
        })
    }

    fn try_start(home: &Home, clock: Clock) -> Result<Self> {
        let places = InstancePaths {
            home: home.path.clone(),
            socket: home.socket(),
            config: home.path.join("config.toml"),
            socket_is_explicit: false,
        };
        let (stop, stops) = mpsc::channel(2);
        let (say, ready) = blocking::sync_channel(1);
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

    /// Connects a client with a timeout of [`DEADLINE`].
    #[must_use]
    pub fn client(&self) -> Client {
        let client = Client::connect(&self.socket).expect("the daemon accepts");
        client.set_timeout(Some(DEADLINE)).expect("a time-out");
        client
    }

    /// Stops the daemon in order.
    pub fn stop(mut self) -> Result<()> {
        self.stop_and_join().expect("a thread to wait for").expect("the daemon's thread")
    }

    /// Stops the daemon with a second stop request, so that it ends at once.
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
