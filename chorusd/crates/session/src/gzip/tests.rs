//! Tests of the format: by members, by another program's decoder, and of damage.

use std::io::{Read as _, Write as _};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::{GzipFile, GzipWriter, MEMBER_BYTES};
use crate::SessionInput;

/// Lines of many lengths, some longer than a member.
fn text() -> Vec<u8> {
    let line = |n: usize| format!("{n} {}\n", "word ".repeat(if n.is_multiple_of(97) { 60_000 } else { n % 50 }));
    (0..300).map(line).collect::<String>().into_bytes()
}

fn compressed(text: &[u8], piece_bytes: usize) -> Vec<u8> {
    let mut writer = GzipWriter::new(Vec::new());
    for piece in text.chunks(piece_bytes) {
        writer.write_all(piece).unwrap();
    }
    writer.finish().unwrap()
}

fn opened(bytes: &[u8]) -> SessionInput {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    SessionInput::new(file).unwrap()
}

fn gzip(bytes: &[u8]) -> GzipFile {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    GzipFile::open(file).unwrap()
}

#[test]
fn members_end_at_line_ends_and_make_the_whole() {
    let text = text();
    let packed = compressed(&text, 1000);
    for piece in [1, 7, 4096, MEMBER_BYTES, text.len()] {
        assert_eq!(compressed(&text, piece), packed, "however it is written: {piece}");
    }
    let mut whole = Vec::new();
    MultiGzDecoder::new(&packed[..]).read_to_end(&mut whole).unwrap();
    assert!(whole == text, "another decoder reads it");
    let file = gzip(&packed);
    let count = file.member_count().unwrap();
    assert!(count > 3, "{count}");
    let members: Vec<_> = (0..count).map(|number| file.read_member(number).unwrap()).collect();
    assert!(members.iter().all(|member| member.ends_with(b"\n")));
    assert!(
        members.iter().filter(|member| member.len() > MEMBER_BYTES).all(|m| memchr::memchr_iter(b'\n', m).count() == 1)
    );
    assert!(members.concat() == text);
    assert_eq!(file.text_bytes(), Some(text.len() as u64));
}

#[test]
fn a_cut_makes_what_follows_independent_of_what_is_before() {
    let mut tails = Vec::new();
    for head in ["one\n", "another head\n"] {
        let mut writer = GzipWriter::new(Vec::new());
        writer.write_all(head.as_bytes()).unwrap();
        writer.cut().unwrap();
        writer.cut().unwrap();
        writer.write_all(&text()).unwrap();
        let packed = writer.finish().unwrap();
        let file = gzip(&packed);
        assert_eq!(file.read_member(0).unwrap(), head.as_bytes());
        tails.push(packed[packed.len() - 1000..].to_vec());
    }
    assert!(tails[0] == tails[1]);
}

#[test]
fn every_part_of_the_text_is_read_alone_whoever_compressed_it() {
    let text = text();
    let mut other = GzEncoder::new(Vec::new(), flate2::Compression::new(9));
    other.write_all(&text).unwrap();
    // Several members, as `cat a.gz b.gz` makes them.
    let two = [compressed(&text[..1000], 1000), { other.finish().unwrap() }].concat();
    let longer = [&text[..1000], &text].concat();
    for (file, text) in [(opened(&text), &text), (opened(&compressed(&text, 1000)), &text), (opened(&two), &longer)] {
        let mut read = Vec::new();
        file.reader().read_to_end(&mut read).unwrap();
        assert!(read == *text && file.read_text().unwrap() == *text);
        for (start, end) in [
            (0, 0),
            (0, 1),
            (5, 2000),
            (1000, text.len()),
            (text.len() - 1, text.len()),
            (MEMBER_BYTES - 1, 3 * MEMBER_BYTES),
        ] {
            let mut part = vec![0; end - start];
            file.read_exact_at(&mut part, start as u64).unwrap();
            assert!(part == text[start..end], "{start} {end}");
        }
        let mut beyond = vec![0; 10];
        let error = file.read_exact_at(&mut beyond, text.len() as u64 - 5).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }
    for short in [&b""[..], b"\x1f", b"{"] {
        assert_eq!(opened(short).read_text().unwrap(), short);
    }
}

#[test]
fn the_hash_of_the_messages_comes_last_and_is_no_text() {
    let (text, hash) = (text(), "0123456789abcdef".repeat(4));
    let mut writer = GzipWriter::new(Vec::new());
    writer.write_all(&text).unwrap();
    let packed = writer.finish_with_hash(&hash).unwrap();
    let mut whole = Vec::new();
    MultiGzDecoder::new(&packed[..]).read_to_end(&mut whole).unwrap();
    assert!(whole == text, "another decoder reads it");
    let file = gzip(&packed);
    assert_eq!(file.messages_sha256(), Some(&*hash));
    assert_eq!(file.text_bytes(), Some(text.len() as u64));
    assert!(opened(&packed).read_text().unwrap() == text);
    // What somebody else has put before it is not what was hashed.
    let other = [compressed(&text, 1000), b"x".to_vec(), packed].concat();
    assert_eq!(gzip(&other).messages_sha256(), None);
    assert_eq!(gzip(&compressed(&text, 1000)).messages_sha256(), None);
}

#[test]
fn damage_is_found_wherever_it_is() {
    let text = "a line of text, and another\n".repeat(40).into_bytes();
    let packed = [compressed(&text, 100), compressed(&text, 100)].concat();
    for at in 2..packed.len() {
        let mut damaged = packed.clone();
        damaged[at] ^= 0x10;
        match opened(&damaged).read_text() {
            Ok(read) => assert!(read == [&text[..], &text].concat(), "byte {at} changes nothing"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "byte {at}"),
        }
    }
    for length in 2..packed.len() {
        let read = opened(&packed[..length]).read_text();
        assert!(read.is_err() || length == packed.len() / 2, "{length} bytes");
    }
}

#[test]
fn what_claims_to_be_huge_is_refused_before_memory_is_taken() {
    let text_bytes = super::MAX_MEMBER_TEXT;
    let member_bytes = text_bytes / 1032 + 1;
    let mut member = super::member_header(member_bytes, text_bytes).to_vec();
    member.resize(member_bytes as usize, 0);
    let mut file = tempfile::tempfile().unwrap();
    for _ in 0..=super::MAX_TEXT_BYTES / u64::from(text_bytes) {
        file.write_all(&member).unwrap();
    }
    assert_eq!(GzipFile::open(file).unwrap_err().to_string(), "its text is larger than 1 GiB");
    let larger = super::member_header(u32::MAX, super::MAX_MEMBER_TEXT + 1);
    assert_eq!(super::parse_member_header(&larger), None);
}
