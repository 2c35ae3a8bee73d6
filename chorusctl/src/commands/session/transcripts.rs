//! Finds the transcripts of other programs on this machine.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use chorus_tool_files::{CursorTranscript, is_opencode_part, is_opencode_session};
use jiff::Timestamp;

use super::{databases, task_files};
use crate::ui::units::pluralize;

/// The limit on nested directories.
const MAX_DEPTH: usize = 8;

/// How many directories below one that a link leads to are searched.
const MAX_LINKED_DEPTH: usize = 3;

/// The bytes of a transcript that are searched for its first time.
const HEAD_BYTES: u64 = 64 * 1024;

/// The databases in which programs keep conversations.
const DATABASES: [&str; 5] = ["opencode.db", "openclaw-agent.sqlite", "sessions.db", "state.db", "state.vscdb"];

/// A program whose transcripts are looked for.
struct Program {
    name: &'static str,
    /// Directories below the user's home.
    dirs: &'static [&'static str],
    /// Variables that name another directory, with the directory below it.
    redirections: &'static [(&'static str, &'static str)],
    /// Returns whether a file in one of the directories is a transcript.
    is_transcript: fn(&Path) -> bool,
}

const PROGRAMS: [Program; 15] = [
    Program {
        name: "Claude Code",
        dirs: &[".claude/projects", ".config/claude/projects"],
        redirections: &[("CLAUDE_CONFIG_DIR", "projects")],
        is_transcript: is_jsonl,
    },
    Program {
        name: "Codex",
        dirs: &[".codex/sessions", ".codex/archived_sessions"],
        redirections: &[("CODEX_HOME", "sessions"), ("CODEX_HOME", "archived_sessions")],
        is_transcript: |path| is_jsonl(path) || is_compressed_rollout(path),
    },
    Program {
        name: "Gemini CLI",
        dirs: &[".gemini/tmp"],
        redirections: &[("GEMINI_CLI_HOME", ".gemini/tmp")],
        is_transcript: is_gemini_chat,
    },
    Program {
        name: "opencode",
        dirs: &[".local/share/opencode"],
        redirections: &[("XDG_DATA_HOME", "opencode")],
        is_transcript: |path| is_named(path, "opencode.db") || is_opencode_session(path),
    },
    Program {
        name: "GitHub Copilot CLI",
        dirs: &[".copilot/session-state"],
        redirections: &[("COPILOT_HOME", "session-state")],
        is_transcript: is_copilot_session,
    },
    Program {
        name: "pi",
        dirs: &[".pi/agent/sessions"],
        redirections: &[("PI_CODING_AGENT_DIR", "sessions"), ("PI_CODING_AGENT_SESSION_DIR", "")],
        is_transcript: is_jsonl,
    },
    Program {
        name: "OpenClaw",
        dirs: &[".openclaw/agents", ".clawdbot/agents", ".moltbot/agents"],
        redirections: &[("OPENCLAW_STATE_DIR", "agents")],
        is_transcript: is_openclaw_session,
    },
    Program {
        name: "Hermes",
        dirs: &[".hermes"],
        redirections: &[("HERMES_HOME", "")],
        is_transcript: |path| is_named(path, "state.db"),
    },
    Program {
        name: "goose",
        dirs: &[".local/share/goose/sessions", ".config/goose/sessions"],
        redirections: &[("XDG_DATA_HOME", "goose/sessions"), ("GOOSE_PATH_ROOT", "data/sessions")],
        is_transcript: |path| is_jsonl(path) || is_named(path, "sessions.db"),
    },
    Program {
        name: "Cline",
        dirs: &[
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
            ".config/Code - Insiders/User/globalStorage/saoudrizwan.claude-dev/tasks",
            ".config/VSCodium/User/globalStorage/saoudrizwan.claude-dev/tasks",
            ".config/Cursor/User/globalStorage/saoudrizwan.claude-dev/tasks",
            ".config/Windsurf/User/globalStorage/saoudrizwan.claude-dev/tasks",
            ".vscode-server/data/User/globalStorage/saoudrizwan.claude-dev/tasks",
            ".cline/data/sessions",
        ],
        redirections: &[("CLINE_DATA_DIR", "sessions")],
        is_transcript: task_files::is_transcript,
    },
    Program {
        name: "Roo Code",
        dirs: &[
            ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
            ".config/Code - Insiders/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
            ".config/VSCodium/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
            ".config/Cursor/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
            ".config/Windsurf/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
            ".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline/tasks",
        ],
        redirections: &[],
        is_transcript: task_files::is_transcript,
    },
    Program {
        name: "Kilo Code",
        dirs: &[
            ".config/Code/User/globalStorage/kilocode.kilo-code/tasks",
            ".config/Code - Insiders/User/globalStorage/kilocode.kilo-code/tasks",
            ".config/VSCodium/User/globalStorage/kilocode.kilo-code/tasks",
            ".config/Cursor/User/globalStorage/kilocode.kilo-code/tasks",
            ".config/Windsurf/User/globalStorage/kilocode.kilo-code/tasks",
            ".vscode-server/data/User/globalStorage/kilocode.kilo-code/tasks",
        ],
        redirections: &[],
        is_transcript: task_files::is_transcript,
    },
    Program {
        name: "Amp",
        dirs: &[".local/share/amp/threads"],
        redirections: &[("XDG_DATA_HOME", "amp/threads")],
        is_transcript: |path| has_extension(path, "json"),
    },
    Program {
        name: "VS Code",
        dirs: &[
            ".config/Code/User/workspaceStorage",
            ".config/Code/User/globalStorage/emptyWindowChatSessions",
            ".config/Code/User/globalStorage/transferredChatSessions",
            ".config/Code - Insiders/User/workspaceStorage",
            ".config/Code - Insiders/User/globalStorage/emptyWindowChatSessions",
            ".config/Code - Insiders/User/globalStorage/transferredChatSessions",
            ".config/VSCodium/User/workspaceStorage",
            ".config/VSCodium/User/globalStorage/emptyWindowChatSessions",
            ".config/VSCodium/User/globalStorage/transferredChatSessions",
            ".vscode-server/data/User/workspaceStorage",
            ".vscode-server/data/User/globalStorage/emptyWindowChatSessions",
            ".vscode-server/data/User/globalStorage/transferredChatSessions",
        ],
        redirections: &[],
        is_transcript: is_vscode_chat,
    },
    Program {
        name: "Cursor",
        dirs: &[".cursor/projects", ".config/cursor/projects", ".config/Cursor/User/globalStorage"],
        redirections: &[
            ("CURSOR_DATA_DIR", "projects"),
            ("CURSOR_CONFIG_DIR", "projects"),
            ("XDG_CONFIG_HOME", "cursor/projects"),
        ],
        is_transcript: |path| is_named(path, "state.vscdb") || CursorTranscript::from_path(path).is_some(),
    },
];

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn is_named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|found| found == name)
}

