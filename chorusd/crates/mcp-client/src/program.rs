//! Servers that are programs: each runs in the sandbox, with pipes to its standard streams.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use chorus_base::private_fs;
use chorus_config::McpProgram;
use chorus_sandbox::{CommandSpec, Confinement, Exit, PathAccess, ResourceLimits, Sandbox, SandboxChild, SharedPath};
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::connection::{ConnectError, Connection, Handshake};
use super::stderr_log::{self, LastLine};

/// How long a program may take to end after its standard input was closed, and again after SIGTERM.
const END_GRACE: Duration = Duration::from_secs(1);
/// How long a program may take to be ended.
const END_TIMEOUT: Duration = Duration::from_secs(4);

/// Directory of the home for what can be downloaded again; backups leave it out.
const CACHE_DIR: &str = "cache";

/// A running program and the connection to it.
pub(crate) struct RunningProgram {
    pub connection: Connection,
    process: Process,
}

/// A program in the sandbox. Dropping it kills all its processes.
struct Process {
    /// Why it ended, once it has.
    ended: watch::Receiver<Option<String>>,
    end: CancellationToken,
    last_line: LastLine,
}

/// The place in which a program runs.
pub(crate) struct ProgramPlace<'a> {
    pub server: &'a str,
    /// The home of Chorus.
    pub home: &'a Path,
    pub sandbox: &'a Arc<Sandbox>,
}

impl RunningProgram {
    /// Starts the program and does the handshake. If that fails or is given up, the program is ended.
    pub(crate) async fn start(
        program: &McpProgram,
        place: &ProgramPlace<'_>,
        handshake: Handshake,
    ) -> Result<Self, ConnectError> {
        let failed = |message| ConnectError { message, unknown_handshake: false };
        let (mut process, output, input) = Process::start(program, place).await.map_err(failed)?;
        let opened = tokio::select! {
            opened = Connection::open((output, input), handshake) => opened,
            why = process.ended() => Err(failed(why)),
        };
        match opened {
            Ok(connection) => Ok(Self { connection, process }),
            Err(error) => {
                // It may have closed its output a moment before it ended, and says better why.
                let why = tokio::time::timeout(END_GRACE, process.ended()).await;
                let message = if error.unknown_handshake { error.message } else { why.unwrap_or(error.message) };
                process.end().await;
                Err(ConnectError { message, ..error })
            }
        }
    }

    /// Waits until the program or the connection has ended, and returns why.
    pub(crate) async fn ended(&mut self) -> String {
        tokio::select! {
            why = self.process.ended() => why,
            () = self.connection.closed() => {
                let why = tokio::time::timeout(END_GRACE, self.process.ended()).await;
                why.unwrap_or_else(|_| "it closed its standard output".into())
            }
        }
    }

    /// Ends the program: closes its standard input, then SIGTERM, then SIGKILL.
    pub(crate) async fn stop(self) {
        let mut process = self.process;
        self.connection.close(END_GRACE).await;
        let _ = tokio::time::timeout(END_GRACE, process.ended()).await;
        process.end().await;
    }
}

impl Process {
    async fn start(
        program: &McpProgram,
        place: &ProgramPlace<'_>,
    ) -> Result<(Self, pipe::Receiver, pipe::Sender), String> {
        let spec = command_spec(program, place)?;
        if place.sandbox.prepare().await.is_none() {
            return Err("the sandbox check failed".into());
        }
        let started = start_in_sandbox(place.sandbox, &spec);
        let (child, streams) = started.map_err(|e| format!("cannot run it: {e}"))?;
        let last_line = LastLine::default();
        let log = stderr_log::run(place.server.to_owned(), streams.errors, last_line.clone());
        let logging = chorus_runtime::spawn(log);
        let (tell, ended) = watch::channel(None);
        let end = CancellationToken::new();
        let _watching = chorus_runtime::spawn(watch_child(child, end.clone(), (logging, last_line.clone()), tell));
        Ok((Self { ended, end, last_line }, streams.output, streams.input))
    }

