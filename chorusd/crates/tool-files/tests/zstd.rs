//! Tests of compressed files. The oracle is what was compressed.

use std::io::{self, Read as _};

use chorus_tool_files::{ZstdReader, is_compressed};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// `one two two two` and a line end, as the program `zstd` compresses it from standard input: a window, and a checksum.
const BY_ZSTD: &[u8] = &[
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x81, 0x00, 0x00, 0x6f, 0x6e, 0x65, 0x20, 0x74, 0x77, 0x6f, 0x20, 0x74, 0x77,
    0x6f, 0x20, 0x74, 0x77, 0x6f, 0x0a, 0xe9, 0x9e, 0x0a, 0x2d,
];

fn decompress(compressed: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    ZstdReader::new(compressed, limit).read_to_end(&mut read)?;
    Ok(read)
}

/// A text of several blocks.
fn long_text() -> Vec<u8> {
    (0..40_000).flat_map(|n| format!("{{\"line\":{n},\"hash\":{}}}\n", n * 7919 % 10_007).into_bytes()).collect()
}

#[test]
fn what_was_compressed_comes_out() {
    let text = long_text();
    assert!(text.len() > 1_000_000);
    for text in [&b""[..], b"a", &text] {
        for level in [CompressionLevel::Fastest, CompressionLevel::Uncompressed] {
            let compressed = compress_to_vec(text, level);
            assert!(is_compressed(&compressed));
            assert!(decompress(&compressed, text.len() as u64).expect("decompressed") == text);
        }
    }
    assert_eq!(decompress(BY_ZSTD, 100).expect("decompressed"), b"one two two two\n");
}

#[test]
fn frames_follow_each_other() {
    let frame = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
    let skipped = [&0x184D_2A53_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
    let all = [skipped.clone(), frame(b"one"), skipped, frame(b""), frame(b"two"), BY_ZSTD.to_vec()].concat();
    assert_eq!(decompress(&all, 100).expect("decompressed"), b"onetwoone two two two\n");
}

#[test]
fn what_is_damaged_or_cut_off_is_an_error_and_never_a_shorter_text() {
    let text = long_text();
    let compressed = compress_to_vec(&text[..], CompressionLevel::Fastest);
    for end in (1..compressed.len()).step_by(997).chain(1..30) {
        let failure = decompress(&compressed[..end], u64::MAX).expect_err("cut off");
        assert!(failure.to_string().starts_with("cannot decompress it: "), "{failure}");
    }
    let behind = [&compressed[..], b"{}"].concat();
    assert!(decompress(&behind, u64::MAX).is_err());
}

#[test]
fn the_result_and_the_memory_are_limited() {
    let zeros = compress_to_vec(io::repeat(0).take(5_000_000), CompressionLevel::Fastest);
    let failure = decompress(&zeros, 1_000_000).expect_err("too long");
    assert!(failure.to_string().contains("too long"), "{failure}");
    let window = |byte: u8| [&[0x28, 0xb5, 0x2f, 0xfd, 0, byte][..], &[1, 0, 0]].concat();
    assert_eq!(decompress(&window(15 << 3), 100).expect("an empty block"), b"");
    assert!(decompress(&window(15 << 3 | 1), 100).expect_err("36 MiB").to_string().contains("window"));
    // The same as the length of a frame of one segment.
    let segment = |size: u64| [&[0x28, 0xb5, 0x2f, 0xfd, 0b1110_0000][..], &size.to_le_bytes(), &[1, 0, 0]].concat();
    assert!(decompress(&segment(1 << 40), 100).expect_err("1 TiB").to_string().contains("window"));
}
