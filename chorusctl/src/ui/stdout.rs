//! Standard output, buffered for the whole command and written in large blocks.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use clap::ValueEnum;
use serde_json::value::RawValue;

use super::command_text::CommandText;
use super::full_screen::PagingFlag;
use super::pager::Pager;
use super::style::{Style, StyledText, Styler};
use super::terminal::{self, ColorWhen};
use super::time::Clock;
use super::{markdown, sanitize, text};
use crate::error::Error;

/// Shape of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON value.
    Json,
    /// One JSON object a line, for lists.
    Jsonl,
}

/// The buffer is written once it holds this many bytes.
const FLUSH_BYTES: usize = 64 * 1024;

/// Writes results to standard output.
#[derive(Debug)]
pub struct Stdout {
    buffer: String,
    /// `None` in tests, which read the buffer. Written directly, because the standard library's handle scans for
    /// newlines and locks.
    fd: Option<BorrowedFd<'static>>,
    format: OutputFormat,
    paint: Styler,
    terminal: bool,
    /// Width of the terminal in columns; `None` if the output is not a terminal, so nothing is cut.
    width: Option<usize>,
    quiet: bool,
    commands: Option<&'static CommandText>,
    clock: Option<Clock>,
    pager: PagerUse,
}

/// The use of a pager for the output.
#[derive(Debug, Default)]
enum PagerUse {
    #[default]
    Off,
    /// It does if it is longer than the screen.
    IfLong,
    /// It does however short it is, and the flag says so.
    Always(PagingFlag),
    On(Pager),
}

impl Stdout {
    /// Creates it for the process's standard output.
    #[must_use]
    pub fn new(format: OutputFormat, color: ColorWhen, quiet: bool) -> Self {
        let stdout = rustix::stdio::stdout();
        let terminal = rustix::termios::isatty(stdout);
        let text = format == OutputFormat::Text;
        Self {
            width: (terminal && text).then(|| terminal::columns(stdout)),
            buffer: String::new(),
            fd: Some(stdout),
            format,
            paint: Styler { enabled: text && color.is_enabled(terminal) },
            terminal,
            quiet,
            commands: None,
            clock: None,
            pager: PagerUse::Off,
        }
    }

