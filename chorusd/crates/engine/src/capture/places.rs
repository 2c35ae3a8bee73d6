//! The directories of the user under which programs keep their conversations.

use std::path::PathBuf;

/// The directories of the user under which programs keep their conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserPlaces {
    pub home: PathBuf,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex_home: Option<PathBuf>,
}

impl UserPlaces {
    /// Returns the directories of the daemon's user, by its environment.
    #[must_use]
    pub fn from_env() -> Self {
        let dir = |name| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
        Self {
            home: std::env::home_dir().unwrap_or_default(),
            claude_config_dir: dir("CLAUDE_CONFIG_DIR"),
            codex_home: dir("CODEX_HOME"),
        }
    }
}
