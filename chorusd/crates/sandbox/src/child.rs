//! A running command in the sandbox.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::time::timeout;

use super::Exit;
use super::cgroups::CommandCgroups;
use super::protocol::{AppliedConfinement, HelperReport, TERMINATE};

/// How long processes may take to end after they were killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the control socket may stay open after the outermost process has ended, which should leave nobody to hold
/// it.
const ORPHAN_TIMEOUT: Duration = Duration::from_millis(500);

/// A running command. Dropping it kills all its processes.
#[derive(Debug)]
pub struct SandboxChild {
    child: Child,
    pid: u32,
    control: ControlSocket,
    /// Dropped after the other fields: the groups can be removed only when they are empty.
    _group: CommandCgroups,
    /// The temporary `HOME` of a command without isolation, removed on drop.
    _home: Option<TempDir>,
}

/// The daemon's end of the control socket. It closes when the command has ended.
#[derive(Debug)]
struct ControlSocket {
    stream: UnixStream,
    received: Vec<u8>,
    /// Bytes that are still to be sent.
    unsent: Vec<u8>,
    applied: Option<AppliedConfinement>,
    exit: Option<Exit>,
    failed: Option<String>,
    /// True if nothing more will be received.
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

    /// Returns the process id of the outermost process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the confinement that the helper applied, once it has reported it.
    pub(super) fn applied_confinement(&self) -> Option<AppliedConfinement> {
        self.control.applied
    }

    /// Waits until the command is confined and starts: from then on it does not depend on the paths by which its directories
    /// were found, and they may be moved. Cancel safe.
    ///
    /// # Errors
    /// It did not start.
    pub async fn wait_until_ready(&mut self) -> io::Result<()> {
        let is_over = tokio::select! {
            biased;
            () = self.control.exchange_until_known() => false,
            _ = self.child.wait() => true,
        };
        if self.control.applied.is_some() {
            return Ok(());
        }
        match &self.control.failed {
            Some(failed) if !is_over => Err(io::Error::other(failed.clone())),
            _ => match self.wait().await {
                Ok(_) if self.control.applied.is_some() => Ok(()),
                Ok(exit) => Err(io::Error::other(format!("its sandbox ended with {exit:?} while it was set up"))),
                Err(e) => Err(e),
            },
        }
    }

    /// Waits until the command and all its processes have ended. Cancel safe.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        let ended = tokio::select! {
            // Process reports that arrived before the exit first.
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
            (None, None) => Err(io::Error::other(format!("it was killed from outside ({status})"))),
        }
    }

    /// Kills processes that outlived the outermost one: bubblewrap killed during setup leaves a process of its group
    /// that waits for ever and does not notice the closed socket.
    async fn kill_orphans(&mut self) {
        let _ = self.control.stream.shutdown().await;
        self.kill_group();
    }

    fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Ends all its processes: asks them to, and kills them after `grace`.
    pub async fn terminate(&mut self, grace: Duration) {
        self.control.unsent.push(TERMINATE);
        if timeout(grace, self.wait()).await.is_ok() {
            return;
        }
        // Unsent requests are dropped.
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
    /// Dropping the socket ends a helper that reads it; orphans of the outermost process are killed here.
    fn drop(&mut self) {
        if !self.control.closed && matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill_group();
        }
    }
}

impl ControlSocket {
    /// Sends pending bytes and handles reports until the socket is closed. Cancel safe.
    async fn exchange_until_closed(&mut self) {
        while !self.closed {
            self.exchange_once().await;
        }
    }

    /// Like [`Self::exchange_until_closed`], and stops when it is known if the command starts.
    async fn exchange_until_known(&mut self) {
        while !self.closed && self.applied.is_none() && self.failed.is_none() {
            self.exchange_once().await;
        }
    }

    async fn exchange_once(&mut self) {
        if !self.unsent.is_empty() {
            match self.stream.write(&self.unsent).await {
                Ok(said) => drop(self.unsent.drain(..said)),
                // The receiver is gone; an earlier report says why.
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
            // The first report names the cause; later ones are consequences.
            Ok(HelperReport::Failed(why)) => drop(self.failed.get_or_insert(why)),
            Err(e) => drop(self.failed.get_or_insert(e.to_string())),
        }
    }
}
