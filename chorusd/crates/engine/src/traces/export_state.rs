//! The fate of the spans, for `doctor` and the metrics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chorus_base::sync::Mutex;

/// Counts spans, and knows whether the last export succeeded.
#[derive(Debug, Default)]
pub struct ExportState {
    is_built: AtomicBool,
    exported: AtomicU64,
    dropped: AtomicU64,
    last_error: Mutex<Option<String>>,
}

/// Numbers of spans since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportTotals {
    pub exported: u64,
    pub dropped: u64,
}

impl ExportState {
    /// Notes that this program has an exporter.
    pub fn set_built(&self) {
        self.is_built.store(true, Ordering::Relaxed);
    }

    /// Returns whether this program has an exporter.
    #[must_use]
    pub fn is_built(&self) -> bool {
        self.is_built.load(Ordering::Relaxed)
    }

    /// Counts spans that the collector has accepted.
    pub fn count_exported(&self, spans: u64) {
        self.exported.fetch_add(spans, Ordering::Relaxed);
    }

    /// Counts spans that nobody gets.
    pub fn count_dropped(&self, spans: u64) {
        self.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    /// Returns the numbers so far.
    #[must_use]
    pub fn totals(&self) -> ExportTotals {
        ExportTotals { exported: self.exported.load(Ordering::Relaxed), dropped: self.dropped.load(Ordering::Relaxed) }
    }

    /// Sets why the last export failed; `None` if it succeeded. Returns the earlier value.
    pub fn set_last_error(&self, error: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.last_error.lock(), error)
    }

    /// Returns why the last export failed; `None` if it succeeded.
    #[must_use]
    pub fn last_error(&self) -> Option<String> {
        self.last_error.lock().clone()
    }
}
