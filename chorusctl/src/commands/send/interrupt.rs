//! Handles Ctrl-C while a turn runs or waits by calling `send.cancel`. It uses its own connection, because the other
//! one waits for the reply.

#![expect(clippy::disallowed_types, reason = "the client does without chorus_base")]

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use chorus_proto::CallError;
use chorus_proto::methods::send::{Cancel, CancelParams};
use chorus_remote::DaemonAddress;
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use uuid::Uuid;

use crate::app::App;
use crate::error::{Error, os_error_text};
use crate::older_daemon;
use crate::ui::Stderr;
use crate::ui::interruption::{self, is_sigint_ignored};

/// How long to wait for the daemon to accept a cancel.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// Selects the action of the next Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterruptState {
    /// Ends the program, as without a handler.
    Exit,
    /// Warns that another Ctrl-C ends the program: this one was probably meant for a turn that has just ended.
    WarnBeforeExit,
    /// Nothing. The prompt reads Ctrl-C as a key, and SIGINT from elsewhere must not end the program while the terminal
    /// is in raw mode.
    Prompting,
    /// Remembers to cancel the turn once its id is known.
    Requested,
    CancelPending,
    /// Withdraws the message of this turn, which waits behind others.
    Queued(Uuid),
    Withdrawn,
    /// Cancels this turn.
    Running(Uuid),
    Cancelled,
}

/// How Ctrl-C ended a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The turn was cancelled; the partial reply is kept.
    Cancelled,
    /// The turn was cancelled before the model wrote anything.
    CancelledEmpty,
    /// The message was withdrawn before its turn began.
    Withdrawn,
}

impl CancelOutcome {
    /// Returns the text for the user.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled; the partial reply was kept",
            Self::CancelledEmpty => "cancelled",
            Self::Withdrawn => "cancelled before it started; the message was not kept",
        }
    }
}

#[derive(Debug)]
struct SharedState {
    state: Mutex<InterruptState>,
    /// The turn that began last.
    last_turn: Mutex<Option<Uuid>>,
    daemon: DaemonAddress,
    agent: Option<String>,
    conversation: Option<String>,
    stderr: Stderr,
}

/// Handler of Ctrl-C, installed until the program ends.
#[derive(Debug)]
pub struct InterruptHandler {
    shared: Arc<SharedState>,
    /// State while no turn runs.
    idle_state: InterruptState,
}

impl InterruptHandler {
    /// Installs the handler and its thread. Turns are cancelled in the conversation of `app`. Does nothing if SIGINT is ignored.
    pub fn install(app: &App) -> Result<Self, Error> {
        let shared = Arc::new(SharedState {
            state: Mutex::new(InterruptState::Exit),
            last_turn: Mutex::new(None),
            daemon: app.address()?,
            agent: app.agent(),
            conversation: app.conversation(),
            stderr: app.stderr,
        });
        let interrupts = Self { shared: shared.clone(), idle_state: InterruptState::Exit };
        if is_sigint_ignored() {
            return Ok(interrupts);
        }
        let failed =
            |error: io::Error| Error::failed(format!("failed to listen for Ctrl-C: {}", os_error_text(&error)));
        let mut signals = Signals::new([SIGINT]).map_err(failed)?;
        interruption::hand_over(&[SIGINT]);
        let listen = move || signals.forever().for_each(|_| shared.on_interrupt());
        thread::Builder::new().name("ctrl-c".into()).spawn(listen).map_err(failed)?;
        Ok(interrupts)
    }

    /// Makes Ctrl-C warn before it ends the program, for interactive chats.
    #[must_use]
    pub fn warn_before_exit(self) -> Self {
        Self { idle_state: InterruptState::WarnBeforeExit, ..self }
    }

    /// A turn was requested; its id is not known yet.
    pub fn turn_requested(&self) {
        self.shared.set_state(InterruptState::Requested);
        self.shared.set_last_turn(None);
    }

    /// The turn waits behind others.
    pub fn turn_queued(&self, turn: Uuid) {
        self.set_turn(turn, InterruptState::Queued(turn), InterruptState::Withdrawn);
    }

