//! The manifest of an agent archive.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AGENT_MEMBER, DOCS_PREFIX, MEMORY_MEMBER, SCHEDULES_MEMBER, SESSIONS_PREFIX, WORKSPACE_MEMBER};

/// The manifest: the last member of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: u32,
    /// The version of Chorus that wrote the archive.
    pub chorus: String,
    pub exported_at: Timestamp,
    pub agent: ExportedAgent,
    /// All other members, in their order.
    pub members: Vec<Member>,
}

/// The agent that was exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedAgent {
    pub id: Uuid,
    pub name: String,
}

/// One file of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub path: String,
    pub size: u64,
    /// 64 hex digits.
    pub sha256: String,
}

/// Returns true if an archive may have a member with this path. Such a path never leads out of the agent's directory.
#[must_use]
pub fn is_valid_member_path(path: &str) -> bool {
    let plain = |name: &str| {
        !name.is_empty() && name.len() <= 255 && !name.starts_with('.') && !name.chars().any(char::is_control)
    };
    match path {
        AGENT_MEMBER | MEMORY_MEMBER | SCHEDULES_MEMBER | WORKSPACE_MEMBER => true,
        _ => {
            let session = path.strip_prefix(SESSIONS_PREFIX).and_then(|name| name.strip_suffix(".json"));
            let note = path.strip_prefix(DOCS_PREFIX);
            session.is_some_and(|name| plain(name) && !name.contains('/'))
                || note.is_some_and(|note| note.len() <= 4096 && note.split('/').all(plain))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_a_place_that_leads_elsewhere() {
        for good in ["agent.json", "docs/a.md", "docs/b/c d.md", "sessions/2026-01-01_x.json", "workspace.bundle"] {
            assert!(is_valid_member_path(good), "{good}");
        }
        for bad in [
            "/etc/passwd",
            "../x",
            "docs/../agent.json",
            "docs/",
            "docs//a",
            "docs/./a",
            "docs/.git/config",
            "sessions/a/b.json",
            "sessions/.new-x.json",
            "sessions/x.txt",
            "workspace/a",
            "manifest.json",
            "docs/a\nb",
            "",
        ] {
            assert!(!is_valid_member_path(bad), "{bad:?}");
        }
    }
}
