//! Reading and writing session files. Files are replaced atomically: a reader sees the old one, the new one or none,
//! never a part.

use std::collections::HashSet;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_base::parallel::run_parallel;
use chorus_base::private_fs::{TEMPORARY_PREFIX, sync, sync_dir};
use chorus_proto::{ErrorKind, SessionHeader};
use chorus_session::stored_message::StoredMessage;
use chorus_session::{MessageHash, SessionFile, file, read_header_lines};
use uuid::Uuid;

use super::background_pool::BackgroundPool;
use super::index_cache::IndexCache;
use super::message_spool::SpooledMessages;
use super::paced_file::PacedFile;
use super::reservations::{Reservation, Reservations};
use super::session_file_fsync::BatchSync;
use super::session_form::{self, open};

/// Buffer size of writes, in bytes. glibc tidies the whole arena when 64 KiB or more are freed at once.
const WRITE_BUFFER_BYTES: usize = 32 << 10;

/// Buffer size of the writes of a large file. The kernel puts what is written at once into large pages, which are written to the disk
/// in a third less time.
const LARGE_WRITE_BUFFER_BYTES: usize = 256 << 10;

/// Size from which a file is large.
const LARGE_FILE_BYTES: usize = 1 << 20;

/// State shared by all operations on session files: reservations, threads and caches.
#[derive(Debug, Default)]
pub struct SessionFiles {
    names: Reservations<SessionKey>,
    /// Ids of sessions that bring their own, for example imported ones, while they are being written.
    pub ids: Reservations<Uuid>,
    /// Makes many files durable in one batch.
    pub batch_sync: BatchSync,
    /// Writes files that nobody waits for.
    pub background_pool: BackgroundPool,
    /// Indexes of files that are read in pages.
    pub index_cache: IndexCache,
    /// Held while a file is changed or deleted, so that this happens to one file at a time.
    pub change_lock: tokio::sync::Mutex<()>,
}

/// Agent id and `session_id`.
type SessionKey = (Uuid, String);

/// A session file that was written.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    pub path: PathBuf,
    pub sha256: String,
    pub stamp: String,
}

impl SessionFiles {
    /// Reserves `wanted`, or the first free one of `wanted-2`, `wanted-3`, …; `known` are the names in the catalog.
    pub fn reserve_name(&self, agent: Uuid, dir: &Path, wanted: &str, known: &[String]) -> Reservation<SessionKey> {
        let known: HashSet<&str> = known.iter().map(String::as_str).collect();
        loop {
            let name = chorus_session::slug::free_name(wanted, |name| {
                known.contains(name)
                    || self.names.is_reserved(&(agent, name.to_owned()))
                    || session_form::exists(&path_of(dir, name))
            });
            if let Some(reserved) = self.names.try_reserve((agent, name)) {
                return reserved;
            }
        }
    }
}

/// Path of the file of session `session_id` of the agent in `agent_dir`, unless it is compressed: [`session_form::find`] returns the
/// one that is there, and what reads a file finds it in either form.
#[must_use]
pub fn path_of(agent_dir: &Path, session_id: &str) -> PathBuf {
    agent_dir.join("sessions").join(format!("{session_id}.json"))
}

/// Writes a session to a temporary file beside its final path. `sha256` is the [`MessageHash`] of its messages. Blocks.
///
/// # Errors
/// After any error nothing is left behind.
pub fn stage(
    agent_dir: &Path,
    header: &SessionHeader,
    messages: &[StoredMessage],
    sha256: String,
) -> Result<StagedFile> {
    let target = path_of(agent_dir, &header.session_id);
    let is_large = count_bytes(messages) >= LARGE_FILE_BYTES;
    let buffer_bytes = if is_large { LARGE_WRITE_BUFFER_BYTES } else { WRITE_BUFFER_BYTES };
    stage_file_with(buffer_bytes, &target, |out| {
        file::write_header(out, header)?;
        for (index, message) in messages.iter().enumerate() {
            file::write_message(out, message.json(), index == 0)?;
        }
        file::write_end(out)?;
        Ok(sha256)
    })
}

/// As [`stage`], and syncs the file. Meanwhile another thread hashes the messages, unless their hash `sha256` is known.
/// Blocks.
///
/// # Errors
/// After any error nothing is left behind.
pub fn stage_and_sync(
    agent_dir: &Path,
    messages: &[StoredMessage],
    sha256: Option<String>,
    build_header: impl FnOnce() -> SessionHeader,
) -> Result<(SessionHeader, StagedFile)> {
    let header = build_header();
    let write = || {
        let mut staged = stage(agent_dir, &header, messages, String::new())?;
        staged.sync()?;
        Ok(staged)
    };
    let (sha256, written) = match sha256 {
        Some(sha256) => (sha256, write()),
        None => run_parallel(count_bytes(messages), || hash_messages(messages), write),
    };
    written.map(|staged: StagedFile| (header, StagedFile { sha256, ..staged }))
}

