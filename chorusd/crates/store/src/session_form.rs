//! The two forms of a session file: `NAME.json`, or `NAME.json.gz` if it is compressed. If both are there, the plain one counts. After a crash
//! in the middle of the change of one into the other both have the same text; otherwise somebody has put one of them there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_session::SessionInput;
use sha2::{Digest as _, Sha256};

use super::session_files::stamp;

/// The extension of a plain session file.
const PLAIN: &str = ".json";

/// The ending of the name of a compressed one.
const COMPRESSED: &str = ".gz";

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// How often a file is looked for in both forms, because it may change from one into the other.
const MAX_LOOKS: u32 = 4;

/// The form of a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionForm {
    Plain,
    Compressed,
}

/// Returns the session that a file with this name holds, and its form. `None` if it is not a session file, or a temporary one.
#[must_use]
pub fn parse_file_name(name: &str) -> Option<(&str, SessionForm)> {
    if name.starts_with('.') {
        return None;
    }
    match name.strip_suffix(COMPRESSED) {
        Some(plain) => Some((plain.strip_suffix(PLAIN)?, SessionForm::Compressed)),
        None => Some((name.strip_suffix(PLAIN)?, SessionForm::Plain)),
    }
}

/// Returns the path of the compressed form of the plain file `path`.
#[must_use]
pub fn compressed_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(COMPRESSED);
    name.into()
}

/// Returns the path of the other form, if `path` is that of a session file.
fn other_path(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    match parse_file_name(name)?.1 {
        SessionForm::Plain => Some(compressed_path(path)),
        SessionForm::Compressed => Some(path.with_file_name(name.strip_suffix(COMPRESSED)?)),
    }
}

/// Returns the path of the file that a session has: the plain `path`, or the compressed one if only that is there.
#[must_use]
pub fn find(path: PathBuf) -> PathBuf {
    let is_compressed = !path.is_file() && compressed_path(&path).is_file();
    if is_compressed { compressed_path(&path) } else { path }
}

/// Returns true if the session of the plain `path` has a file, in one form or the other.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path.is_file() || compressed_path(path).is_file()
}

/// Returns the stamp of the file that the session of the plain `path` has; `None` without a file.
#[must_use]
pub fn stamp_of(path: &Path) -> Option<String> {
    let metadata = path.metadata().or_else(|_| compressed_path(path).metadata());
    metadata.ok().map(|metadata| stamp(&metadata))
}

/// Opens a session file in the form that it has now.
///
/// # Errors
/// An I/O error.
pub fn open(path: &Path) -> io::Result<SessionInput> {
    let other = other_path(path);
    let mut looks = 0;
    loop {
        let at = match &other {
            Some(other) if looks % 2 == 1 => other,
            _ => path,
        };
        looks += 1;
        match File::open(at) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && looks < MAX_LOOKS && other.is_some() => {}
            opened => return SessionInput::new(opened?),
        }
    }
}

/// Returns the path for a session file that comes from elsewhere: `path`, or that of the compressed form if `content` is compressed.
///
/// # Errors
/// An I/O error.
pub fn path_for(content: &Path, path: PathBuf) -> io::Result<PathBuf> {
    let is_compressed =
        fs::metadata(content)?.is_file() && matches!(SessionInput::new(File::open(content)?)?, SessionInput::Gzip(_));
    Ok(if is_compressed { compressed_path(&path) } else { path })
}

/// Deletes the compressed file of a session that has a plain one with the same text, too. Under the lock for changes of session files. Blocks.
///
/// # Errors
/// `conflict` if their texts differ: nobody knows which one is the session. An I/O error.
pub fn delete_shadowed(path: &Path) -> Result<()> {
    let compressed = compressed_path(path);
    if !path.is_file() || !compressed.is_file() {
        return Ok(());
    }
    let is_same = matches!((hash_text(path), hash_text(&compressed)), (Ok(plain), Ok(other)) if plain == other);
    if !is_same {
        let (plain, other) = (path.display(), compressed.display());
        return Err(Error::new(ErrorKind::Conflict, format!("{plain} and {other} are there, with different texts"))
            .hint("compare them with `zcat`, and move one of them to another directory"));
    }
    fs::remove_file(&compressed).map_err(|e| Error::io(format_args!("cannot delete {}", compressed.display()), &e))
}

/// Hashes the text of a session file.
fn hash_text(path: &Path) -> io::Result<[u8; 32]> {
    let (input, mut hash, mut piece) = (SessionInput::new(File::open(path)?)?, Sha256::new(), vec![0; PIECE_BYTES]);
    let mut text = input.reader();
    loop {
        match text.read(&mut piece)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&piece[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use chorus_session::gzip::GzipWriter;

    use super::*;

    #[test]
    fn only_session_files_are_sessions() {
        assert_eq!(parse_file_name("2026-01-01_x.json"), Some(("2026-01-01_x", SessionForm::Plain)));
        assert_eq!(parse_file_name("2026-01-01_x.json.gz"), Some(("2026-01-01_x", SessionForm::Compressed)));
        for other in [".new-1.json", ".new-1.json.gz", "x.gz", "x.jsonl", "x.json.zst", "json", "README.md"] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_is_found_in_the_form_that_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("a.json");
        let compressed = compressed_path(&plain);
        assert!(!exists(&plain) && stamp_of(&plain).is_none() && find(plain.clone()) == plain);
        assert_eq!(open(&plain).unwrap_err().kind(), io::ErrorKind::NotFound);
        let mut gzip = GzipWriter::new(File::create(&compressed).unwrap());
        gzip.write_all(b"old").unwrap();
        gzip.finish().unwrap();
        assert!(exists(&plain) && find(plain.clone()) == compressed);
        for path in [&plain, &compressed] {
            assert_eq!(open(path).unwrap().read_text().unwrap(), b"old");
        }
        assert_eq!(path_for(&compressed, dir.path().join("b.json")).unwrap(), dir.path().join("b.json.gz"));
        fs::write(&plain, "new").unwrap();
        assert_eq!(find(plain.clone()), plain);
        assert_eq!(open(&plain).unwrap().read_text().unwrap(), b"new");
        assert_eq!(path_for(&plain, dir.path().join("b.json")).unwrap(), dir.path().join("b.json"));
        assert_eq!(delete_shadowed(&plain).unwrap_err().kind, ErrorKind::Conflict);
        assert!(compressed.exists(), "only one of them is the session");
        fs::write(&plain, "old").unwrap();
        delete_shadowed(&plain).unwrap();
        fs::write(&plain, "new").unwrap();
        assert!(!compressed.exists() && open(&compressed).unwrap().read_text().unwrap() == b"new");
        delete_shadowed(&plain).unwrap();
    }
}
