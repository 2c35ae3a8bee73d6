//! Cuts an export that is longer than one response into chunks.

use std::io::{self, Write};

/// Collects the bytes from an offset on until a JSON string of a given length is full, and then fails each write, which
/// ends the export.
#[derive(Debug)]
pub struct ChunkWriter {
    skip: u64,
    /// Bytes that were written so far, including those before the offset and those that did not fit.
    total: u64,
    /// Bytes by which the JSON string may still grow, counting escapes.
    remaining: usize,
    chunk: Vec<u8>,
    /// Something did not fit.
    is_full: bool,
}

impl ChunkWriter {
    #[must_use]
    pub fn new(offset: u64, remaining: usize) -> Self {
        Self { skip: offset, total: 0, remaining, chunk: Vec::new(), is_full: false }
    }

    /// Returns how many bytes of the text were written so far, or `None` if some did not fit.
    #[must_use]
    pub fn total_written(&self) -> Option<u64> {
        (!self.is_full).then_some(self.total)
    }

    /// Returns the chunk and the offset of the next one, or `None` if the offset is inside a character.
    #[must_use]
    pub fn finish(self, offset: u64) -> Option<(String, Option<u64>)> {
        let mut bytes = self.chunk;
        if self.is_full {
            let whole = match std::str::from_utf8(&bytes) {
                Ok(text) => text.len(),
                Err(error) => error.valid_up_to(),
            };
            bytes.truncate(whole);
        }
        let next = self.is_full.then(|| offset + bytes.len() as u64);
        let text = String::from_utf8(bytes).ok()?;
        // A client would request an empty chunk that is not the last one again and again.
        (next != Some(offset)).then_some((text, next))
    }
}

/// Returns the length of a byte inside a JSON string.
fn escaped_len(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        self.skip -= skipped as u64;
        let rest = &bytes[skipped..];
        let mut taken = rest.len();
        if rest.len().saturating_mul(6) <= self.remaining {
            self.remaining -= rest.iter().map(|byte| escaped_len(*byte)).sum::<usize>();
        } else {
            for (at, byte) in rest.iter().enumerate() {
                let length = escaped_len(*byte);
                if length > self.remaining {
                    self.is_full = true;
                    taken = at;
                    break;
                }
                self.remaining -= length;
            }
        }
        self.chunk.extend_from_slice(&rest[..taken]);
        self.total += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, room: usize) -> Vec<String> {
        let (mut offset, mut found) = (0, Vec::new());
        loop {
            let mut piece = ChunkWriter::new(offset, room);
            for part in text.as_bytes().chunks(3) {
                if piece.write_all(part).is_err() {
                    break;
                }
            }
            let (data, next) = piece.finish(offset).unwrap();
            assert!(serde_json::to_string(&data).unwrap().len() <= room + 2);
            found.push(data);
            let Some(next) = next else { return found };
            offset = next;
        }
    }

    #[test]
    fn pieces_make_the_whole_and_fit() {
        let text = "a\n\"你好\"\u{1}\\ é and on\n".repeat(5);
        for room in [6, 7, 10, 64, 10_000] {
            assert_eq!(pieces(&text, room).concat(), text, "{room}");
        }
        assert_eq!(pieces("", 10), [""]);
        assert_eq!(pieces("abcdefghij", 10).len(), 1, "what fits exactly is one piece");
    }

    #[test]
    fn an_offset_inside_a_character_is_no_offset() {
        let mut piece = ChunkWriter::new(1, 100);
        piece.write_all("é!".as_bytes()).unwrap();
        assert_eq!(piece.finish(1), None);
    }
}
