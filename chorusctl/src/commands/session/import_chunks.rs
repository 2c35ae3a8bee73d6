//! Splits a file into chunks for an import: as text cut between characters if it is UTF-8, otherwise as base64.

use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::methods::import::AddParams;

/// File bytes per request.
const CHUNK_BYTES: usize = 1024 * 1024;

/// Splits `source` into the parameters of `session.import.add`.
#[derive(Debug)]
pub(super) struct ImportChunks<R> {
    import: u64,
    source: R,
    /// First bytes of a character that continues in the next chunk.
    carried: Vec<u8>,
    ended: bool,
}

impl<R: Read> ImportChunks<R> {
    /// Creates the chunks of `source` for the import with this id.
    pub(super) fn new(import: u64, source: R) -> Self {
        Self { import, source, carried: Vec::new(), ended: false }
    }

    /// Returns the next chunk and how many bytes of the file it holds; `None` at the end.
    pub(super) fn next_chunk(&mut self) -> io::Result<Option<(AddParams, u64)>> {
        let mut bytes = std::mem::take(&mut self.carried);
        if !self.ended {
            bytes.reserve_exact(CHUNK_BYTES);
            let wanted = (CHUNK_BYTES - bytes.len()) as u64;
            self.ended = (self.source.by_ref().take(wanted).read_to_end(&mut bytes)? as u64) < wanted;
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return Ok(Some(self.text_chunk(text))),
            Err(error) => error,
        };
        let (whole, cut) = (bytes.utf8_error().valid_up_to(), bytes.utf8_error().error_len().is_none());
        let mut bytes = bytes.into_bytes();
        if cut && !self.ended && whole > 0 {
            self.carried = bytes.split_off(whole);
            if let Ok(text) = String::from_utf8(bytes) {
                return Ok(Some(self.text_chunk(text)));
            }
            return Ok(None);
        }
        let length = bytes.len() as u64;
        let data_base64 = Some(STANDARD.encode(&bytes));
        Ok(Some((AddParams { import: self.import, data: None, data_base64 }, length)))
    }

    fn text_chunk(&self, text: String) -> (AddParams, u64) {
        let length = text.len() as u64;
        (AddParams { import: self.import, data: Some(text), data_base64: None }, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(bytes: &[u8]) -> io::Result<(Vec<u8>, Vec<bool>)> {
        let mut chunks = ImportChunks::new(7, bytes);
        let (mut received, mut as_text) = (Vec::new(), Vec::new());
        while let Some((params, length)) = chunks.next_chunk()? {
            let piece = match (params.data, params.data_base64) {
                (Some(text), None) => text.into_bytes(),
                (None, Some(base64)) => STANDARD.decode(base64).map_err(io::Error::other)?,
                both => panic!("{both:?}"),
            };
            assert_eq!((params.import, piece.len() as u64), (7, length));
            as_text.push(received.is_empty() || !piece.is_empty());
            received.extend(piece);
        }
        Ok((received, as_text))
    }

    #[test]
    fn what_is_sent_is_what_was_read() -> io::Result<()> {
        let long = "a你好".repeat(CHUNK_BYTES / 3);
        let mut broken = long.clone().into_bytes();
        broken[CHUNK_BYTES + 17] = 0xff;
        let mut cut = vec![b'x'; CHUNK_BYTES - 1];
        cut.extend("你".as_bytes());
        for bytes in
            [b"".as_slice(), b"abc", long.as_bytes(), &broken, &cut, &cut[..CHUNK_BYTES + 1], b"\xff", &[0xe4; 9]]
        {
            assert!(send(bytes)?.0 == bytes, "{} bytes", bytes.len());
        }
        Ok(())
    }

    #[test]
    fn text_is_cut_between_characters() -> io::Result<()> {
        let text = "你".repeat(CHUNK_BYTES);
        let mut chunks = ImportChunks::new(1, text.as_bytes());
        let mut number = 0;
        while let Some((params, _)) = chunks.next_chunk()? {
            assert!(params.data.is_some());
            number += 1;
        }
        assert_eq!(number, 4);
        Ok(())
    }
}