fn count_bytes(messages: &[StoredMessage]) -> usize {
    messages.iter().map(|message| message.json().len()).sum()
}

/// Returns the [`MessageHash`] of `messages`.
#[must_use]
pub fn hash_messages(messages: &[StoredMessage]) -> String {
    MessageHash::from_messages(messages.iter().map(|message| &message.json()[..])).finish()
}

/// As [`stage`], for messages that were spooled. Blocks.
pub fn stage_spooled(agent_dir: &Path, header: &SessionHeader, body: &SpooledMessages) -> Result<StagedFile> {
    let target = path_of(agent_dir, &header.session_id);
    stage_file(&target, |out| {
        file::write_header(out, header)?;
        io::copy(&mut body.reader()?, out)?;
        file::write_end(out)?;
        Ok(body.sha256.clone())
    })
}

/// A file whose header was updated, with its former contents.
#[derive(Debug)]
pub struct UpdatedFile {
    path: PathBuf,
    previous_bytes: Vec<u8>,
    pub stamp: String,
    /// The header as it is in the file now.
    pub header: SessionHeader,
}

impl UpdatedFile {
    /// Restores the former contents of the file. Blocks.
    pub fn undo(self) -> Result<()> {
        replace_file(&self.path, |out| out.write_all(&self.previous_bytes).map(|()| String::new())).map(drop)
    }
}

/// Updates the header of a session file; the messages keep their bytes. Blocks.
///
/// # Errors
/// `session_not_found`, `corrupt_session`, or an I/O error; the file is then unchanged.
pub fn update_header(path: &Path, change: impl FnOnce(&mut SessionHeader)) -> Result<UpdatedFile> {
    let before = open(path).and_then(|source| source.read_text()).map_err(|e| read_error(path, &e))?;
    let before = Bytes::from(before);
    let mut file = file::parse(&before).map_err(|e| {
        Error::new(ErrorKind::CorruptSession, format!("the file {} {e}", path.display()))
            .hint("the file was left unchanged; repair it or restore a backup")
    })?;
    change(&mut file.header);
    let written = replace_file(path, |out| {
        file::write_with_header(out, &before, &file)?;
        Ok(String::new())
    })?;
    Ok(UpdatedFile { path: written.path, previous_bytes: before.to_vec(), stamp: written.stamp, header: file.header })
}

/// A session file that was written under a temporary name and not synced yet; dropping it deletes the file.
#[derive(Debug)]
pub struct StagedFile {
    file: File,
    temporary: TemporaryPath,
    target: PathBuf,
    sha256: String,
    synced: bool,
}

/// Path of a temporary file, which is deleted with this value unless it was renamed.
#[derive(Debug)]
struct TemporaryPath {
    path: PathBuf,
    renamed: bool,
}

impl StagedFile {
    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The [`MessageHash`] of the messages.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Syncs the file and renames it to its final path; on return it is durable under its name. Blocks.
    ///
    /// # Errors
    /// After any error before the rename nothing is left behind.
    pub fn persist(mut self) -> Result<WrittenFile> {
        let dir = self.target.parent().unwrap_or(Path::new(".")).to_owned();
        self.sync()?;
        let written = self.rename_into_place()?;
        sync_dir(&dir).map_err(|e| written.to_error(&e))?;
        Ok(written)
    }

    /// The path until the file is renamed.
    pub(super) fn temporary_path(&self) -> &Path {
        &self.temporary.path
    }

    /// Sets the modification time of the file.
    pub(super) fn set_modified(&self, metadata: &fs::Metadata) -> Result<()> {
        let set = metadata.modified().and_then(|at| self.file.set_times(FileTimes::new().set_modified(at)));
        set.map_err(|e| self.to_error(&e))
    }

    /// Syncs the contents of the file, once. Blocks.
    pub(super) fn sync(&mut self) -> Result<()> {
        if !self.synced {
            sync(&self.file).map_err(|e| self.to_error(&e))?;
            self.synced = true;
        }
        Ok(())
    }

    /// Renames the file to its final path. The caller syncs the file before and its directory after this.
    pub(crate) fn rename_into_place(mut self) -> Result<WrittenFile> {
        let stamp = self.file.metadata().map(|metadata| stamp(&metadata)).map_err(|e| self.to_error(&e))?;
        fs::rename(&self.temporary.path, &self.target).map_err(|e| self.to_error(&e))?;
        self.temporary.renamed = true;
        Ok(WrittenFile { path: self.target.clone(), sha256: self.sha256.clone(), stamp })
    }

