//! A file that is synced piece by piece while it is written. The disk writes a large file as fast as it can once it is synced,
//! and whoever else syncs a few bytes waits until it has; between two pieces it does not.

use std::fs::File;
use std::io::{self, Write};

use chorus_base::private_fs::map_sync_error;

/// Bytes of a piece: a disk writes them in some milliseconds.
const PIECE_BYTES: usize = 8 << 20;

/// A new file. The caller syncs what is written last.
#[derive(Debug)]
pub(super) struct PacedFile {
    file: File,
    unsynced_bytes: usize,
}

impl PacedFile {
    pub(super) fn new(file: File) -> Self {
        Self { file, unsynced_bytes: 0 }
    }

    pub(super) fn into_inner(self) -> File {
        self.file
    }
}

impl Write for PacedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unsynced_bytes >= PIECE_BYTES {
            map_sync_error(self.file.sync_data())?;
            self.unsynced_bytes = 0;
        }
        let written = self.file.write(bytes)?;
        self.unsynced_bytes += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn all_bytes_are_written_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        let bytes: Vec<u8> = (0..PIECE_BYTES * 2 + 7).map(|n| (n / 4096) as u8).collect();
        let mut paced = PacedFile::new(File::create(&path).unwrap());
        bytes.chunks(100_000).for_each(|chunk| paced.write_all(chunk).unwrap());
        assert!(paced.unsynced_bytes < PIECE_BYTES);
        paced.into_inner().sync_all().unwrap();
        assert!(fs::read(&path).unwrap() == bytes);
    }
}
