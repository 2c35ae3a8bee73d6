//! Reads a file line by line with a limit on the length of a line.

use std::io::{self, BufRead, Read};

/// Length of the longest line that is read. Longer ones are skipped, so that no file can exhaust resident memory.
pub(super) const MAX_LINE_BYTES: u64 = 64 << 20;

/// The reason reported for a line that is too long.
pub(super) const LINE_TOO_LONG: &str = "the line is longer than 64 MiB";

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line of a file.
#[derive(Debug)]
pub(super) struct SourceLine<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Byte offset of the line in the file.
    pub offset: u64,
    /// The line without its line end and byte order mark, or `None` if it is too long.
    pub bytes: Option<&'a [u8]>,
}

/// Reads lines that end with LF or CRLF.
#[derive(Debug)]
pub(super) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
    offset: u64,
    max_bytes: u64,
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(reader: R) -> Self {
        Self::with_limit(reader, MAX_LINE_BYTES)
    }

    fn with_limit(reader: R, max_bytes: u64) -> Self {
        Self { reader, buffer: Vec::new(), number: 0, offset: 0, max_bytes }
    }

    /// Returns the next line that is not blank.
    pub(super) fn next(&mut self) -> io::Result<Option<SourceLine<'_>>> {
        loop {
            let offset = self.offset;
            if self.fill_buffer()? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let whole = self.offset - offset == self.buffer.len() as u64;
            if whole && strip_line_end(&self.buffer, offset).trim_ascii().is_empty() {
                continue;
            }
            let bytes = whole.then(|| strip_line_end(&self.buffer, offset));
            return Ok(Some(SourceLine { number: self.number, offset, bytes }));
        }
    }

    /// Reads a line into the buffer, up to the limit, and advances the offset past the whole line.
    fn fill_buffer(&mut self) -> io::Result<u64> {
        self.buffer.clear();
        self.buffer.shrink_to(1 << 20);
        let mut read = self.reader.by_ref().take(self.max_bytes).read_until(b'\n', &mut self.buffer)? as u64;
        if read == self.max_bytes && self.buffer.last() != Some(&b'\n') {
            read += self.reader.skip_until(b'\n')? as u64;
        }
        self.offset += read;
        Ok(read)
    }
}

/// Removes the line end and, at the start of the file, the byte order mark.
pub(super) fn strip_line_end(line: &[u8], offset: u64) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if offset == 0 { line.strip_prefix(BOM).unwrap_or(line) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8], longest: u64) -> Vec<(u64, u64, Option<String>)> {
        let mut lines = LineReader::with_limit(text, longest);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            let text = line.bytes.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            found.push((line.number, line.offset, text));
        }
        found
    }

    #[test]
    fn lines_come_without_mark_and_end() {
        let found = all(b"\xef\xbb\xbfone\r\n\n  \ntwo", 100);
        assert_eq!(found, [(1, 0, Some("one".into())), (4, 12, Some("two".into()))]);
    }

    #[test]
    fn a_line_over_the_bound_is_passed_over() {
        let found = all(b"0123456789\nshort\n", 8);
        assert_eq!(found, [(1, 0, None), (2, 11, Some("short".into()))]);
    }
}