    /// The turn runs.
    pub fn turn_started(&self, turn: Uuid) {
        self.shared.set_last_turn(Some(turn));
        self.set_turn(turn, InterruptState::Running(turn), InterruptState::Cancelled);
    }

    /// Returns the turn that was requested last, if it has started.
    #[must_use]
    pub fn last_turn(&self) -> Option<Uuid> {
        *self.shared.last_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_turn(&self, turn: Uuid, then: InterruptState, cancelled: InterruptState) {
        let mut now = self.shared.lock_state();
        match *now {
            InterruptState::CancelPending => {
                *now = cancelled;
                SharedState::spawn_cancel(&self.shared, turn);
            }
            InterruptState::Requested | InterruptState::Queued(_) => *now = then,
            // The turn started before its message could be withdrawn.
            InterruptState::Withdrawn => *now = cancelled,
            _ => {}
        }
    }

    /// The turn has ended. Returns how Ctrl-C ended it, if it did.
    pub fn turn_ended(&self) -> Option<CancelOutcome> {
        match std::mem::replace(&mut *self.shared.lock_state(), self.idle_state) {
            InterruptState::Cancelled | InterruptState::CancelPending => Some(CancelOutcome::Cancelled),
            InterruptState::Withdrawn => Some(CancelOutcome::Withdrawn),
            _ => None,
        }
    }

    /// Runs `read` while Ctrl-C is read as a key.
    pub fn while_prompting<T>(&self, read: impl FnOnce() -> T) -> T {
        self.shared.set_state(InterruptState::Prompting);
        let read = read();
        self.shared.set_state(self.idle_state);
        read
    }
}

impl SharedState {
    fn lock_state(&self) -> MutexGuard<'_, InterruptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_last_turn(&self, turn: Option<Uuid>) {
        *self.last_turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    fn set_state(&self, to: InterruptState) {
        *self.lock_state() = to;
    }

    fn on_interrupt(self: &Arc<Self>) {
        let mut now = self.lock_state();
        match *now {
            InterruptState::Prompting => {}
            InterruptState::WarnBeforeExit => {
                *now = InterruptState::Exit;
                self.stderr.line("\npress Ctrl-C again to exit");
            }
            InterruptState::Requested => {
                *now = InterruptState::CancelPending;
                self.stderr.line("\ncancelling when it starts; press Ctrl-C again to exit and leave it waiting");
            }
            InterruptState::Queued(turn) => {
                *now = InterruptState::Withdrawn;
                Self::spawn_cancel(self, turn);
            }
            InterruptState::Running(turn) => {
                *now = InterruptState::Cancelled;
                Self::spawn_cancel(self, turn);
            }
            InterruptState::Exit
            | InterruptState::CancelPending
            | InterruptState::Withdrawn
            | InterruptState::Cancelled => {
                let _ = emulate_default_handler(SIGINT);
            }
        }
    }

    /// Cancels in a separate thread, so that a daemon that hangs does not block the next Ctrl-C.
    fn spawn_cancel(self: &Arc<Self>, turn: Uuid) {
        let shared = self.clone();
        let notes = self.stderr;
        let failed = move |what: Error| {
            notes.line("\ncould not cancel the turn; press Ctrl-C again to exit and leave it running");
            what.print(notes);
        };
        let asking = move || shared.send_cancel(turn).unwrap_or_else(|error| failed(error.into()));
        if let Err(error) = thread::Builder::new().name("cancel".into()).spawn(asking) {
            failed(Error::failed(format!("failed to start a thread: {}", os_error_text(&error))));
        }
    }

    fn send_cancel(&self, turn: Uuid) -> Result<(), CallError> {
        let mut client = self.daemon.connect()?;
        client.set_timeout(Some(CANCEL_TIMEOUT))?;
        // If the turn has ended meanwhile, the daemon returns null and the reply is on its way.
        let params =
            CancelParams { agent: self.agent.clone(), conversation: self.conversation.clone(), turn_id: Some(turn) };
        match client.call::<Cancel>(&params) {
            Err(error) if older_daemon::refuses_conversations(&error) => {
                client.call::<Cancel>(&CancelParams { conversation: None, ..params })?;
            }
            cancelled => _ = cancelled?,
        }
        Ok(())
    }
}