fn is_jsonl(path: &Path) -> bool {
    has_extension(path, "jsonl")
}

/// Codex compresses a rollout that it has not written for a while, and decompresses it to write to it again.
fn is_compressed_rollout(path: &Path) -> bool {
    let plain = path.with_extension("");
    has_extension(path, "zst") && is_jsonl(&plain) && !plain.exists()
}

/// Gemini CLI writes a second file with the same id, and without a message, when a chat is resumed. A chat of an older
/// version that was resumed is in a new file beside the old one.
fn is_gemini_chat(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "chats")
        && (is_jsonl(path) || has_extension(path, "json") && !path.with_extension("jsonl").exists())
        && contains(path, "\"gemini\"")
}

/// VS Code writes a file for each chat, even if nothing was asked. A chat that an older version began is in a new file beside
/// the old one.
fn is_vscode_chat(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().to_lowercase());
    parent.is_some_and(|parent| parent.ends_with("chatsessions"))
        && (is_jsonl(path) || has_extension(path, "json") && !path.with_extension("jsonl").exists())
        && contains(path, "\"requestId\"")
}

/// Returns whether a file contains a text. One that is too long to be empty of messages is not read.
fn contains(path: &Path, text: &str) -> bool {
    let is_long = std::fs::metadata(path).is_ok_and(|file| file.len() > HEAD_BYTES);
    is_long || std::fs::read_to_string(path).is_ok_and(|found| found.contains(text))
}

