//! A gate on which one thread waits until another opens it.

#![expect(clippy::disallowed_types, reason = "a Condvar needs the mutex of the standard library")]

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::wait::DEADLINE;

/// Closed until it is opened, then open for good.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate is open; panics after [`DEADLINE`].
    pub fn wait(&self) {
        let state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (open, _) = self.0.1.wait_timeout_while(state, DEADLINE, |open| !*open).expect("no panic at the gate");
        assert!(*open, "waited {DEADLINE:?} at a gate");
    }
}
