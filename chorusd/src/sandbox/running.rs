//! A command that runs.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use super::Exit;
use super::wire::{Reached, Report, TERMINATE};

/// How long an end that cannot be refused may take.
const KILLED: Duration = Duration::from_secs(5);

/// A command that runs. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pid: u32,
    /// To the daemon's program inside, whose end is the command's.
    line: UnixStream,
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
    pub(super) fn new(child: Child, line: UnixStream, to_say: Vec<u8>) -> Self {
        let pid = child.id().unwrap_or_default();
        Self { child, pid, line, heard: Vec::new(), to_say, reached: None, exit: None, failed: None, closed: false }
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
        self.reached
    }

    /// Waits until it has ended, with all its processes. May be given up and begun again.
    ///
    /// # Errors
    /// A command that could not be started or confined.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        while !self.closed {
            self.listen().await;
        }
        let status = self.child.wait().await?;
        match (self.exit, self.failed.take()) {
            (Some(exit), _) => Ok(exit),
            (None, Some(failed)) => Err(io::Error::other(failed)),
            (None, None) => Err(io::Error::other(format!("it was ended from outside, with {status}"))),
        }
    }

    /// Says what is to be said and takes what comes; nothing is lost where it is given up.
    async fn listen(&mut self) {
        if !self.to_say.is_empty() {
            match self.line.write(&self.to_say).await {
                Ok(said) => drop(self.to_say.drain(..said)),
                // Whoever it was for has gone: what it said before tells why.
                Err(_) => self.to_say.clear(),
            }
            return;
        }
        match self.line.read_buf(&mut self.heard).await {
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
            // The first knows best: others only hear of it.
            Ok(Report::Failed(why)) => drop(self.failed.get_or_insert(why)),
            Err(e) => drop(self.failed.get_or_insert(e.to_string())),
        }
    }

    /// Ends all its processes: asks, and after `grace` kills.
    pub async fn end(&mut self, grace: Duration) {
        self.to_say.push(TERMINATE);
        if timeout(grace, self.wait()).await.is_ok() {
            return;
        }
        // What still has something to say is not listened to.
        let _ = self.line.shutdown().await;
        self.to_say.clear();
        if timeout(KILLED, self.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}