fn is_copilot_session(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name);
    is_named(path, "events.jsonl") || is_jsonl(path) && parent.is_some_and(|parent| parent == "session-state")
}

/// OpenClaw keeps the whole requests to the model beside its sessions.
fn is_openclaw_session(path: &Path) -> bool {
    let parent = path.parent().and_then(Path::file_name);
    let stem = path.file_stem().map(Path::new);
    is_named(path, "openclaw-agent.sqlite")
        || is_jsonl(path)
            && parent.is_some_and(|parent| parent == "sessions")
            && !stem.is_some_and(|stem| has_extension(stem, "trajectory"))
}

/// The transcripts of one program.
#[derive(Debug)]
pub(super) struct Transcripts {
    pub program: &'static str,
    /// The directories that contain them.
    pub dirs: Vec<String>,
    /// Sorted by path.
    pub files: Vec<String>,
}

/// Returns the names of the programs whose transcripts are looked for.
pub(super) fn program_names() -> String {
    let names = PROGRAMS.map(|program| program.name);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

/// Finds the transcripts in the usual directories of the user, and in those that variables of the environment name.
pub(super) fn on_this_machine() -> Vec<Transcripts> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    std::env::home_dir().map(|home| find(&home, &variable)).unwrap_or_default()
}

fn find(home: &Path, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Transcripts> {
    let found = PROGRAMS.iter().map(|program| {
        let mut found = Transcripts { program: program.name, dirs: Vec::new(), files: Vec::new() };
        let usual = program.dirs.iter().map(|dir| (home.join(dir), format!("~/{dir}")));
        let redirected = program.redirections.iter().filter_map(|(name, dir)| {
            let dir = variable(name)?.join(dir);
            let shown = dir.display().to_string();
            Some((dir, shown))
        });
        for (dir, shown) in usual.chain(redirected) {
            let mut files = below(&dir);
            files.retain(|file| (program.is_transcript)(Path::new(file)) && !found.files.contains(file));
            if !files.is_empty() {
                found.files.append(&mut files);
                found.dirs.push(shown);
            }
        }
        found
    });
    found.filter(|found| !found.files.is_empty()).collect()
}

/// Returns the files below `dir` whose extension is that of a transcript, sorted by path.
pub(super) fn below(dir: &Path) -> Vec<String> {
    let (mut files, mut seen) = (Vec::new(), HashSet::new());
    if let Ok(about) = dir.metadata() {
        seen.insert((about.dev(), about.ino()));
    }
    let mut links = Vec::new();
    collect((dir, 0), &mut seen, &mut links, &mut files);
    // What links lead to comes last, each file and directory once, so that a circle ends.
    while let Some((path, depth)) = links.pop() {
        let Ok(about) = path.metadata() else { continue };
        if !seen.insert((about.dev(), about.ino())) {
            continue;
        }
        if about.is_dir() && depth < MAX_DEPTH {
            collect((&path, (depth + 1).max(MAX_DEPTH - MAX_LINKED_DEPTH)), &mut seen, &mut links, &mut files);
        } else if about.is_file() && is_transcript(&path) {
            files.push(path);
        }
    }
    files.sort();
    files.into_iter().filter_map(|path| path.into_os_string().into_string().ok()).collect()
}

/// Adds the transcripts below a directory to `files`, and links to `links`, which are not followed.
fn collect(
    (dir, depth): (&Path, usize),
    seen: &mut HashSet<(u64, u64)>,
    links: &mut Vec<(PathBuf, usize)>,
    files: &mut Vec<PathBuf>,
) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = entry.metadata() else { continue };
        if about.is_symlink() {
            links.push((path, depth));
            continue;
        }
        let is_first = seen.insert((about.dev(), about.ino()));
        if about.is_dir() && depth < MAX_DEPTH {
            if is_first {
                collect((&path, depth + 1), seen, links, files);
            }
        } else if about.is_file() && is_transcript(&path) {
            files.push(path);
        }
    }
}

