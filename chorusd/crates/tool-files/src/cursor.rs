//! Cursor: a transcript of its agent is `projects/<project>/agent-transcripts/<id>/<id>.jsonl`, in earlier versions without the directory
//! `<id>`. The project is in `.workspace-trusted` two directories above, and with the title in `chats/<hash>/<id>/meta.json`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::bounded_read::{MAX_BYTES, read_text};
use crate::conversation_info::ConversationInfo;

const TRANSCRIPTS: &str = "agent-transcripts";

const SUBAGENTS: &str = "subagents";

const CHATS: &str = "chats";

const META: &str = "meta.json";

const TRUSTED: &str = ".workspace-trusted";

/// The title of a conversation that has no other yet.
const NO_TITLE: &str = "New Agent";

/// The limit on the directories that are listed to find a project by its name.
const MAX_LISTED: usize = 64;

/// The limit on the entries of a directory that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The conversation whose transcript lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorTranscript<'a> {
    pub id: &'a str,
    /// The conversation that started this one, which is that of a subagent.
    pub parent: Option<&'a str>,
    /// The directory of the project's files.
    project_dir: &'a Path,
}

impl<'a> CursorTranscript<'a> {
    /// Tells the conversation from a path; `None` if it is not that of a transcript.
    #[must_use]
    pub fn from_path(path: &'a Path) -> Option<Self> {
        let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
        let dir = path.parent()?;
        let above = dir.parent();
        if is_named(dir, TRANSCRIPTS) {
            return Some(Self { id, parent: None, project_dir: above? });
        }
        if is_named(dir, id) && is_named(above?, TRANSCRIPTS) {
            return Some(Self { id, parent: None, project_dir: above?.parent()? });
        }
        let transcripts = above?.parent()?;
        let is_subagent = is_named(dir, SUBAGENTS) && is_named(transcripts, TRANSCRIPTS);
        let parent = above?.file_name()?.to_str();
        is_subagent.then_some(Self { id, parent, project_dir: transcripts.parent()? })
    }
}

#[derive(Default, Deserialize)]
struct Meta {
    title: Option<String>,
    cwd: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Trusted {
    workspace_path: Option<String>,
}

pub(crate) fn read_info(transcript: CursorTranscript<'_>) -> ConversationInfo {
    let Meta { title, cwd } = read_meta(transcript).unwrap_or_default();
    let trusted = || {
        let text = read_text(&transcript.project_dir.join(TRUSTED), MAX_BYTES)?;
        serde_json::from_str::<Trusted>(&text).ok()?.workspace_path
    };
    let named = || directory_of(transcript.project_dir.file_name()?.to_str()?);
    let project = cwd.or_else(trusted).or_else(named);
    let title = title.filter(|title| title != NO_TITLE);
    ConversationInfo { title: ConversationInfo::with_title(title).title, ..ConversationInfo::with_project(project) }
}

fn read_meta(transcript: CursorTranscript<'_>) -> Option<Meta> {
    let chats = transcript.project_dir.parent()?.with_file_name(CHATS);
    let of_projects = fs::read_dir(chats).ok()?.flatten().take(MAX_ENTRIES);
    let texts = of_projects.filter_map(|dir| read_text(&dir.path().join(transcript.id).join(META), MAX_BYTES));
    texts.filter_map(|text| serde_json::from_str(&text).ok()).next()
}

/// Finds the directory after which Cursor named that of a project. The name does not tell directories such as `a-b` and `a/b` apart: if
/// both exist, neither is returned.
fn directory_of(name: &str) -> Option<String> {
    let (mut found, mut listed) = (None, 0);
    let mut above = vec![PathBuf::from("/")];
    while let Some(dir) = above.pop() {
        listed += 1;
        if listed > MAX_LISTED {
            return None;
        }
        for entry in fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_ENTRIES) {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            let start = name_of_project(&path);
            if start == name {
                if found.is_some() {
                    return None;
                }
                found = Some(path.to_str()?.to_owned());
            } else if !start.is_empty() && name.strip_prefix(&start).is_some_and(|rest| rest.starts_with('-')) {
                above.push(path);
            }
        }
    }
    found
}

/// Returns the name of the directory of a project's files: its path, with a dash for everything but letters and digits.
fn name_of_project(path: &Path) -> String {
    let path = path.to_string_lossy();
    path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

fn is_named(path: &Path, name: &str) -> bool {
    path.file_name() == Some(OsStr::new(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_conversation() {
        let told = |path: &'static str| {
            let transcript = CursorTranscript::from_path(Path::new(path))?;
            Some((transcript.id, transcript.parent, transcript.project_dir))
        };
        let project = Path::new("/c/projects/srv-shop");
        for (path, due) in [
            ("/c/projects/srv-shop/agent-transcripts/7d44/7d44.jsonl", Some(("7d44", None, project))),
            ("/c/projects/srv-shop/agent-transcripts/7d44.jsonl", Some(("7d44", None, project))),
            ("/c/projects/srv-shop/agent-transcripts/7d44/subagents/8e55.jsonl", Some(("8e55", Some("7d44"), project))),
            ("/c/projects/srv-shop/agent-transcripts/7d44/hooks.jsonl", None),
            ("/c/projects/srv-shop/agent-transcripts/7d44/7d44.json", None),
            ("/c/projects/srv-shop/subagents/8e55.jsonl", None),
            ("7d44.jsonl", None),
            ("", None),
        ] {
            assert_eq!(told(path), due, "{path}");
        }
    }

    #[test]
    fn a_directory_is_found_by_the_name_that_it_gave() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for made in ["my.shop/src", "one-two", "one/two"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        fs::write(root.join("file"), "").unwrap();
        let found = |below: &str| directory_of(&format!("{}-{below}", name_of_project(&root)));
        let path = |below: &str| Some(root.join(below).to_str().unwrap().to_owned());
        assert_eq!(found("my-shop"), path("my.shop"));
        assert_eq!(found("my-shop-src"), path("my.shop/src"));
        assert_eq!((found("one-two"), found("file"), found("gone"), directory_of("")), (None, None, None, None));
    }
}
