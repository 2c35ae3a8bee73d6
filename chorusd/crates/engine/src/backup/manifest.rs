//! The list of everything in a backup, as JSON lines: a header, one line for each entry, and a last line with the
//! SHA-256 of all lines before it, which reveals a manifest that was cut off or changed.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use chorus_base::hex;
use chorus_store::session_form::parse_file_name;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::SCHEMA;

/// Limit of a line in bytes. A path has at most 4 KiB, of which each byte may be escaped.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// The list of everything in a backup.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub created_at: Timestamp,
    /// The version of Chorus that wrote it.
    pub chorus: String,
    /// The id of the home; `None` in backups of older versions.
    pub home: Option<Uuid>,
    /// Sorted by path, so that a directory comes before its contents.
    pub entries: Vec<ManifestEntry>,
}

/// A file, directory or symbolic link of the home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// Relative to the home, encoded by [`percent_encode`].
    pub path: String,
    pub kind: EntryKind,
    /// Permission bits.
    pub mode: u32,
    /// Size in bytes; 0 unless it is a file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub size: u64,
    /// 64 hex digits; empty unless it is a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Seconds and nanoseconds of a file's last modification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtime: Option<(i64, u32)>,
    /// Target of a link, encoded by [`percent_encode`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Device, inode, size and times of a file. As long as the stamp is the same, the file in the home has not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    File,
    Dir,
    Link,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize, Deserialize)]
struct Header {
    chorus_backup: u32,
    chorus: String,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    home: Option<Uuid>,
}

#[derive(Serialize, Deserialize)]
struct Trailer {
    entries: u64,
    manifest_sha256: String,
}

impl Manifest {
    #[must_use]
    pub fn new(created_at: Timestamp, home: Option<Uuid>, entries: Vec<ManifestEntry>) -> Self {
        Self { created_at, chorus: env!("CARGO_PKG_VERSION").to_owned(), home, entries }
    }

    /// Returns the number of files and their total size in bytes.
    #[must_use]
    pub fn file_totals(&self) -> (u64, u64) {
        let files = self.entries.iter().filter(|entry| entry.kind == EntryKind::File);
        files.fold((0, 0), |(files, bytes), entry| (files + 1, bytes + entry.size))
    }

    /// Returns the number of agents and of their sessions.
    #[must_use]
    pub fn agent_totals(&self) -> (u64, u64) {
        let mut found = (0, 0);
        for entry in self.entries.iter().filter(|entry| entry.kind == EntryKind::File) {
            match entry.path.split('/').collect::<Vec<_>>()[..] {
                ["agents", _, "agent.json"] => found.0 += 1,
                ["agents", _, "sessions", name] if parse_file_name(name).is_some() => found.1 += 1,
                _ => {}
            }
        }
        found
    }

    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut hash = Sha256::new();
        let mut line = Vec::new();
        let mut put = |line: &mut Vec<u8>| {
            line.push(b'\n');
            hash.update(&line[..]);
            let written = out.write_all(line);
            line.clear();
            written
        };
        let (chorus, created_at, home) = (self.chorus.clone(), self.created_at, self.home);
        let header = Header { chorus_backup: SCHEMA, chorus, created_at, home };
        serde_json::to_writer(&mut line, &header)?;
        put(&mut line)?;
        for entry in &self.entries {
            serde_json::to_writer(&mut line, entry)?;
            put(&mut line)?;
        }
        let end = Trailer { entries: self.entries.len() as u64, manifest_sha256: hex(&hash.finalize()) };
        serde_json::to_writer(&mut *out, &end)?;
        out.write_all(b"\n")
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// The reason why it cannot be used, which continues a sentence that begins with "the manifest".
    pub fn read(source: &mut impl BufRead) -> Result<Self, String> {
        let mut hash = Sha256::new();
        let mut lines = LineReader { source, line: Vec::new() };
        let header = lines.next()?.ok_or("is empty")?;
        hash.update(header);
        let header: Header = serde_json::from_slice(header).map_err(|e| format!("has no header: {e}"))?;
        if header.chorus_backup > SCHEMA {
            let schema = header.chorus_backup;
            return Err(format!("was created by a newer version (schema {schema}; this version supports {SCHEMA})"));
        }
        let mut entries = Vec::<ManifestEntry>::new();
        while let Some(line) = lines.next()? {
            if let Ok(end) = serde_json::from_slice::<Trailer>(line) {
                let whole = end.entries == entries.len() as u64 && end.manifest_sha256 == hex(&hash.finalize());
                if !whole || lines.next()?.is_some() {
                    return Err("was changed".into());
                }
                let Header { chorus, created_at, home, .. } = header;
                return Ok(Self { created_at, chorus, home, entries });
            }
            hash.update(line);
            let entry: ManifestEntry = serde_json::from_slice(line).map_err(|e| format!("was changed: {e}"))?;
            if entries.last().is_some_and(|last| last.path >= entry.path) {
                return Err(format!("was changed: {} is out of order", entry.path));
            }
            entries.push(entry);
        }
        Err("was cut off".into())
    }
}

