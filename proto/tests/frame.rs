//! Frames from hostile and slow peers.

use std::io::{self, Read};

use chorus_proto::frame::{self, HEADER_BYTES};

/// A reader that returns one byte at a time.
struct OneByteReader<'a>(&'a [u8]);

impl Read for OneByteReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length])
    }
}

fn encode_frame(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, body, frame::MAX_FRAME).expect("writes to memory");
    bytes
}

#[test]
fn bytes_that_drip_in_make_the_same_frames() {
    let bytes = [encode_frame(b"one"), encode_frame(b""), encode_frame("zwei \u{1f3b6}".as_bytes())].concat();
    let mut reader = OneByteReader(&bytes);
    let mut body = Vec::new();
    for expected in [&b"one"[..], b"", "zwei \u{1f3b6}".as_bytes()] {
        assert!(frame::read(&mut reader, &mut body, 64).expect("a frame"));
        assert_eq!(body, expected);
    }
    assert!(!frame::read(&mut reader, &mut body, 64).expect("a clean end"));
}

#[test]
fn an_end_inside_a_frame_is_an_error() {
    let bytes = encode_frame(b"hello");
    for cut in 1..bytes.len() {
        let mut body = Vec::new();
        let error = frame::read(&mut &bytes[..cut], &mut body, 64).expect_err("cut short");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "cut at {cut}");
    }
}

#[test]
fn a_length_over_the_limit_is_refused_before_the_body() {
    for length in [65, u32::MAX] {
        let mut reader = &length.to_be_bytes()[..];
        let error = frame::read(&mut reader, &mut Vec::new(), 64).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
    assert!(frame::decode_header(64_u32.to_be_bytes(), 64).is_ok(), "the limit itself is allowed");
    let error = frame::write(&mut Vec::new(), &[0; 65], 64).expect_err("too long to send");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn an_announced_length_costs_no_memory() {
    let bytes = [&(frame::MAX_FRAME as u32).to_be_bytes()[..], b"only this"].concat();
    let mut body = Vec::new();
    frame::read(&mut &bytes[..], &mut body, frame::MAX_FRAME).expect_err("cut short");
    assert!(body.capacity() < 64 * 1024, "{} bytes were set aside", body.capacity());
}

#[cfg(feature = "async")]
mod codec {
    use bytes::BytesMut;
    use chorus_proto::frame_codec::FrameCodec;
    use tokio_util::codec::Decoder as _;

    use super::{HEADER_BYTES, encode_frame, frame};

    #[test]
    fn the_codec_cuts_where_the_reader_cuts() {
        let bytes = [encode_frame(b"one"), encode_frame(b""), encode_frame(&[7; 5000])].concat();
        for step in [1, 2, 3, 5, 4096, bytes.len()] {
            let (mut codec, mut buffer, mut frames) = (FrameCodec::new(5000), BytesMut::new(), Vec::new());
            for chunk in bytes.chunks(step) {
                buffer.extend_from_slice(chunk);
                while let Some(body) = codec.decode(&mut buffer).expect("a frame") {
                    frames.push(body.to_vec());
                }
            }
            assert_eq!(frames, [b"one".to_vec(), Vec::new(), vec![7; 5000]], "in steps of {step}");
        }
    }

    #[test]
    fn the_codec_reserves_little_for_what_is_only_announced() {
        let mut buffer = BytesMut::from(&(frame::MAX_FRAME as u32).to_be_bytes()[..]);
        assert!(FrameCodec::default().decode(&mut buffer).expect("waits").is_none());
        assert!(buffer.capacity() < 128 * 1024, "{} bytes were set aside", buffer.capacity());
        let mut over = BytesMut::from(&[0xff; HEADER_BYTES][..]);
        assert!(FrameCodec::default().decode(&mut over).is_err());
    }
}
