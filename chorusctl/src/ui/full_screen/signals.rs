//! Signals while the full screen is on: it is left before one ends or stops the process.

use std::io;
use std::sync::Arc;

use crate::ui::interruption;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::Waker;
use super::modes::TerminalModes;
use crate::ui::job_control::is_continuable;

/// Starts the thread that handles signals. `waker` wakes the screen when it is to be drawn again. The thread stays when the
/// screen is left: without it the signals would do nothing, with it they do what they do by default.
pub(super) fn handle_signals(modes: Arc<TerminalModes>, waker: Waker) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT, SIGWINCH])?;
    interruption::hand_over(&[SIGINT, SIGTERM]);
    let run = move || signals.forever().for_each(|signal| on_signal(&modes, &waker, signal));
    std::thread::Builder::new().name("signals".into()).spawn(run)?;
    Ok(())
}

fn on_signal(modes: &TerminalModes, waker: &Waker, signal: i32) {
    match signal {
        SIGWINCH => waker.wake(),
        // As by default: a process group that nobody would continue is not stopped.
        SIGTSTP if !is_continuable() => {}
        SIGTSTP | SIGCONT => {
            if signal == SIGTSTP {
                modes.stop();
            }
            let _ = modes.enter_again();
            waker.wake_to_redraw();
        }
        // They are for the pager.
        SIGINT | SIGQUIT if modes.is_paging() => {}
        _ => {
            // Nothing is drawn any more.
            let mut is_active = modes.lock();
            modes.leave_locked(&mut is_active);
            let _ = emulate_default_handler(signal);
        }
    }
}
