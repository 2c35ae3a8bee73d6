//! Session files: written so that a reader sees the old one, the new one or none, never a part.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chorus_proto::{ErrorKind, SessionHeader};
use uuid::Uuid;

use super::background::Background;
use super::reserved::{Reservations, Reserved};
use super::session_index::Indexes;
use super::together::Together;
use crate::failure::{Failure, Result, SyncFailed};
use crate::message::Stored;
use crate::session::{MessageHash, SessionFile, file};

/// Beginning of the name of a file that is being written.
pub const TEMPORARY: &str = ".new-";

/// Bytes written in one go.
const BUFFER: usize = 64 << 10;

/// The files of all agents, and what is being given to new ones right now.
#[derive(Debug, Default)]
pub struct SessionFiles {
    names: Reservations<Name>,
    /// Ids of sessions that bring their own.
    pub ids: Reservations<Uuid>,
    /// Where many files are placed at once.
    pub together: Together,
    /// Where files that nobody waits for are filled.
    pub background: Background,
    /// What is known of those that are read in pages.
    pub indexes: Indexes,
    /// One file is changed or taken away at a time.
    pub amending: tokio::sync::Mutex<()>,
}

/// The agent, and the session_id.
type Name = (Uuid, String);

/// A file that was written.
#[derive(Debug, Clone)]
pub struct Written {
    pub path: PathBuf,
    pub sha256: String,
    pub stamp: String,
}

impl SessionFiles {
    /// Reserves `wanted`, or the first free one of `wanted-2`, `wanted-3`, …, given the names that the catalog knows.
    pub fn reserve(&self, agent: Uuid, dir: &Path, wanted: &str, known: &[String]) -> Reserved<Name> {
        let known: HashSet<&str> = known.iter().map(String::as_str).collect();
        loop {
            let name = crate::session::slug::free_name(wanted, |name| {
                known.contains(name)
                    || self.names.has(&(agent, name.to_owned()))
                    || path_of(dir, name).symlink_metadata().is_ok()
            });
            if let Some(reserved) = self.names.take((agent, name)) {
                return reserved;
            }
        }
    }
}

/// Where the session `session_id` of the agent in `agent_dir` lies.
#[must_use]
pub fn path_of(agent_dir: &Path, session_id: &str) -> PathBuf {
    agent_dir.join("sessions").join(format!("{session_id}.json"))
}

/// Writes a session beside its place, `sha256` being the [`MessageHash`] of its messages. Blocks.
///
/// # Errors
/// Whatever the disk says; nothing is left behind then.
pub fn write(agent_dir: &Path, header: &SessionHeader, messages: &[Stored], sha256: String) -> Result<Filled> {
    let target = path_of(agent_dir, &header.session_id);
    fill(&target, |out| {
        file::write_header(out, header)?;
        for (index, message) in messages.iter().enumerate() {
            file::write_message(out, message.json(), index == 0)?;
        }
        file::write_end(out)?;
        Ok(sha256)
    })
}

/// As [`write`], for messages that were collected in a [`Body`]. Blocks.
///
/// # Errors
/// As [`write`].
pub fn write_body(agent_dir: &Path, header: &SessionHeader, body: Body) -> Result<Filled> {
    let target = path_of(agent_dir, &header.session_id);
    let (mut spool, sha256) = body.finish().map_err(|e| writing(&target, &e))?;
    fill(&target, |out| {
        file::write_header(out, header)?;
        io::copy(&mut spool, out)?;
        file::write_end(out)?;
        Ok(sha256)
    })
}

/// A file whose header was changed, and what it was before.
#[derive(Debug)]
pub struct Amended {
    path: PathBuf,
    before: Vec<u8>,
    pub stamp: String,
    /// As the file has it now.
    pub header: SessionHeader,
}

impl Amended {
    /// Puts the file back as it was. Blocks.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn undo(self) -> Result<()> {
        replace(&self.path, |out| out.write_all(&self.before).map(|()| String::new())).map(drop)
    }
}

/// Changes the header of a session file; the messages keep their bytes. Blocks.
///
/// # Errors
/// `session_not_found`, `corrupt_session`, or whatever the disk says; the file is as before then.
pub fn amend(path: &Path, change: impl FnOnce(&mut SessionHeader)) -> Result<Amended> {
    let before = Bytes::from(load(path)?.0);
    let mut file = file::parse(&before).map_err(|e| {
        Failure::new(ErrorKind::CorruptSession, format!("the file {} {e}", path.display()))
            .hint("the file was left as it is; mend it or put a copy in its place")
    })?;
    change(&mut file.header);
    let written = replace(path, |out| {
        file::write_amended(out, &before, &file)?;
        Ok(String::new())
    })?;
    Ok(Amended { path: written.path, before: before.to_vec(), stamp: written.stamp, header: file.header })
}

/// A file that was written beside its place and is not on the disk yet; dropped, it goes.
#[derive(Debug)]
pub struct Filled {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    sha256: String,
    renamed: bool,
}

impl Filled {
    /// What it was written through.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Brings it to the disk and puts it in its place. Blocks; on return it is durable under its name.
    ///
    /// # Errors
    /// Whatever the disk says; nothing is left behind then.
    pub fn place(self) -> Result<Written> {
        let dir = self.target.parent().unwrap_or(Path::new(".")).to_owned();
        sync(&self.file).map_err(|e| self.failed(&e))?;
        let written = self.rename()?;
        sync_dir(&dir).map_err(|e| written.failed(&e))?;
        Ok(written)
    }