    /// Waits until it has ended, and returns why. Cancel safe.
    async fn ended(&mut self) -> String {
        let why = self.ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| self.last_line.lock().clone())
    }

    /// Ends it, and waits until none of its processes is left.
    async fn end(&mut self) {
        self.end.cancel();
        let _ = tokio::time::timeout(END_TIMEOUT, self.ended()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// Waits for the end of a program, and ends it when told to. Reports why it ended.
async fn watch_child(
    mut child: SandboxChild,
    end: CancellationToken,
    (logging, last_line): (tokio::task::JoinHandle<()>, LastLine),
    tell: watch::Sender<Option<String>>,
) {
    let exit = tokio::select! {
        exit = child.wait() => exit,
        () = end.cancelled() => {
            child.terminate(END_GRACE).await;
            child.wait().await
        }
    };
    // Its last words may still be in the pipe.
    let _ = tokio::time::timeout(END_GRACE, logging).await;
    let how = match exit {
        Ok(Exit::Code(code)) => format!("it ended with exit status {code}"),
        Ok(Exit::Signal(signal)) => format!("it was killed by signal {signal}"),
        Ok(Exit::Memory) => "it exceeded the memory limit and was killed".into(),
        Ok(Exit::TimedOut) => "it timed out".into(),
        Err(error) => error.to_string(),
    };
    let last = last_line.lock().clone();
    let why = if last.is_empty() { how } else { format!("{how}: {last}") };
    tell.send_replace(Some(why));
}

/// Our ends of the standard streams.
struct Streams {
    input: pipe::Sender,
    output: pipe::Receiver,
    errors: pipe::Receiver,
}

fn start_in_sandbox(sandbox: &Sandbox, spec: &CommandSpec) -> io::Result<(SandboxChild, Streams)> {
    let ((input, our_input), (our_output, output), (our_errors, errors)) = (io::pipe()?, io::pipe()?, io::pipe()?);
    let child = sandbox.start_with_input(spec, Some(input.into()), Stdio::from(output), Stdio::from(errors))?;
    let streams = Streams {
        input: pipe::Sender::from_owned_fd(our_input.into())?,
        output: pipe::Receiver::from_owned_fd(our_output.into())?,
        errors: pipe::Receiver::from_owned_fd(our_errors.into())?,
    };
    Ok((child, streams))
}

/// Returns the command as it runs in the sandbox, and creates the directory that the server may write to.
fn command_spec(program: &McpProgram, place: &ProgramPlace<'_>) -> Result<CommandSpec, String> {
    let create =
        |dir: &Path| private_fs::create_private(dir).map_err(|e| format!("cannot create {}: {e}", dir.display()));
    let dir = place.home.join("mcp").join(place.server).join("workspace");
    let cache = place.home.join(CACHE_DIR).join("mcp").join(place.server);
    create(&dir)?;
    create(&cache)?;
    let mut env: Vec<(OsString, OsString)> = vec![
        // What a package runner downloads is there at the next start.
        ("XDG_CACHE_HOME".into(), cache.clone().into()),
        ("npm_config_cache".into(), cache.join("npm").into()),
    ];
    for variable in &program.env {
        let unset = || format!("{} is not set in the daemon's environment", variable.name);
        env.push((variable.name.clone().into(), variable.value.as_ref().ok_or_else(unset)?.expose().into()));
    }
    let shared = |path: &PathBuf, access| shared_path(path, access, place.home);
    let read = program.read.iter().map(|path| shared(path, PathAccess::ReadOnly));
    let write = program.write.iter().map(|path| shared(path, PathAccess::Writable));
    let mut shared = read.chain(write).collect::<Result<Vec<_>, _>>()?;
    shared.push(SharedPath { path: cache.canonicalize().map_err(|e| e.to_string())?, access: PathAccess::Writable });
    // Outer directories first, so that none covers another.
    shared.sort_by(|one, other| one.path.cmp(&other.path));
    // A server has no time limit.
    let limits = ResourceLimits { time: None, ..ResourceLimits::default() };
    let confinement = Confinement { workspace: dir, shared, git_author: None, network: program.network, limits };
    Ok(CommandSpec { argv: program.command.iter().map(OsString::from).collect(), env, confinement })
}

/// Checks a path that a server may use.
fn shared_path(path: &Path, access: PathAccess, home: &Path) -> Result<SharedPath, String> {
    let real = path.canonicalize().map_err(|e| format!("cannot use {}: {e}", path.display()))?;
    let inside = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
    if home.canonicalize().is_ok_and(|home| inside(&real, &home)) {
        return Err(format!("cannot use {}: the home of Chorus is there", path.display()));
    }
    Ok(SharedPath { path: real, access })
}
