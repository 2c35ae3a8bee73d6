//! The progress of a copy.

/// The parts of the work, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Rows are copied.
    Copying,
    /// Files of sessions are read, and written to the bucket or from it.
    Sessions,
    /// Rows of both databases are compared.
    Comparing,
}

/// How far the work of a phase is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub phase: Phase,
    /// Rows, or sessions.
    pub done: u64,
    pub total: u64,
}

/// Counts what was done, and reports it.
pub(crate) struct Meter<'a> {
    report: &'a mut dyn FnMut(Progress),
    progress: Progress,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(report: &'a mut dyn FnMut(Progress)) -> Self {
        Self { report, progress: Progress { phase: Phase::Copying, done: 0, total: 0 } }
    }

    /// Starts a phase.
    pub(crate) fn start(&mut self, phase: Phase, total: u64) {
        self.progress = Progress { phase, done: 0, total };
        (self.report)(self.progress);
    }

    pub(crate) fn add(&mut self, done: u64) {
        self.progress.done += done;
        (self.report)(self.progress);
    }
}
