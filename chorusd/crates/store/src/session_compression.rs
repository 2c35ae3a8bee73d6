//! Compresses session files, and makes them plain again before they are changed. Whatever is interrupted, one of the two files
//! is complete: the plain one is deleted after the compressed one was read back, and the other way round.

use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use chorus_base::private_fs::sync_dir;
use chorus_catalog::SessionRow;
use chorus_proto::ErrorKind;
use chorus_runtime::run_blocking;
use chorus_session::block_reader::BlockHash;
use chorus_session::file::MESSAGES_LINE;
use chorus_session::gzip::{GzipWriter, MAX_TEXT_BYTES};
use chorus_session::{FormatError, SessionInput, read_header_lines};
use sha2::{Digest as _, Sha256};

use super::Store;
use super::session_files::{StagedFile, WrittenFile, path_of, read_error, stage_file, stamp, write_error};
use super::session_form::{compressed_path, delete_shadowed};

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A file of so many units of 512 bytes is as small as one can be.
const SMALLEST_BLOCKS: u64 = 8;

/// A compressed session file under a temporary name, whose text is that of the plain one. Dropping it deletes the file.
#[derive(Debug)]
pub struct StagedCompression {
    staged: StagedFile,
    plain: PathBuf,
    plain_stamp: String,
    plain_metadata: Metadata,
    /// Bytes of the plain file, and those that become free.
    pub plain_bytes: u64,
    pub saved_bytes: u64,
}

/// Compresses the plain session file `path` under a temporary name, and reads it back. Returns `None` if there is nothing to
/// compress, if that saves nothing, or once `is_stopped` returns true. Blocks.
///
/// # Errors
/// An I/O error; nothing is left behind then.
pub fn stage_compressed(path: &Path, is_stopped: &dyn Fn() -> bool) -> Result<Option<StagedCompression>> {
    let failed = |e: io::Error| read_error(path, &e);
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(failed)?,
    };
    let SessionInput::Plain(file) = SessionInput::new(file).map_err(failed)? else { return Ok(None) };
    let before = file.metadata().map_err(failed)?;
    // One block cannot become less, and what is not ours is not replaced.
    let is_small = before.blocks() <= SMALLEST_BLOCKS;
    if !before.is_file()
        || is_small
        || before.len() > MAX_TEXT_BYTES
        || compressed_path(path).symlink_metadata().is_ok()
    {
        return Ok(None);
    }
    let mut hash = Sha256::new();
    let staged = stage_file(&compressed_path(path), |out| {
        let text = HashingReader { source: file, hash: &mut hash };
        compress(&mut BufReader::with_capacity(BUFFER_BYTES, text), out, is_stopped)?;
        Ok(String::new())
    });
    let mut staged = match staged {
        Err(_) if is_stopped() => return Ok(None),
        staged => staged?,
    };
    staged.sync()?;
    let written = File::open(staged.temporary_path()).map_err(failed)?;
    let after = written.metadata().map_err(failed)?;
    if after.blocks() >= before.blocks() {
        return Ok(None);
    }
    let written = SessionInput::new(written).map_err(failed)?;
    let mut read_back = HashingReader { source: written.reader(), hash: &mut Sha256::new() };
    io::copy(&mut BufReader::with_capacity(BUFFER_BYTES, &mut read_back), &mut io::sink()).map_err(failed)?;
    if read_back.hash.clone().finalize() != hash.finalize() {
        return Err(Error::internal(format!("{} was not compressed: it could not be read back", path.display())));
    }
    Ok(Some(StagedCompression {
        staged,
        plain: path.to_owned(),
        plain_stamp: stamp(&before),
        plain_metadata: before.clone(),
        plain_bytes: before.len(),
        saved_bytes: (before.blocks() - after.blocks()) * 512,
    }))
}

/// Copies a session file as gzip. Its header is a separate member, so that the members of the messages do not depend on it.
fn compress(
    source: &mut BufReader<HashingReader<'_, File>>,
    out: &mut impl Write,
    is_stopped: &dyn Fn() -> bool,
) -> io::Result<()> {
    let mut gzip = GzipWriter::new(out);
    let mut hash = match read_header_lines(source)? {
        Some(head) => {
            gzip.write_all(&head)?;
            gzip.write_all(MESSAGES_LINE)?;
            gzip.cut()?;
            Some(BlockHash::default())
        }
        None => {
            // Another layout.
            source.rewind()?;
            None
        }
    };
    let mut lines = Vec::new();
    loop {
        if is_stopped() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // With the beginning of the line that the last piece has left.
        let known = lines.len();
        let count = source.by_ref().take(BUFFER_BYTES as u64).read_to_end(&mut lines)?;
        let last_end = lines[known..].iter().rposition(|byte| *byte == b'\n');
        let end = if count == 0 { known } else { last_end.map_or(0, |at| known + at + 1) };
        if let Some(hash) = &mut hash {
            hash.add(&lines[..end]);
        }
        gzip.write_all(&lines[..end])?;
        lines.drain(..end);
        if count == 0 {
            break;
        }
    }
    match hash {
        Some(hash) => gzip.finish_with_hash(&hash.finish())?.flush(),
        None => gzip.finish()?.flush(),
    }
}

