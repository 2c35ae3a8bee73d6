//! Where the time comes from, so that tests can bring their own.

use std::sync::Arc;

use jiff::{Timestamp, Unit};

/// Tells the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock, in whole milliseconds.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(|| {
            let now = Timestamp::now();
            now.round(Unit::Millisecond).unwrap_or(now)
        }))
    }

    /// What `tell` says.
    pub fn from_fn(tell: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}