struct LineReader<'a, R> {
    source: &'a mut R,
    line: Vec<u8>,
}

impl<R: BufRead> LineReader<'_, R> {
    fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.line.clear();
        let read = io::Read::take(&mut *self.source, MAX_LINE_BYTES).read_until(b'\n', &mut self.line);
        match read.map_err(|e| format!("cannot be read: {e}"))? {
            0 => Ok(None),
            _ if self.line.ends_with(b"\n") => Ok(Some(&self.line)),
            _ => Err("was cut off".into()),
        }
    }
}

impl ManifestEntry {
    /// Returns the path below a home, or an error if it leads anywhere else.
    pub fn path_in_home(&self) -> Result<PathBuf, String> {
        let path = PathBuf::from(percent_decode(&self.path));
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let plain = plain && !path.as_os_str().is_empty() && !path.as_os_str().as_bytes().contains(&0);
        if plain { Ok(path) } else { Err(format!("{:?} is not a path in a home", self.path)) }
    }
}

/// Encodes a path as text: bytes that are not UTF-8, and `%`, become `%XX`.
#[must_use]
pub(super) fn percent_encode(name: &OsStr) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.as_bytes().utf8_chunks() {
        for part in chunk.valid().split_inclusive('%') {
            match part.strip_suffix('%') {
                Some(before) => {
                    text.push_str(before);
                    text.push_str("%25");
                }
                None => text.push_str(part),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
    }
    text
}

/// Reverses [`percent_encode`].
#[must_use]
pub(super) fn percent_decode(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = (*first == b'%').then(|| behind.get(..2)).flatten();
        match code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    OsString::from_vec(bytes)
}

/// Returns a path in the form that a manifest has.
#[must_use]
pub(super) fn manifest_path(path: &Path) -> String {
    percent_encode(path.as_os_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str) -> ManifestEntry {
        let file = (EntryKind::File, 0o600, "ab".repeat(32));
        ManifestEntry {
            path: path.into(),
            kind: file.0,
            mode: file.1,
            size: 3,
            sha256: file.2,
            mtime: Some((1, 2)),
            target: None,
            stamp: None,
        }
    }

    #[test]
    fn any_name_comes_back() {
        for bytes in [&b"plain.txt"[..], b"100%", b"%41", b"\xff\xfe/x%", "\u{e4}\u{f6}".as_bytes(), b"a\nb"] {
            let name = OsString::from_vec(bytes.to_vec());
            assert_eq!(percent_decode(&percent_encode(&name)), name);
        }
    }

    #[test]
    fn a_manifest_that_was_changed_or_cut_off_is_refused() {
        let manifest = Manifest::new(
            Timestamp::UNIX_EPOCH,
            Some(Uuid::nil()),
            vec![entry("agents/a/agent.json"), entry("db/live.db")],
        );
        let mut bytes = Vec::new();
        manifest.write(&mut bytes).expect("written");
        let read = Manifest::read(&mut &bytes[..]).expect("read");
        assert_eq!((read.entries, read.created_at), (manifest.entries.clone(), manifest.created_at));
        assert_eq!(read.home, manifest.home);
        assert_eq!((manifest.agent_totals(), manifest.file_totals()), ((1, 0), (2, 6)));
        for end in 0..bytes.len() - 1 {
            assert!(Manifest::read(&mut &bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() - 1 {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Manifest::read(&mut &changed[..]).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn no_path_leads_out_of_a_home() {
        assert!(entry("agents/a/x").path_in_home().is_ok());
        for bad in ["", "/etc/passwd", "../x", "agents/../../x", "agents/%2E%2E/%2e%2e/x", "a%00b", "./x"] {
            assert!(entry(bad).path_in_home().is_err(), "{bad:?}");
        }
    }
}