    /// Returns the output format.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        self.format
    }

    /// Returns the width in columns to stay within, on a terminal.
    #[must_use]
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Returns true if the output is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns true with --quiet.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns true if text is printed in color.
    #[must_use]
    pub fn has_color(&self) -> bool {
        self.paint.enabled
    }

    /// Shows what is printed from now on in a pager if it is longer than the screen. Nothing happens if the output is not
    /// text on a terminal.
    pub fn page_if_long(&mut self) {
        if self.width.is_some() && matches!(self.pager, PagerUse::Off) {
            self.pager = PagerUse::IfLong;
        }
    }

    /// Shows what is printed from now on in a pager that waits for the user however short it is, and sets `paging` when it
    /// starts.
    pub fn page_always(&mut self, paging: PagingFlag) {
        self.pager = PagerUse::Always(paging);
    }

    /// Measures the terminal again, because the size may have changed.
    pub fn refresh_width(&mut self) {
        self.width = self.width.and(self.fd).map(terminal::columns);
    }

    /// Writes the buffer, and waits until the user has left the pager. Returns true if that was a pager that waits for the
    /// user.
    pub fn finish_paging(&mut self) -> Result<bool, Error> {
        let flushed = self.flush();
        let waited = match std::mem::take(&mut self.pager) {
            PagerUse::On(pager) => pager.finish(),
            _ => false,
        };
        // A pager may be left before it has read everything.
        if waited { Ok(true) } else { flushed.map(|()| false) }
    }

    /// Writes the buffer, and waits until the user has left the pager.
    pub fn finish(&mut self) -> Result<(), Error> {
        let flushed = self.flush();
        if let PagerUse::On(pager) = std::mem::take(&mut self.pager) {
            pager.finish();
        }
        flushed
    }

    /// Formats `text` in `style`.
    #[must_use]
    pub fn style<'a>(&self, style: Style, text: &'a str) -> StyledText<'a> {
        self.paint.style(style, text)
    }

    /// Returns what applies styles if colours are enabled.
    #[must_use]
    pub fn styler(&self) -> Styler {
        self.paint
    }

    /// Renders sanitized Markdown for the terminal, in lines of at most `width` columns.
    #[must_use]
    pub fn markdown(&self, text: &str, width: usize) -> String {
        markdown::render(text, width, self.paint)
    }

    /// Reads the time again, because a chat lasts longer than a command.
    pub fn refresh_clock(&mut self) {
        if let Some(clock) = &mut self.clock {
            clock.refresh();
        }
    }

    /// Returns the clock of this command.
    pub fn clock(&mut self) -> &Clock {
        self.clock.get_or_insert_with(Clock::now)
    }

    /// Supports `write!` and `writeln!`.
    pub fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> Result<(), Error> {
        // Writing to a String cannot fail.
        let _ = fmt::Write::write_fmt(&mut self.buffer, text);
        self.write_buffer(FLUSH_BYTES)
    }

    /// Writes `text` unchanged.
    pub fn text(&mut self, text: &str) -> Result<(), Error> {
        self.buffer.push_str(text);
        self.write_buffer(FLUSH_BYTES)
    }

    /// Ends a line that has `indent` columns already with a sentence, wrapped on a terminal so that all of it stands to the
    /// right of them.
    pub fn sentence(&mut self, indent: usize, sentence: &str) -> Result<(), Error> {
        let Some(room) = self.width.and_then(|width| width.checked_sub(indent)).filter(|room| *room >= 20) else {
            return writeln!(self, "{sentence}");
        };
        let lines = text::wrap_sentence(sentence, room).replace('\n', &format!("\n{}", " ".repeat(indent)));
        writeln!(self, "{lines}")
    }

    /// Prints one line that reports success; nothing with --quiet.
    pub fn status_line(&mut self, line: &str) -> Result<(), Error> {
        if self.quiet {
            return Ok(());
        }
        let line = self.commands.map_or_else(|| line.to_owned(), |commands| commands.apply(line));
        match self.width {
            // Escape sequences have no width, but would be counted.
            Some(width) if !line.contains('\x1b') => writeln!(self, "{}", text::wrap_sentence(&line, width)),
            _ => writeln!(self, "{line}"),
        }
    }

    /// Names the commands in lines that report success as `commands` says.
    pub fn set_commands(&mut self, commands: &'static CommandText) {
        self.commands = Some(commands);
    }

    /// Writes JSON. On a terminal, characters that could control it are escaped.
    pub fn json(&mut self, json: &str) -> Result<(), Error> {
        if self.terminal { self.text(&sanitize::escape_json(json)) } else { self.text(json) }
    }

    /// Writes one JSON value and a newline.
    pub fn json_line(&mut self, json: &RawValue) -> Result<(), Error> {
        self.json(json.get())?;
        self.text("\n")
    }

    /// Writes the buffer.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.write_buffer(1)
    }

    fn write_buffer(&mut self, at_least: usize) -> Result<(), Error> {
        let Some(stdout) = self.fd.filter(|_| self.buffer.len() >= at_least) else { return Ok(()) };
        if matches!(self.pager, PagerUse::IfLong) {
            let is_long = self.buffer.lines().count() >= terminal::rows(stdout);
            let pager = if is_long { Pager::start() } else { None };
            self.pager = pager.map_or(PagerUse::Off, PagerUse::On);
        } else if let PagerUse::Always(paging) = &self.pager {
            paging.set();
            self.pager = Pager::start_waiting().map_or(PagerUse::Off, PagerUse::On);
        }
        let written = match &self.pager {
            PagerUse::On(pager) => pager.input().and_then(|input| write_all(input, self.buffer.as_bytes())),
            PagerUse::Off | PagerUse::IfLong | PagerUse::Always(_) => write_all(stdout, self.buffer.as_bytes()),
        };
        self.buffer.clear();
        written.map_err(Error::for_stdout)
    }

    /// Creates an output that keeps its text, as a terminal of `width` columns without colours.
    #[cfg(test)]
    pub(crate) fn captured(width: Option<usize>) -> Self {
        Self {
            buffer: String::new(),
            fd: None,
            format: OutputFormat::Text,
            paint: Styler { enabled: false },
            terminal: width.is_some(),
            width,
            quiet: false,
            commands: None,
            clock: Some(Clock::for_tests()),
            pager: PagerUse::Off,
        }
    }

    /// Returns the text of a captured output.
    #[cfg(test)]
    pub(crate) fn captured_text(&self) -> &str {
        &self.buffer
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
        let mut out = Stdout::captured(None);
        let soon = jiff::Timestamp::now().saturating_add(jiff::SignedDuration::from_secs(90)).expect("a time");
        assert_ne!(out.clock().until(soon), "2 min");
        out.refresh_clock();
        assert_eq!(out.clock().until(soon), "2 min");
    }
}
