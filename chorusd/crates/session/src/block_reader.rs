//! Reads a session file in blocks of whole lines: while one block is read, messages of the blocks before it can be hashed elsewhere.

use std::io::{self, Read};

use bytes::Bytes;
use memchr::{memchr, memmem, memrchr};

use crate::file::{MESSAGES_OPENING, UnhashedSessionFile, parse, parse_native_header};
use crate::read_buffer::ReadBuffer;
use crate::stored_message::{StoredMessage, Totals};
use crate::{FormatError, MessageHash};

/// Bytes of a block, without the line that the next one completes. A block stays in the processor's cache while it is parsed.
pub const BLOCK_BYTES: usize = 256 << 10;

/// The indentation of messages.
const INDENT: &[u8] = b"    ";

/// Reads a session file of about `size` bytes to its end. `take_block` receives the lines of messages as soon as they were read, in
/// order, for a [`BlockHash`]; of a file that is not in the native layout the messages are hashed here, and what it received is
/// worthless.
///
/// # Errors
/// The outer error is one of the disk. The inner one says why the file is not a session, as [`parse`] says it.
pub fn read_unhashed(
    source: impl Read,
    size: usize,
    take_block: impl FnMut(Bytes),
) -> io::Result<Result<UnhashedSessionFile, FormatError>> {
    read_in_blocks(source, size, BLOCK_BYTES, take_block)
}

/// As [`read_unhashed`], for a file whose text comes in blocks of whole lines, such as the members of a compressed one. `next_block`
/// returns `None` after the last one.
///
/// # Errors
/// As [`read_unhashed`], and those of `next_block`.
pub fn read_blocks_unhashed(
    next_block: impl FnMut() -> io::Result<Option<Bytes>>,
    take_block: impl FnMut(Bytes),
) -> io::Result<Result<UnhashedSessionFile, FormatError>> {
    read_from(GivenBlocks { next: next_block, blocks: Vec::new(), are_whole: true }, take_block)
}

fn read_in_blocks(
    source: impl Read,
    size: usize,
    block_bytes: usize,
    take_block: impl FnMut(Bytes),
) -> io::Result<Result<UnhashedSessionFile, FormatError>> {
    read_from(Blocks::new(source, size, block_bytes), take_block)
}

fn read_from(
    mut blocks: impl BlockSource,
    mut take_block: impl FnMut(Bytes),
) -> io::Result<Result<UnhashedSessionFile, FormatError>> {
    if let Some((header, messages)) = read_native(&mut blocks, &mut take_block)? {
        return Ok(Ok(UnhashedSessionFile { header, messages, sha256: None }));
    }
    // Another layout, or an error that has to be found.
    let bytes = blocks.read_whole()?;
    Ok(parse(&bytes).map(|file| UnhashedSessionFile {
        header: file.header,
        messages: file.messages,
        sha256: Some(file.sha256),
    }))
}

/// Reads a file in the native layout. Returns `None` for any other layout and for any error.
fn read_native(
    blocks: &mut impl BlockSource,
    take_block: &mut impl FnMut(Bytes),
) -> io::Result<Option<(chorus_proto::SessionHeader, Vec<StoredMessage>)>> {
    let Some(first) = blocks.next()? else { return Ok(None) };
    let Some(open) = memmem::find(&first, MESSAGES_OPENING) else { return Ok(None) };
    // With the newline before the line of `messages`.
    let head = first[..=open].to_vec();
    let (mut list, mut messages) = (MessageList::Open, Vec::new());
    let mut block = first.slice(open + MESSAGES_OPENING.len()..);
    loop {
        take_block(block.clone());
        match list.read_block(&block, &mut messages) {
            Some(after) => list = after,
            None => return Ok(None),
        }
        match blocks.next()? {
            Some(next) => block = next,
            None => break,
        }
    }
    if list != MessageList::ObjectClosed || !blocks.are_lines_whole() {
        return Ok(None);
    }
    Ok(parse_native_header(head, Totals::count(&messages)).map(|header| (header, messages)))
}

/// The position in the lines after the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageList {
    /// A message follows.
    Open,
    /// The last message was read.
    Complete,
    /// The line that closes the list was read.
    Closed,
    /// The last line was read.
    ObjectClosed,
}

impl MessageList {
    /// Parses the lines of `block` and returns the position after them; `None` if a line is not in the native layout or not valid.
    fn read_block(mut self, block: &Bytes, messages: &mut Vec<StoredMessage>) -> Option<Self> {
        for line in lines(block) {
            self = match (self, line) {
                (Self::Open, line) => {
                    let json = line.strip_prefix(INDENT)?;
                    let (json, after) = match json.strip_suffix(b",") {
                        Some(json) => (json, Self::Open),
                        None => (json, Self::Complete),
                    };
                    messages.push(StoredMessage::parse(block.slice_ref(json)).ok()?);
                    after
                }
                (Self::Complete, b"  ]") => Self::Closed,
                (Self::Closed, b"}") => Self::ObjectClosed,
                _ => return None,
            };
        }
        Some(self)
    }
}

