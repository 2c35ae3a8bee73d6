//! The part of a file that a program has written completely: up to its last line end. A line of which only the beginning
//! is there waits.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;

/// How far back the end of a line is looked for at once, in bytes.
const STEP: u64 = 64 * 1024;

/// Reads a file up to its last complete line, even if it grows meanwhile.
#[derive(Debug)]
pub(super) struct CompleteLines {
    file: File,
    at: u64,
    end: u64,
}

impl CompleteLines {
    /// Finds the end of the last complete line in the first `size` bytes.
    pub(super) fn new(file: File, size: u64) -> io::Result<Self> {
        let mut end = size;
        let mut block = Vec::new();
        while end > 0 {
            let start = end.saturating_sub(STEP);
            block.resize(usize::try_from(end - start).unwrap_or(0), 0);
            file.read_exact_at(&mut block, start)?;
            if let Some(at) = memchr::memrchr(b'\n', &block) {
                end = start + at as u64 + 1;
                break;
            }
            end = start;
        }
        Ok(Self { file, at: 0, end })
    }

    /// Reads all of the first `size` bytes.
    pub(super) fn whole(file: File, size: u64) -> Self {
        Self { file, at: 0, end: size }
    }

    /// Returns the number of bytes that are complete.
    pub(super) fn len(&self) -> u64 {
        self.end
    }
}

impl Read for CompleteLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for CompleteLines {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn complete(text: &[u8]) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let mut lines = CompleteLines::new(file, text.len() as u64).unwrap();
        let mut read = Vec::new();
        lines.read_to_end(&mut read).unwrap();
        assert_eq!(read.len() as u64, lines.len());
        read
    }

    #[test]
    fn a_torn_last_line_is_not_read() {
        assert_eq!(complete(b""), b"");
        assert_eq!(complete(b"{\"half"), b"");
        assert_eq!(complete(b"one\n"), b"one\n");
        assert_eq!(complete(b"one\ntwo"), b"one\n");
        let long = [b"one\n".to_vec(), vec![b'x'; 200_000]].concat();
        assert_eq!(complete(&long), b"one\n");
    }

    #[test]
    fn what_is_written_meanwhile_is_not_read() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo\n").unwrap();
        let mut lines = CompleteLines::new(file, 4).unwrap();
        let mut read = String::new();
        lines.read_to_string(&mut read).unwrap();
        assert_eq!(read, "one\n");
        lines.seek(SeekFrom::Start(2)).unwrap();
        read.clear();
        lines.read_to_string(&mut read).unwrap();
        assert_eq!(read, "e\n");
    }
}
