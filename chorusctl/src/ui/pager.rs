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

/// Options of less that undo those of above which end it without a key, or leave its text on the screen.
const WAITING_OPTIONS: &str = "-+F -+X";

/// A pager that runs.
#[derive(Debug)]
pub(super) struct Pager {
    child: Child,
    /// True if it ends when the user leaves it, however short the text is.
    waits: bool,
}

impl Pager {
    /// Starts the pager. Returns `None` if the user wants none, or if it cannot be started.
    pub(super) fn start() -> Option<Self> {
        let (mut command, waits) = command(|name| std::env::var_os(name))?;
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS_OPTIONS);
        }
        let pager = Self::spawn(command, waits)?;
        // Ctrl-C is for the pager. Without the handler it would end this program under it.
        let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)));
        Some(pager)
    }

    /// Starts the pager so that it waits for the user, if it is less. The caller handles Ctrl-C.
    pub(super) fn start_waiting() -> Option<Self> {
        let (mut command, waits) = command(|name| std::env::var_os(name))?;
        let mut options = std::env::var_os("LESS").unwrap_or_else(|| LESS_OPTIONS.into());
        options.push(" ");
        options.push(WAITING_OPTIONS);
        command.env("LESS", options);
        Self::spawn(command, waits)
    }

    fn spawn(mut command: Command, waits: bool) -> Option<Self> {
        // Our text is UTF-8 in every locale; less would show other bytes than ASCII as numbers in some.
        if ["LESSCHARSET", "LESSCHARDEF"].into_iter().all(|name| std::env::var_os(name).is_none()) {
            command.env("LESSCHARSET", "utf-8");
        }
        Some(Self { child: command.stdin(Stdio::piped()).spawn().ok()?, waits })
    }

    /// Returns the pipe into the pager.
    pub(super) fn input(&self) -> io::Result<BorrowedFd<'_>> {
        self.child.stdin.as_ref().map(|stdin| stdin.as_fd()).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Ends the text and waits until the user leaves the pager. Returns true if the pager has waited for that.
    pub(super) fn finish(mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().is_ok_and(|status| status.success()) && self.waits
    }
}

/// Returns the command of the pager, and whether it is less: $CHORUS_PAGER, else $PAGER, else less. None if that is empty or
/// `cat`.
fn command(variable: impl Fn(&str) -> Option<OsString>) -> Option<(Command, bool)> {
    match variable("CHORUS_PAGER").or_else(|| variable("PAGER")) {
        Some(pager) if pager.is_empty() || pager == "cat" => None,
        // The user may have written options behind the program.
        Some(pager) => {
            let mut command = Command::new("sh");
            let text = pager.to_string_lossy();
            let program = text.split_whitespace().next().unwrap_or_default();
            let is_less = program.rsplit('/').next() == Some(DEFAULT_PAGER);
            command.arg("-c").arg(pager);
            Some((command, is_less))
        }
        None => Some((Command::new(DEFAULT_PAGER), true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_knows_that_the_text_is_utf_8() {
        let mut command = Command::new("sh");
        command.args(["-c", "test \"${LESSCHARDEF-$LESSCHARSET}\""]);
        let pager = Pager::spawn(command, true);
        assert!(pager.is_some_and(Pager::finish));
    }

    #[test]
    fn the_pager_is_the_one_that_the_user_has_set() {
        let program = |set: &[(&str, &str)]| {
            let command = command(|name| set.iter().find(|(of, _)| *of == name).map(|(_, value)| value.into()));
            command.map(|(command, is_less)| {
                let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
                (words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "), is_less)
            })
        };
        assert_eq!(program(&[]), Some(("less".into(), true)));
        assert_eq!(program(&[("PAGER", "more -s")]), Some(("sh -c more -s".into(), false)));
        assert_eq!(program(&[("PAGER", "/bin/less -S")]), Some(("sh -c /bin/less -S".into(), true)));
        assert_eq!(program(&[("PAGER", "more"), ("CHORUS_PAGER", "cat")]), None);
        assert_eq!(program(&[("PAGER", "")]), None);
    }
}
