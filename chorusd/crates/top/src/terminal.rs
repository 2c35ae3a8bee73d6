//! The terminal: taken for the screen, and given back however the screen is left.

use std::io::{self, IsTerminal as _, Stdout, Write as _};
use std::panic;

use chorus_base::error::{Error, Result};
use crossterm::cursor::Show;
use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::terminal::{Frame, Terminal};
use ratatui_crossterm::CrosstermBackend;
use rustix::process::{Signal, kill_current_process_group};
use tokio::sync::mpsc;

/// The limit on keys that are not handled yet.
const MAX_PENDING_KEYS: usize = 256;

/// Checks that the screen can be shown.
///
/// # Errors
/// Standard input or output is not a terminal that can move its cursor.
pub(crate) fn check() -> Result<()> {
    let can_move = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    if can_move && io::stdin().is_terminal() && io::stdout().is_terminal() {
        return Ok(());
    }
    Err(Error::invalid("`chorusctl top` needs a terminal that can move its cursor")
        .hint("show the same as text: chorusctl status"))
}

/// Returns true if the locale is UTF-8.
pub(crate) fn is_utf8() -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os);
    let locale = variables.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_string_lossy().to_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// A screen of its own on the terminal. Dropping it gives the terminal back.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal.
    pub(crate) fn enter() -> io::Result<Self> {
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let screen = Self { terminal };
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            report(info);
        }));
        take()?;
        Ok(screen)
    }

    /// Draws a frame; only what has changed is written.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Draws everything at the next frame. `Terminal::clear` would ask the terminal where its cursor is, and wait for the thread
    /// that reads keys.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Gives the terminal to the shell until the process is continued.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        restore();
        // As the terminal itself would.
        kill_current_process_group(Signal::TSTP)?;
        take()?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

/// Gives the terminal back. If it is gone, nobody sees the failure.
fn restore() {
    let mut out = io::stdout();
    let _ = queue!(out, DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = out.flush();
    restore_modes();
}

/// Restores the modes of the terminal, without a byte that it would have to read.
pub(crate) fn restore_modes() {
    let _ = disable_raw_mode();
}

/// Reads keys in a thread, because crossterm cannot wait for them and for the daemon at once.
pub(crate) fn read_keys() -> io::Result<mpsc::Receiver<io::Result<Event>>> {
    let (sender, receiver) = mpsc::channel(MAX_PENDING_KEYS);
    std::thread::Builder::new().name("keys".into()).spawn(move || {
        loop {
            let read = event::read();
            let has_failed = read.is_err();
            // The screen was left, or the terminal is gone.
            if sender.blocking_send(read).is_err() || has_failed {
                return;
            }
        }
    })?;
    Ok(receiver)
}
