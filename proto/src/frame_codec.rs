//! A `tokio-util` codec for frames.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use crate::frame::{self, HEADER_BYTES};

/// Encodes and decodes frames. The decoder reserves at most `MAX_RESERVE_BYTES` more than has arrived, or as much
/// again as has arrived, so an announced length costs no memory.
#[derive(Debug, Clone, Copy)]
pub struct FrameCodec {
    limit: usize,
}

/// Bytes reserved before the body arrives.
const MAX_RESERVE_BYTES: usize = 64 * 1024;

impl FrameCodec {
    /// Creates a codec for frames of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit }
    }
}

impl Default for FrameCodec {
    fn default() -> Self {
        Self::new(frame::MAX_FRAME)
    }
}

impl Decoder for FrameCodec {
    type Item = Bytes;
    type Error = io::Error;

    fn decode(&mut self, src: &mut BytesMut) -> io::Result<Option<Bytes>> {
        let Some(header) = src.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length =
            frame::decode_header(*header, self.limit).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        let missing = (HEADER_BYTES + length).saturating_sub(src.len());
        if missing > 0 {
            src.reserve(missing.min(MAX_RESERVE_BYTES.max(src.len())));
            return Ok(None);
        }
        src.advance(HEADER_BYTES);
        Ok(Some(src.split_to(length).freeze()))
    }
}

impl Encoder<&[u8]> for FrameCodec {
    type Error = io::Error;

    fn encode(&mut self, body: &[u8], dst: &mut BytesMut) -> io::Result<()> {
        let header =
            frame::encode_header(body.len(), self.limit).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
        dst.reserve(HEADER_BYTES + body.len());
        dst.extend_from_slice(&header);
        dst.extend_from_slice(body);
        Ok(())
    }
}
