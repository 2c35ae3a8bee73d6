//! Switches the terminal to the full screen and back.

#![expect(clippy::disallowed_types, reason = "the client does without chorus_base")]

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use ratatui_core::layout::Size;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::SIGSTOP;
use signal_hook::low_level::raise;

/// The alternate screen, pastes in brackets.
const ENTER: &str = "\x1b[?1049h\x1b[?2004h\x1b[2J";
/// The reverse, with plain text and a visible cursor.
const LEAVE: &str = "\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";

/// The size if the terminal does not know its own.
const DEFAULT_SIZE: Size = Size::new(80, 24);

/// The modes of a terminal: those that it had, and whether it is switched to the full screen.
#[derive(Debug)]
pub(super) struct TerminalModes {
    input: BorrowedFd<'static>,
    output: BorrowedFd<'static>,
    original: Termios,
    /// True while the full screen is on. Whoever writes or switches holds the lock.
    is_active: Mutex<bool>,
    /// True while the process is stopped and the full screen comes back with the next SIGCONT.
    is_suspended: AtomicBool,
    /// True while a pager runs, which handles Ctrl-C.
    pub(super) is_paging: Arc<AtomicBool>,
}

impl TerminalModes {
    /// Remembers the modes of the terminal.
    pub(super) fn new(input: BorrowedFd<'static>, output: BorrowedFd<'static>) -> io::Result<Self> {
        let original = tcgetattr(input)?;
        Ok(Self {
            input,
            output,
            original,
            is_active: Mutex::new(false),
            is_suspended: AtomicBool::new(false),
            is_paging: Arc::default(),
        })
    }

    pub(super) fn input(&self) -> BorrowedFd<'static> {
        self.input
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches to the full screen.
    pub(super) fn enter(&self) -> io::Result<()> {
        let mut is_active = self.lock();
        *is_active = true;
        self.set_raw()?;
        write_all(self.output, ENTER.as_bytes())
    }

    /// Switches to the full screen again after the process was stopped and continued, unless the screen was off.
    pub(super) fn enter_again(&self) -> io::Result<()> {
        let mut is_active = self.lock();
        *is_active |= self.is_suspended.swap(false, Ordering::Relaxed);
        if !*is_active {
            return Ok(());
        }
        self.set_raw()?;
        write_all(self.output, ENTER.as_bytes())
    }

    fn set_raw(&self) -> io::Result<()> {
        let mut raw = self.original.clone();
        raw.make_raw();
        tcsetattr(self.input, OptionalActions::Now, &raw)?;
        Ok(())
    }

    /// Switches back to the terminal as it was.
    pub(super) fn leave(&self) {
        self.leave_locked(&mut self.lock());
    }

    /// The same, for a caller that has the lock. Errors are ignored: there is nobody left to tell.
    pub(super) fn leave_locked(&self, is_active: &mut bool) {
        if std::mem::take(is_active) {
            let _ = write_all(self.output, LEAVE.as_bytes());
            let _ = tcsetattr(self.input, OptionalActions::Now, &self.original);
        }
    }

    /// Switches back in a panic, whoever has the lock.
    pub(super) fn leave_in_panic(&self) {
        match self.is_active.try_lock() {
            Ok(mut is_active) => self.leave_locked(&mut is_active),
            Err(TryLockError::Poisoned(lock)) => self.leave_locked(&mut lock.into_inner()),
            Err(TryLockError::WouldBlock) => self.leave_locked(&mut true),
        }
    }

    /// Stops the process with the terminal as it was, and returns when it continues. Whoever draws waits until then.
    pub(super) fn stop(&self) {
        let mut is_active = self.lock();
        self.is_suspended.store(*is_active, Ordering::Relaxed);
        self.leave_locked(&mut is_active);
        // This thread stops before the call returns.
        let _ = raise(SIGSTOP);
    }

    pub(super) fn write_if_active(&self, bytes: &[u8]) -> io::Result<()> {
        let is_active = self.lock();
        if *is_active { write_all(self.output, bytes) } else { Ok(()) }
    }

    pub(super) fn size(&self) -> io::Result<Size> {
        let size = tcgetwinsize(self.output)?;
        if size.ws_col == 0 || size.ws_row == 0 {
            return Ok(DEFAULT_SIZE);
        }
        Ok(Size::new(size.ws_col, size.ws_row))
    }

    pub(super) fn is_paging(&self) -> bool {
        self.is_paging.load(Ordering::Relaxed)
    }
}

fn write_all(output: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
