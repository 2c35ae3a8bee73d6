//! Follows the end of a growing log file, also across rotation.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const BLOCK_BYTES: u64 = 64 * 1024;

/// A file whose end is followed.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    file: File,
    /// Start of a line whose end has not been written yet.
    partial_line: Vec<u8>,
}

impl Tail {
    /// Opens the file and returns its last `lines` lines.
    pub(super) fn open(path: &Path, lines: usize) -> io::Result<(Self, Vec<u8>)> {
        let mut file = File::open(path)?;
        let last = last_lines(&mut file, lines)?;
        Ok((Self { path: path.to_owned(), file, partial_line: Vec::new() }, last))
    }

    /// Returns the complete lines that were added since the last call. Switches to the new file if `path` was renamed
    /// and created again.
    pub(super) fn read_new_lines(&mut self) -> io::Result<Vec<u8>> {
        self.file.read_to_end(&mut self.partial_line)?;
        if let Ok(current) = File::open(&self.path) {
            let (old, new) = (self.file.metadata()?, current.metadata()?);
            if (old.dev(), old.ino()) != (new.dev(), new.ino()) {
                // Read what was written between the last call and the rename.
                self.file.read_to_end(&mut self.partial_line)?;
                self.file = current;
                self.file.read_to_end(&mut self.partial_line)?;
            } else if new.len() < self.file.stream_position()? {
                self.file.rewind()?;
                self.file.read_to_end(&mut self.partial_line)?;
            }
        }
        let whole = self.partial_line.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.partial_line.split_off(whole);
        Ok(std::mem::replace(&mut self.partial_line, rest))
    }
}

/// Reads the last lines of a file, block by block from its end, and leaves the position at the end.
fn last_lines(file: &mut File, lines: usize) -> io::Result<Vec<u8>> {
    let end = file.seek(SeekFrom::End(0))?;
    let mut start = end;
    let mut read = Vec::new();
    loop {
        // The newline that ends the last line does not start another one.
        let ends = read.iter().rev().skip(1).filter(|byte| **byte == b'\n').count();
        if ends >= lines || start == 0 {
            break;
        }
        let length = BLOCK_BYTES.min(start);
        start -= length;
        file.seek(SeekFrom::Start(start))?;
        let mut piece = Vec::new();
        file.by_ref().take(length).read_to_end(&mut piece)?;
        piece.append(&mut read);
        read = piece;
    }
    file.seek(SeekFrom::Start(end))?;
    let mut ends = read.iter().enumerate().rev().skip(1).filter(|(_, byte)| **byte == b'\n');
    let first = lines.checked_sub(1).and_then(|before| ends.nth(before)).map_or(0, |(at, _)| at + 1);
    Ok(read.split_off(first))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_the_last_lines_are_shown() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("log");
        for (content, last) in
            [("", ""), ("a\n", "a\n"), ("a\nb\nc\n", "b\nc\n"), ("a\nb\nc", "b\nc"), ("\n\n\n", "\n\n")]
        {
            std::fs::write(&path, content)?;
            assert_eq!(String::from_utf8_lossy(&Tail::open(&path, 2)?.1), last, "{content:?}");
        }
        let long: String = (0..50_000).map(|number| format!("line {number}\n")).collect();
        std::fs::write(&path, &long)?;
        let (_, last) = Tail::open(&path, 20_000)?;
        assert!(last.starts_with(b"line 30000\n") && last.ends_with(b"line 49999\n"));
        Ok(())
    }

    #[test]
    fn a_renamed_log_is_followed_into_the_new_one() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("log");
        std::fs::write(&path, "one\n")?;
        let (mut tail, _) = Tail::open(&path, 9)?;
        let mut old = std::fs::OpenOptions::new().append(true).open(&path)?;
        old.write_all(b"two\nthr")?;
        assert_eq!(tail.read_new_lines()?, b"two\n");
        old.write_all(b"ee\n")?;
        std::fs::rename(&path, directory.path().join("log.1"))?;
        std::fs::write(&path, "four\n")?;
        assert_eq!(tail.read_new_lines()?, b"three\nfour\n");
        assert_eq!(tail.read_new_lines()?, b"");
        std::fs::write(&path, "5\n")?;
        assert_eq!(tail.read_new_lines()?, b"5\n");
        Ok(())
    }
}
