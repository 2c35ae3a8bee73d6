//! Splits the outer list or object of a JSON file that is too large for resident memory into its entries.
//!
//! Only brackets and strings are examined. A broken entry, or one that is not UTF-8, is therefore noticed only when it
//! is parsed, and does not affect the entries after it.

use std::io::{self, BufRead};

use super::line_reader::MAX_LINE_BYTES;

/// Reason why the outer list or object cannot be split further.
#[derive(Debug)]
pub(super) enum ScanError {
    Io(io::Error),
    /// The file ends inside a value.
    UnexpectedEnd {
        line: u64,
    },
    /// A character that is not allowed between values.
    Unexpected {
        line: u64,
        found: char,
    },
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl ScanError {
    /// Converts to the line and the reason. An error of the reader is returned as it is.
    pub(super) fn into_line_and_reason(self) -> io::Result<(u64, String)> {
        match self {
            Self::Io(error) => Err(error),
            Self::UnexpectedEnd { line } => Ok((line, "unexpected end of file".into())),
            Self::Unexpected { line, found } => Ok((line, format!("unexpected {found:?} between the values"))),
        }
    }
}

/// One entry of a list.
#[derive(Debug)]
pub(super) struct ListEntry<'a> {
    /// Counted from 1.
    pub number: u64,
    /// Bytes of the source read so far.
    pub position: u64,
    /// `None` if the entry is too long.
    pub bytes: Option<&'a [u8]>,
}

/// Scans JSON text without building values.
#[derive(Debug)]
pub(super) struct Scanner<R> {
    reader: R,
    line: u64,
    position: u64,
}

impl<R: BufRead> Scanner<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, line: 1, position: 0 }
    }

    /// Returns the number of bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the next byte that is not white space, without consuming it.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let chunk = self.reader.fill_buf()?;
            let Some(&first) = chunk.first() else { return Ok(None) };
            // Skips the three bytes of a byte order mark, which have no meaning outside strings.
            if !is_space(first) && !matches!(first, 0xef | 0xbb | 0xbf) {
                return Ok(Some(first));
            }
            self.consume(1);
        }
    }

    fn consume(&mut self, count: usize) {
        if let Ok(chunk) = self.reader.fill_buf() {
            self.line += chunk[..count].iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        self.reader.consume(count);
        self.position += count as u64;
    }

    fn peek_required(&mut self) -> Result<u8, ScanError> {
        self.peek()?.ok_or(ScanError::UnexpectedEnd { line: self.line })
    }

    /// Consumes `byte` if it is next. Returns whether it was.
    fn accept(&mut self, byte: u8) -> Result<bool, ScanError> {
        let found = self.peek_required()? == byte;
        if found {
            self.consume(1);
        }
        Ok(found)
    }

    fn expect(&mut self, byte: u8) -> Result<(), ScanError> {
        if self.accept(byte)? { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&mut self) -> ScanError {
        match self.peek_required() {
            Ok(found) => ScanError::Unexpected { line: self.line, found: found.into() },
            Err(error) => error,
        }
    }

    /// Calls `each` with every entry of a list.
    pub(super) fn for_each_entry(
        &mut self,
        mut each: impl FnMut(ListEntry<'_>) -> io::Result<()>,
    ) -> Result<(), ScanError> {
        let mut value = Vec::new();
        let mut number = 0;
        self.expect(b'[')?;
        while !self.accept(b']')? {
            if number > 0 {
                self.expect(b',')?;
            }
            number += 1;
            let fits = self.read_value(Some(&mut value))?;
            each(ListEntry { number, position: self.position, bytes: fits.then_some(&value) })?;
        }
        Ok(())
    }

    /// Calls `each` with the key of every field of an object. `each` must read the value.
    pub(super) fn for_each_field(
        &mut self,
        mut each: impl FnMut(&mut Self, &str) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        let mut key = Vec::new();
        let mut first = true;
        self.expect(b'{')?;
        while !self.accept(b'}')? {
            if !first {
                self.expect(b',')?;
            }
            first = false;
            if self.peek_required()? != b'"' {
                return Err(self.unexpected());
            }
            self.read_value(Some(&mut key))?;
            self.expect(b':')?;
            let name: String = serde_json::from_slice(&key).unwrap_or_default();
            each(self, &name)?;
        }
        Ok(())
    }

    /// Reads one value, into `into` if given. Returns false if it is too long to be kept.
    pub(super) fn read_value(&mut self, mut into: Option<&mut Vec<u8>>) -> Result<bool, ScanError> {
        if let Some(into) = into.as_deref_mut() {
            into.clear();
            into.shrink_to(1 << 20);
        }
        let mut end = match self.peek_required()? {
            b',' | b':' | b']' | b'}' => return Err(self.unexpected()),
            b'{' | b'[' | b'"' => ValueEndFinder::default(),
            _ => ValueEndFinder { scalar: true, ..ValueEndFinder::default() },
        };
        let mut fits = true;
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return if end.scalar { Ok(fits) } else { Err(ScanError::UnexpectedEnd { line: self.line }) };
            }
            let found = end.find_end(chunk);
            let used = found.unwrap_or(chunk.len());
            if let Some(into) = into.as_deref_mut() {
                fits = fits && (into.len() + used) as u64 <= MAX_LINE_BYTES;
                if fits {
                    into.extend_from_slice(&chunk[..used]);
                }
            }
            self.consume(used);
            if found.is_some() {
                return Ok(fits);
            }
        }
    }
}

