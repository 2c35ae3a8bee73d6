//! Writes an agent archive.

use std::io::{self, Read, Write};

use chorus_base::hex;
use sha2::{Digest as _, Sha256};

use super::manifest::is_valid_member_path;
use super::{MANIFEST_MEMBER, Manifest, Member};

/// An archive that is being written.
pub struct ArchiveWriter<W: Write> {
    tar: tar::Builder<W>,
    members: Vec<Member>,
}

impl<W: Write> std::fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("members", &self.members.len()).finish_non_exhaustive()
    }
}

/// A reader that hashes and counts the bytes read through it.
struct HashingReader<R> {
    source: R,
    hash: Sha256,
    bytes_read: u64,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.hash.update(&buffer[..count]);
        self.bytes_read += count as u64;
        Ok(count)
    }
}

impl<W: Write> ArchiveWriter<W> {
    #[must_use]
    pub fn new(out: W) -> Self {
        Self { tar: tar::Builder::new(out), members: Vec::new() }
    }

    /// Adds a file of `size` bytes. Fails if the path is not valid in an archive, or if the source has fewer bytes.
    pub fn add(&mut self, path: &str, size: u64, source: impl Read) -> io::Result<()> {
        if !is_valid_member_path(path) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{path:?} is not a valid archive path")));
        }
        let mut source = HashingReader { source: source.take(size), hash: Sha256::new(), bytes_read: 0 };
        self.append_file(path, size, &mut source)?;
        if source.bytes_read < size {
            return Err(io::Error::other(format!("{path} changed while it was being read")));
        }
        let sha256 = hex(&source.hash.finalize());
        self.members.push(Member { path: path.to_owned(), size, sha256 });
        Ok(())
    }

    fn append_file(&mut self, path: &str, size: u64, source: &mut impl Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o600);
        header.set_size(size);
        self.tar.append_data(&mut header, path, source)
    }

    /// Adds the manifest, which `manifest` builds from the list of members, and ends the archive.
    pub fn finish(mut self, manifest: impl FnOnce(Vec<Member>) -> Manifest) -> io::Result<W> {
        let manifest = manifest(std::mem::take(&mut self.members));
        let mut text = serde_json::to_vec_pretty(&manifest)?;
        text.push(b'\n');
        self.append_file(MANIFEST_MEMBER, text.len() as u64, &mut &text[..])?;
        self.tar.into_inner()
    }
}
