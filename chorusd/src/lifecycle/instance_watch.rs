//! Looks at the lock file and the socket while the daemon runs, and puts them back: `rm -r run/`, or the end of a login session,
//! which removes the runtime directory, must leave a daemon that can be reached and stays the only one.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chorus_proto::ErrorKind;
use tokio::sync::mpsc;

use super::file_identity::FileIdentity;
use super::instance_lock::InstanceLock;
use super::socket::{self, BoundSocket, SocketPath};
use crate::error::{Error, Result};
use crate::store::OnFatal;

/// The time between two looks. Each is three calls of `stat` in a thread of its own: files on a disk that hangs hold up nobody.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The path that the daemon listens at, and those that it is to listen at if that is lost.
#[derive(Debug)]
pub struct SocketPaths {
    /// The path that it was asked to listen at.
    pub requested: PathBuf,
    /// The home's own socket.
    pub fallback: PathBuf,
    /// The path that it listens at.
    pub current: SocketPath,
}

/// The thread that looks. Dropping it ends it.
#[derive(Debug)]
pub struct InstanceWatch {
    lock: Arc<InstanceLock>,
    _end: SyncSender<()>,
}

impl InstanceWatch {
    /// Begins to look; `bound` is the socket now. What takes its place is sent to `moved`; `on_fatal` is told if the home is no
    /// longer the daemon's.
    ///
    /// # Errors
    /// The error of the system.
    pub fn start(
        lock: &Arc<InstanceLock>,
        bound: &BoundSocket,
        places: SocketPaths,
        moved: mpsc::Sender<BoundSocket>,
        on_fatal: OnFatal,
    ) -> Result<Self> {
        let file = bound.file();
        lock.record_socket(&file.path, &places.requested);
        let (end, ended) = sync_channel(0);
        let watcher = WatchThread {
            // A daemon that has ended must not keep its lock by this.
            lock: Arc::downgrade(lock),
            identity: file.identity,
            is_passed: file.is_activated,
            places,
            rebound: moved,
            on_fatal,
            last_logged: None,
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || watcher.run(&ended));
        thread.map_err(|e| Error::io("cannot start a thread", &e))?;
        Ok(Self { lock: lock.clone(), _end: end })
    }

    /// Ends it: the daemon stops.
    pub fn stop(self) {
        self.lock.clear_socket();
    }
}

struct WatchThread {
    lock: Weak<InstanceLock>,
    /// Of the socket's file; `None`: it cannot be seen from here, so it is not looked at.
    identity: Option<FileIdentity>,
    is_passed: bool,
    places: SocketPaths,
    rebound: mpsc::Sender<BoundSocket>,
    on_fatal: OnFatal,
    /// The failure that was logged last: one that lasts is logged once.
    last_logged: Option<String>,
}

impl WatchThread {
    fn run(mut self, ended: &Receiver<()>) {
        while ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let Some(lock) = self.lock.upgrade() else { return };
            match lock.check_and_restore() {
                Ok(false) => {}
                Ok(true) => tracing::warn!("the lock file was removed or replaced; it was put back"),
                Err(failure) if failure.kind == ErrorKind::StorageFailed => return (self.on_fatal)(failure),
                Err(failure) => self.log_once(&failure),
            }
            if self.is_socket_lost() && !self.rebind(&lock) {
                return;
            }
        }
    }

    fn is_socket_lost(&self) -> bool {
        let Some(ours) = self.identity else { return false };
        match socket::identity_of(&self.places.current.get()) {
            None => true,
            // A socket that took the place of a manager's is the manager's, too.
            Some(found) => found != ours && !self.is_passed,
        }
    }

    /// Listens again, at the same path if that can be; false if the daemon has stopped meanwhile.
    fn rebind(&mut self, lock: &InstanceLock) -> bool {
        let lost = self.places.current.get();
        let bound = socket::bind(&self.places.requested).or_else(|why| {
            if self.places.requested == self.places.fallback {
                return Err(why);
            }
            self.log_once(&why);
            socket::bind(&self.places.fallback)
        });
        let bound = match bound {
            Ok(bound) => bound,
            Err(failure) => {
                self.log_once(&failure);
                return true;
            }
        };
        let path = bound.file().path.clone();
        (self.identity, self.is_passed) = (bound.file().identity, false);
        // Dropped there, it removes its file.
        if self.rebound.blocking_send(bound).is_err() {
            return false;
        }
        tracing::warn!(
            "the socket {} was removed or replaced; the daemon listens at {}",
            lost.display(),
            path.display()
        );
        self.last_logged = None;
        self.places.current.set(path.clone());
        lock.record_socket(&path, &self.places.requested);
        true
    }

    fn log_once(&mut self, failure: &Error) {
        let what = failure.to_string();
        if self.last_logged.as_ref() != Some(&what) {
            tracing::warn!(%failure, "what was removed while the daemon runs cannot be put back");
            self.last_logged = Some(what);
        }
    }
}