/// Iterates over lines that each end with a newline.
fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let (line, after) = rest.split_at(memchr(b'\n', rest)?);
        rest = &after[1..];
        Some(line)
    })
}

/// Hashes the messages in the blocks of a file in the native layout, as [`MessageHash`] does.
#[derive(Debug, Default)]
pub struct BlockHash(MessageHash);

impl BlockHash {
    /// Adds the next block that [`read_unhashed`] passed on.
    pub fn add(&mut self, block: &[u8]) {
        for json in lines(block).filter_map(|line| line.strip_prefix(INDENT)) {
            self.0.add(json.strip_suffix(b",").unwrap_or(json));
        }
    }

    /// Returns the hash as 64 hex digits.
    #[must_use]
    pub fn finish(self) -> String {
        self.0.finish()
    }
}

/// Returns a text in blocks of whole lines.
trait BlockSource {
    /// Returns the next block; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Bytes>>;

    /// Returns true if nothing follows the last line end. Called at the end.
    fn are_lines_whole(&self) -> bool;

    /// Reads everything that was not read yet, and returns the whole.
    fn read_whole(self) -> io::Result<Bytes>;
}

/// Blocks that somebody else has cut.
struct GivenBlocks<N> {
    next: N,
    /// The blocks so far.
    blocks: Vec<Bytes>,
    /// Each of them ends with a line end.
    are_whole: bool,
}

impl<N: FnMut() -> io::Result<Option<Bytes>>> BlockSource for GivenBlocks<N> {
    fn next(&mut self) -> io::Result<Option<Bytes>> {
        let block = (self.next)()?;
        if let Some(block) = &block {
            self.are_whole &= block.ends_with(b"\n");
            self.blocks.push(block.clone());
        }
        Ok(block)
    }

    fn are_lines_whole(&self) -> bool {
        self.are_whole
    }

    fn read_whole(mut self) -> io::Result<Bytes> {
        while self.next()?.is_some() {}
        Ok(self.blocks.concat().into())
    }
}

/// A source that is read in blocks of whole lines.
struct Blocks<R> {
    source: R,
    /// Bytes that are read at once.
    block_bytes: usize,
    /// Bytes that are probably still to be read.
    expected: usize,
    /// The blocks so far.
    blocks: Vec<Bytes>,
    /// The start of a line whose end was not read yet, with room for what follows.
    rest: ReadBuffer,
}

impl<R: Read> Blocks<R> {
    fn new(source: R, expected: usize, block_bytes: usize) -> Self {
        let rest = ReadBuffer::new(&[], next_bytes(expected, block_bytes));
        Self { source, block_bytes, expected, blocks: Vec::new(), rest }
    }
}

impl<R: Read> BlockSource for Blocks<R> {
    /// Reads the next block; `None` at the end, when [`Blocks::rest`] has what follows the last newline.
    fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let start = self.rest.as_slice().len();
            // The room grows with a line that is longer than a block, which is then copied twice at most.
            let room = next_bytes(self.expected, self.block_bytes).max(start.min(self.expected.saturating_add(1)));
            self.rest.reserve(room);
            let mut read = self.rest.fill(&mut self.source)?;
            if read > self.expected && read < self.block_bytes {
                self.rest.reserve(self.block_bytes - read);
                read += self.rest.fill(&mut self.source)?;
            }
            self.expected = self.expected.saturating_sub(read);
            if read == 0 {
                return Ok(None);
            }
            let bytes = self.rest.as_slice();
            if let Some(at) = memrchr(b'\n', &bytes[start..]) {
                let end = start + at + 1;
                let rest = ReadBuffer::new(&bytes[end..], next_bytes(self.expected, self.block_bytes));
                let block = std::mem::replace(&mut self.rest, rest).into_bytes(end);
                self.blocks.push(block.clone());
                return Ok(Some(block));
            }
        }
    }

    fn are_lines_whole(&self) -> bool {
        self.rest.as_slice().is_empty()
    }

    fn read_whole(mut self) -> io::Result<Bytes> {
        let mut whole = self.blocks.concat();
        whole.extend_from_slice(self.rest.as_slice());
        self.source.read_to_end(&mut whole)?;
        Ok(whole.into())
    }
}

