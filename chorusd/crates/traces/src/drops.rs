//! Counts the spans that nobody gets, and logs them once per minute.

use std::sync::Arc;
use std::time::Duration;

use chorus_base::sync::Mutex;
use chorus_engine::traces::TraceFeed;
use tokio::time::Instant;

/// Time between two lines in the log.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The spans that were dropped, and those of them that are in the log.
#[derive(Debug)]
pub(crate) struct Drops {
    feed: Arc<TraceFeed>,
    unreported: Mutex<Unreported>,
}

#[derive(Debug, Default)]
struct Unreported {
    spans: u64,
    why: String,
    last_report: Option<Instant>,
}

impl Drops {
    pub(crate) fn new(feed: Arc<TraceFeed>) -> Self {
        Self { feed, unreported: Mutex::default() }
    }

    /// Counts spans that were dropped, and logs it unless that was done a moment ago.
    pub(crate) fn count(&self, spans: u64, why: &str) {
        if spans == 0 {
            return;
        }
        self.feed.export.count_dropped(spans);
        let is_due = {
            let mut unreported = self.unreported.lock();
            unreported.spans += spans;
            why.clone_into(&mut unreported.why);
            unreported.last_report.is_none_or(|last| last.elapsed() >= LOG_INTERVAL)
        };
        if is_due {
            self.report();
        }
    }

    /// Logs what is not in the log yet.
    pub(crate) fn report(&self) {
        let mut unreported = self.unreported.lock();
        if unreported.spans > 0 {
            tracing::warn!(spans = unreported.spans, why = unreported.why, "dropped spans of traces");
            *unreported = Unreported { last_report: Some(Instant::now()), ..Unreported::default() };
        }
    }

    /// Counts spans that the collector has accepted.
    pub(crate) fn count_exported(&self, spans: u64) {
        self.feed.export.count_exported(spans);
        if let Some(error) = self.feed.export.set_last_error(None) {
            tracing::info!(error, "the collector accepts traces again");
        }
    }

    /// Notes that the collector cannot be reached, or refuses spans.
    pub(crate) fn set_error(&self, error: &str) {
        if self.feed.export.set_last_error(Some(error.to_owned())).is_none() {
            tracing::warn!(error, "cannot send traces");
        }
    }
}
