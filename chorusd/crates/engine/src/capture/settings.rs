//! The choices of the user: sources, exclusions, redaction. They are a setting in the catalog, and the configuration file adds to
//! them.

use std::collections::{BTreeMap, BTreeSet};

use chorus_base::error::{Error, Result};
use chorus_config::CaptureConfig;
use serde::{Deserialize, Serialize};

use super::source::CaptureSource;

/// The key of the setting.
pub(super) const SETTING: &str = "capture";

/// The choices of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CaptureSettings {
    pub on: BTreeSet<CaptureSource>,
    #[serde(default)]
    pub excluded: BTreeSet<String>,
    /// Paths that were excluded by a symbolic link, with those that they led to then.
    #[serde(default)]
    pub real_paths: BTreeMap<String, String>,
    #[serde(default)]
    pub paused: bool,
    /// Unset: as the configuration file says.
    pub redact: Option<bool>,
    /// The choices of config.toml, which add to these.
    #[serde(skip)]
    pub from_file: FileSettings,
    /// Counts the changes since the start, so that a change can be waited for.
    #[serde(skip)]
    pub generation: u64,
}

/// The choices of the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileSettings {
    pub on: BTreeSet<CaptureSource>,
    pub excluded: BTreeSet<String>,
    pub redact: Option<bool>,
}

impl FileSettings {
    /// # Errors
    /// `invalid_params` for an unknown program.
    pub(super) fn new(config: &CaptureConfig) -> Result<Self> {
        let on = config.sources.iter().map(|name| CaptureSource::from_name(name)).collect::<Result<_>>();
        let on = on.map_err(|failure| Error { message: format!("capture.sources: {}", failure.message), ..failure })?;
        let excluded = config.exclude.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        Ok(Self { on, excluded, redact: config.redact })
    }
}

impl CaptureSettings {
    /// Returns true if there is something to do.
    pub(crate) fn is_active(&self) -> bool {
        !self.paused && !self.sources().is_empty()
    }

    /// Returns all sources that are on.
    pub(crate) fn sources(&self) -> BTreeSet<CaptureSource> {
        self.on.union(&self.from_file.on).copied().collect()
    }

    /// Returns all paths that are excluded.
    pub(crate) fn all_excluded(&self) -> BTreeSet<String> {
        self.excluded.union(&self.from_file.excluded).cloned().collect()
    }

    /// Returns true if secrets are redacted.
    pub(crate) fn redacts(&self) -> bool {
        self.redact.or(self.from_file.redact).unwrap_or(true)
    }
}
