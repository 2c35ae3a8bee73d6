//! Creates git repositories with the `git` program.

use std::path::Path;
use std::process::{Command, Stdio};

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;

/// Makes `dir` a repository with everything in it as the first commit. Needs no git identity and ignores the user's
/// configuration. Blocks.
///
/// # Errors
/// `git_failed` with the first line of git's output.
pub fn init_repository(dir: &Path) -> Result<()> {
    run_git(dir, &["init", "--quiet", "--initial-branch=main"])?;
    run_git(dir, &["add", "--all"])?;
    run_git(dir, &["commit", "--quiet", "--allow-empty", "--no-verify", "--message=Empty workspace"])
}

fn run_git(dir: &Path, args: &[&str]) -> Result<()> {
    let failed = |why: String| {
        Error::new(ErrorKind::GitFailed, format!("git {} failed: {why}", args[0]))
            .hint("install git and try again; nothing was created")
    };
    let mut command = Command::new("git");
    // Variables such as GIT_DIR would redirect git to another repository.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    let output = command
        .args(["-c", "user.name=Chorus", "-c", "user.email=chorus@localhost"])
        .args(["-c", "commit.gpgSign=false", "-c", "core.hooksPath=/dev/null", "-c", "init.templateDir="])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().next().unwrap_or("no error message").to_owned()))
}
