//! The choices of the user: sources, exclusions, redaction. They are a setting in the catalog.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::source::CaptureSource;

/// The key of the setting.
pub(super) const SETTING: &str = "capture";

/// The choices of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CaptureSettings {
    pub on: BTreeSet<CaptureSource>,
    #[serde(default)]
    pub excluded: BTreeSet<String>,
    #[serde(default)]
    pub paused: bool,
    pub redact: bool,
    /// Counts the changes since the start, so that a change can be waited for.
    #[serde(skip)]
    pub generation: u64,
}

impl Default for CaptureSettings {
    fn default() -> Self {
        Self { on: BTreeSet::new(), excluded: BTreeSet::new(), paused: false, redact: true, generation: 0 }
    }
}

impl CaptureSettings {
    /// Returns true if there is something to do.
    pub(crate) fn is_active(&self) -> bool {
        !self.paused && !self.on.is_empty()
    }
}