/// Hashes what is read from the beginning.
struct HashingReader<'a, R> {
    source: R,
    hash: &'a mut Sha256,
}

impl<R: Read> Read for HashingReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

impl io::Seek for HashingReader<'_, File> {
    /// Only to the beginning.
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        *self.hash = Sha256::new();
        self.source.seek(to)
    }
}

impl StagedCompression {
    /// Puts the compressed file in the place of the plain one. Returns `None` if that has changed. Blocks.
    fn replace_plain(self) -> Result<Option<WrittenFile>> {
        let Self { staged, plain, plain_stamp, plain_metadata, .. } = self;
        if plain.metadata().ok().is_none_or(|metadata| stamp(&metadata) != plain_stamp) {
            return Ok(None);
        }
        // Not before: a scan takes temporary files that are older than the daemon for those of an interrupted write.
        staged.set_modified(&plain_metadata)?;
        let written = staged.persist()?;
        fs::remove_file(&plain).map_err(|e| write_error(&plain, &e))?;
        sync_parent(&plain)?;
        Ok(Some(written))
    }
}

impl Store {
    /// Returns true if session files may be compressed here: if they are not copies of what several daemons share.
    #[must_use]
    pub fn may_compress(&self) -> bool {
        self.bodies.is_none() && self.ownership.is_none()
    }

    /// Puts a compressed file in the place of the plain one of `row`, and updates the row. Returns false if the file is not the
    /// one that the catalog knows. The caller holds the lock for changes of session files, and nobody reads the session to change
    /// it.
    ///
    /// # Errors
    /// `disk_full`, `storage_failed`; one of the files is there all the same.
    pub async fn replace_with_compressed(&self, mut row: SessionRow, staged: StagedCompression) -> Result<bool> {
        if row.corrupt.is_some() || row.file_stamp != staged.plain_stamp {
            return Ok(false);
        }
        let written = self.escalate_fatal(run_blocking(move || staged.replace_plain()).await)?;
        let Some(written) = written else { return Ok(false) };
        row.file_stamp = written.stamp;
        // If that fails, the next start reads the file again.
        self.catalog.sessions.update(row).await?;
        Ok(true)
    }

    /// Makes the file of a session plain, because it is about to be changed. Returns the row with the stamp of the file. The
    /// caller holds the lock for changes of session files.
    ///
    /// # Errors
    /// `corrupt_session`, `disk_full`, `storage_failed`; one of the files is there all the same.
    pub(crate) async fn make_plain(&self, mut row: SessionRow, agent_dir: &Path) -> Result<SessionRow> {
        let path = path_of(agent_dir, &row.header.session_id);
        let Some((before, written)) = self.escalate_fatal(run_blocking(move || decompress(&path)).await)? else {
            return Ok(row);
        };
        // Another stamp stays, so that it is noticed that somebody else has changed the file.
        if row.file_stamp == before {
            row.file_stamp = written.stamp;
            self.catalog.sessions.update(row.clone()).await?;
        }
        Ok(row)
    }
}

/// Replaces the compressed file of a session by the plain `path`. Returns the stamp of the former one; `None` if there was none.
fn decompress(path: &Path) -> Result<Option<(String, WrittenFile)>> {
    let compressed = compressed_path(path);
    let failed = |e: io::Error| match FormatError::of_damage(&e) {
        Some(damage) => Error::new(ErrorKind::CorruptSession, format!("the file {} {damage}", compressed.display()))
            .hint("the file was left unchanged; repair it or restore a backup"),
        None => read_error(&compressed, &e),
    };
    if path.is_file() {
        delete_shadowed(path)?;
        return Ok(None);
    }
    let source = match File::open(&compressed) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        source => SessionInput::new(source.map_err(failed)?).map_err(failed)?,
    };
    let metadata = source.file().metadata().map_err(failed)?;
    let mut damage = None;
    let staged = stage_file(path, |out: &mut BufWriter<_>| {
        let mut text = source.reader();
        let mut piece = vec![0; BUFFER_BYTES];
        loop {
            match text.read(&mut piece) {
                Ok(0) => return Ok(String::new()),
                Ok(count) => out.write_all(&piece[..count])?,
                Err(e) => {
                    damage = Some(failed(e));
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
    });
    if let Some(damage) = damage {
        return Err(damage);
    }
    let mut staged = staged?;
    staged.sync()?;
    staged.set_modified(&metadata)?;
    let written = staged.persist()?;
    fs::remove_file(&compressed).map_err(|e| write_error(&compressed, &e))?;
    sync_parent(path)?;
    Ok(Some((stamp(&metadata), written)))
}

fn sync_parent(path: &Path) -> Result<()> {
    sync_dir(path.parent().unwrap_or(Path::new("."))).map_err(|e| write_error(path, &e))
}
