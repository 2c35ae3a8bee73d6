//! Conversations of Gemini CLI: `tmp/<name of the project>/chats/session-<time>-<start of the id>.jsonl`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

/// The file that names the directory of a project.
const ROOT_FILE: &str = ".project_root";

/// Returns the path of a new conversation.
pub(super) fn path_of(home: &Path, directory: &Path, id: &str, now: Timestamp) -> PathBuf {
    let time = now.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H-%M").to_string();
    chats_dir(home, directory).join(format!("session-{time}-{}.jsonl", short_id(id)))
}

/// Finds the file of the conversation with this id. The program tells them apart by the start of the id.
pub(super) fn find(home: &Path, directory: &Path, id: &str) -> io::Result<Option<PathBuf>> {
    let entries = match fs::read_dir(chats_dir(home, directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(short_id(id)) && path.is_file() {
            found.push(path);
        }
    }
    // Behind a resumed conversation the program leaves a short file with the same id.
    found.sort_by_key(|path| std::cmp::Reverse(path.metadata().map_or(0, |about| about.len())));
    Ok(found.into_iter().next())
}

/// Records the directory of the project, as the program does.
pub(super) fn record_project(home: &Path, directory: &Path) -> io::Result<()> {
    let path = project_dir(home, directory).join(ROOT_FILE);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => file.write_all(directory.as_os_str().as_encoded_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns whether the messages of `existing` contain the last one of `exported`.
pub(super) fn continues(existing: &Path, exported: &Path) -> io::Result<bool> {
    let Some(last) = message_ids(exported)?.pop() else { return Ok(false) };
    Ok(message_ids(existing)?.contains(&last))
}

/// Returns the ids of the messages that are left after all changes in the file.
fn message_ids(path: &Path) -> io::Result<Vec<String>> {
    let (mut ids, mut bytes) = (Vec::new(), Vec::new());
    let mut file = BufReader::new(File::open(path)?);
    while file.read_until(b'\n', &mut bytes)? > 0 {
        let line: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        bytes.clear();
        let id = |value: &Value| value["id"].as_str().map(String::from);
        if let Some(messages) = line["$set"]["messages"].as_array() {
            ids = messages.iter().filter_map(id).collect();
        } else if let Some(to) = line["$rewindTo"].as_str() {
            ids.truncate(ids.iter().position(|id| id == to).unwrap_or(0));
        } else if let Some(id) = id(&line).filter(|id| !ids.contains(id)) {
            ids.push(id);
        }
    }
    Ok(ids)
}

fn chats_dir(home: &Path, directory: &Path) -> PathBuf {
    project_dir(home, directory).join("chats")
}

/// Returns the directory of a project: the one that the program recorded, or the first that no other project has.
fn project_dir(home: &Path, directory: &Path) -> PathBuf {
    let recorded = fs::read(home.join("projects.json")).ok();
    let recorded = recorded.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let directory = directory.to_string_lossy();
    let recorded = recorded.as_ref().and_then(|all| all["projects"][&*directory].as_str());
    let all = home.join("tmp");
    if let Some(name) = recorded.filter(|name| !name.is_empty() && !name.contains('/') && !name.starts_with('.')) {
        return all.join(name);
    }
    let name = project_name(&directory);
    let is_free = |dir: &PathBuf| match fs::read_to_string(dir.join(ROOT_FILE)) {
        Ok(of) => of.trim() == directory,
        Err(_) => true,
    };
    let numbered = (1..1000).map(|number| all.join(format!("{name}-{number}")));
    let first = std::iter::once(all.join(&name)).chain(numbered).find(is_free);
    first.unwrap_or_else(|| all.join(&name))
}

/// Returns the name of a project: the last part of its directory in lower case, other characters as hyphens.
fn project_name(directory: &str) -> String {
    let last = directory.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_lowercase();
    let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if plain.is_empty() { "project".to_owned() } else { plain }
}

fn short_id(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "22222222-0000-4000-8000-000000000002";

    #[test]
    fn a_project_has_the_directory_that_the_program_uses() -> io::Result<()> {
        let home = tempfile::tempdir()?;
        let home = home.path();
        let dir = Path::new("/srv/Beta.x_y");
        assert_eq!(chats_dir(home, dir), home.join("tmp/beta-x-y/chats"));
        fs::create_dir_all(chats_dir(home, dir))?;
        record_project(home, dir)?;
        record_project(home, dir)?;
        assert_eq!(chats_dir(home, dir), home.join("tmp/beta-x-y/chats"));
        assert_eq!(chats_dir(home, Path::new("/other/beta.x_y")), home.join("tmp/beta-x-y-1/chats"));
        fs::write(home.join("projects.json"), r#"{"projects":{"/other/beta.x_y":"mine"}}"#)?;
        assert_eq!(chats_dir(home, Path::new("/other/beta.x_y")), home.join("tmp/mine/chats"));
        let path = path_of(home, dir, ID, Timestamp::UNIX_EPOCH);
        assert_eq!(find(home, dir, ID)?, None);
        fs::write(&path, "long")?;
        fs::write(chats_dir(home, dir).join("session-2-22222222.jsonl"), "")?;
        assert_eq!(find(home, dir, ID)?, Some(path));
        Ok(())
    }

    #[test]
    fn a_file_is_continued_while_it_has_the_last_message() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, format!("{{\"sessionId\":\"x\"}}\n{text}")).map(|()| path)
        };
        let (a, b, c) = ("{\"id\":\"a\"}\n", "{\"id\":\"b\"}\n", "{\"id\":\"c\"}\n");
        let ours = write("ours", &format!("{a}{b}"))?;
        let again = "{\"$set\":{\"messages\":[{\"id\":\"a\"},{\"id\":\"b\"}]}}\n";
        for text in [format!("{a}{b}"), format!("{a}{b}{c}"), format!("{a}{b}{again}{c}")] {
            assert!(continues(&write("theirs", &text)?, &ours)?, "{text}");
        }
        for text in [
            a.to_owned(),
            format!("{a}{b}{{\"$rewindTo\":\"b\"}}\n"),
            format!("{a}{b}{{\"$set\":{{\"messages\":[]}}}}\n"),
        ] {
            assert!(!continues(&write("theirs", &text)?, &ours)?, "{text}");
        }
        Ok(())
    }
}
