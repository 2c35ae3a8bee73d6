//! A command that runs, watched and typed into: through pipes, or at a terminal of its own.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::process::{kill, signal, wait_for_exit};
use crate::wait::{DEADLINE, wait_until};

/// A command that runs. It ends with its owner.
#[derive(Debug)]
pub struct InteractiveCommand {
    child: Child,
    input: Option<File>,
    /// Standard output, or what the terminal was shown.
    pub stdout: CapturedOutput,
    /// Standard error, where it is not the terminal.
    pub stderr: CapturedOutput,
}

/// What was written so far.
#[derive(Debug, Clone, Default)]
pub struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    /// All of it.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Waits until it holds `what`.
    ///
    /// # Panics
    /// Where it does not in time.
    pub fn wait_for(&self, what: &str) {
        self.wait_for_after(0, what);
    }

    /// Waits until it holds `what` after its first `length` bytes.
    ///
    /// # Panics
    /// Where it does not in time.
    pub fn wait_for_after(&self, length: usize, what: &str) {
        self.wait_for_match(what, |text| text.get(length..).is_some_and(|text| text.contains(what)));
    }

    /// Waits until it ends with `what`.
    ///
    /// # Panics
    /// Where it does not in time.
    pub fn wait_for_end(&self, what: &str) {
        self.wait_for_match(what, |text| text.ends_with(what));
    }

    /// Whoever waits in vain wants to see what there was.
    fn wait_for_match(&self, what: &str, found: impl Fn(&str) -> bool) {
        let end = Instant::now() + DEADLINE;
        wait_until(what, DEADLINE * 2, || {
            let text = self.text();
            let found = found(&text);
            assert!(found || Instant::now() < end, "no {what:?} in {text:?}");
            found.then_some(())
        });
    }

    /// Takes what comes, until the other end is closed.
    fn spawn_reader(&self, mut from: impl Read + Send + 'static) {
        let shown = self.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // A terminal whose last writer has gone is an error to read.
            while let Ok(length @ 1..) = from.read(&mut piece) {
                shown.0.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..length]);
            }
        });
    }
}

impl InteractiveCommand {
    /// Starts `command` with pipes.
    ///
    /// # Panics
    /// Where it does not start.
    #[must_use]
    pub fn piped(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let (stdout, stderr) = (CapturedOutput::default(), CapturedOutput::default());
        stdout.spawn_reader(child.stdout.take().expect("a pipe"));
        stderr.spawn_reader(child.stderr.take().expect("a pipe"));
        let input = File::from(OwnedFd::from(child.stdin.take().expect("a pipe")));
        Self { child, input: Some(input), stdout, stderr }
    }

    /// Starts `command` at a terminal of its own, which Ctrl-C reaches.
    ///
    /// # Panics
    /// Where there can be no terminal, or it does not start.
    #[must_use]
    pub fn on_terminal(command: &Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other end");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let size = Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("its size");
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let open = || Stdio::from(OpenOptions::new().read(true).write(true).open(path).expect("its other end"));
        // It makes its standard input the terminal of a new session, and becomes the command.
        let mut inside = Command::new("setsid");
        inside.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
        inside.current_dir(command.get_current_dir().expect("a directory"));
        let child = inside.stdin(open()).stdout(open()).stderr(open()).spawn().expect("setsid starts");
        drop(inside);
        let master = File::from(master);
        let stdout = CapturedOutput::default();
        stdout.spawn_reader(master.try_clone().expect("another handle"));
        Self { child, input: Some(master), stdout, stderr: CapturedOutput::default() }
    }

    /// Types `text`.
    ///
    /// # Panics
    /// Where nobody takes it.
    pub fn type_text(&mut self, text: &str) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(text.as_bytes()).and_then(|()| input.flush()).expect("it is taken");
    }

    /// Types `text` and waits until `what` is shown after it; what was shown from there on.
    ///
    /// # Panics
    /// Where it is not in time.
    pub fn type_and_wait(&mut self, text: &str, what: &str) -> String {
        let before = self.stdout.text().len();
        self.type_text(text);
        self.stdout.wait_for_after(before, what);
        self.stdout.text()[before..].to_owned()
    }

    /// Nothing more is typed.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    pub fn interrupt(&self) {
        signal(self.child.id(), Signal::INT);
    }

    /// Waits for its end; how it ended, and what it had written.
    ///
    /// # Panics
    /// Where it does not end in time.
    pub fn wait_for_exit(&mut self) -> (ExitStatus, String, String) {
        let status = wait_for_exit(&mut self.child, "the command");
        // What was read last is there when the readers have let go.
        wait_until("its output", DEADLINE, || {
            [&self.stdout, &self.stderr].into_iter().all(|shown| Arc::strong_count(&shown.0) == 1).then_some(())
        });
        (status, self.stdout.text(), self.stderr.text())
    }
}

impl Drop for InteractiveCommand {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            kill(self.child.id());
            let _ = self.child.wait();
        }
    }
}
