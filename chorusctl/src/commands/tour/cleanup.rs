//! Cleans up after an interrupted tour. Ctrl-C ends this program at once, but its daemon is detached and would keep
//! running in a directory that nobody removes. A small shell in its own process group waits until this program's end of
//! a pipe closes, then stops the daemon and removes the directory.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = r#"cat >/dev/null; [ -d "$0" ] || exit 0; "$@"; rm -rf "$0""#;

/// The waiting shell.
#[derive(Debug)]
pub(super) struct CleanupProcess(Child);

impl CleanupProcess {
    /// Starts the shell. Once this program has ended it runs `stop` and removes `directory`, unless the directory is
    /// gone by then.
    pub(super) fn spawn(directory: &Path, stop: Command) -> io::Result<Self> {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT]).arg(directory).arg(stop.get_program()).args(stop.get_args());
        for (name, value) in stop.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        shell.spawn().map(Self)
    }

    /// Ends the shell after the directory has been removed.
    pub(super) fn finish(mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sweeps_when_the_pipe_closes() -> io::Result<()> {
        let directory = tempfile::tempdir()?.keep();
        let mark = tempfile::tempdir()?;
        let mut stop = Command::new("touch");
        stop.arg(mark.path().join("stopped"));
        CleanupProcess::spawn(&directory, stop)?.finish();
        assert!(!directory.exists() && mark.path().join("stopped").exists());
        Ok(())
    }
}
