//! The programs whose conversations can be captured: where each keeps them, and in which format. Another program is another
//! variant here.

use std::path::{Path, PathBuf};

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_proto::methods::import::ImportFormat;
use serde::{Deserialize, Serialize};

use super::places::UserPlaces;

/// A program whose conversations can be captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureSource {
    ClaudeCode,
    Codex,
}

impl CaptureSource {
    /// All sources, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    /// Returns the name on the command line, which sessions have as `source.program`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// Finds the sources with these names, or all if there are none.
    ///
    /// # Errors
    /// `invalid_params` for an unknown name.
    pub fn from_names(names: &[String]) -> Result<Vec<Self>> {
        if names.is_empty() {
            return Ok(Self::ALL.to_vec());
        }
        names.iter().map(|name| Self::from_name(name)).collect()
    }

    fn from_name(name: &str) -> Result<Self> {
        let all = || Self::ALL.into_iter();
        all().find(|source| source.name() == name).ok_or_else(|| {
            let failure = Error::invalid(format!("unknown source {name:?}"));
            match closest_match(name, all().map(Self::name)) {
                Some(meant) => failure.hint(format!("did you mean `{meant}`?")),
                None => failure.hint(format!("sources: {}", all().map(Self::name).collect::<Vec<_>>().join(", "))),
            }
        })
    }

    /// Returns the directories in which the program keeps conversations. They need not exist.
    #[must_use]
    pub fn roots(self, places: &UserPlaces) -> Vec<PathBuf> {
        match self {
            Self::ClaudeCode => {
                let usual = || vec![places.home.join(".claude"), places.home.join(".config/claude")];
                let dirs = places.claude_config_dir.clone().map_or_else(usual, |dir| vec![dir]);
                dirs.into_iter().map(|dir| dir.join("projects")).collect()
            }
            Self::Codex => {
                let dir = places.codex_home.clone().unwrap_or_else(|| places.home.join(".codex"));
                vec![dir.join("sessions"), dir.join("archived_sessions")]
            }
        }
    }

    /// Returns true if a file below a root is a transcript.
    #[must_use]
    pub fn is_transcript(self, path: &Path) -> bool {
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            return false;
        }
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        match self {
            Self::ClaudeCode => !path.components().any(|part| part.as_os_str() == "tool-results"),
            Self::Codex => name.starts_with(b"rollout-"),
        }
    }

    /// Returns true for the transcript of a subagent, which has the conversation that started it as its parent.
    #[must_use]
    pub fn is_subagent(self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        self == Self::ClaudeCode && name.starts_with(b"agent-")
    }

    /// Returns the format of the transcripts.
    #[must_use]
    pub fn format(self) -> ImportFormat {
        match self {
            Self::ClaudeCode => ImportFormat::ClaudeCode,
            Self::Codex => ImportFormat::Codex,
        }
    }

    /// Returns the age in days at which the program deletes a transcript below `root`.
    #[must_use]
    pub fn deletes_after_days(self, root: &Path) -> Option<u64> {
        /// Used if its settings do not say otherwise.
        const CLAUDE_CODE_DAYS: u64 = 30;
        match self {
            Self::ClaudeCode => {
                let settings = std::fs::read(root.with_file_name("settings.json")).unwrap_or_default();
                let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap_or_default();
                Some(settings["cleanupPeriodDays"].as_u64().unwrap_or(CLAUDE_CODE_DAYS))
            }
            Self::Codex => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_where_their_variables_say() {
        let usual = UserPlaces { home: "/home/mara".into(), claude_config_dir: None, codex_home: None };
        assert_eq!(CaptureSource::ClaudeCode.roots(&usual)[0], Path::new("/home/mara/.claude/projects"));
        assert_eq!(CaptureSource::Codex.roots(&usual)[1], Path::new("/home/mara/.codex/archived_sessions"));
        let moved =
            UserPlaces { claude_config_dir: Some("/data/cc".into()), codex_home: Some("/data/cx".into()), ..usual };
        assert_eq!(CaptureSource::ClaudeCode.roots(&moved), [Path::new("/data/cc/projects")]);
        assert_eq!(CaptureSource::Codex.roots(&moved)[0], Path::new("/data/cx/sessions"));
    }

    #[test]
    fn only_conversations_are_transcripts() {
        let claude = |path| CaptureSource::ClaudeCode.is_transcript(Path::new(path));
        assert!(claude("/p/-home-mara/7d444840.jsonl"));
        assert!(claude("/p/-home-mara/7d444840/subagents/agent-0123.jsonl"));
        assert!(!claude("/p/-home-mara/7d444840/subagents/agent-0123.meta.json"));
        assert!(!claude("/p/-home-mara/7d444840/tool-results/x.jsonl"));
        assert!(CaptureSource::ClaudeCode.is_subagent(Path::new("/p/x/agent-0123.jsonl")));
        let codex = |path| CaptureSource::Codex.is_transcript(Path::new(path));
        assert!(codex("/s/2026/11/26/rollout-2026-11-26T10-00-00-0197.jsonl"));
        assert!(!codex("/s/history.jsonl"));
    }

    #[test]
    fn a_wrong_name_is_refused_with_the_right_one() {
        let failure = CaptureSource::from_names(&["claude-cod".into()]).unwrap_err();
        assert!(failure.to_string().contains("claude-cod"), "{failure}");
        assert_eq!(CaptureSource::from_names(&[]).unwrap().len(), CaptureSource::ALL.len());
    }
}
