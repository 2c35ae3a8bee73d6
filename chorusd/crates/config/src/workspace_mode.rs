//! The places in which the conversations of an agent work.

use std::str::FromStr;

/// The value of `workspace`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkspaceMode {
    /// All in the agent's workspace.
    #[default]
    Shared,
    /// `main` in the workspace, every other one in a git worktree of it.
    Worktree,
}

impl WorkspaceMode {
    /// The value as it is written in config.toml and agent.json.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Worktree => "worktree",
        }
    }
}

impl FromStr for WorkspaceMode {
    type Err = String;

    /// Parses the value. The error message follows "agent.json".
    fn from_str(text: &str) -> Result<Self, String> {
        let mode = [Self::Shared, Self::Worktree].into_iter().find(|mode| mode.as_str() == text);
        mode.ok_or_else(|| "has a `workspace` that is neither shared nor worktree".to_owned())
    }
}
