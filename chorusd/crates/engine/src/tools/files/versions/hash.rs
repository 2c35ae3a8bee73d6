//! Content hashes of files.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;

use chorus_catalog::FileHash;
use sha2::{Digest as _, Sha256};

/// Limit on the bytes of a file that are hashed; of a longer one, its length and time of change count as well.
const MAX_HASHED_BYTES: u64 = 64 << 20;

/// Reads a file and hashes what is read.
pub(in crate::tools::files) struct HashingReader {
    file: File,
    hash: Sha256,
    bytes_read: u64,
}

impl HashingReader {
    pub(in crate::tools::files) fn new(file: File) -> Self {
        Self { file, hash: Sha256::new(), bytes_read: 0 }
    }

    /// Reads the rest of the file and returns its hash. Blocks.
    pub(in crate::tools::files) fn finish(mut self) -> io::Result<FileHash> {
        let rest = MAX_HASHED_BYTES.saturating_sub(self.bytes_read);
        io::copy(&mut (&mut self).take(rest), &mut io::sink())?;
        let status = self.file.metadata()?;
        if status.len() > MAX_HASHED_BYTES {
            self.hash.update(status.len().to_le_bytes());
            self.hash.update(status.mtime().to_le_bytes());
            self.hash.update(status.mtime_nsec().to_le_bytes());
        }
        Ok(self.hash.finalize().into())
    }
}

impl Read for HashingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hash.update(&buffer[..count]);
        self.bytes_read += count as u64;
        Ok(count)
    }
}

/// Returns the hash of a file with this content.
pub(in crate::tools::files) fn hash_bytes(bytes: &[u8]) -> FileHash {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_does_not_depend_on_how_much_was_read_before() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let content = vec![b'x'; 300_000];
        std::fs::write(file.path(), &content).unwrap();
        for read in [0, 1, 100_000] {
            let mut reader = HashingReader::new(File::open(file.path()).unwrap());
            io::copy(&mut (&mut reader).take(read), &mut io::sink()).unwrap();
            assert_eq!(reader.finish().unwrap(), hash_bytes(&content), "{read}");
        }
    }
}
