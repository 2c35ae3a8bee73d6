//! Standard output, held for the whole command: written in large pieces, flushed once.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use clap::ValueEnum;
use serde_json::value::RawValue;

use super::paint::{Paint, Painted, Style};
use super::safe;
use super::terminal::{self, ColorWhen};
use super::time::Clock;
use crate::error::Failure;

/// Shape of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// One JSON object a line, for lists.
    Jsonl,
}

/// What is gathered before it is written.
const PIECE: usize = 64 * 1024;

/// Where results go.
#[derive(Debug)]
pub struct Out {
    gathered: String,
    /// `None` in tests of what is written. The standard library's own output would look for line ends and lock.
    stdout: Option<BorrowedFd<'static>>,
    format: Format,
    paint: Paint,
    terminal: bool,
    /// Columns of the terminal; `None` where the output is not one and nothing is cut.
    width: Option<usize>,
    quiet: bool,
    clock: Option<Clock>,
}

impl Out {
    /// Takes standard output.
    #[must_use]
    pub fn new(format: Format, color: ColorWhen, quiet: bool) -> Self {
        let stdout = rustix::stdio::stdout();
        let terminal = rustix::termios::isatty(stdout);
        let text = format == Format::Text;
        Self {
            width: (terminal && text).then(|| terminal::columns(stdout)),
            gathered: String::new(),
            stdout: Some(stdout),
            format,
            paint: Paint { on: text && color.decide(terminal) },
            terminal,
            quiet,
            clock: None,
        }
    }

    /// The shape asked for.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Columns to stay within, on a terminal.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// True where the output goes to a terminal.
    #[must_use]
    pub fn terminal(&self) -> bool {
        self.terminal
    }

    /// True where only errors are to be told.
    #[must_use]
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// `text` in `style`.
    #[must_use]
    pub fn paint<'a>(&self, style: Style, text: &'a str) -> Painted<'a> {
        self.paint.paint(style, text)
    }

    /// Reads the time again: a conversation lasts longer than a command.
    pub fn refresh_clock(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.refresh();
        }
    }

    /// The clock of this command.
    pub fn clock(&mut self) -> &Clock {
        self.clock.get_or_insert_with(Clock::now)
    }

    /// For `write!` and `writeln!`.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), Failure> {
        // Writing to a String cannot fail.
        let _ = fmt::Write::write_fmt(&mut self.gathered, text);
        self.pass_on(PIECE)
    }

    /// Writes `text` as it is.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.gathered.push_str(text);
        self.pass_on(PIECE)
    }

    /// Tells that something was done, in one line; silent when asked to be quiet.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn done(&mut self, line: &str) -> Result<(), Failure> {
        if self.quiet { Ok(()) } else { writeln!(self, "{line}") }
    }

    /// Writes JSON as it came.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn json(&mut self, json: &str) -> Result<(), Failure> {
        if self.terminal { self.text(&safe::clean_json(json)) } else { self.text(json) }
    }

    /// Writes one JSON value and ends the line.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn json_line(&mut self, json: &RawValue) -> Result<(), Failure> {
        self.json(json.get())?;
        self.text("\n")
    }

    /// Sends what was written on its way.
    ///
    /// # Errors
    /// [`Failure`] when standard output does not take it.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.pass_on(1)
    }

    fn pass_on(&mut self, at_least: usize) -> Result<(), Failure> {
        let Some(stdout) = self.stdout.filter(|_| self.gathered.len() >= at_least) else { return Ok(()) };
        let written = write_all(stdout, self.gathered.as_bytes());
        self.gathered.clear();
        written.map_err(Failure::stdout)
    }

    /// An output whose text stays here, as on a terminal of `width` columns without colours.
    #[cfg(test)]
    pub(crate) fn captured(width: Option<usize>) -> Self {
        Self {
            gathered: String::new(),
            stdout: None,
            format: Format::Text,
            paint: Paint { on: false },
            terminal: width.is_some(),
            width,
            quiet: false,
            clock: Some(Clock::for_tests()),
        }
    }

    /// What a captured output holds.
    #[cfg(test)]
    pub(crate) fn written(&self) -> &str {
        &self.gathered
    }
}

fn write_all(stdout: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stdout, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_refreshed_says_how_long_there_is_left_from_now() {
        let mut out = Out::captured(None);
        let soon = jiff::Timestamp::now().saturating_add(jiff::SignedDuration::from_secs(90)).expect("a time");
        assert_ne!(out.clock().until(soon), "1 min");
        out.refresh_clock();
        assert_eq!(out.clock().until(soon), "1 min");
    }
}
