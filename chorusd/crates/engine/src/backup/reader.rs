//! Reads a whole backup from a directory or a tar archive.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use tar::EntryType;

use super::directory_sink::OBJECTS_DIR;
use super::manifest::{EntryKind, Manifest, ManifestEntry, manifest_path};
use super::{HOME_FOLDER, MANIFEST_FILE, PREVIOUS_MANIFEST_FILE, READ_BUFFER_BYTES, directory_sink};

/// Limit in bytes of a name that is too long for a tar header.
const MAX_NAME_BYTES: u64 = 8 << 10;

/// The source that a backup is read from.
pub(super) enum BackupSource {
    /// The directory and the path of the manifest in it.
    Directory(PathBuf, PathBuf),
    Archive(Box<dyn Read>),
}

/// Is called with the bytes read so far and the total, which is 0 if unknown.
pub(super) type OnReadProgress<'a> = &'a mut dyn FnMut(u64, u64);

/// Receives the files of a backup.
pub(super) trait FileReceiver {
    /// Reads a file and returns its SHA-256. `at` is the path of its content, unless it comes from an archive. A path
    /// that comes again replaces the earlier file.
    fn receive_file(&mut self, place: &Path, source: &mut dyn Read, at: Option<&Path>) -> io::Result<String>;
}

impl BackupSource {
    /// Opens the backup at `path`; `-` is an archive on standard input.
    pub(super) fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Archive(ensure_backup_archive(io::stdin(), "standard input")?));
        }
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => Error::new(ErrorKind::NotFound, format!("{} does not exist", path.display()))
                .hint("pass the directory or the archive of a backup"),
            _ => {
                Error::io(format_args!("cannot read {}", path.display()), &e).hint("check the path and its permissions")
            }
        };
        if !path.metadata().map_err(failed)?.is_dir() {
            let dir = path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
            let named = [MANIFEST_FILE, PREVIOUS_MANIFEST_FILE]
                .iter()
                .any(|name| path.file_name().is_some_and(|file| file == *name));
            if named && dir.join(OBJECTS_DIR).is_dir() {
                return Ok(Self::Directory(dir.to_owned(), path.to_owned()));
            }
            let file = File::open(path).map_err(failed)?;
            return Ok(Self::Archive(ensure_backup_archive(file, &path.display().to_string())?));
        }
        if path.join(MANIFEST_FILE).symlink_metadata().is_err() {
            return Err(Error::new(ErrorKind::NotFound, format!("{} has no {MANIFEST_FILE}", path.display()))
                .hint("pass a directory or an archive created by `chorusctl backup`"));
        }
        Ok(Self::Directory(path.to_owned(), path.join(MANIFEST_FILE)))
    }

    /// Reads the whole backup. Returns its manifest and descriptions of everything that is damaged or missing.
    pub(super) fn read(
        self,
        taker: &mut dyn FileReceiver,
        progress: OnReadProgress<'_>,
    ) -> Result<(Manifest, Vec<String>)> {
        match self {
            Self::Directory(dir, manifest) => read_directory(&dir, &manifest, taker, progress),
            Self::Archive(source) => read_archive(source, taker, progress),
        }
    }
}

