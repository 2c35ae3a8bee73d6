//! The directories of the user under which programs keep their conversations.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The variables with which users move the directories of programs.
const VARIABLES: [&str; 15] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "CURSOR_CONFIG_DIR",
    "CURSOR_DATA_DIR",
    "GEMINI_CLI_HOME",
    "GOOSE_PATH_ROOT",
    "HERMES_HOME",
    "OPENCLAW_STATE_DIR",
    "OPENCODE_DB",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// The directories of the user under which programs keep their conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserPlaces {
    pub home: PathBuf,
    /// Variables of the environment that move directories. Each is an absolute path.
    pub moved: HashMap<&'static str, PathBuf>,
}

impl UserPlaces {
    /// Returns the directories of the daemon's user, by its environment.
    #[must_use]
    pub fn from_env() -> Self {
        let dir = |name| std::env::var_os(name).map(PathBuf::from).filter(|dir: &PathBuf| dir.is_absolute());
        Self {
            home: std::env::home_dir().unwrap_or_default(),
            moved: VARIABLES.into_iter().filter_map(|name| Some((name, dir(name)?))).collect(),
        }
    }

    /// Returns the path that a variable has.
    pub(super) fn moved(&self, variable: &str) -> Option<&Path> {
        self.moved.get(variable).map(PathBuf::as_path)
    }

    /// Returns the path that a variable has, otherwise `usual` below the user's home.
    pub(super) fn dir(&self, variable: &str, usual: &str) -> PathBuf {
        self.moved(variable).map_or_else(|| self.home.join(usual), Path::to_owned)
    }
}