/// Returns whether a file is the transcript of a subagent of Cursor.
pub(super) fn is_cursor_subagent(file: &str) -> bool {
    CursorTranscript::from_path(Path::new(file)).is_some_and(|transcript| transcript.parent.is_some())
}

/// Leaves out transcripts of Cursor's agent whose conversations are in the database of the editor, which has more of them.
pub(super) fn leave_out_copies(files: &mut Vec<String>) {
    if !files.iter().any(|file| CursorTranscript::from_path(Path::new(file)).is_some()) {
        return;
    }
    let editor = files.iter().filter(|file| is_named(Path::new(file), "state.vscdb"));
    let listed = editor.filter_map(|file| databases::list(file).ok()).flatten();
    let ids: HashSet<String> = listed.map(|conversation| conversation.id).collect();
    let is_copy = |file: &str| {
        let path = Path::new(file);
        CursorTranscript::from_path(path).is_some_and(|transcript| ids.contains(transcript.id))
    };
    files.retain(|file| !is_copy(file));
}

fn is_transcript(path: &Path) -> bool {
    !task_files::is_part(path)
        && !is_opencode_part(path)
        && (["jsonl", "json", "md"].iter().any(|extension| has_extension(path, extension))
            || is_compressed_rollout(path)
            || DATABASES.iter().any(|name| is_named(path, name)))
}

/// Returns when the conversation in a transcript began: the first `"timestamp"` near its beginning, as Claude Code and Codex
/// write it; otherwise when the file was last changed, which copies of a directory often lose.
pub(super) fn began_at(file: &str) -> Option<Timestamp> {
    let mut head = Vec::new();
    let opened = File::open(file).ok()?;
    opened.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let written = head.split("\"timestamp\"").skip(1).find_map(|rest| {
        let value = rest.trim_start_matches([':', ' ']).strip_prefix('"')?;
        value.split('"').next()?.parse().ok()
    });
    written.or_else(|| Timestamp::try_from(std::fs::metadata(file).ok()?.modified().ok()?).ok())
}

