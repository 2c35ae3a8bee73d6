//! Starts ssh: for the line to a machine, which further connections share, and for each connection.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::control_path;
use crate::error::RemoteError;
use crate::explain::{LineFailure, explain};

/// How long ssh keeps a line open that nobody uses.
const PERSIST_SECONDS: u32 = 60;

/// How long a connection may take if nobody is asked for anything.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long it may take if the user may be asked for a password.
const ASK_TIMEOUT: Duration = Duration::from_secs(120);

/// The limit on text before the greeting, for example of a login script, in bytes.
const MAX_NOISE: usize = 64 * 1024;

/// The limit on what is kept of the messages of ssh, in bytes.
const MAX_MESSAGES: usize = 64 * 1024;

/// How long the messages of a program that has ended may take to arrive.
const LAST_MESSAGES: Duration = Duration::from_millis(300);

/// Options of every ssh. A line that is dead is noticed after 15 seconds. What the configuration of ssh says for people who log in,
/// such as a command or forwarded ports, would be in the way.
const OPTIONS: [&str; 12] = [
    "-T",
    "-x",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "PermitLocalCommand=no",
    "-o",
    "RemoteCommand=none",
];

/// Options of an ssh that asks nobody.
const UNATTENDED: [&str; 4] = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=15"];

/// Says who answers the questions of ssh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompts {
    /// The user, at the terminal.
    Allow,
    /// Nobody: ssh fails instead.
    Refuse,
}

/// How a machine is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ssh {
    destination: String,
    /// The command to use as ssh, in the words of a shell.
    rsh: String,
    /// The directory of the sockets of shared lines.
    directory: Option<PathBuf>,
}

/// The program at the other end of a connection.
#[derive(Debug)]
pub struct RemoteCommand<'a> {
    /// The name of the machine for the user.
    pub host: &'a str,
    /// The program, without arguments.
    pub program: &'a str,
    /// The command in the words of the shell there.
    pub line: String,
    /// The first line that it writes.
    pub greeting: &'static str,
    /// The hint if the program is not found there.
    pub not_found_hint: String,
    /// The feature for which a program is too old that does not know the command.
    pub too_old: &'static str,
}

/// The line over which a connection is made.
enum Line {
    /// The one of this socket.
    Shared(PathBuf),
    /// One that the user's configuration of ssh names, and that is open.
    OfUser,
    /// One of its own.
    Single,
}

impl Ssh {
    /// `rsh` is the command to use instead of ssh, `directory` that of the sockets of shared lines.
    #[must_use]
    pub fn new(destination: String, rsh: Option<String>, directory: Option<PathBuf>) -> Self {
        Self { destination, rsh: rsh.unwrap_or_else(|| "ssh".to_owned()), directory }
    }

    /// The same with the directory of an instance for the sockets of shared lines.
    ///
    /// # Errors
    /// The destination would be an option of ssh.
    pub fn to_machine(
        destination: &str,
        rsh: &str,
        places: &chorus_proto::paths::InstancePaths,
    ) -> Result<Self, RemoteError> {
        if destination.is_empty() || destination.starts_with('-') {
            return Err(RemoteError::new(
                2,
                format!("{destination:?} is not the name of a machine"),
                "name it as for ssh: USER@MACHINE",
            ));
        }
        Ok(Self::new(destination.to_owned(), Some(rsh.to_owned()), control_path::directory(places)))
    }

    pub(crate) fn destination(&self) -> &str {
        &self.destination
    }

    /// Connects to `command` there, within `timeout` or the usual time. Everything after its greeting is for the caller.
    ///
    /// # Errors
    /// ssh fails, or the command does not greet.
    pub fn connect(
        &self,
        command: &RemoteCommand<'_>,
        prompts: Prompts,
        timeout: Option<Duration>,
    ) -> Result<OwnedFd, RemoteError> {
        let line = self.open_line(prompts).map_err(|failure| explain(command, &failure))?;
        let first = self.connect_over(&line, command, prompts, timeout);
        match (first, &line) {
            // The line has ended since, or is about to.
            (Err(failure), Line::Shared(path)) if failure.is_of_ssh() && !is_open(path) => {
                let line = self.open_line(prompts).map_err(|failure| explain(command, &failure))?;
                self.connect_over(&line, command, prompts, timeout).map_err(|failure| explain(command, &failure))
            }
            (connected, _) => connected.map_err(|failure| explain(command, &failure)),
        }
    }