/// The first bytes of compressed files, and the program that compresses so.
const COMPRESSION_MAGIC: [(&[u8], &str); 4] =
    [(b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"), (b"BZh", "bzip2")];

/// Size of a tar header in bytes.
const TAR_BLOCK_BYTES: usize = 512;

/// Checks by the first header that the source is a backup archive, and returns it from its beginning.
fn ensure_backup_archive(mut source: impl Read + 'static, path: &str) -> Result<Box<dyn Read>> {
    let mut first = Vec::new();
    let read = (&mut source).take(TAR_BLOCK_BYTES as u64).read_to_end(&mut first);
    read.map_err(|e| {
        Error::io(format_args!("cannot read {path}"), &e).hint("pass the directory or the archive of a backup")
    })?;
    if let Some((_, by)) = COMPRESSION_MAGIC.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Err(Error::new(ErrorKind::InvalidParams, format!("{path} is compressed ({by})"))
            .hint(format!("decompress it first: {by} -dc FILE | chorusctl backup verify - (also with `restore -`)")));
    }
    let is_tar = first.get(257..262) == Some(b"ustar");
    let ours = [HOME_FOLDER, "././@LongLink", MANIFEST_FILE].iter().any(|name| first.starts_with(name.as_bytes()));
    if !is_tar || !ours {
        return Err(Error::new(ErrorKind::StorageFailed, format!("not a Chorus backup: {path}"))
            .hint("pass a directory or an archive created by `chorusctl backup`"));
    }
    Ok(Box::new(io::Cursor::new(first).chain(source)))
}

fn damaged_error(what: &str) -> Error {
    Error::new(ErrorKind::StorageFailed, format!("invalid backup: {what}"))
        .hint("use another backup; nothing was changed")
}

fn file_entries(manifest: &Manifest) -> impl Iterator<Item = &ManifestEntry> {
    manifest.entries.iter().filter(|entry| entry.kind == EntryKind::File)
}

fn read_directory(
    dir: &Path,
    manifest: &Path,
    taker: &mut dyn FileReceiver,
    progress: OnReadProgress<'_>,
) -> Result<(Manifest, Vec<String>)> {
    let name = manifest.file_name().unwrap_or_default().display();
    let file = File::open(manifest).map_err(|e| damaged_error(&format!("cannot read {name}: {e}")))?;
    let manifest = Manifest::read(&mut BufReader::new(file)).map_err(|e| damaged_error(&format!("{name} {e}")))?;
    ensure_valid_paths(&manifest)?;
    let (mut problems, mut done, (_, total)) = (Vec::new(), 0, manifest.file_totals());
    for entry in file_entries(&manifest) {
        let place = entry.path_in_home().map_err(|e| damaged_error(&e))?;
        let object = directory_sink::object_path(dir, &entry.sha256);
        match File::open(&object) {
            Ok(mut file) => {
                let mut counted = CountingReader { source: &mut file, count: 0 };
                match taker.receive_file(&place, &mut counted, Some(&object)) {
                    Ok(sha256) => problems.extend(describe_mismatch(entry, counted.count, &sha256)),
                    Err(e) => return Err(read_error(&e)),
                }
            }
            Err(e) => problems.push(format!("{}: cannot read its copy: {e}", entry.path)),
        }
        done += entry.size;
        progress(done, total);
    }
    Ok((manifest, problems))
}

fn read_archive(
    source: Box<dyn Read>,
    taker: &mut dyn FileReceiver,
    progress: OnReadProgress<'_>,
) -> Result<(Manifest, Vec<String>)> {
    let foreign = |e: io::Error| damaged_error(&format!("incomplete tar archive: {e}"));
    let mut tar = tar::Archive::new(BufReader::with_capacity(READ_BUFFER_BYTES, source));
    let (mut found, mut manifest, mut long_name) = (HashMap::new(), None, None);
    let mut done = 0;
    // Raw: tar must not interpret long names, links or sparse files by itself; this loop checks every entry.
    for member in tar.entries().map_err(foreign)?.raw(true) {
        let mut member = member.map_err(foreign)?;
        let (kind, size) = (member.header().entry_type(), member.size());
        match kind {
            EntryType::GNULongName if size <= MAX_NAME_BYTES => {
                let mut name = Vec::new();
                member.read_to_end(&mut name).map_err(foreign)?;
                name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
                long_name = Some(name);
                continue;
            }
            EntryType::GNULongLink if size <= MAX_NAME_BYTES => continue,
            // The manifest has all data of directories and links.
            EntryType::Directory | EntryType::Symlink => {
                long_name = None;
                continue;
            }
            EntryType::Regular => {}
            _ => return Err(damaged_error("it has members that do not belong in a backup")),
        }
        let bytes = long_name.take().unwrap_or_else(|| member.path_bytes().into_owned());
        let path = PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes));
        if path == Path::new(MANIFEST_FILE) {
            let mut text = tempfile::tempfile().map_err(foreign)?;
            io::copy(&mut member, &mut text)
                .and_then(|_| text.flush())
                .and_then(|()| text.rewind())
                .map_err(foreign)?;
            manifest = Some(text);
            continue;
        }
        let inner =
            path.strip_prefix(HOME_FOLDER).map_err(|_| damaged_error(&format!("{path:?} is not a path in a home")))?;
        let entry = ManifestEntry { path: manifest_path(inner), ..blank_entry() };
        let place = entry.path_in_home().map_err(|e| damaged_error(&e))?;
        let mut counted = CountingReader { source: &mut member, count: 0 };
        let sha256 = taker.receive_file(&place, &mut counted, None).map_err(|e| read_error(&e))?;
        done += counted.count;
        if counted.count != size {
            return Err(damaged_error("incomplete tar archive"));
        }
        found.insert(entry.path, (size, sha256));
        progress(done, 0);
    }
    let text = manifest.ok_or_else(|| damaged_error(&format!("it has no {MANIFEST_FILE}, or is incomplete")))?;
    let manifest =
        Manifest::read(&mut BufReader::new(text)).map_err(|e| damaged_error(&format!("its {MANIFEST_FILE} {e}")))?;
    ensure_valid_paths(&manifest)?;
    // Reads the rest, so that a program that writes into a pipe can finish.
    let _ = io::copy(&mut tar.into_inner(), &mut io::sink());
    let mut problems = Vec::new();
    for entry in file_entries(&manifest) {
        match found.get(&entry.path) {
            Some((size, sha256)) => problems.extend(describe_mismatch(entry, *size, sha256)),
            None => problems.push(format!("{}: missing", entry.path)),
        }
    }
    Ok((manifest, problems))
}

