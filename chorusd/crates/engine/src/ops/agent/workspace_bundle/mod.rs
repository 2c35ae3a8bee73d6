//! Packs a workspace into one file and unpacks it: a git bundle with the history, the index, and the files of the
//! working tree. In both directions git runs in the sandbox, with settings that nothing in the workspace can override.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_sandbox::{CommandSpec, Confinement, Exit, ResourceLimits, Sandbox};
use tokio::time::timeout;

use crate::tools::{git_settings, git_variables};

const PACK_SCRIPT: &str = include_str!("pack.sh");
const UNPACK_SCRIPT: &str = include_str!("unpack.sh");

/// Path of the bundle in an otherwise empty workspace.
pub(super) const BUNDLE_PATH: &str = ".git/chorus.bundle";

/// The time limit of each script.
const SCRIPT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const TERMINATE_GRACE: Duration = Duration::from_secs(2);
/// The limits on standard error: bytes that are read, and lines that are reported as warnings.
const MAX_STDERR_BYTES: u64 = 4 << 20;
const MAX_WARNINGS: usize = 20;
/// The script's exit code if the disk is full.
const EXIT_DISK_FULL: i32 = 28;
/// The script's exit code if the repository is not in the workspace.
const EXIT_FOREIGN_REPOSITORY: i32 = 29;

/// Writes the bundle of `workspace` into `out`. Returns what is missing in it, as warnings.
///
/// # Errors
/// `git_failed` with git's message.
pub(super) async fn pack(sandbox: &Sandbox, home: &Path, workspace: &Path, out: &File) -> Result<Vec<String>> {
    let out = out.try_clone().map_err(|e| Error::io("cannot write the workspace", &e))?;
    let (exit, errors) = run_script((sandbox, home), workspace, PACK_SCRIPT, Vec::new(), out.into()).await?;
    match exit {
        Exit::Code(0) => Ok(first_lines(errors)),
        exit @ Exit::Code(EXIT_FOREIGN_REPOSITORY) => Err(git_error("the workspace cannot be exported", exit, &errors)
            .hint("`.git` in the workspace is a file or a link: replace it with a real repository, or move it")),
        exit => {
            Err(git_error("the workspace cannot be exported", exit, &errors).hint("run `git fsck` in the workspace"))
        }
    }
}

/// Unpacks the bundle in `workspace`, which has nothing else. Its files may have `most` bytes in total.
///
/// # Errors
/// `git_failed` with git's message, `disk_full`.
pub(super) async fn unpack(sandbox: &Sandbox, home: &Path, workspace: &Path, most: u64) -> Result<()> {
    let env = vec![("MOST".into(), most.to_string().into()), ("GIT_ALLOW_PROTOCOL".into(), "file".into())];
    match run_script((sandbox, home), workspace, UNPACK_SCRIPT, env, Stdio::null()).await? {
        (Exit::Code(0), _) => Ok(()),
        (Exit::Code(EXIT_DISK_FULL), errors) => {
            let why = errors.last().map_or("", String::as_str);
            Err(Error::new(ErrorKind::DiskFull, format!("the workspace does not fit: {why}"))
                .hint("free disk space and try again"))
        }
        (exit, errors) => {
            Err(git_error("cannot unpack the workspace of the archive", exit, &errors).hint("nothing was imported"))
        }
    }
}

fn git_error(what: &str, exit: Exit, errors: &[String]) -> Error {
    let why = match (exit, errors.last()) {
        (Exit::TimedOut, _) => "git timed out".to_owned(),
        (Exit::Code(127), None) => "git is not installed".to_owned(),
        (_, Some(line)) => line.clone(),
        (exit, None) => format!("git exited with {exit:?}"),
    };
    Error::new(ErrorKind::GitFailed, format!("{what}: {why}"))
}

/// Returns the first lines, and how many more there are.
fn first_lines(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(MAX_WARNINGS);
    if more > 0 {
        lines.truncate(MAX_WARNINGS);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Runs a script in the sandbox. Returns its exit and the lines on standard error.
async fn run_script(
    (sandbox, home): (&Sandbox, &Path),
    workspace: &Path,
    script: &str,
    mut env: Vec<(OsString, OsString)>,
    output: Stdio,
) -> Result<(Exit, Vec<String>)> {
    let failed = |e: std::io::Error| {
        Error::new(ErrorKind::GitFailed, format!("cannot run git: {e}")).hint("run `chorusctl doctor`")
    };
    let mut argv: Vec<OsString> = ["sh", "-c", script, "sh"].map(Into::into).to_vec();
    argv.extend(git_settings().flat_map(|setting| ["-c".into(), setting.into()]));
    env.extend(git_variables());
    for who in ["AUTHOR", "COMMITTER"] {
        env.push((format!("GIT_{who}_NAME").into(), "Chorus".into()));
        env.push((format!("GIT_{who}_EMAIL").into(), "chorus@localhost".into()));
    }
    let limits = ResourceLimits { time: Some(SCRIPT_TIMEOUT), ..ResourceLimits::default() };
    let workspace = workspace.to_owned();
    let confinement = Confinement { workspace, shared: Vec::new(), git_author: None, network: false, limits };
    let job = CommandSpec { argv, env, confinement };
    sandbox.prepare().await;
    // The bundle may come from a stranger, so it is never unpacked unconfined.
    if let Some(why) = sandbox.unconfined_reason() {
        let what = format!("cannot run git safely: no sandbox for commands: {why}");
        return Err(Error::new(ErrorKind::GitFailed, what).hint("run `chorusctl doctor`"));
    }
    let mut errors = tempfile::tempfile_in(home.join("db")).map_err(failed)?;
    let mut running = sandbox.start(&job, output, errors.try_clone().map_err(failed)?.into()).map_err(failed)?;
    let exit = match timeout(SCRIPT_TIMEOUT, running.wait()).await {
        Ok(exit) => exit.map_err(failed)?,
        Err(_) => {
            running.terminate(TERMINATE_GRACE).await;
            Exit::TimedOut
        }
    };
    let mut bytes = Vec::new();
    errors.rewind().and_then(|()| errors.take(MAX_STDERR_BYTES).read_to_end(&mut bytes)).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok((exit, text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()))
}
