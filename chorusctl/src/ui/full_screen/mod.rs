//! A screen of its own on the terminal, for interactive commands: what was there before comes back when it is left, however
//! that happens.
//!
//! It is drawn with ratatui. Keys are read in the same wait as what other threads have to say ([`Waker`]), and are left alone
//! while another program has the terminal, such as a pager.

mod backend;
mod keys;
mod modes;
mod signals;
mod styles;

use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui_core::terminal::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, kill_current_process_group};

use backend::AnsiBackend;
pub use keys::Key;
use keys::KeyParser;
use modes::TerminalModes;
use signals::handle_signals;
pub use styles::{marked_line, screen_style};

/// How long to wait for the rest of an escape sequence. Without one the key was Esc.
const ESCAPE_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The full screen. Dropping it leaves it.
#[derive(Debug)]
pub struct FullScreen {
    modes: Arc<TerminalModes>,
    terminal: Terminal<AnsiBackend>,
    parser: KeyParser,
    woken: UnixStream,
    waker: Waker,
}

/// Wakes [`FullScreen::wait_for_keys`] from another thread.
#[derive(Debug, Clone)]
pub struct Waker {
    stream: Arc<UnixStream>,
    must_redraw: Arc<AtomicBool>,
}

impl Waker {
    /// Ends the wait.
    pub fn wake(&self) {
        // If there is no room, others have woken it already.
        let _ = (&*self.stream).write(&[0]);
    }

    fn wake_to_redraw(&self) {
        self.must_redraw.store(true, Ordering::Relaxed);
        self.wake();
    }
}

impl FullScreen {
    /// Enters the full screen of the terminal on standard input and output. Colors are left out unless `has_color`.
    pub fn enter(has_color: bool) -> io::Result<Self> {
        Self::enter_on(rustix::stdio::stdin(), rustix::stdio::stdout(), has_color)
    }

    fn enter_on(input: BorrowedFd<'static>, output: BorrowedFd<'static>, has_color: bool) -> io::Result<Self> {
        let modes = Arc::new(TerminalModes::new(input, output)?);
        let (woken, waking) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        waking.set_nonblocking(true)?;
        let waker = Waker { stream: Arc::new(waking), must_redraw: Arc::default() };
        let terminal = Terminal::new(AnsiBackend::new(modes.clone(), has_color))?;
        leave_before_panics(modes.clone());
        handle_signals(modes.clone(), waker.clone())?;
        // From here on dropping it leaves the screen, also if entering fails halfway.
        let mut screen = Self { modes, terminal, parser: KeyParser::default(), woken, waker };
        screen.modes.enter()?;
        screen.terminal.clear()?;
        Ok(screen)
    }

    /// Returns what wakes the screen from other threads.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Draws the screen, in the size that the terminal has now.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if self.waker.must_redraw.swap(false, Ordering::Relaxed) {
            self.terminal.clear()?;
        }
        self.terminal.draw(render)?;
        Ok(())
    }

    /// Waits for keys. Returns none if it was woken, or if the size of the terminal changed.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn wait_for_keys(&mut self) -> io::Result<Vec<Key>> {
        loop {
            let input = self.modes.input();
            let mut waiting = [PollFd::new(&input, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
            let timeout = self.parser.is_waiting().then_some(ESCAPE_WAIT);
            let ready = match poll(&mut waiting, timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                ready => ready?,
            };
            if ready == 0 {
                return Ok(self.parser.end_wait());
            }
            let [has_keys, was_woken] = waiting.map(|fd| !fd.revents().is_empty());
            if was_woken {
                self.drain_wakes();
            }
            if has_keys {
                let keys = self.read_keys()?;
                if keys.is_empty() && !was_woken {
                    continue;
                }
                return Ok(keys);
            }
            return Ok(Vec::new());
        }
    }

    fn read_keys(&mut self) -> io::Result<Vec<Key>> {
        let mut bytes = [0; 4096];
        match rustix::io::read(self.modes.input(), &mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => Ok(self.parser.feed(&bytes[..length])),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn drain_wakes(&mut self) {
        let mut bytes = [0; 64];
        while matches!(self.woken.read(&mut bytes), Ok(1..)) {}
    }

    /// Stops the process group as Ctrl-Z does. This process stops once the signal arrives, which leaves the screen first.
    pub fn suspend(&self) -> io::Result<()> {
        Ok(kill_current_process_group(Signal::TSTP)?)
    }

    /// Draws everything again the next time.
    pub fn redraw(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }

    /// Leaves the screen while `run` writes to the terminal, or has a pager do so.
    ///
    /// # Errors
    /// The screen cannot be entered again.
    pub fn while_left<T>(&mut self, run: impl FnOnce(PagingFlag) -> T) -> io::Result<T> {
        self.modes.leave();
        let result = run(PagingFlag(self.modes.is_paging.clone()));
        self.modes.is_paging.store(false, Ordering::Relaxed);
        self.modes.enter()?;
        self.terminal.clear()?;
        Ok(result)
    }
}

/// Says whether a pager has the terminal, which handles Ctrl-C itself.
#[derive(Debug, Clone)]
pub struct PagingFlag(Arc<AtomicBool>);

impl PagingFlag {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// The pager has ended.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.modes.leave();
    }
}

/// Has panics leave the screen before they print their message.
fn leave_before_panics(modes: Arc<TerminalModes>) {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        modes.leave_in_panic();
        previous(panic);
    }));
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::fd::{AsFd as _, OwnedFd};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::tcgetattr;

    use super::*;

    /// Returns both ends of a new pseudo-terminal; the second lives as long as the program.
    fn pseudo_terminal() -> io::Result<(OwnedFd, BorrowedFd<'static>)> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let name = name.into_string().map_err(|_| io::ErrorKind::InvalidData)?;
        let terminal: &'static File = Box::leak(Box::new(OpenOptions::new().read(true).write(true).open(name)?));
        Ok((master, terminal.as_fd()))
    }

    fn modes(terminal: BorrowedFd<'_>) -> io::Result<String> {
        let modes = tcgetattr(terminal)?;
        Ok(format!("{:?} {:?}", modes.input_modes, modes.local_modes))
    }

    #[test]
    fn a_panic_leaves_the_screen_before_its_message_and_a_closed_terminal_is_an_error() -> io::Result<()> {
        let (master, terminal) = pseudo_terminal()?;
        let before = modes(terminal)?;
        let mut screen = FullScreen::enter_on(terminal, terminal, true)?;
        assert_ne!(modes(terminal)?, before);
        screen.draw(|frame| {
            frame.buffer_mut().set_string(0, 0, "shown", screen_style(crate::ui::Style::Id));
        })?;
        let panicked = std::thread::spawn(|| panic!("a panic that is part of the test")).join();
        assert!(panicked.is_err());
        assert_eq!(modes(terminal)?, before);
        // It is off, so nothing is drawn any more.
        screen.draw(|frame| {
            frame.buffer_mut().set_string(0, 0, "later", screen_style(crate::ui::Style::Plain));
        })?;
        let mut written = [0; 4096];
        let length = rustix::io::read(&master, &mut written)?;
        let written = String::from_utf8_lossy(&written[..length]);
        assert!(written.contains("\x1b[0;36mshown") && !written.contains("later"), "{written:?}");
        assert!(written.ends_with("\x1b[?25h\x1b[?1049l"), "{written:?}");
        drop(master);
        assert!(screen.wait_for_keys().is_err(), "the terminal is gone");
        Ok(())
    }
}