fn blank_entry() -> ManifestEntry {
    ManifestEntry {
        path: String::new(),
        kind: EntryKind::File,
        mode: 0o600,
        size: 0,
        sha256: String::new(),
        mtime: None,
        target: None,
        stamp: None,
    }
}

/// Refuses a manifest with paths that lead out of the home, or through anything but directories.
fn ensure_valid_paths(manifest: &Manifest) -> Result<()> {
    let mut kinds = BTreeMap::new();
    for entry in &manifest.entries {
        let place = entry.path_in_home().map_err(|e| damaged_error(&e))?;
        let inside = |parent: &Path| parent == Path::new("") || kinds.get(parent) == Some(&EntryKind::Dir);
        if !place.parent().is_some_and(inside) {
            return Err(damaged_error(&format!("{:?} is not in a directory", entry.path)));
        }
        let digits = entry.sha256.len() == 64 && entry.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        if entry.kind == EntryKind::File && !digits {
            return Err(damaged_error(&format!("{:?} has no hash", entry.path)));
        }
        if kinds.insert(place, entry.kind).is_some() {
            return Err(damaged_error(&format!("{:?} is a duplicate", entry.path)));
        }
    }
    Ok(())
}

fn describe_mismatch(entry: &ManifestEntry, size: u64, sha256: &str) -> Option<String> {
    match () {
        () if size != entry.size => Some(format!("{}: only {size} of {} bytes", entry.path, entry.size)),
        () if sha256 != entry.sha256 => Some(format!("{}: its content was changed", entry.path)),
        () => None,
    }
}

fn read_error(error: &io::Error) -> Error {
    Error::io("cannot read the backup", error).hint("check the disks of the backup and of the home")
}

struct CountingReader<'a> {
    source: &'a mut dyn Read,
    count: u64,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.count += count as u64;
        Ok(count)
    }
}
