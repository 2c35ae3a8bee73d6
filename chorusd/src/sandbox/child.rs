//! A command that runs.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use super::Exit;
use super::cgroups::CommandCgroups;
use super::protocol::{AppliedConfinement, HelperReport, TERMINATE};

/// How long an end that cannot be refused may take.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the line may stay open once the outermost process has ended: nobody is left who should hold it.
const ORPHAN_TIMEOUT: Duration = Duration::from_millis(500);

/// A command that runs. Dropping it ends all its processes.
#[derive(Debug)]
pub struct SandboxChild {
    child: Child,
    pid: u32,
    control: ControlSocket,
    /// After the others: it goes when it is empty.
    _group: CommandCgroups,
    /// Its `HOME` if it has no view of its own; removed with it.
    _home: Option<TempDir>,
}

/// The line to the daemon's program inside, whose end is the command's.
#[derive(Debug)]
struct ControlSocket {
    stream: UnixStream,
    received: Vec<u8>,
    /// Not said yet.
    unsent: Vec<u8>,
    applied: Option<AppliedConfinement>,
    exit: Option<Exit>,
    failed: Option<String>,
    /// Nothing more will be heard.
    closed: bool,
}

impl SandboxChild {
    pub(super) fn new(
        child: Child,
        stream: UnixStream,
        to_say: Vec<u8>,
        group: CommandCgroups,
        home: Option<TempDir>,
    ) -> Self {
        let pid = child.id().unwrap_or_default();
        let control = ControlSocket {
            stream,
            received: Vec::new(),
            unsent: to_say,
            applied: None,
            exit: None,
            failed: None,
            closed: false,
        };
        Self { child, pid, control, _group: group, _home: home }
    }

    /// Of the outermost process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it prints, where that was piped.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// What was put in place; known once it has ended.
    pub(super) fn applied_confinement(&self) -> Option<AppliedConfinement> {
        self.control.applied
    }

    /// Waits until it has ended, with all its processes. May be given up and begun again.
    ///
    /// # Errors
    /// A command that could not be started or confined.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        let ended = tokio::select! {
            // What was said before the end is heard first.
            biased;
            () = self.control.exchange_until_closed() => None,
            status = self.child.wait() => Some(status),
        };
        if ended.is_some() && timeout(ORPHAN_TIMEOUT, self.control.exchange_until_closed()).await.is_err() {
            self.kill_orphans().await;
            self.control.exchange_until_closed().await;
        }
        let status = self.child.wait().await?;
        match (self.control.exit, self.control.failed.take()) {
            (Some(exit), _) => Ok(exit),
            (None, Some(failed)) => Err(io::Error::other(failed)),
            (None, None) => Err(io::Error::other(format!("it was ended from outside, with {status}"))),
        }
    }

    /// Whoever is left without the outermost process. Bubblewrap that is killed while it sets things up leaves one that
    /// waits for it for ever and hears nothing, and is still of its group.
    async fn kill_orphans(&mut self) {
        let _ = self.control.stream.shutdown().await;
        self.kill_group();
    }

    fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Ends all its processes: asks, and after `grace` kills.
    pub async fn terminate(&mut self, grace: Duration) {
        self.control.unsent.push(TERMINATE);
        if timeout(grace, self.wait()).await.is_ok() {
            return;
        }
        // What still has something to say is not listened to.
        let _ = self.control.stream.shutdown().await;
        self.control.unsent.clear();
        if timeout(KILL_TIMEOUT, self.wait()).await.is_err() {
            let _ = self.child.start_kill();
            self.kill_orphans().await;
            let _ = timeout(KILL_TIMEOUT, self.child.wait()).await;
            self.control.closed = true;
        }
    }
}

impl Drop for SandboxChild {
    /// The end of the line ends whoever listens to it; somebody else may be left without the outermost process.
    fn drop(&mut self) {
        if !self.control.closed && matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill_group();
        }
    }
}

impl ControlSocket {
    /// Says what is to be said and takes what comes, until nothing more will. Nothing is lost where it is given up.
    async fn exchange_until_closed(&mut self) {
        while !self.closed {
            self.exchange_once().await;
        }
    }

    async fn exchange_once(&mut self) {
        if !self.unsent.is_empty() {
            match self.stream.write(&self.unsent).await {
                Ok(said) => drop(self.unsent.drain(..said)),
                // Whoever it was for has gone: what it said before tells why.
                Err(_) => self.unsent.clear(),
            }
            return;
        }
        match self.stream.read_buf(&mut self.received).await {
            Ok(0) | Err(_) => self.closed = true,
            Ok(_) => {
                while let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.received.drain(..=end).collect();
                    self.handle_report(&line);
                }
            }
        }
    }

    fn handle_report(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(HelperReport::Ready(reached)) => self.applied = Some(reached),
            Ok(HelperReport::Code(code)) => self.exit = Some(Exit::Code(code)),
            Ok(HelperReport::Signal(signal)) => self.exit = Some(Exit::Signal(signal)),
            Ok(HelperReport::Memory) => self.exit = Some(Exit::Memory),
            // The first knows best: others only hear of it.
            Ok(HelperReport::Failed(why)) => drop(self.failed.get_or_insert(why)),
            Err(e) => drop(self.failed.get_or_insert(e.to_string())),
        }
    }
}