/// Returns the bytes to make room for. One more than expected, so that the end is noticed without growing.
fn next_bytes(expected: usize, block_bytes: usize) -> usize {
    expected.saturating_add(1).min(block_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{self, SessionFile};

    const ONE: &str = r#"{"id":"1","role":"user","content":"a","timestamp":"2026-02-12T09:00:00Z","later":1.50}"#;
    const TWO: &str = r#"{"id":"2","role":"assistant","content":"b","timestamp":"2026-02-12T09:00:00Z"}"#;

    /// Returns a file in the native layout.
    fn native(lines: &[&str]) -> String {
        let header = r#"{"schema":2,"session_id":"2026-02-12_x","timestamp":"2026-02-12T14:30:00Z","messages":[]}"#;
        let mut header = parse(&Bytes::from_static(header.as_bytes())).unwrap().header;
        header.message_count = lines.len() as u64;
        header.description = Some("line\nbreak \"messages\": [".into());
        let mut out = Vec::new();
        file::write_header(&mut out, &header).unwrap();
        for (index, line) in lines.iter().enumerate() {
            file::write_message(&mut out, line.as_bytes(), index == 0).unwrap();
        }
        file::write_end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Returns what [`file::parse`] should return as well, and if the blocks were hashed.
    fn read(text: &str, size: usize, block_bytes: usize) -> (Result<SessionFile, FormatError>, bool) {
        let mut hash = BlockHash::default();
        let file = read_in_blocks(text.as_bytes(), size, block_bytes, |block| hash.add(&block)).unwrap();
        hashed(file, hash)
    }

    /// As [`read`], in blocks that somebody else has cut.
    fn read_given(text: &str, block_bytes: usize) -> (Result<SessionFile, FormatError>, bool) {
        let (mut hash, mut rest) = (BlockHash::default(), text);
        let next = || {
            let lines = rest[..].split_inclusive('\n').scan(0, |bytes, line| {
                let start = *bytes;
                *bytes += line.len();
                (start < block_bytes).then_some(line.len())
            });
            let (block, after) = rest.split_at(lines.sum());
            rest = after;
            Ok((!block.is_empty()).then(|| Bytes::copy_from_slice(block.as_bytes())))
        };
        let file = read_blocks_unhashed(next, |block| hash.add(&block)).unwrap();
        hashed(file, hash)
    }

    fn hashed(
        file: Result<UnhashedSessionFile, FormatError>,
        hash: BlockHash,
    ) -> (Result<SessionFile, FormatError>, bool) {
        let in_blocks = file.as_ref().is_ok_and(|file| file.sha256.is_none());
        let file = file.map(|UnhashedSessionFile { header, messages, sha256 }| SessionFile {
            header,
            messages,
            sha256: sha256.unwrap_or_else(|| hash.finish()),
        });
        (file, in_blocks)
    }

    fn assert_same(text: &str, in_blocks: bool) {
        let whole = format!("{:?}", parse(&Bytes::copy_from_slice(text.as_bytes())));
        // Most blocks end within a line, and some lines are longer than a block. The header is in the first one.
        let head = text.find("\n  \"messages\": [\n").map_or(text.len(), |open| open + MESSAGES_OPENING.len());
        for block_bytes in (head..head + 200).chain([BLOCK_BYTES]) {
            let (file, so) = read_given(text, block_bytes);
            assert_eq!((format!("{file:?}"), so), (whole.clone(), in_blocks), "{block_bytes}");
            for size in [0, text.len() / 2, text.len(), text.len() * 2] {
                let (file, so) = read(text, size, block_bytes);
                assert_eq!(format!("{file:?}"), whole, "{block_bytes} {size}");
                assert_eq!(so, in_blocks, "{block_bytes} {size}");
            }
        }
    }

    #[test]
    fn blocks_of_every_size_give_what_the_whole_file_gives() {
        let long = ONE.replace("\"a\"", &format!("\"{}\"", "é\\n".repeat(500)));
        for lines in [&[ONE][..], &[ONE, TWO], &[ONE, &long, TWO, TWO, ONE, TWO], &[TWO, &long, &long]] {
            assert_same(&native(lines), true);
        }
        // A header that is longer than a block.
        let text = native(&[ONE, TWO]);
        for block_bytes in [1, 7, 64] {
            let (file, in_blocks) = read(&text, text.len(), block_bytes);
            let whole = parse(&Bytes::copy_from_slice(text.as_bytes()));
            assert_eq!((format!("{file:?}"), in_blocks), (format!("{whole:?}"), false));
        }
    }

    #[test]
    fn a_damaged_file_and_one_of_another_layout_are_read_as_a_whole() {
        let good = native(&[ONE, TWO, ONE]);
        let value: serde_json::Value = serde_json::from_str(&good).unwrap();
        for text in [
            serde_json::to_string_pretty(&value).unwrap(),
            value.to_string(),
            native(&[]),
            String::new(),
            "{\n".into(),
            good.replace("assistant", "robot"),
            good.replace("\"message_count\": 3", "\"message_count\": 4"),
            good.replace("\"schema\": 2", "\"schema\": 3"),
            good.replace("},\n", "}\n"),
            good.replace("\n  ]", ",\n  ]"),
            good.replace("\n  ]", "\n\n  ]"),
            good.replace("    {", "   {"),
            format!("{good}\n"),
            format!("{good}x"),
            good.trim_end().into(),
        ] {
            assert_same(&text, false);
        }
        for end in 0..good.len() {
            let (file, _) = read(&good[..end], end, good.len());
            let (given, _) = read_given(&good[..end], 300);
            let whole = parse(&Bytes::copy_from_slice(&good.as_bytes()[..end]));
            assert_eq!(format!("{file:?}"), format!("{whole:?}"), "{end}");
            assert_eq!(format!("{given:?}"), format!("{whole:?}"), "{end}");
        }
    }
}
