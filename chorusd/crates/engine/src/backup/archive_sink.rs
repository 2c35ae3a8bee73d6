//! Writes a backup as a tar archive: the home below `home/`, and the manifest as the last member. If a file changed
//! while the backup was made, its path occurs twice, and the later member counts.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use chorus_base::error::{Error, Result};
use tar::{EntryType, Header};

use super::directory_sink::target_error;
use super::manifest::{EntryKind, Manifest, ManifestEntry, percent_decode};
use super::sink::{BackupSink, SinkResult};
use super::{HOME_FOLDER, MANIFEST_FILE};

/// An archive that is being written.
pub struct ArchiveSink<W: Write> {
    tar: tar::Builder<W>,
}

impl<W: Write> std::fmt::Debug for ArchiveSink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").finish_non_exhaustive()
    }
}

impl<W: Write> ArchiveSink<W> {
    #[must_use]
    pub fn new(out: W) -> Self {
        Self { tar: tar::Builder::new(out) }
    }
}

fn tar_header(kind: EntryType, entry: &ManifestEntry) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(entry.mode);
    header.set_size(entry.size);
    header.set_mtime(entry.mtime.map_or(0, |(seconds, _)| u64::try_from(seconds).unwrap_or(0)));
    header
}

fn member_path(entry: &ManifestEntry) -> PathBuf {
    Path::new(HOME_FOLDER).join(percent_decode(&entry.path))
}

/// A reader that hashes the bytes read through it.
struct HashingReader<'a> {
    source: &'a mut dyn Read,
    hash: sha2::Sha256,
}

impl Read for HashingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        sha2::Digest::update(&mut self.hash, &buffer[..count]);
        Ok(count)
    }
}

impl<W: Write + Send + 'static> BackupSink for ArchiveSink<W> {
    fn unchanged_sha256(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn store_file(&mut self, entry: &ManifestEntry, source: &mut dyn Read) -> io::Result<(String, bool)> {
        let mut source = HashingReader { source, hash: sha2::Digest::new() };
        self.tar.append_data(&mut tar_header(EntryType::Regular, entry), member_path(entry), &mut source)?;
        Ok((chorus_base::hex(&sha2::Digest::finalize(source.hash)), true))
    }

    fn store_other(&mut self, entry: &ManifestEntry) -> io::Result<()> {
        let path = member_path(entry);
        match (entry.kind, &entry.target) {
            (EntryKind::Link, Some(target)) => {
                self.tar.append_link(&mut tar_header(EntryType::Symlink, entry), path, percent_decode(target))
            }
            _ => self.tar.append_data(&mut tar_header(EntryType::Directory, entry), path, io::empty()),
        }
    }

    fn finish(mut self, manifest: &Manifest) -> Result<SinkResult> {
        let failed = |e: io::Error| target_error(Error::io("cannot complete the archive", &e));
        let mut text = tempfile::tempfile().map_err(failed)?;
        {
            let mut out = io::BufWriter::new(&mut text);
            manifest.write(&mut out).and_then(|()| out.flush()).map_err(failed)?;
        }
        let done = (|| {
            io::Seek::rewind(&mut text)?;
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_mode(0o600);
            header.set_size(text.metadata()?.len());
            self.tar.append_data(&mut header, MANIFEST_FILE, &mut text)?;
            self.tar.into_inner()?.flush()
        })();
        done.map_err(failed).map(|()| SinkResult::default())
    }
}