    /// Converts `error` to an error about writing this file.
    #[must_use]
    pub fn to_error(&self, error: &io::Error) -> Error {
        write_error(&self.target, error)
    }
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl WrittenFile {
    /// Converts `error` to an error about writing this file.
    #[must_use]
    pub fn to_error(&self, error: &io::Error) -> Error {
        write_error(&self.path, error)
    }
}

/// Writes a temporary file beside `target`.
pub(super) fn stage_file(
    target: &Path,
    write: impl FnOnce(&mut BufWriter<PacedFile>) -> io::Result<String>,
) -> Result<StagedFile> {
    stage_file_with(WRITE_BUFFER_BYTES, target, write)
}

fn stage_file_with(
    buffer_bytes: usize,
    target: &Path,
    write: impl FnOnce(&mut BufWriter<PacedFile>) -> io::Result<String>,
) -> Result<StagedFile> {
    let dir = target.parent().unwrap_or(Path::new("."));
    let temporary = dir.join(format!("{TEMPORARY_PREFIX}{}", Uuid::new_v4()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let written = file.and_then(|new| {
        let mut out = BufWriter::with_capacity(buffer_bytes, PacedFile::new(new));
        let written = write(&mut out)
            .and_then(|sha256| Ok((sha256, out.into_inner().map_err(io::IntoInnerError::into_error)?.into_inner())));
        written.inspect_err(|_| _ = fs::remove_file(&temporary))
    });
    let (sha256, file) = written.map_err(|e| write_error(target, &e))?;
    let temporary = TemporaryPath { path: temporary, renamed: false };
    Ok(StagedFile { file, temporary, target: target.to_owned(), sha256, synced: false })
}

/// Writes a temporary file beside `target`, syncs it, and renames it to `target`.
fn replace_file(
    target: &Path,
    write: impl FnOnce(&mut BufWriter<PacedFile>) -> io::Result<String>,
) -> Result<WrittenFile> {
    stage_file(target, write)?.persist()
}

pub(super) fn write_error(target: &Path, error: &io::Error) -> Error {
    Error::io(format_args!("cannot write {}", target.display()), error)
}

/// Deletes a session file that was just written, and syncs its directory. Blocks.
pub fn delete_written(written: &WrittenFile) {
    if fs::remove_file(&written.path).is_ok()
        && let Some(dir) = written.path.parent()
    {
        let _ = sync_dir(dir);
    }
}

/// Size and modification time, by which an unchanged file is recognised: `size:seconds.nanoseconds`.
#[must_use]
pub fn stamp(metadata: &fs::Metadata) -> String {
    format!("{}:{}.{:09}", metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// The parsed session file, or the reason why it is none, with its stamp.
#[derive(Debug)]
pub struct ParsedSessionFile {
    pub file: Result<SessionFile, file::FormatError>,
    pub stamp: String,
}

/// Reads a session file. Blocks.
///
/// # Errors
/// `session_not_found` if the file does not exist, else the I/O error. A file that is not a valid session is no error
/// here; see [`ParsedSessionFile::file`].
pub fn read(path: &Path) -> Result<ParsedSessionFile> {
    let failed = |e: io::Error| read_error(path, &e);
    let source = open(path).map_err(failed)?;
    let stamp = stamp(&source.file().metadata().map_err(failed)?);
    let file = match source.read_text() {
        Ok(bytes) => file::parse(&Bytes::from(bytes)),
        Err(error) => Err(file::FormatError::of_damage(&error).ok_or_else(|| failed(error))?),
    };
    Ok(ParsedSessionFile { file, stamp })
}

/// Reads the header of a session file; `None` if the file is not a valid session. Its messages are not looked at. Blocks.
///
/// # Errors
/// Those of [`read`].
pub fn read_header(path: &Path) -> Result<Option<SessionHeader>> {
    let failed = |e: io::Error| read_error(path, &e);
    let source = open(path).map_err(failed)?;
    let head = match read_header_lines(&mut BufReader::new(source.reader())) {
        Err(error) if file::FormatError::of_damage(&error).is_none() => return Err(failed(error)),
        head => head,
    };
    match head.ok().flatten().and_then(file::parse_native_header_only) {
        Some(header) => Ok(Some(header)),
        // A file of another layout.
        None => Ok(read(path)?.file.ok().map(|file| file.header)),
    }
}

/// Converts `error` to an error about reading the session file `path`.
#[must_use]
pub fn read_error(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Error::new(ErrorKind::SessionNotFound, format!("the file {} no longer exists", path.display()))
                .hint("list sessions with `chorusctl history`; or deleted ones with `chorusctl trash list`")
        }
        _ => Error::io(format_args!("cannot read {}", path.display()), error),
    }
}
