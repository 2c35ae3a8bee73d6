//! A line on standard error that shows that work goes on, and for how long.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{terminal, text};

/// The time before the line appears: short work needs none.
const SHOW_DELAY: Duration = Duration::from_millis(400);
const REDRAW_INTERVAL: Duration = Duration::from_millis(120);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The line. A thread of its own draws it.
#[derive(Debug)]
pub struct Spinner {
    /// Dropped to end the thread.
    commands: Option<SyncSender<Command>>,
    thread: Option<JoinHandle<()>>,
}

/// A change of the line.
#[derive(Debug)]
enum Command {
    Show(String),
    ShowText(String),
    SetTokens(u64),
    /// Erases the line, and answers when that is done.
    Hide(SyncSender<()>),
}

/// The line, as its thread knows it.
#[derive(Debug)]
struct Line {
    /// Says what is done, such as `thinking`; `None` hides the line.
    label: Option<String>,
    /// The label is text that arrives, shown at once and without the time.
    is_text: bool,
    /// Tokens that the model has written, estimated.
    tokens: u64,
    started: Instant,
    shown_since: Instant,
    drawn: bool,
    frame: usize,
}

impl Spinner {
    /// Creates a hidden line if standard error is a terminal and `wanted`.
    #[must_use]
    pub fn new(wanted: bool) -> Option<Self> {
        if !wanted || !io::stderr().is_terminal() || !terminal::has_box_drawing() {
            return None;
        }
        let (commands, received) = mpsc::sync_channel(64);
        let thread = std::thread::Builder::new().name("spinner".into()).spawn(move || Line::new().run(&received));
        // Without the thread there is no line, and nothing else is missing.
        Some(Self { commands: Some(commands), thread: Some(thread.ok()?) })
    }

    /// Shows the line with this label.
    pub fn show(&self, label: &str) {
        self.send(Command::Show(label.to_owned()));
    }

    /// Shows the end of a text that arrives.
    pub fn show_text(&self, text: &str) {
        self.send(Command::ShowText(text.to_owned()));
    }

    /// Sets the number of tokens that the model has written.
    pub fn set_tokens(&self, tokens: u64) {
        self.send(Command::SetTokens(tokens));
    }

    /// Removes the line, so that something else can be printed.
    pub fn hide(&self) {
        let (done, wait) = mpsc::sync_channel(1);
        self.send(Command::Hide(done));
        let _ = wait.recv();
    }

    fn send(&self, command: Command) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Line {
    fn new() -> Self {
        let now = Instant::now();
        Self { label: None, is_text: false, tokens: 0, started: now, shown_since: now, drawn: false, frame: 0 }
    }

    /// Draws the line until the spinner is dropped.
    fn run(mut self, commands: &Receiver<Command>) {
        loop {
            match commands.recv_timeout(REDRAW_INTERVAL) {
                Ok(command) => self.apply(command),
                Err(RecvTimeoutError::Timeout) => self.draw(),
                Err(RecvTimeoutError::Disconnected) => return self.erase(),
            }
        }
    }

    fn apply(&mut self, command: Command) {
        match command {
            Command::Show(label) => {
                if self.label.is_none() {
                    self.shown_since = Instant::now();
                }
                (self.label, self.is_text) = (Some(label), false);
            }
            Command::ShowText(text) => {
                (self.label, self.is_text) = (Some(text), true);
                self.draw();
            }
            Command::SetTokens(tokens) => self.tokens = tokens,
            Command::Hide(done) => {
                self.label = None;
                self.erase();
                let _ = done.send(());
            }
        }
    }

    fn draw(&mut self) {
        let Some(label) = &self.label else { return };
        let frame = FRAMES[self.frame % FRAMES.len()];
        let columns = terminal::columns(io::stderr()).saturating_sub(1);
        let line = if self.is_text {
            format!("{} \x1b[2m{frame}\x1b[0m", text::truncate_start(label, columns.saturating_sub(2)))
        } else if self.shown_since.elapsed() < SHOW_DELAY {
            return;
        } else {
            let line = format_line(frame, label, self.started.elapsed(), self.tokens);
            format!("\x1b[2m{}\x1b[0m", text::truncate(&line, columns))
        };
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
        self.drawn = true;
        self.frame += 1;
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "\r\x1b[K").and_then(|()| stderr.flush());
        }
    }
}

fn format_line(frame: &str, label: &str, elapsed: Duration, tokens: u64) -> String {
    let tokens = if tokens == 0 { String::new() } else { format!(" · ~{tokens} tokens") };
    format!("{frame} {label} · {} s{tokens}", elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_time_and_the_tokens() {
        assert_eq!(format_line("⠋", "thinking", Duration::from_millis(2900), 0), "⠋ thinking · 2 s");
        assert_eq!(format_line("⠋", "bash", Duration::from_secs(70), 12), "⠋ bash · 70 s · ~12 tokens");
    }
}
