//! Running commands of agents where they reach their workspace and little else.

mod run;

pub use run::{Ran, run};

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// What a command may reach and use.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// Writable, and the working directory. It is seen under its own path.
    pub workspace: PathBuf,
    pub network: bool,
    pub limits: Limits,
}

/// How much a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From its start to its end; `None`: none.
    pub time: Option<Duration>,
    /// Bytes of memory, of all its processes together where the machine can count that.
    pub memory: u64,
    pub processes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Some(Duration::from_secs(120)), memory: 4 << 30, processes: 512 }
    }
}

/// A command that is to run.
#[derive(Debug, Clone)]
pub struct Job {
    /// The program, and what it is given.
    pub argv: Vec<OsString>,
    /// Added to the clean environment.
    pub env: Vec<(OsString, OsString)>,
    pub confinement: Confinement,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut,
}

/// The sandbox of this machine.
#[derive(Debug)]
pub struct Sandbox {
    /// The daemon's own program, which runs again inside.
    #[expect(dead_code, reason = "skeleton")]
    program: PathBuf,
    #[expect(dead_code, reason = "skeleton")]
    home: PathBuf,
}

/// A command that runs. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Running {
    child: tokio::process::Child,
    pid: u32,
}

impl Sandbox {
    /// Finds out what this machine can do. `home` is Chorus's, and out of reach inside.
    #[must_use]
    pub fn new(program: &Path, home: &Path) -> Self {
        Self { program: program.to_owned(), home: home.to_owned() }
    }

    /// Why commands cannot be confined here, to be read after "because"; `None`: they can.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        Some("the sandbox is not there yet")
    }

    /// Starts a command; standard output and standard error both go to `output`, standard input is empty.
    ///
    /// # Errors
    /// A command that cannot be started.
    pub fn start(&self, job: &Job, output: Stdio, errors: Stdio) -> io::Result<Running> {
        let [program, args @ ..] = &job.argv[..] else { return Err(io::ErrorKind::InvalidInput.into()) };
        let child = tokio::process::Command::new(program)
            .args(args)
            .envs(job.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&job.confinement.workspace)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().unwrap_or_default();
        Ok(Running { child, pid })
    }
}

impl Running {
    /// Of the outermost process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it prints, where that was piped.
    pub fn output(&mut self) -> Option<tokio::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits until it has ended, with all its processes.
    ///
    /// # Errors
    /// A child that cannot be waited for.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        use std::os::unix::process::ExitStatusExt as _;
        let status = self.child.wait().await?;
        self.signal(rustix::process::Signal::KILL);
        Ok(status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code))
    }

    /// Ends all its processes: asks, and after `grace` kills.
    pub async fn end(&mut self, grace: Duration) {
        self.signal(rustix::process::Signal::TERM);
        if tokio::time::timeout(grace, self.child.wait()).await.is_err() {
            self.signal(rustix::process::Signal::KILL);
        }
        let _ = self.child.kill().await;
    }

    /// To its process group.
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}
