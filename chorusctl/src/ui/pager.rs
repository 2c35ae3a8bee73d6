//! Shows long output in a pager, as git does.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The pager if neither $CHORUS_PAGER nor $PAGER is set, and its options, if $LESS does not set others: exit at once if
/// the text fits on the screen, pass colors through, do not clear the screen.
const DEFAULT_PAGER: &str = "less";
const LESS_OPTIONS: &str = "FRX";

/// A pager that runs.
#[derive(Debug)]
pub(super) struct Pager(Child);

impl Pager {
    /// Starts the pager. Returns `None` if the user wants none, or if it cannot be started.
    pub(super) fn start() -> Option<Self> {
        let mut command = command(|name| std::env::var_os(name))?;
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS_OPTIONS);
        }
        let child = command.stdin(Stdio::piped()).spawn().ok()?;
        // Ctrl-C is for the pager. Without the handler it would end this program under it.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)));
        Some(Self(child))
    }

    /// Returns the pipe into the pager.
    pub(super) fn input(&self) -> io::Result<BorrowedFd<'_>> {
        self.0.stdin.as_ref().map(|stdin| stdin.as_fd()).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Ends the text and waits until the user leaves the pager.
    pub(super) fn finish(mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Returns the command of the pager: $CHORUS_PAGER, else $PAGER, else less. None if that is empty or `cat`.
fn command(variable: impl Fn(&str) -> Option<OsString>) -> Option<Command> {
    match variable("CHORUS_PAGER").or_else(|| variable("PAGER")) {
        Some(pager) if pager.is_empty() || pager == "cat" => None,
        // The user may have written options behind the program.
        Some(pager) => {
            let mut command = Command::new("sh");
            command.arg("-c").arg(pager);
            Some(command)
        }
        None => Some(Command::new(DEFAULT_PAGER)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pager_is_the_one_that_the_user_has_set() {
        let program = |set: &[(&str, &str)]| {
            let command = command(|name| set.iter().find(|(of, _)| *of == name).map(|(_, value)| value.into()));
            command.map(|command| {
                let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
                words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(program(&[]).as_deref(), Some("less"));
        assert_eq!(program(&[("PAGER", "more -s")]).as_deref(), Some("sh -c more -s"));
        assert_eq!(program(&[("PAGER", "more"), ("CHORUS_PAGER", "cat")]), None);
        assert_eq!(program(&[("PAGER", "")]), None);
    }
}
