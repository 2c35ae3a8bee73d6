//! `send.cancel`: Ctrl-C while a turn runs or waits. It goes by a connection of its own, because the other one waits for the reply.

use std::fs;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use chorus_proto::methods::send::{Cancel, CancelParams};
use chorus_proto::paths::InstancePaths;
use chorus_proto::{CallError, Client};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use uuid::Uuid;

use crate::app::App;
use crate::error::{Error, os_error_text};
use crate::ui::Stderr;

/// Longer than this nobody waits for a cancel to be taken.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// What Ctrl-C does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterruptState {
    /// Ends the program, as if nobody listened.
    Exit,
    /// Says that the next one does: this one was meant for a turn that has just ended.
    WarnBeforeExit,
    /// Nothing: the prompt reads it as a key, and a signal from elsewhere must not leave the terminal as the prompt has it.
    Prompting,
    /// Has the turn cancelled once its id is known.
    Requested,
    CancelPending,
    /// Takes the message of this turn back, which waits for others.
    Queued(Uuid),
    Withdrawn,
    /// Cancels this turn.
    Running(Uuid),
    Cancelled,
}

/// What Ctrl-C made of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It was cancelled: what came is kept.
    Cancelled,
    /// Its message was taken back before it began.
    Withdrawn,
}

impl CancelOutcome {
    /// For whoever pressed it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "the turn was cancelled; what came is kept",
            Self::Withdrawn => "the message was taken back before its turn came; nothing of it is kept",
        }
    }
}

/// Whether whoever started this wants Ctrl-C not to reach it, as a shell does for `chorusctl send … &` in a script. Told where
/// the system has it in a file; elsewhere the answer is no.
fn is_sigint_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let signals = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let signals = signals.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    signals.is_some_and(|signals| signals & (1 << (SIGINT - 1)) != 0)
}

#[derive(Debug)]
struct SharedState {
    state: Mutex<InterruptState>,
    paths: InstancePaths,
    agent: Option<String>,
    stderr: Stderr,
}

/// Ctrl-C, from now to the end of the program.
#[derive(Debug)]
pub struct InterruptHandler {
    shared: Arc<SharedState>,
    /// What it does where no turn runs.
    idle_state: InterruptState,
}

impl InterruptHandler {
    /// Listens for Ctrl-C; turns are those of `agent`.
    ///
    /// # Errors
    /// [`Failure`] where the system does not let it.
    pub fn install(app: &App, agent: Option<String>) -> Result<Self, Error> {
        let places = app.paths()?.clone();
        let shared =
            Arc::new(SharedState { state: Mutex::new(InterruptState::Exit), paths: places, agent, stderr: app.stderr });
        let interrupts = Self { shared: shared.clone(), idle_state: InterruptState::Exit };
        if is_sigint_ignored() {
            return Ok(interrupts);
        }
        let failed =
            |error: io::Error| Error::failed(format!("failed to listen for Ctrl-C: {}", os_error_text(&error)));
        let mut signals = Signals::new([SIGINT]).map_err(failed)?;
        let listen = move || signals.forever().for_each(|_| shared.on_interrupt());
        thread::Builder::new().name("ctrl-c".into()).spawn(listen).map_err(failed)?;
        Ok(interrupts)
    }

    /// For a conversation, which one Ctrl-C too many must not end.
    #[must_use]
    pub fn warn_before_exit(self) -> Self {
        Self { idle_state: InterruptState::WarnBeforeExit, ..self }
    }

    /// A turn was asked for.
    pub fn turn_requested(&self) {
        self.shared.set_state(InterruptState::Requested);
    }

    /// It waits for others.
    pub fn turn_queued(&self, turn: Uuid) {
        self.set_turn(turn, InterruptState::Queued(turn), InterruptState::Withdrawn);
    }

    /// It begins.
    pub fn turn_started(&self, turn: Uuid) {
        self.set_turn(turn, InterruptState::Running(turn), InterruptState::Cancelled);
    }

    fn set_turn(&self, turn: Uuid, then: InterruptState, cancelled: InterruptState) {
        let mut now = self.shared.lock_state();
        match *now {
            InterruptState::CancelPending => {
                *now = cancelled;
                SharedState::spawn_cancel(&self.shared, turn);
            }
            InterruptState::Requested | InterruptState::Queued(_) => *now = then,
            // It began before it could be taken back.
            InterruptState::Withdrawn => *now = cancelled,
            _ => {}
        }
    }

    /// It has ended; how, if somebody wanted it to end here.
    pub fn turn_ended(&self) -> Option<CancelOutcome> {
        match std::mem::replace(&mut *self.shared.lock_state(), self.idle_state) {
            InterruptState::Cancelled | InterruptState::CancelPending => Some(CancelOutcome::Cancelled),
            InterruptState::Withdrawn => Some(CancelOutcome::Withdrawn),
            _ => None,
        }
    }

    /// Carries `read` out, during which Ctrl-C is a key.
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

    fn set_state(&self, to: InterruptState) {
        *self.lock_state() = to;
    }

    fn on_interrupt(self: &Arc<Self>) {
        let mut now = self.lock_state();
        match *now {
            InterruptState::Prompting => {}
            InterruptState::WarnBeforeExit => {
                *now = InterruptState::Exit;
                self.stderr.line("\nCtrl-C again leaves");
            }
            InterruptState::Requested => {
                *now = InterruptState::CancelPending;
                self.stderr.line("\nit is cancelled when its turn comes; Ctrl-C again leaves it waiting");
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

    /// In a thread of its own: a daemon that hangs must not keep the next Ctrl-C from being heard.
    fn spawn_cancel(self: &Arc<Self>, turn: Uuid) {
        let shared = self.clone();
        let notes = self.stderr;
        let failed = move |what: Error| {
            notes.line("\nthe turn could not be cancelled; Ctrl-C again leaves it running");
            what.print(notes);
        };
        let asking = move || shared.send_cancel(turn).unwrap_or_else(|error| failed(error.into()));
        if let Err(error) = thread::Builder::new().name("cancel".into()).spawn(asking) {
            failed(Error::failed(format!("no thread for it: {}", os_error_text(&error))));
        }
    }

    fn send_cancel(&self, turn: Uuid) -> Result<(), CallError> {
        let mut client = Client::connect_to(&self.paths)?;
        client.set_timeout(Some(CANCEL_TIMEOUT))?;
        // Where it has ended meanwhile the daemon says null, and its reply is on its way.
        client.call::<Cancel>(&CancelParams { agent: self.agent.clone(), turn_id: Some(turn) })?;
        Ok(())
    }
}