/// White space of JSON (RFC 8259, section 2); ASCII has more. A value must not end before a byte that may begin another
/// one.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Finds the end of a value in consecutive chunks.
#[derive(Debug, Default)]
struct ValueEndFinder {
    scalar: bool,
    depth: u64,
    quoted: bool,
    escaped: bool,
}

impl ValueEndFinder {
    /// Returns how many bytes of `chunk` belong to the value if it ends there.
    fn find_end(&mut self, chunk: &[u8]) -> Option<usize> {
        if self.scalar {
            // A byte that begins another value is not part of this one.
            return chunk.iter().position(|byte| is_space(*byte) || b",]}{[\"".contains(byte));
        }
        let mut at = 0;
        while at < chunk.len() {
            if self.quoted && !self.escaped {
                // Fast path: most of a file is inside strings.
                let Some(plain) = chunk[at..].iter().position(|byte| matches!(byte, b'"' | b'\\')) else { break };
                at += plain;
            }
            self.advance(chunk[at]);
            at += 1;
            if self.depth == 0 && !self.quoted {
                return Some(at);
            }
        }
        None
    }

    fn advance(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.quoted => self.escaped = true,
            b'"' => self.quoted = !self.quoted,
            b'{' | b'[' if !self.quoted => self.depth += 1,
            b'}' | b']' if !self.quoted => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn entries(json: &str) -> (Vec<String>, Option<(u64, String)>) {
        // Reads two bytes at a time, so that every value is cut somewhere.
        let mut scanner = Scanner::new(BufReader::with_capacity(2, json.as_bytes()));
        let mut found = Vec::new();
        let walked = scanner.for_each_entry(|entry| {
            found.push(String::from_utf8(entry.bytes.unwrap().to_vec()).unwrap());
            Ok(())
        });
        let error = walked.err().map(|error| error.into_line_and_reason().unwrap());
        (found, error)
    }

    #[test]
    fn a_list_comes_apart() {
        let (found, error) = entries(" [ {\"a\":\"]}\\\"\"} ,\n12, \"x\\\\\",[1,[2]] , null]");
        assert_eq!(found, ["{\"a\":\"]}\\\"\"}", "12", "\"x\\\\\"", "[1,[2]]", "null"]);
        assert_eq!(error, None);
    }

    #[test]
    fn a_cut_list_gives_what_was_whole() {
        let (found, error) = entries("[1,\n{\"a\":");
        assert_eq!(found, ["1"]);
        assert_eq!(error.unwrap(), (2, "unexpected end of file".into()));
        assert_eq!(entries("[1 2]").1.unwrap().1, "unexpected '2' between the values");
        assert_eq!(entries("{}").0.len(), 0);
    }

    #[test]
    fn an_object_gives_its_keys() {
        let mut scanner = Scanner::new("\u{feff}{\"a\" : 1, \"b\\u0041\":[2]}".as_bytes());
        let mut keys = Vec::new();
        let walked = scanner.for_each_field(|scanner, key| {
            keys.push(key.to_owned());
            scanner.read_value(None).map(drop)
        });
        walked.unwrap();
        assert_eq!(keys, ["a", "bA"]);
    }
}
