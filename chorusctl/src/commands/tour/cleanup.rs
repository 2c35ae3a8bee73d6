//! Cleaning up after a tour that was interrupted: a Ctrl-C ends this program at once, but its daemon is detached
//! and would live on in a directory that nobody removes. So a small shell waits, in a process group of its own,
//! for this program's end of a pipe to close.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = r#"cat >/dev/null; [ -d "$0" ] || exit 0; "$@"; rm -rf "$0""#;

/// The shell that waits.
#[derive(Debug)]
pub struct CleanupProcess(Child);

impl CleanupProcess {
    /// Has `stop` run and `directory` removed once this program has ended, unless the directory is gone by then.
    ///
    /// # Errors
    /// What the system says.
    pub fn spawn(directory: &Path, stop: Command) -> io::Result<Self> {
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

    /// Lets it go; there is nothing left to do for it.
    pub fn finish(mut self) {
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
