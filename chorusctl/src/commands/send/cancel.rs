//! `send.cancel`: Ctrl-C while a turn runs or waits. It goes by a connection of its own, because the other one waits for the reply.

use std::fs;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use chorus_proto::methods::send::{Cancel, CancelParams};
use chorus_proto::paths::Places;
use chorus_proto::{CallError, Client};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use uuid::Uuid;

use crate::app::App;
use crate::error::{Failure, plain};
use crate::ui::Notes;

/// Longer than this nobody waits for a cancel to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// What Ctrl-C does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    /// Ends the program, as if nobody listened.
    Leaves,
    /// Says that the next one does: this one was meant for a turn that has just ended.
    Warns,
    /// Nothing: the prompt reads it as a key, and a signal from elsewhere must not leave the terminal as the prompt has it.
    Prompting,
    /// Has the turn cancelled once its id is known.
    Asked,
    AskedCancelled,
    /// Takes the message of this turn back, which waits for others.
    Waiting(Uuid),
    TakenBack,
    /// Cancels this turn.
    Running(Uuid),
    Cancelled,
}

/// What Ctrl-C made of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It was cancelled: what came is kept.
    Cancelled,
    /// Its message was taken back before it began.
    TakenBack,
}

impl Wanted {
    /// For whoever pressed it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "the turn was cancelled; what came is kept",
            Self::TakenBack => "the message was taken back before its turn came; nothing of it is kept",
        }
    }
}

/// Whether whoever started this wants Ctrl-C not to reach it, as a shell does for `chorusctl send … &` in a script. Told where
/// the system has it in a file; elsewhere the answer is no.
fn is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let signals = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let signals = signals.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    signals.is_some_and(|signals| signals & (1 << (SIGINT - 1)) != 0)
}

#[derive(Debug)]
struct Shared {
    now: Mutex<Now>,
    places: Places,
    agent: Option<String>,
    notes: Notes,
}

/// Ctrl-C, from now to the end of the program.
#[derive(Debug)]
pub struct Interrupts {
    shared: Arc<Shared>,
    /// What it does where no turn runs.
    resting: Now,
}

impl Interrupts {
    /// Listens for Ctrl-C; turns are those of `agent`.
    ///
    /// # Errors
    /// [`Failure`] where the system does not let it.
    pub fn watch(app: &App, agent: Option<String>) -> Result<Self, Failure> {
        let places = app.places()?.clone();
        let shared = Arc::new(Shared { now: Mutex::new(Now::Leaves), places, agent, notes: app.notes });
        let interrupts = Self { shared: shared.clone(), resting: Now::Leaves };
        if is_ignored() {
            return Ok(interrupts);
        }
        let failed = |error: io::Error| Failure::failed(format!("failed to listen for Ctrl-C: {}", plain(&error)));
        let mut signals = Signals::new([SIGINT]).map_err(failed)?;
        let listen = move || signals.forever().for_each(|_| shared.interrupted());
        thread::Builder::new().name("ctrl-c".into()).spawn(listen).map_err(failed)?;
        Ok(interrupts)
    }

    /// For a conversation, which one Ctrl-C too many must not end.
    #[must_use]
    pub fn patient(self) -> Self {
        Self { resting: Now::Warns, ..self }
    }

    /// A turn was asked for.
    pub fn asked(&self) {
        self.shared.set(Now::Asked);
    }

    /// It waits for others.
    pub fn waits(&self, turn: Uuid) {
        self.known(turn, Now::Waiting(turn), Now::TakenBack);
    }

    /// It begins.
    pub fn started(&self, turn: Uuid) {
        self.known(turn, Now::Running(turn), Now::Cancelled);
    }

    fn known(&self, turn: Uuid, then: Now, cancelled: Now) {
        let mut now = self.shared.now();
        match *now {
            Now::AskedCancelled => {
                *now = cancelled;
                Shared::cancel(&self.shared, turn);
            }
            Now::Asked | Now::Waiting(_) => *now = then,
            // It began before it could be taken back.
            Now::TakenBack => *now = cancelled,
            _ => {}
        }
    }

    /// It has ended; how, if somebody wanted it to end here.
    pub fn ended(&self) -> Option<Wanted> {
        match std::mem::replace(&mut *self.shared.now(), self.resting) {
            Now::Cancelled | Now::AskedCancelled => Some(Wanted::Cancelled),
            Now::TakenBack => Some(Wanted::TakenBack),
            _ => None,
        }
    }

    /// Carries `read` out, during which Ctrl-C is a key.
    pub fn prompting<T>(&self, read: impl FnOnce() -> T) -> T {
        self.shared.set(Now::Prompting);
        let read = read();
        self.shared.set(self.resting);
        read
    }
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, to: Now) {
        *self.now() = to;
    }

    fn interrupted(self: &Arc<Self>) {
        let mut now = self.now();
        match *now {
            Now::Prompting => {}
            Now::Warns => {
                *now = Now::Leaves;
                self.notes.line("\nCtrl-C again leaves");
            }
            Now::Asked => {
                *now = Now::AskedCancelled;
                self.notes.line("\nit is cancelled when its turn comes; Ctrl-C again leaves it waiting");
            }
            Now::Waiting(turn) => {
                *now = Now::TakenBack;
                Self::cancel(self, turn);
            }
            Now::Running(turn) => {
                *now = Now::Cancelled;
                Self::cancel(self, turn);
            }
            Now::Leaves | Now::AskedCancelled | Now::TakenBack | Now::Cancelled => {
                let _ = emulate_default_handler(SIGINT);
            }
        }
    }

    /// In a thread of its own: a daemon that hangs must not keep the next Ctrl-C from being heard.
    fn cancel(self: &Arc<Self>, turn: Uuid) {
        let shared = self.clone();
        let notes = self.notes;
        let failed = move |what: Failure| {
            notes.line("\nthe turn could not be cancelled; Ctrl-C again leaves it running");
            what.tell(notes);
        };
        let asking = move || shared.ask(turn).unwrap_or_else(|error| failed(error.into()));
        if let Err(error) = thread::Builder::new().name("cancel".into()).spawn(asking) {
            failed(Failure::failed(format!("no thread for it: {}", plain(&error))));
        }
    }

    fn ask(&self, turn: Uuid) -> Result<(), CallError> {
        let mut client = Client::connect_to(&self.places)?;
        client.set_timeout(Some(PATIENCE))?;
        // Where it has ended meanwhile the daemon says null, and its reply is on its way.
        client.call::<Cancel>(&CancelParams { agent: self.agent.clone(), turn_id: Some(turn) })?;
        Ok(())
    }
}
