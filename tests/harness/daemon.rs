//! A `chorusd` in the foreground that a test owns.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;

use chorus_proto::Client;
use rustix::process::Signal;

use crate::home::Home;
use crate::process;
use crate::raw::RawConnection;
use crate::wait::DEADLINE;

/// Dropping it is `kill -9`.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// Of `chorusd` itself, also where it runs under another program.
    pub pid: u32,
    socket: PathBuf,
    log: PathBuf,
}

impl Daemon {
    /// Starts it and waits until it accepts connections.
    ///
    /// # Panics
    /// With its log where it does not become ready.
    #[must_use]
    pub fn start(home: &Home) -> Self {
        Self::start_command(home, home.command(home.bins.chorusd))
    }

    /// The same with `config` as config.toml.
    ///
    /// # Panics
    /// As `start`.
    #[must_use]
    pub fn start_with(home: &Home, config: &str) -> Self {
        home.write_config(config);
        Self::start(home)
    }

    /// The same by a command of one's own, for example under `strace`.
    ///
    /// # Panics
    /// As `start`.
    #[must_use]
    pub fn start_command(home: &Home, command: Command) -> Self {
        Self::try_start(home, command).unwrap_or_else(|(status, said)| panic!("chorusd ended with {status}: {said}"))
    }

    /// The daemon, or how it ended and what it wrote on standard error.
    ///
    /// # Errors
    /// Where it ends before it is ready.
    ///
    /// # Panics
    /// Where it is neither ready nor ends in time.
    pub fn try_start(home: &Home, mut command: Command) -> Result<Self, (ExitStatus, String)> {
        let log = home.temp_dir().join("chorusd.err");
        let file = File::options().create(true).append(true).open(&log).expect("a log file");
        let before = file.metadata().expect("its length").len();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn().expect("chorusd starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (ready, says) = mpsc::sync_channel(1);
        // The pipe is read to its end, so that the daemon never writes into a closed one.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if line.trim() == "ready" {
                    _ = ready.send(());
                }
            }
        });
        match says.recv_timeout(DEADLINE) {
            Ok(()) => {
                let pid = home.running_pid().unwrap_or_else(|| child.id());
                Ok(Self { child, pid, socket: home.socket(), log })
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let status = process::wait_for_exit(&mut child, "chorusd without a ready line");
                let said = fs::read(&log).expect("its log");
                Err((status, String::from_utf8_lossy(&said[before as usize..]).into_owned()))
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                _ = child.kill();
                panic!("chorusd is neither ready nor gone: {}", fs::read_to_string(&log).unwrap_or_default());
            }
        }
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

    /// A connection for bytes of one's own.
    #[must_use]
    pub fn raw_connection(&self) -> RawConnection {
        RawConnection::connect(&self.socket)
    }

    /// Resident memory in bytes.
    #[must_use]
    pub fn rss(&self) -> u64 {
        process::rss(self.pid)
    }

    /// What it wrote on standard error, by all starts in this home.
    #[must_use]
    pub fn read_log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// `kill -9`, and wait for the end.
    ///
    /// # Panics
    /// Where it does not end.
    pub fn kill9(mut self) {
        process::kill(self.pid);
        process::wait_for_exit(&mut self.child, "a killed chorusd");
    }

    /// SIGTERM, and wait for the end.
    ///
    /// # Panics
    /// Where it does not end in time.
    pub fn terminate(mut self) -> ExitStatus {
        self.terminate_in_place()
    }

    /// The same where another is put in its place.
    ///
    /// # Panics
    /// Where it does not end in time.
    pub fn terminate_in_place(&mut self) -> ExitStatus {
        process::signal(self.pid, Signal::TERM);
        self.wait()
    }

    /// Waits for an end that something else brings about.
    ///
    /// # Panics
    /// Where it does not end in time.
    pub fn wait(&mut self) -> ExitStatus {
        process::wait_for_exit(&mut self.child, "chorusd")
    }

    /// Panics with the log unless it still answers.
    ///
    /// # Panics
    /// See above.
    pub fn assert_alive(&mut self) {
        let ended = self.child.try_wait().expect("a child to ask");
        assert!(ended.is_none(), "chorusd ended with {ended:?}: {}", self.read_log());
        self.raw_connection().check_hello();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A child that was waited for has given its number back, and somebody else may have it by now.
        if matches!(self.child.try_wait(), Ok(None)) {
            process::kill(self.pid);
            _ = self.child.kill();
            _ = self.child.wait();
        }
    }
}
