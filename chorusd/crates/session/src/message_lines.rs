//! Reads messages in the layout of a session file one at a time, so that none but the current one is in memory.

use std::io::{self, BufRead};

/// The indentation of messages.
const INDENT: &[u8] = b"    ";

/// Reads messages that [`crate::file::write_message`] wrote, until the end of the source or of the list.
#[derive(Debug)]
pub struct MessageLines<R> {
    source: R,
    line: Vec<u8>,
    /// Offset of the end of the last message that was read, from where the reader started.
    end: u64,
    /// Bytes read so far.
    position: u64,
    /// A line that is not a message was read.
    ended: bool,
}

impl<R: BufRead> MessageLines<R> {
    /// Reads from the line of the first message, or an empty line before it.
    pub fn new(source: R) -> Self {
        Self { source, line: Vec::new(), end: 0, position: 0, ended: false }
    }

    /// Returns the next message, without its indentation and comma.
    #[expect(clippy::should_implement_trait, reason = "the message is borrowed from the reader")]
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        while !self.ended {
            self.line.clear();
            self.line.shrink_to(1 << 20);
            let read = self.source.read_until(b'\n', &mut self.line)?;
            let start = self.position;
            self.position += read as u64;
            if read == 0 {
                self.ended = true;
            } else if self.line != b"\n" {
                let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
                let line = line.strip_suffix(b",").unwrap_or(line);
                self.ended = !line.starts_with(INDENT);
                if !self.ended {
                    let length = line.len();
                    self.end = start + length as u64;
                    return Ok(Some(&self.line[INDENT.len()..length]));
                }
            }
        }
        Ok(None)
    }

    /// Returns the line that ended the list, with everything after it; empty if the source ended first.
    pub fn rest(mut self) -> io::Result<Vec<u8>> {
        if !self.ended || self.line.starts_with(INDENT) {
            return Err(io::Error::other("the messages were not read to their end"));
        }
        self.source.read_to_end(&mut self.line)?;
        Ok(self.line)
    }

    /// Returns the offset of the end of the last message, counted from where the reader started.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{FOOTER, write_message};

    #[test]
    fn messages_come_back_as_they_were_written() {
        let mut text = Vec::new();
        for (at, json) in [b"{\"a\":1}".as_slice(), b"{\"b\":\",\"}"].into_iter().enumerate() {
            write_message(&mut text, json, at == 0).unwrap();
        }
        let ends = text.len() as u64;
        for footer in [FOOTER, b""] {
            let whole = [&text, footer].concat();
            let mut lines = MessageLines::new(&whole[..]);
            assert_eq!(lines.next().unwrap(), Some(&b"{\"a\":1}"[..]));
            assert_eq!(lines.next().unwrap(), Some(&b"{\"b\":\",\"}"[..]));
            assert_eq!(lines.end(), ends);
            assert_eq!(lines.next().unwrap(), None);
            let rest = footer.strip_prefix(b"\n").unwrap_or(footer);
            assert_eq!(lines.rest().unwrap(), rest);
        }
    }
}
