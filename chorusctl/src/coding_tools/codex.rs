//! Rollouts of Codex: `sessions/<year>/<month>/<day>/rollout-<time>-<id>.jsonl`.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::ExistingFile;

/// Starts of messages in which the program describes its own environment and instructions.
const INSTRUCTIONS: [&str; 3] = ["# AGENTS.md instructions", "<environment_context>", "<user_instructions>"];

/// Returns the path of a new conversation.
pub(super) fn path_of(home: &Path, id: &str, now: Timestamp) -> PathBuf {
    let now = now.to_zoned(TimeZone::system());
    home.join("sessions").join(now.strftime(&format!("%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S-{id}.jsonl")).to_string())
}

/// Finds the file of the conversation with this id.
pub(super) fn find(home: &Path, id: &str) -> io::Result<Option<ExistingFile>> {
    let mut found = Vec::new();
    collect_files(&home.join("sessions"), 4, id, &mut found)?;
    collect_files(&home.join("archived_sessions"), 1, id, &mut found)?;
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(match &found[..] {
        [] => None,
        [one] if one.starts_with(home.join("archived_sessions")) => Some(ExistingFile::Unusable),
        [one] if name(one).ends_with(&format!("-{id}.jsonl")) => Some(ExistingFile::Readable(one.clone())),
        [one] if name(one).ends_with(&format!("-{id}.jsonl.zst")) => Some(ExistingFile::Compressed(one.clone())),
        // Several parts of a conversation that was rewound.
        _ => Some(ExistingFile::Unusable),
    })
}

/// Adds the rollouts with this id below `dir`, at most `depth` directories deep.
fn collect_files(dir: &Path, depth: u32, id: &str, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if depth > 1 {
                collect_files(&entry.path(), depth - 1, id, found)?;
            }
        } else if entry.file_name().to_string_lossy().contains(id) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// Gives the conversation a title.
pub(super) fn append_title(home: &Path, id: &str, title: &str, now: Timestamp) -> io::Result<()> {
    let line = json!({"id": id, "thread_name": title, "updated_at": now.to_string()});
    let path = home.join("session_index.jsonl");
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Returns whether `existing` begins with the items of `exported`, and nothing was undone in it.
pub(super) fn continues(existing: &Path, exported: &Path) -> io::Result<bool> {
    let (mut theirs, mut ours) = (ItemReader::open(existing)?, ItemReader::open(exported)?);
    let mut has_items = false;
    while let Some(item) = ours.next()? {
        has_items = true;
        if theirs.next()? != Some(item) {
            return Ok(false);
        }
    }
    while theirs.next()?.is_some() {}
    Ok(has_items && !theirs.was_rewound)
}

/// Reads the hashes of the items that both the program and an export write.
struct ItemReader {
    file: BufReader<File>,
    bytes: Vec<u8>,
    was_rewound: bool,
}

impl ItemReader {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufReader::new(File::open(path)?), bytes: Vec::new(), was_rewound: false })
    }

    fn next(&mut self) -> io::Result<Option<u64>> {
        loop {
            self.bytes.clear();
            if self.file.read_until(b'\n', &mut self.bytes)? == 0 {
                return Ok(None);
            }
            let Ok(line) = serde_json::from_slice::<Value>(&self.bytes) else { continue };
            let payload = &line["payload"];
            self.was_rewound |= payload["type"] == "thread_rolled_back" || !payload["history_base"].is_null();
            let item = match line["type"].as_str() {
                Some("response_item") => item_text(payload),
                Some("compacted") => Some(format!("compacted {}", payload["message"])),
                _ => None,
            };
            if let Some(item) = item {
                let mut hasher = DefaultHasher::new();
                item.hash(&mut hasher);
                return Ok(Some(hasher.finish()));
            }
        }
    }
}

/// Returns what an item says, `None` for those that an export leaves out.
fn item_text(item: &Value) -> Option<String> {
    match item["type"].as_str()? {
        "message" => {
            let role = item["role"].as_str()?;
            let parts = item["content"].as_array()?.iter();
            let text = parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
            let is_instruction = INSTRUCTIONS.iter().any(|start| text.trim_start().starts_with(start));
            let is_said = matches!(role, "user" | "assistant") && !text.trim().is_empty() && !is_instruction;
            is_said.then(|| format!("{role} {text}"))
        }
        "function_call" => Some(format!("call {} {} {}", item["call_id"], item["name"], item["arguments"])),
        "function_call_output" => Some(format!("output {} {}", item["call_id"], item["output"])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "019c0000-0000-7000-8000-000000000000";

    #[test]
    fn a_conversation_is_found_wherever_it_lies() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let home = home.path();
        assert_eq!(find(home, ID)?, None);
        let path = path_of(home, ID, "2026-03-01T12:00:00Z".parse().unwrap_or_default());
        let dir = path.parent().unwrap_or(home);
        fs::create_dir_all(dir)?;
        fs::write(&path, "")?;
        assert!(path.to_string_lossy().contains("/sessions/2026/0"), "{}", path.display());
        assert_eq!(find(home, ID)?, Some(ExistingFile::Readable(path.clone())));
        let segment = dir.join(format!("rollout-x-{ID}_019c0000-0000-7000-8000-000000000001.jsonl"));
        fs::write(&segment, "")?;
        assert_eq!(find(home, ID)?, Some(ExistingFile::Unusable));
        fs::remove_file(&segment)?;
        let compressed = path.with_extension("jsonl.zst");
        fs::rename(&path, &compressed)?;
        assert_eq!(find(home, ID)?, Some(ExistingFile::Compressed(compressed.clone())));
        fs::create_dir_all(home.join("archived_sessions"))?;
        fs::rename(&compressed, home.join(format!("archived_sessions/rollout-x-{ID}.jsonl")))?;
        assert_eq!(find(home, ID)?, Some(ExistingFile::Unusable));
        Ok(())
    }

    #[test]
    fn a_file_is_continued_if_it_begins_the_same() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let said = |text: &str| json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}});
        let write = |name: &str, lines: &[Value]| {
            let path = dir.path().join(name);
            fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).map(|()| path)
        };
        let ours = write("ours", &[said("a"), said("b")])?;
        let longer = write("longer", &[said("<environment_context>x"), said("a"), said("b"), said("c")])?;
        let other = write("other", &[said("a"), said("x"), said("b")])?;
        let shorter = write("shorter", &[said("a")])?;
        let undone = json!({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}});
        let rewound = write("rewound", &[said("a"), said("b"), undone])?;
        assert!(continues(&ours, &ours)? && continues(&longer, &ours)?);
        for differs in [other, shorter, rewound] {
            assert!(!continues(&differs, &ours)?, "{}", differs.display());
        }
        Ok(())
    }
}
