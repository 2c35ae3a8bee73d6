//! A `chorusd` process in the foreground, owned by a test.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Status, StatusParams};
use rustix::process::Signal;

use crate::home::Home;
use crate::measure::is_machine_busy;
use crate::process;
use crate::raw::RawConnection;
use crate::wait::{DEADLINE, wait_until};

/// A running daemon. Dropping it sends SIGKILL.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// Pid of `chorusd` itself, even if it runs under another program such as `strace`.
    pub pid: u32,
    socket: PathBuf,
    log: PathBuf,
}

impl Daemon {
    /// Starts the daemon and waits until it accepts connections. Panics with its log if it does not.
    #[must_use]
    pub fn start(home: &Home) -> Self {
        Self::start_command(home, home.command(home.bins.chorusd))
    }

    /// Writes `config` to config.toml and starts the daemon.
    #[must_use]
    pub fn start_with(home: &Home, config: &str) -> Self {
        home.write_config(config);
        Self::start(home)
    }

    /// Starts the daemon with another command, for example under `strace`.
    #[must_use]
    pub fn start_command(home: &Home, command: Command) -> Self {
        Self::try_start(home, command).unwrap_or_else(|(status, said)| panic!("chorusd ended with {status}: {said}"))
    }

    /// Starts the daemon.
    ///
    /// # Errors
    /// The exit status and standard error of a daemon that ended before it was ready.
    pub fn try_start(home: &Home, mut command: Command) -> Result<Self, (ExitStatus, String)> {
        let log = home.temp_dir().join("chorusd.err");
        let file = File::options().create(true).append(true).open(&log).expect("a log file");
        let before = file.metadata().expect("its length").len();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file).spawn().expect("chorusd starts");
        let stdout = child.stdout.take().expect("a pipe");
        let (ready, says) = mpsc::sync_channel(1);
        // Read the pipe to its end, so that the daemon never writes into a closed one.
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

    /// Connects a client with a timeout of [`DEADLINE`].
    #[must_use]
    pub fn client(&self) -> Client {
        let client = Client::connect(&self.socket).expect("the daemon accepts");
        client.set_timeout(Some(DEADLINE)).expect("a time-out");
        client
    }

    /// Opens a connection for raw bytes.
    #[must_use]
    pub fn raw_connection(&self) -> RawConnection {
        RawConnection::connect(&self.socket)
    }

    /// Returns the resident memory in bytes.
    #[must_use]
    pub fn rss(&self) -> u64 {
        process::rss(self.pid)
    }

    /// Returns the resident memory in bytes, without that of files: which pages of its program are mapped depends on what
    /// else the machine does.
    #[must_use]
    pub fn memory(&self) -> u64 {
        process::anonymous_memory(self.pid)
    }

    /// Waits until everything is indexed and the processor time that this takes is over: what follows from requests that are
    /// answered already. For a large home that takes longer than any deadline of a test, so the caller says how long it may.
    /// Does not wait on a machine that is kept busy: there the index, with its low priority, would take hours.
    pub fn wait_until_calm(&self, deadline: Duration) {
        if is_machine_busy() {
            return;
        }
        const BETWEEN: Duration = Duration::from_millis(200);
        let (mut client, mut asked) = (self.client(), Instant::now());
        wait_until("the search index", deadline, || {
            // Each question costs the daemon some of the processor time that is measured.
            if asked.elapsed() < BETWEEN {
                return None;
            }
            asked = Instant::now();
            let status = client.call::<Status>(&StatusParams { agent: None, limit: Some(0) }).expect("a status");
            status.search.is_some_and(|index| index.complete).then_some(())
        });
        process::wait_for_calm_second(self.pid);
    }

    /// Returns the standard error of all daemons that were started in this home.
    #[must_use]
    pub fn read_log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends SIGKILL and waits for the exit.
    pub fn kill9(mut self) {
        process::kill(self.pid);
        process::wait_for_exit(&mut self.child, "a killed chorusd");
    }

    /// Sends SIGTERM and waits for the exit.
    pub fn terminate(mut self) -> ExitStatus {
        self.terminate_in_place()
    }

    /// The same as [`Daemon::terminate`] without consuming the daemon.
    pub fn terminate_in_place(&mut self) -> ExitStatus {
        process::signal(self.pid, Signal::TERM);
        self.wait()
    }

    /// Waits for an exit that something else causes.
    pub fn wait(&mut self) -> ExitStatus {
        process::wait_for_exit(&mut self.child, "chorusd")
    }

    /// Panics with the log unless the daemon still answers.
    pub fn assert_alive(&mut self) {
        let ended = self.child.try_wait().expect("a child to ask");
        assert!(ended.is_none(), "chorusd ended with {ended:?}: {}", self.read_log());
        self.raw_connection().check_hello();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After a child was waited for, its pid may belong to another process.
        if matches!(self.child.try_wait(), Ok(None)) {
            process::kill(self.pid);
            _ = self.child.kill();
            _ = self.child.wait();
        }
    }
}