    /// Puts it in its place; both it and its directory are brought to the disk by the caller.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn rename(mut self) -> Result<Written> {
        let stamp = self.file.metadata().map(|metadata| stamp(&metadata)).map_err(|e| self.failed(&e))?;
        fs::rename(&self.temporary, &self.target).map_err(|e| self.failed(&e))?;
        self.renamed = true;
        Ok(Written { path: self.target.clone(), sha256: self.sha256.clone(), stamp })
    }

    /// The failure that `error` is for it.
    #[must_use]
    pub fn failed(&self, error: &io::Error) -> Failure {
        writing(&self.target, error)
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

impl Written {
    /// The failure that `error` is for it.
    #[must_use]
    pub fn failed(&self, error: &io::Error) -> Failure {
        writing(&self.path, error)
    }
}

/// Writes a file beside `target`.
fn fill(target: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<String>) -> Result<Filled> {
    let dir = target.parent().unwrap_or(Path::new("."));
    let temporary = dir.join(format!("{TEMPORARY}{}", Uuid::new_v4()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let written = file.and_then(|new| {
        let mut out = BufWriter::with_capacity(BUFFER, new);
        let written =
            write(&mut out).and_then(|sha256| Ok((sha256, out.into_inner().map_err(io::IntoInnerError::into_error)?)));
        written.inspect_err(|_| _ = fs::remove_file(&temporary))
    });
    let (sha256, file) = written.map_err(|e| writing(target, &e))?;
    Ok(Filled { file, temporary, target: target.to_owned(), sha256, renamed: false })
}

/// Writes a file beside `target`, brings it to the disk, and puts it in place of `target`.
fn replace(target: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<String>) -> Result<Written> {
    fill(target, write)?.place()
}

fn writing(target: &Path, error: &io::Error) -> Failure {
    Failure::io(format_args!("cannot write {}", target.display()), error)
}

/// Makes the entries of a directory durable.
///
/// # Errors
/// What the system says.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    sync(&File::open(dir)?)
}

/// Brings a file to the disk.
///
/// # Errors
/// [`SyncFailed`], but for want of space, which leaves no doubt: the file is given up then.
pub fn sync(file: &File) -> io::Result<()> {
    synced(file.sync_all())
}

/// What a sync came to.
///
/// # Errors
/// As [`sync`].
pub fn synced(result: io::Result<()>) -> io::Result<()> {
    result.map_err(|e| match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => e,
        _ => io::Error::other(SyncFailed(e)),
    })
}

/// Takes a session file away again, as if it had never been written. Blocks.
pub fn unwrite(written: &Written) {
    if fs::remove_file(&written.path).is_ok()
        && let Some(dir) = written.path.parent()
    {
        let _ = sync_dir(dir);
    }
}

/// Size and time of change: what a file is recognised by.
#[must_use]
pub fn stamp(metadata: &fs::Metadata) -> String {
    format!("{}:{}.{:09}", metadata.len(), metadata.mtime(), metadata.mtime_nsec())
}

/// A session file as it was found.
#[derive(Debug)]
pub struct Found {
    pub file: Result<SessionFile, file::FormatError>,
    pub stamp: String,
}

/// Reads a session file. Blocks.
///
/// # Errors
/// `session_not_found` where it is gone, else what the disk says. A file that is no session is not an error here.
pub fn read(path: &Path) -> Result<Found> {
    let (bytes, stamp) = load(path)?;
    Ok(Found { file: file::parse(&Bytes::from(bytes)), stamp })
}

/// The failure that `error` is for a session file that was to be read.
#[must_use]
pub fn reading(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(ErrorKind::SessionNotFound, format!("the file {} is gone", path.display()))
                .hint("`chorusctl context history` shows what is available; look in the trash")
        }
        _ => Failure::io(format_args!("cannot read {}", path.display()), error),
    }
}

fn load(path: &Path) -> Result<(Vec<u8>, String)> {
    let failed = |e: io::Error| reading(path, &e);
    let mut source = File::open(path).map_err(failed)?;
    let metadata = source.metadata().map_err(failed)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0).saturating_add(1));
    source.read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes, stamp(&metadata)))
}

/// Messages on their way into a session file, for sources that do not fit into memory: they wait in an unnamed file.
#[derive(Debug)]
pub struct Body {
    out: BufWriter<File>,
    hash: MessageHash,
    first: bool,
}

impl Body {
    /// An empty body; its file lies in `dir` and has no name.
    ///
    /// # Errors
    /// What the disk says.
    pub fn new(dir: &Path) -> io::Result<Self> {
        Ok(Self {
            out: BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(dir)?),
            hash: MessageHash::default(),
            first: true,
        })
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// What the disk says.
    pub fn add(&mut self, json: &[u8]) -> io::Result<()> {
        self.hash.add(json);
        file::write_message(&mut self.out, json, self.first)?;
        self.first = false;
        Ok(())
    }

    fn finish(mut self) -> io::Result<(BufReader<File>, String)> {
        self.out.flush()?;
        let mut spool = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        spool.rewind()?;
        Ok((BufReader::with_capacity(1 << 20, spool), self.hash.finish()))
    }
}