impl Transcripts {
    /// Formats `Claude Code: 43 transcripts in ~/.claude/projects, 12 new or changed`; `new` of them are.
    pub(super) fn describe(&self, new: usize) -> String {
        let count = self.files.len();
        let dirs = self.dirs.join(" and ");
        let news = if new == count { String::new() } else { format!(", {new} new or changed") };
        format!("{}: {} in {dirs}{news}", self.program, pluralize(count as u64, "transcript"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcripts_are_found_where_programs_keep_them() {
        let home = tempfile::tempdir().expect("a directory");
        for file in
            [".claude/projects/p/a.jsonl", ".claude/projects/p/note.txt", ".codex/sessions/2026/01/02/rollout-1.jsonl"]
        {
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
            std::fs::write(path, "{}").expect("written");
        }
        let found = find(home.path(), &|_| None);
        let described: Vec<_> = found.iter().map(|found| found.describe(1)).collect();
        assert_eq!(
            described,
            ["Claude Code: 1 transcript in ~/.claude/projects", "Codex: 1 transcript in ~/.codex/sessions"]
        );
        assert_eq!(found[0].describe(0), "Claude Code: 1 transcript in ~/.claude/projects, 0 new or changed");
        assert!(found[0].files[0].ends_with("/p/a.jsonl"), "{found:?}");
        assert_eq!(below(&home.path().join(".claude")).len(), 1);
    }

    #[test]
    fn other_files_of_the_programs_are_left_out() {
        let home = tempfile::tempdir().expect("a directory");
        let files = [
            (".gemini/tmp/shop/chats/session-1.jsonl", true),
            (".gemini/tmp/shop/chats/session-1.json", false),
            (".gemini/tmp/shop/chats/session-2.json", true),
            (".gemini/tmp/shop/chats/stray.jsonl", false),
            (".gemini/tmp/shop/logs.json", false),
            (".copilot/session-state/1/events.jsonl", true),
            (".copilot/session-state/1/files/data.jsonl", false),
            (".pi/agent/sessions/--shop--/1.jsonl", true),
            (".openclaw/agents/main/sessions/1.jsonl", true),
            (".openclaw/agents/main/sessions/1.trajectory.jsonl", false),
            (".openclaw/agents/main/agent/openclaw-agent.sqlite", true),
            (".local/share/opencode/opencode.db", true),
            (".local/share/opencode/other.db", false),
            (".local/share/opencode/storage/session/7d44/ses_1.json", true),
            (".local/share/opencode/storage/message/ses_1/msg_1.json", false),
            (".local/share/opencode/storage/session_diff/ses_1.json", false),
            (".hermes/state.db", true),
            (".local/share/goose/sessions/sessions.db", true),
            (".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/api_conversation_history.json", true),
            (".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1/ui_messages.json", false),
            (".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline/tasks/2/claude_messages.json", true),
            (".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline/tasks/2/history_item.json", false),
            (".cline/data/sessions/1_a/1_a.messages.json", true),
            (".cline/data/sessions/1_a/1_a.json", false),
            (".local/share/amp/threads/T-1.json", true),
            (".config/Code/User/workspaceStorage/1/chatSessions/1.jsonl", true),
            (".config/Code/User/workspaceStorage/1/chatSessions/1.json", false),
            (".config/Code/User/workspaceStorage/1/chatSessions/stray.json", false),
            (".config/Code/User/workspaceStorage/1/state.vscdb", false),
            (".config/Code/User/globalStorage/emptyWindowChatSessions/2.json", true),
            (".config/Cursor/User/globalStorage/state.vscdb", true),
            (".cursor/projects/srv-shop/agent-transcripts/7d44/7d44.jsonl", true),
            (".cursor/projects/srv-shop/agent-transcripts/7d44/subagents/8e55.jsonl", true),
            (".cursor/projects/srv-shop/agent-transcripts/7d44/hooks.jsonl", false),
            (".cursor/projects/srv-shop/mcps/cache.json", false),
            ("elsewhere/sessions/rollout-1.jsonl", true),
        ];
        for (file, _) in files {
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
            let text = if file.contains("stray") { "{}" } else { "{\"type\":\"gemini\",\"requestId\":1}" };
            std::fs::write(path, text).expect("written");
        }
        let redirected = home.path().join("elsewhere");
        let found = find(home.path(), &|name| (name == "CODEX_HOME").then(|| redirected.clone()));
        let mut names: Vec<String> = found.iter().flat_map(|found| found.files.clone()).collect();
        names.sort();
        let due = files.iter().filter(|(_, is_found)| *is_found).map(|(file, _)| home.path().join(file));
        let mut due: Vec<String> = due.map(|path| path.display().to_string()).collect();
        due.sort();
        assert_eq!(names, due);
        assert!(found.iter().any(|found| found.describe(1).contains(&redirected.display().to_string())));
    }

    #[test]
    fn a_conversation_began_at_its_first_time_or_else_when_its_file_was_changed() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("a.jsonl");
        let file = path.to_str().expect("UTF-8");
        std::fs::write(&path, "{\"type\":\"summary\"}\n{\"timestamp\": \"2026-10-28T09:00:00.000Z\"}\n")
            .expect("written");
        assert_eq!(began_at(file), "2026-10-28T09:00:00Z".parse().ok());
        std::fs::write(&path, "{\"timestamp\": \"yesterday\"}").expect("written");
        let changed = std::fs::metadata(&path).and_then(|file| file.modified()).expect("a time");
        assert_eq!(began_at(file), Timestamp::try_from(changed).ok());
        assert_eq!(began_at("/nonexistent/a.jsonl"), None);
    }
}