    /// Opens the line that connections share, unless it is open.
    fn open_line(&self, prompts: Prompts) -> Result<Line, LineFailure> {
        let Some(path) = self.control_path() else { return Ok(Line::Single) };
        if is_open(&path) {
            return Ok(Line::Shared(path));
        }
        if self.has_configured_lines() {
            return Ok(if self.is_configured_line_open() { Line::OfUser } else { Line::Single });
        }
        let Some(lock) = self.directory.as_deref().and_then(|directory| lock(directory, &path)) else {
            return Ok(Line::Single);
        };
        // Another command may have opened it in the meantime.
        if !is_open(&path) {
            let _ = fs::remove_file(&path);
            self.start_line(&path, prompts)?;
        }
        drop(lock);
        Ok(if is_open(&path) { Line::Shared(path) } else { Line::Single })
    }

    /// Has ssh open a line and keep it in the background.
    fn start_line(&self, path: &Path, prompts: Prompts) -> Result<(), LineFailure> {
        let mut ssh = self.command(prompts);
        ssh.args(["-o", "ControlMaster=auto", "-o", &format!("ControlPersist={PERSIST_SECONDS}")]);
        ssh.args(["-o", &format!("ControlPath={}", path.display()), "-fN", "--", &self.destination]);
        // A line in the background of an older ssh keeps its standard error open, so it never gets that of the user.
        let mut ssh = ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let messages = collect(ssh.stderr.take(), prompts == Prompts::Allow);
        let status = ssh.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(LineFailure::Exited {
                status: status.code(),
                messages: messages.recv_timeout(LAST_MESSAGES).unwrap_or_default(),
                are_shown: prompts == Prompts::Allow,
            }),
        }
    }

    fn connect_over(
        &self,
        line: &Line,
        command: &RemoteCommand<'_>,
        prompts: Prompts,
        timeout: Option<Duration>,
    ) -> Result<OwnedFd, LineFailure> {
        let (ours, theirs) = UnixStream::pair()?;
        let asks = matches!(line, Line::Single) && prompts == Prompts::Allow;
        let mut ssh = self.command(if asks { Prompts::Allow } else { Prompts::Refuse });
        if let Line::Shared(path) = line {
            ssh.args(["-o", "ControlMaster=no", "-o", &format!("ControlPath={}", path.display())]);
        }
        if !asks {
            // Ctrl-C is for the program that uses the connection.
            ssh.process_group(0);
        }
        if self.is_openssh() {
            ssh.arg("--");
        }
        ssh.args([&self.destination, &command.line]);
        let input = OwnedFd::from(theirs.try_clone()?);
        ssh.stdin(Stdio::from(input)).stdout(Stdio::from(OwnedFd::from(theirs))).stderr(Stdio::piped());
        let mut child = ssh.spawn()?;
        // It holds the other end, too.
        drop(ssh);
        let messages = collect(child.stderr.take(), asks);
        let timeout = timeout.unwrap_or(if asks { ASK_TIMEOUT } else { CONNECT_TIMEOUT });
        ours.set_read_timeout(Some(timeout))?;
        let greeted = skip_to_greeting(&ours, command.greeting.as_bytes(), Instant::now() + timeout);
        match greeted {
            Ok(true) => {
                ours.set_read_timeout(None)?;
                reap(child);
                Ok(ours.into())
            }
            Ok(false) => {
                drop(ours);
                let status = child.wait()?.code();
                let messages = messages.recv_timeout(LAST_MESSAGES).unwrap_or_default();
                Err(LineFailure::Exited { status, messages, are_shown: asks })
            }
            Err(_) => {
                let _ = child.kill();
                reap(child);
                Err(LineFailure::TimedOut)
            }
        }
    }

    /// Returns ssh with the options that all have.
    fn command(&self, prompts: Prompts) -> Command {
        let mut command = self.program();
        if self.is_openssh() {
            command.args(OPTIONS);
            if prompts == Prompts::Refuse {
                command.args(UNATTENDED);
            }
        }
        command
    }

    fn program(&self) -> Command {
        if self.rsh == "ssh" {
            return Command::new("ssh");
        }
        let mut command = Command::new("sh");
        // The words of `rsh` are those of a shell, as for git and rsync.
        command.args(["-c", &format!("exec {} \"$@\"", self.rsh), "ssh"]);
        command
    }

    /// Returns true if the program has the options of OpenSSH.
    fn is_openssh(&self) -> bool {
        let program = self.rsh.split_whitespace().next().unwrap_or_default();
        Path::new(program).file_name().is_some_and(|name| name == "ssh")
    }

    /// Returns the socket of the shared line; `None` if there can be none.
    pub(crate) fn control_path(&self) -> Option<PathBuf> {
        let directory = self.directory.as_deref().filter(|_| self.is_openssh())?;
        control_path::socket(directory, &self.rsh, &self.destination)
    }

    /// Returns true if the user's configuration of ssh says where the sockets of shared lines are.
    fn has_configured_lines(&self) -> bool {
        let mut ssh = self.program();
        ssh.args(["-G", "--", &self.destination]).stdin(Stdio::null()).stderr(Stdio::null());
        let Ok(said) = ssh.output() else { return false };
        let said = String::from_utf8_lossy(&said.stdout);
        let mut paths = said.lines().filter_map(|line| line.strip_prefix("controlpath "));
        paths.any(|path| path != "none")
    }

    fn is_configured_line_open(&self) -> bool {
        let mut ssh = self.program();
        ssh.args(["-O", "check", "--", &self.destination]);
        ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        ssh.status().is_ok_and(|status| status.success())
    }
}

