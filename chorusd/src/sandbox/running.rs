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
use super::cgroups::Group;
use super::wire::{Reached, Report, TERMINATE};

/// How long an end that cannot be refused may take.
const KILLED: Duration = Duration::from_secs(5);
/// How long the line may stay open once the outermost process has ended: nobody is left who should hold it.
const ORPHANED: Duration = Duration::from_millis(500);

/// A command that runs. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pid: u32,
    line: Line,
    /// After the others: it goes when it is empty.
    _group: Group,
    /// Its `HOME` if it has no view of its own; removed with it.
    _home: Option<TempDir>,
}

/// The line to the daemon's program inside, whose end is the command's.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    heard: Vec<u8>,
    /// Not said yet.
    to_say: Vec<u8>,
    reached: Option<Reached>,
    exit: Option<Exit>,
    failed: Option<String>,
    /// Nothing more will be heard.
    closed: bool,
}

impl Running {
    pub(super) fn new(child: Child, stream: UnixStream, to_say: Vec<u8>, group: Group, home: Option<TempDir>) -> Self {
        let pid = child.id().unwrap_or_default();
        let line = Line { stream, heard: Vec::new(), to_say, reached: None, exit: None, failed: None, closed: false };
        Self { child, pid, line, _group: group, _home: home }
    }

    /// Of the outermost process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it prints, where that was piped.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// What was put in place; known once it has ended.
    pub(super) fn reached(&self) -> Option<Reached> {
        self.line.reached
    }

    /// Waits until it has ended, with all its processes. May be given up and begun again.
    ///
    /// # Errors
    /// A command that could not be started or confined.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        let ended = tokio::select! {
            // What was said before the end is heard first.
            biased;
            () = self.line.hear() => None,
            status = self.child.wait() => Some(status),
        };
        if ended.is_some() && timeout(ORPHANED, self.line.hear()).await.is_err() {
            self.end_orphans().await;
            self.line.hear().await;
        }
        let status = self.child.wait().await?;
        match (self.line.exit, self.line.failed.take()) {
            (Some(exit), _) => Ok(exit),
            (None, Some(failed)) => Err(io::Error::other(failed)),
            (None, None) => Err(io::Error::other(format!("it was ended from outside, with {status}"))),
        }
    }

    /// Whoever is left without the outermost process. Bubblewrap that is killed while it sets things up leaves one that
    /// waits for it for ever and hears nothing, and is still of its group.
    async fn end_orphans(&mut self) {
        let _ = self.line.stream.shutdown().await;
        self.kill_group();
    }

    fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Ends all its processes: asks, and after `grace` kills.
    pub async fn end(&mut self, grace: Duration) {
        self.line.to_say.push(TERMINATE);
        if timeout(grace, self.wait()).await.is_ok() {
            return;
        }
        // What still has something to say is not listened to.
        let _ = self.line.stream.shutdown().await;
        self.line.to_say.clear();
        if timeout(KILLED, self.wait()).await.is_err() {
            let _ = self.child.start_kill();
            self.end_orphans().await;
            let _ = timeout(KILLED, self.child.wait()).await;
            self.line.closed = true;
        }
    }
}

impl Drop for Running {
    /// The end of the line ends whoever listens to it; somebody else may be left without the outermost process.
    fn drop(&mut self) {
        if !self.line.closed && matches!(self.child.try_wait(), Ok(Some(_))) {
            self.kill_group();
        }
    }
}

impl Line {
    /// Says what is to be said and takes what comes, until nothing more will. Nothing is lost where it is given up.
    async fn hear(&mut self) {
        while !self.closed {
            self.next().await;
        }
    }

    async fn next(&mut self) {
        if !self.to_say.is_empty() {
            match self.stream.write(&self.to_say).await {
                Ok(said) => drop(self.to_say.drain(..said)),
                // Whoever it was for has gone: what it said before tells why.
                Err(_) => self.to_say.clear(),
            }
            return;
        }
        match self.stream.read_buf(&mut self.heard).await {
            Ok(0) | Err(_) => self.closed = true,
            Ok(_) => {
                while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.heard.drain(..=end).collect();
                    self.take(&line);
                }
            }
        }
    }

    fn take(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(Report::Ready(reached)) => self.reached = Some(reached),
            Ok(Report::Code(code)) => self.exit = Some(Exit::Code(code)),
            Ok(Report::Signal(signal)) => self.exit = Some(Exit::Signal(signal)),
            Ok(Report::Memory) => self.exit = Some(Exit::Memory),
            // The first knows best: others only hear of it.
            Ok(Report::Failed(why)) => drop(self.failed.get_or_insert(why)),
            Err(e) => drop(self.failed.get_or_insert(e.to_string())),
        }
    }
}
