//! A backup as a tar archive: the home below `home/`, and the manifest as the last member. A path may come twice, where its file
//! changed while the backup was made; the later one holds.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use tar::{EntryType, Header};

use super::manifest::{Entry, Kind, Manifest, decode};
use super::sink::{Finished, Sink};
use super::{HOME, MANIFEST};
use crate::failure::{Failure, Result};

/// An archive that is being written.
pub struct Archive<W: Write> {
    tar: tar::Builder<W>,
}

impl<W: Write> std::fmt::Debug for Archive<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Archive").finish_non_exhaustive()
    }
}

impl<W: Write> Archive<W> {
    #[must_use]
    pub fn new(out: W) -> Self {
        Self { tar: tar::Builder::new(out) }
    }
}

fn header(kind: EntryType, entry: &Entry) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(entry.mode);
    header.set_size(entry.size);
    header.set_mtime(entry.mtime.map_or(0, |(seconds, _)| u64::try_from(seconds).unwrap_or(0)));
    header
}

fn member(entry: &Entry) -> PathBuf {
    Path::new(HOME).join(decode(&entry.path))
}

/// Hashes what the archive reads.
struct Tee<'a> {
    source: &'a mut dyn Read,
    hash: sha2::Sha256,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        sha2::Digest::update(&mut self.hash, &buffer[..count]);
        Ok(count)
    }
}

impl<W: Write + Send + 'static> Sink for Archive<W> {
    fn known(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn file(&mut self, entry: &Entry, source: &mut dyn Read) -> io::Result<(String, bool)> {
        let mut source = Tee { source, hash: sha2::Digest::new() };
        self.tar.append_data(&mut header(EntryType::Regular, entry), member(entry), &mut source)?;
        Ok((crate::store::catalog::hex(&sha2::Digest::finalize(source.hash)), true))
    }

    fn other(&mut self, entry: &Entry) -> io::Result<()> {
        let path = member(entry);
        match (entry.kind, &entry.target) {
            (Kind::Link, Some(target)) => {
                self.tar.append_link(&mut header(EntryType::Symlink, entry), path, decode(target))
            }
            _ => self.tar.append_data(&mut header(EntryType::Directory, entry), path, io::empty()),
        }
    }

    fn finish(mut self, manifest: &Manifest) -> Result<Finished> {
        let failed = |e: io::Error| Failure::io("cannot complete the archive", &e).at_backup();
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
            self.tar.append_data(&mut header, MANIFEST, &mut text)?;
            self.tar.into_inner()?.flush()
        })();
        done.map_err(failed).map(|()| Finished::default())
    }
}
