//! Runs a command interactively, through pipes or on a pseudo-terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Instant;

use chorus_base::sync::Mutex;
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::process::{kill, signal, wait_for_exit};
use crate::screen::rows_of;
use crate::wait::{DEADLINE, wait_until};

/// A running command. Dropping it kills the command.
#[derive(Debug)]
pub struct InteractiveCommand {
    child: Child,
    input: Option<File>,
    /// Standard output, or everything that the terminal shows.
    pub stdout: CapturedOutput,
    /// Standard error; empty on a terminal.
    pub stderr: CapturedOutput,
    /// The modes of the terminal before the command started; empty without one.
    initial_modes: String,
}

/// Output captured so far.
#[derive(Debug, Clone, Default)]
pub struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

impl CapturedOutput {
    /// Returns the whole output.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }

    /// Waits until the output contains `what`.
    pub fn wait_for(&self, what: &str) {
        self.wait_for_after(0, what);
    }

    /// Waits until the output contains `what` after its first `length` bytes.
    pub fn wait_for_after(&self, length: usize, what: &str) {
        self.wait_for_match(what, |text| text.get(length..).is_some_and(|text| text.contains(what)));
    }

    /// Waits until the output ends with `what`.
    pub fn wait_for_end(&self, what: &str) {
        self.wait_for_match(what, |text| text.ends_with(what));
    }

    /// Waits until `found` accepts the output; panics with the output after [`DEADLINE`].
    fn wait_for_match(&self, what: &str, found: impl Fn(&str) -> bool) {
        let end = Instant::now() + DEADLINE;
        wait_until(what, DEADLINE * 2, || {
            let text = self.text();
            let found = found(&text);
            assert!(found || Instant::now() < end, "no {what:?} in {text:?}");
            found.then_some(())
        });
    }

    /// Reads the output in a thread until the other end is closed.
    fn spawn_reader(&self, mut from: impl Read + Send + 'static) {
        let shown = self.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // Reading from a terminal fails after its last writer has closed it.
            while let Ok(length @ 1..) = from.read(&mut piece) {
                shown.0.lock().extend(&piece[..length]);
            }
        });
    }
}

impl InteractiveCommand {
    /// Starts `command` with pipes.
    #[must_use]
    pub fn piped(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let (stdout, stderr) = (CapturedOutput::default(), CapturedOutput::default());
        stdout.spawn_reader(child.stdout.take().expect("a pipe"));
        stderr.spawn_reader(child.stderr.take().expect("a pipe"));
        let input = File::from(OwnedFd::from(child.stdin.take().expect("a pipe")));
        Self { child, input: Some(input), stdout, stderr, initial_modes: String::new() }
    }

    /// Starts `command` in a new session on its own pseudo-terminal, so that Ctrl-C reaches it.
    #[must_use]
    pub fn on_terminal(command: &Command) -> Self {
        Self::on_terminal_of(command, 100, 40)
    }

    /// The same as [`Self::on_terminal`], with a size in columns and rows.
    #[must_use]
    pub fn on_terminal_of(command: &Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("its other end");
        let name = ptsname(&master, Vec::new()).expect("its name");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("its size");
        let initial_modes = describe_modes(&master);
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let open = || Stdio::from(OpenOptions::new().read(true).write(true).open(path).expect("its other end"));
        // `setsid --ctty` makes its standard input the controlling terminal of a new session, then executes the
        // command.
        let mut inside = Command::new(crate::home::find_in_path("setsid"));
        inside.arg("--ctty").arg(command.get_program()).args(command.get_args()).env_clear();
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
        inside.current_dir(command.get_current_dir().expect("a directory"));
        let child = inside.stdin(open()).stdout(open()).stderr(open()).spawn().expect("setsid starts");
        drop(inside);
        let master = File::from(master);
        let stdout = CapturedOutput::default();
        stdout.spawn_reader(master.try_clone().expect("another handle"));
        Self { child, input: Some(master), stdout, stderr: CapturedOutput::default(), initial_modes }
    }

    /// Types `text`.
    pub fn type_text(&mut self, text: &str) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(text.as_bytes()).and_then(|()| input.flush()).expect("it is taken");
    }

    /// Types `text`, waits until `what` is shown after it, and returns the output since then.
    pub fn type_and_wait(&mut self, text: &str, what: &str) -> String {
        let before = self.stdout.text().len();
        self.type_text(text);
        self.stdout.wait_for_after(before, what);
        self.stdout.text()[before..].to_owned()
    }

    /// Waits until a chat shows the empty `prompt` and has drawn it. The terminal takes Ctrl-D that is typed earlier for
    /// itself, and the chat would not get it.
    pub fn wait_for_empty_prompt(&self, prompt: &str) {
        self.stdout.wait_for_end(&format!("{prompt}\r\u{1b}[{}C\u{1b}[?2026l", prompt.chars().count()));
    }

    /// Leaves a chat with `prompt` by Ctrl-D, which is no failure. Returns the output.
    pub fn leave_chat(mut self, prompt: &str) -> String {
        self.wait_for_empty_prompt(prompt);
        self.type_text("\u{4}");
        let (status, out, _) = self.wait_for_exit();
        assert_eq!(status.code(), Some(0), "{out}");
        out
    }

    /// Waits until `found` accepts the rows of a terminal of this size, which shows the output after its first `from` bytes.
    /// Returns them.
    pub fn wait_for_rows(
        &self,
        (columns, rows): (u16, u16),
        from: usize,
        what: &str,
        found: impl Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let end = Instant::now() + DEADLINE;
        wait_until(what, DEADLINE * 2, || {
            let text = self.stdout.text();
            let shown = rows_of(text.get(from..).unwrap_or_default(), columns, rows);
            let found = found(&shown);
            assert!(found || Instant::now() < end, "no {what} in {shown:#?}");
            found.then_some(shown)
        })
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(self.input.as_ref().expect("a terminal"), size).expect("its size");
    }

    /// Returns the modes of the terminal, such as whether it echoes.
    #[must_use]
    pub fn terminal_modes(&self) -> String {
        describe_modes(self.input.as_ref().expect("a terminal"))
    }

    /// Returns the modes that the terminal had before the command started.
    #[must_use]
    pub fn initial_modes(&self) -> String {
        self.initial_modes.clone()
    }

    /// Returns the process id of the command.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends a signal to the command.
    pub fn signal(&self, what: Signal) {
        signal(self.child.id(), what);
    }

    /// Waits for the exit; returns the status, standard output and standard error.
    pub fn wait_for_exit(&mut self) -> (ExitStatus, String, String) {
        let status = wait_for_exit(&mut self.child, "the command");
        // The output is complete once the reader threads have dropped their handles.
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

fn describe_modes(terminal: impl std::os::fd::AsFd) -> String {
    let modes = tcgetattr(terminal).expect("its modes");
    format!("{:?} {:?} {:?} {:?}", modes.input_modes, modes.output_modes, modes.control_modes, modes.local_modes)
}
