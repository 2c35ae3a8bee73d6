//! Transcripts of Claude Code: `projects/<directory>/<id>.jsonl`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use uuid::Uuid;

/// Longest encoded directory, in UTF-16 units. Longer ones are cut, and get a hash.
const MAX_ENCODED_UNITS: usize = 200;

/// Returns the path of a conversation that was held in `directory`.
pub(super) fn path_of(home: &Path, directory: &Path, id: &str) -> PathBuf {
    home.join("projects").join(encode_directory(&directory.to_string_lossy())).join(format!("{id}.jsonl"))
}

/// Encodes a directory as the name of its folder: everything but ASCII letters and digits becomes a hyphen.
fn encode_directory(directory: &str) -> String {
    let units: Vec<u16> = directory.encode_utf16().collect();
    let encode = |unit: &u16| match u8::try_from(*unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    let encoded: String = units.iter().take(MAX_ENCODED_UNITS).map(encode).collect();
    if units.len() <= MAX_ENCODED_UNITS {
        return encoded;
    }
    let hash =
        units.iter().fold(0_i32, |hash, unit| hash.wrapping_shl(5).wrapping_sub(hash).wrapping_add(i32::from(*unit)));
    format!("{encoded}-{}", base_36(hash.unsigned_abs()))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: Option<String>,
    uuid: Option<Uuid>,
    parent_uuid: Option<Uuid>,
    logical_parent_uuid: Option<Uuid>,
    #[serde(default)]
    is_sidechain: bool,
    message: Option<MessageId>,
}

#[derive(Deserialize)]
struct MessageId {
    id: Option<String>,
}

/// Returns whether the active branch of `existing` goes through the last message of `exported`.
pub(super) fn continues(existing: &Path, exported: &Path) -> io::Result<bool> {
    let Some(last) = last_message(exported)? else { return Ok(false) };
    let (mut parents, mut leaf) = (HashMap::new(), None);
    for_each_line(existing, |line| {
        let Some(uuid) = line.uuid else { return };
        parents.insert(uuid, line.parent_uuid.or(line.logical_parent_uuid));
        if !line.is_sidechain && matches!(line.kind.as_deref(), Some("user" | "assistant")) {
            leaf = Some(uuid);
        }
    })?;
    // Each line is left once, so that a loop ends.
    while let Some(uuid) = leaf {
        if uuid == last {
            return Ok(true);
        }
        leaf = parents.remove(&uuid).flatten();
    }
    Ok(false)
}

/// Returns the id of the first line of the last message.
fn last_message(exported: &Path) -> io::Result<Option<Uuid>> {
    let (mut last, mut reply) = (None, None);
    for_each_line(exported, |line| {
        let id = line.message.and_then(|message| message.id);
        if line.uuid.is_some() && (id.is_none() || id != reply) {
            (last, reply) = (line.uuid, id);
        }
    })?;
    Ok(last)
}

/// Calls `take` with each readable line.
fn for_each_line(path: &Path, mut take: impl FnMut(Line)) -> io::Result<()> {
    let (mut file, mut bytes) = (BufReader::new(File::open(path)?), Vec::new());
    while file.read_until(b'\n', &mut bytes)? > 0 {
        if let Ok(line) = serde_json::from_slice(&bytes) {
            take(line);
        }
        bytes.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn directories_are_encoded_as_the_program_does() {
        for (directory, name) in [
            ("/tmp/r1/proj/beta.x_y", "-tmp-r1-proj-beta-x-y"),
            ("/tmp/p/Ünï köde (x)+y@z~1", "-tmp-p--n--k-de--x--y-z-1"),
            ("/a/🦀", "-a---"),
        ] {
            assert_eq!(encode_directory(directory), name);
        }
        let long = encode_directory(&format!("/{}", "ab".repeat(120)));
        assert!(long.starts_with("-abab") && long.len() > 200 && long[..201].ends_with("a-"), "{long}");
    }

    #[test]
    fn a_file_is_continued_only_on_its_active_branch() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let id = |n: u128| Uuid::from_u128(n);
        let line = |n, parent: Option<u128>| serde_json::json!({"type": "user", "uuid": id(n), "parentUuid": parent.map(id), "message": {"role": "user"}});
        let write = |name: &str, lines: &[serde_json::Value]| {
            let path = dir.path().join(name);
            fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).map(|()| path)
        };
        let ours = write("ours", &[line(1, None), line(2, Some(1))])?;
        let longer = write("longer", &[line(1, None), line(2, Some(1)), line(3, Some(2))])?;
        let shorter = write("shorter", &[line(1, None)])?;
        let rewound = write("rewound", &[line(1, None), line(2, Some(1)), line(3, Some(1))])?;
        assert!(continues(&ours, &ours)? && continues(&longer, &ours)?);
        assert!(!continues(&shorter, &ours)? && !continues(&rewound, &ours)?);
        Ok(())
    }
}