/// Returns true if an ssh listens on the socket of a line.
fn is_open(path: &Path) -> bool {
    let is_socket = path.symlink_metadata().is_ok_and(|about| about.file_type().is_socket());
    is_socket && UnixStream::connect(path).is_ok()
}

/// Waits until no other command opens the line.
fn lock(directory: &Path, path: &Path) -> Option<File> {
    if !control_path::prepare(directory) {
        return None;
    }
    let lock = path.with_extension("lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(lock).ok()?;
    flock(&file, FlockOperation::LockExclusive).ok()?;
    Some(file)
}

/// Reads the messages of a program in a thread, until it has ended, and shows them if they are for the user.
fn collect(stderr: Option<ChildStderr>, are_shown: bool) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1);
    let read = move || {
        let mut messages = Vec::new();
        let mut piece = [0; 4096];
        let Some(mut stderr) = stderr else { return };
        loop {
            match stderr.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(length) => {
                    if are_shown {
                        let _ = io::stderr().write_all(&piece[..length]);
                    }
                    if messages.len() < MAX_MESSAGES {
                        messages.extend_from_slice(&piece[..length]);
                    }
                }
            }
        }
        let _ = sender.try_send(String::from_utf8_lossy(&messages).into_owned());
    };
    // Without the thread, there are no messages.
    let _ = thread::Builder::new().name("ssh".into()).spawn(read);
    receiver
}

/// Waits for the end of a program in a thread, so that it leaves no zombie.
fn reap(mut child: Child) {
    let _ = thread::Builder::new().name("ssh".into()).spawn(move || child.wait());
}

/// Reads up to the end of the greeting. Returns false if the other end has nothing more to say.
fn skip_to_greeting(mut stream: &UnixStream, greeting: &[u8], deadline: Instant) -> io::Result<bool> {
    let mut seen = Vec::new();
    let mut byte = [0];
    while seen.len() < MAX_NOISE {
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // Byte by byte: what follows is for the caller.
        match stream.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(false),
            Err(error) => return Err(error),
        }
        if seen.strip_suffix(b"\n").is_some_and(|seen| seen.ends_with(greeting)) {
            return Ok(true);
        }
    }
    Ok(false)
}
