//! Runs a program outside the sandbox with the login of the daemon's user: in an empty directory, with few environment
//! variables, and with limits on time and output.

use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};

use super::GitResult;
use crate::tools::ToolContext;

/// Time limit of the program.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long to read the rest of the output after the program has ended: another process may hold the pipe open.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Limit on the output kept, in bytes. Further output is read and discarded.
const MAX_OUTPUT_LEN: usize = 8 << 10;

/// Variables passed on if they are set: those that locate the login and configure network access.
const INHERITED_VARIABLES: [&str; 26] = [
    "PATH",
    "HOME",
    "GH_HOST",
    "GITLAB_HOST",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GH_CONFIG_DIR",
    "GITLAB_TOKEN",
    "GLAB_CONFIG_DIR",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// A process and its group. Dropping it kills all of them.
struct ProcessGroup(Child, Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.1 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs the program to its end and kills its remaining processes. Returns whether it succeeded, and the beginning of
/// its output on both streams.
pub(super) async fn run(program: &Path, args: Vec<String>, ctx: &ToolContext) -> GitResult<(bool, String)> {
    let failed = |e: io::Error| format!("cannot run {}: {e}", program.display());
    let empty = tempfile::tempdir().map_err(failed)?;
    let (mut group, output) = spawn(program, args, empty.path()).map_err(failed)?;
    let mut said = Vec::new();
    let ended = tokio::select! {
        ended = collect_output(&mut group.0, output, &mut said) => ended.map_err(failed)?,
        () = ctx.cancel.cancelled() => return Err(format!("the turn was cancelled while {} was running", program.display())),
        () = tokio::time::sleep(TIMEOUT) => return Err(format!("{} timed out and was stopped", program.display())),
    };
    Ok((ended.success(), String::from_utf8_lossy(&said).trim().to_owned()))
}

fn spawn(program: &Path, args: Vec<String>, dir: &Path) -> io::Result<(ProcessGroup, PipeReader)> {
    let given = INHERITED_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let (reader, writer) = io::pipe()?;
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(given)
        .env("GIT_CEILING_DIRECTORIES", dir)
        .env("GH_PROMPT_DISABLED", "1")
        .env("NO_COLOR", "1")
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .kill_on_drop(true)
        .process_group(0)
        .spawn()?;
    let group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    Ok((ProcessGroup(child, group), reader))
}

/// Collects the output until the program has ended, and briefly after that.
async fn collect_output(child: &mut Child, output: PipeReader, said: &mut Vec<u8>) -> io::Result<ExitStatus> {
    let mut output = Receiver::from_owned_fd(OwnedFd::from(output))?;
    let mut piece = vec![0; MAX_OUTPUT_LEN];
    let mut take = async || {
        let count = output.read(&mut piece).await?;
        said.extend_from_slice(&piece[..count.min(MAX_OUTPUT_LEN - said.len())]);
        io::Result::Ok(count > 0)
    };
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended?,
            more = take() => if !more? { break child.wait().await? },
        }
    };
    let rest = async { while let Ok(true) = take().await {} };
    let _ = tokio::time::timeout(OUTPUT_DRAIN_TIMEOUT, rest).await;
    Ok(ended)
}
