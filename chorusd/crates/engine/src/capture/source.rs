//! The programs whose conversations can be captured. Another program is another module in `sources/` and another variant here.

use std::path::Path;

use chorus_base::closest_match;
use chorus_base::error::{Error, Result};
use chorus_proto::methods::import::ImportFormat;
use serde::{Deserialize, Serialize};

use super::places::UserPlaces;
use super::sources::{
    FileKind, Program, Root, claude_code, codex, copilot, cursor, gemini, goose, hermes, openclaw, opencode, pi,
};

/// A program whose conversations can be captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureSource {
    ClaudeCode,
    Codex,
    Gemini,
    Opencode,
    Copilot,
    Goose,
    Pi,
    #[serde(rename = "openclaw")]
    OpenClaw,
    Hermes,
    Cursor,
}

impl CaptureSource {
    /// All sources, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Copilot,
        Self::Goose,
        Self::Pi,
        Self::OpenClaw,
        Self::Hermes,
        Self::Cursor,
    ];

    fn program(self) -> &'static Program {
        match self {
            Self::ClaudeCode => &claude_code::PROGRAM,
            Self::Codex => &codex::PROGRAM,
            Self::Gemini => &gemini::PROGRAM,
            Self::Opencode => &opencode::PROGRAM,
            Self::Copilot => &copilot::PROGRAM,
            Self::Goose => &goose::PROGRAM,
            Self::Pi => &pi::PROGRAM,
            Self::OpenClaw => &openclaw::PROGRAM,
            Self::Hermes => &hermes::PROGRAM,
            Self::Cursor => &cursor::PROGRAM,
        }
    }

    /// Returns the name on the command line, which sessions have as `source.program`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.program().name
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

    /// Finds the source with this name.
    ///
    /// # Errors
    /// `invalid_params` for an unknown name.
    pub fn from_name(name: &str) -> Result<Self> {
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
    pub fn roots(self, places: &UserPlaces) -> Vec<Root> {
        (self.program().roots)(places)
    }

    /// Returns the kind of a file below a root; `None` if it has no conversation.
    pub(super) fn kind(self, path: &Path) -> Option<FileKind> {
        (self.program().kind)(path)
    }

    /// Returns true for the transcript of a subagent, which has the conversation that started it as its parent.
    #[must_use]
    pub fn is_subagent(self, path: &Path) -> bool {
        (self.program().is_subagent)(path)
    }

    /// Returns the format of the transcripts, and of the documents that are made of a database.
    #[must_use]
    pub fn format(self) -> ImportFormat {
        self.program().format
    }

    /// Returns the age in days at which the program deletes a transcript below `root`.
    #[must_use]
    pub fn deletes_after_days(self, root: &Path) -> Option<u64> {
        (self.program().deletes_after_days)(root)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn the_configuration_knows_the_same_programs() {
        assert_eq!(CaptureSource::ALL.map(CaptureSource::name), chorus_config::CAPTURE_SOURCES);
    }

    #[test]
    fn programs_are_found_where_their_variables_say() {
        let usual = UserPlaces { home: "/home/mara".into(), ..UserPlaces::default() };
        let moved = [
            ("CLAUDE_CONFIG_DIR", "/data/cc"),
            ("CODEX_HOME", "/data/cx"),
            ("CURSOR_DATA_DIR", "/data/cu"),
            ("OPENCODE_DB", "/data/oc/opencode.db"),
            ("XDG_DATA_HOME", "/data/share"),
        ];
        let moved = moved.map(|(name, dir)| (name, PathBuf::from(dir))).into();
        let moved = UserPlaces { moved, ..usual.clone() };
        let first = |source: CaptureSource, places| source.roots(places).swap_remove(0).dir;
        for (source, here, there) in [
            (CaptureSource::ClaudeCode, "/home/mara/.claude/projects", "/data/cc/projects"),
            (CaptureSource::Codex, "/home/mara/.codex/sessions", "/data/cx/sessions"),
            (CaptureSource::Gemini, "/home/mara/.gemini/tmp", "/home/mara/.gemini/tmp"),
            (CaptureSource::Opencode, "/home/mara/.local/share/opencode", "/data/oc"),
            (CaptureSource::Goose, "/home/mara/.local/share/goose/sessions", "/data/share/goose/sessions"),
            (CaptureSource::Cursor, "/home/mara/.cursor/projects", "/data/cu/projects"),
            (CaptureSource::Pi, "/home/mara/.pi/agent/sessions", "/home/mara/.pi/agent/sessions"),
        ] {
            assert_eq!((first(source, &usual), first(source, &moved)), (here.into(), there.into()), "{source:?}");
        }
    }

    #[test]
    fn only_conversations_are_read() {
        use CaptureSource as Source;
        use FileKind::{CompressedLines, Database, Document, Lines, MessageFiles};
        for (source, path, kind) in [
            (Source::ClaudeCode, "/p/-home-mara/7d444840.jsonl", Some(Lines)),
            (Source::ClaudeCode, "/p/-home-mara/7d444840/subagents/agent-0123.jsonl", Some(Lines)),
            (Source::ClaudeCode, "/p/-home-mara/7d444840/subagents/agent-0123.meta.json", None),
            (Source::ClaudeCode, "/p/-home-mara/7d444840/tool-results/x.jsonl", None),
            (Source::Codex, "/s/2026/11/26/rollout-2026-11-26T10-00-00-0197.jsonl", Some(Lines)),
            (Source::Codex, "/s/2026/11/26/rollout-2026-11-26T10-00-00-0197.jsonl.zst", Some(CompressedLines)),
            (Source::Codex, "/s/2026/11/26/rollout-2026-11-26T10-00-00-0197.json.zst", None),
            (Source::Codex, "/s/history.jsonl", None),
            (Source::Gemini, "/t/shop/chats/session-1.jsonl", Some(Lines)),
            (Source::Gemini, "/t/shop/chats/session-1.json", Some(Document)),
            (Source::Gemini, "/t/shop/logs.json", None),
            (Source::Opencode, "/o/opencode.db", Some(Database)),
            (Source::Opencode, "/o/auth.json", None),
            (Source::Opencode, "/o/storage/session/7d44/ses_1.json", Some(MessageFiles)),
            (Source::Opencode, "/o/project/srv-shop/storage/session/info/ses_1.json", Some(MessageFiles)),
            (Source::Opencode, "/o/storage/session_diff/ses_1.json", None),
            (Source::Opencode, "/o/storage/message/ses_1/msg_1.json", None),
            (Source::Copilot, "/s/session-state/1/events.jsonl", Some(Lines)),
            (Source::Copilot, "/s/session-state/1/data.jsonl", None),
            (Source::Goose, "/g/sessions/20250614_101500.jsonl", Some(Lines)),
            (Source::Goose, "/g/sessions/sessions.db", Some(Database)),
            (Source::OpenClaw, "/a/main/sessions/1.jsonl", Some(Lines)),
            (Source::OpenClaw, "/a/main/sessions/1.trajectory.jsonl", None),
            (Source::OpenClaw, "/a/main/agent/openclaw-agent.sqlite", Some(Database)),
            (Source::Hermes, "/h/state.db", Some(Database)),
            (Source::Cursor, "/c/projects/srv-shop/agent-transcripts/7d44/7d44.jsonl", Some(Lines)),
            (Source::Cursor, "/c/projects/srv-shop/agent-transcripts/7d44/subagents/8e55.jsonl", Some(Lines)),
            (Source::Cursor, "/c/projects/srv-shop/agent-transcripts/7d44/hooks.jsonl", None),
            (Source::Cursor, "/c/projects/srv-shop/terminals/1.jsonl", None),
        ] {
            assert_eq!(source.kind(Path::new(path)), kind, "{path}");
        }
        assert!(Source::ClaudeCode.is_subagent(Path::new("/p/x/agent-0123.jsonl")));
        assert!(Source::Gemini.is_subagent(Path::new("/t/shop/chats/7d444840/1.jsonl")));
        assert!(!Source::Gemini.is_subagent(Path::new("/t/shop/chats/1.jsonl")));
        assert!(Source::Cursor.is_subagent(Path::new("/p/shop/agent-transcripts/7d44/subagents/8e55.jsonl")));
        assert!(!Source::Cursor.is_subagent(Path::new("/p/shop/agent-transcripts/7d44/7d44.jsonl")));
    }

    #[test]
    fn a_wrong_name_is_refused_with_the_right_one() {
        let failure = CaptureSource::from_names(&["claude-cod".into()]).unwrap_err();
        assert!(failure.to_string().contains("claude-cod"), "{failure}");
        assert_eq!(CaptureSource::from_names(&[]).unwrap().len(), CaptureSource::ALL.len());
    }

    #[test]
    fn names_are_those_of_the_stored_setting() {
        for source in CaptureSource::ALL {
            assert_eq!(serde_json::to_value(source).unwrap(), source.name());
        }
    }
}
