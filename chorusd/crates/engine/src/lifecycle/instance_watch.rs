//! Watches the lock file and the socket while the daemon runs, and puts them back. After `rm -r run/`, or the end of a
//! login session, which removes the runtime directory, clients must still reach the daemon, and it must stay the only
//! one.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_store::OnFatal;
use tokio::sync::mpsc;

use super::file_identity::FileIdentity;
use super::instance_lock::InstanceLock;
use super::socket::{self, BoundSocket, SocketPath};

/// The interval between two checks. Each costs three calls of `stat`, on a thread of its own so that a disk that hangs
/// delays nobody.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The paths of the socket: the requested one, the fallback if that is lost, and the current one.
#[derive(Debug)]
pub struct SocketPaths {
    /// The path that the daemon was told to listen at.
    pub requested: PathBuf,
    /// The home's own socket.
    pub fallback: PathBuf,
    /// The path that it listens at now.
    pub current: SocketPath,
}

/// The watching thread. Dropping this value ends it.
#[derive(Debug)]
pub struct InstanceWatch {
    lock: Arc<InstanceLock>,
    _end: SyncSender<()>,
}

impl InstanceWatch {
    /// Starts the thread; `bound` is the current socket. A new socket is sent to `moved`. `on_fatal` is called if the
    /// home no longer belongs to this daemon.
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
            // A weak reference, so that the thread does not keep the lock of a daemon that has ended.
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

    /// Ends the thread because the daemon stops.
    pub fn stop(self) {
        self.lock.clear_socket();
    }
}

struct WatchThread {
    lock: Weak<InstanceLock>,
    /// Identity of the socket's file; `None` if the file is not visible from here, which disables the check.
    identity: Option<FileIdentity>,
    is_passed: bool,
    places: SocketPaths,
    rebound: mpsc::Sender<BoundSocket>,
    on_fatal: OnFatal,
    /// The error that was logged last, so that a lasting error is logged once.
    last_logged: Option<String>,
}

impl WatchThread {
    fn run(mut self, ended: &Receiver<()>) {
        while ended.recv_timeout(CHECK_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let Some(lock) = self.lock.upgrade() else { return };
            match lock.check_and_restore() {
                Ok(false) => {}
                Ok(true) => tracing::warn!("restored the lock file: it had been removed or replaced"),
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
            // A socket that replaces one of the service manager also belongs to the manager.
            Some(found) => found != ours && !self.is_passed,
        }
    }

    /// Binds a new socket, at the same path if possible. Returns false if the daemon has stopped meanwhile.
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
        // If the receiver is gone, the socket is dropped, which removes its file.
        if self.rebound.blocking_send(bound).is_err() {
            return false;
        }
        tracing::warn!(
            "the socket {} was removed or replaced; the daemon now listens at {}",
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
            tracing::warn!(%failure, "cannot restore files that were removed while the daemon was running");
            self.last_logged = Some(what);
        }
    }
}
