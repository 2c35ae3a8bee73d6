//! Reads gzip: that of a [`GzipWriter`](super::GzipWriter) member by member, any other from the beginning.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use bytes::Bytes;
use chorus_base::sync::Mutex;
use flate2::read::MultiGzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{HASH_MEMBER_BYTES, HEADER_BYTES, MAX_TEXT_BYTES, TRAILER_BYTES, parse_hash_member, parse_member_header};
use crate::read_buffer::ReadBuffer;

/// A gzip file.
#[derive(Debug)]
pub struct GzipFile {
    file: File,
    /// `None` if another program wrote the file.
    members: Option<Vec<Member>>,
    messages_sha256: Option<String>,
    /// The member that was read last at a position.
    newest: Mutex<Option<(usize, Bytes)>>,
    /// The text of a file that another program wrote, once it was read at a position.
    text: OnceLock<Vec<u8>>,
}

/// A member, with the position of its text in the whole.
#[derive(Debug, Clone, Copy)]
struct Member {
    offset: u64,
    bytes: u32,
    text_offset: u64,
    text_bytes: u32,
}

impl GzipFile {
    /// Finds the members of a file.
    ///
    /// # Errors
    /// An I/O error.
    pub fn open(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let messages_sha256 = find_hash(&file, length)?;
        let end = if messages_sha256.is_some() { length - HASH_MEMBER_BYTES as u64 } else { length };
        let members = find_members(&file, end)?;
        let messages_sha256 = messages_sha256.filter(|_| members.is_some());
        Ok(Self { file, members, messages_sha256, newest: Mutex::default(), text: OnceLock::new() })
    }

    /// The compressed file.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Returns the number of members; `None` if they cannot be read one by one.
    #[must_use]
    pub fn member_count(&self) -> Option<usize> {
        self.members.as_ref().map(Vec::len)
    }

    /// Returns the hash of the messages that was recorded when they were compressed. It is theirs if each member can be read: gzip that was
    /// made of a changed text has none.
    #[must_use]
    pub fn messages_sha256(&self) -> Option<&str> {
        self.messages_sha256.as_deref()
    }

    /// Returns the bytes of the whole text; `None` if they are not known before it is read.
    #[must_use]
    pub fn text_bytes(&self) -> Option<u64> {
        let last =
            |members: &Vec<Member>| members.last().map_or(0, |last| last.text_offset + u64::from(last.text_bytes));
        self.members.as_ref().map(last)
    }

    /// Returns the text of a member, counted from 0.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it is damaged or missing.
    pub fn read_member(&self, number: usize) -> io::Result<Bytes> {
        let member = self.members.as_ref().and_then(|members| members.get(number)).ok_or_else(damaged)?;
        let mut packed = vec![0; member.bytes as usize - HEADER_BYTES];
        self.file.read_exact_at(&mut packed, member.offset + HEADER_BYTES as u64).map_err(as_damage)?;
        let (packed, trailer) = packed.split_at(packed.len() - TRAILER_BYTES);
        let mut text = ReadBuffer::filled(member.text_bytes as usize);
        let mut inflate = Decompress::new(false);
        let status = inflate.decompress(packed, text.as_mut_slice(), FlushDecompress::Finish).map_err(|_| damaged())?;
        let mut sum = Crc::new();
        sum.update(text.as_slice());
        let is_whole = status == Status::StreamEnd
            && inflate.total_in() == packed.len() as u64
            && inflate.total_out() == u64::from(member.text_bytes)
            && trailer[..4] == sum.sum().to_le_bytes()
            && trailer[4..] == member.text_bytes.to_le_bytes();
        if is_whole { Ok(text.into_bytes(member.text_bytes as usize)) } else { Err(damaged()) }
    }

    /// Returns a reader of the text, from its beginning.
    pub fn reader(&self) -> GzipReader<'_> {
        let source = match &self.members {
            Some(_) => Source::Members { next: 0, text: Bytes::new() },
            None => Source::Stream(Box::new(MultiGzDecoder::new(FileReader::new(&self.file)))),
        };
        GzipReader { gzip: self, source, left: MAX_TEXT_BYTES }
    }

    /// Reads text at a position. Reads the members around it, or the whole file if another program wrote it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if the file is damaged, [`io::ErrorKind::UnexpectedEof`] if the text is shorter.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let Some(members) = &self.members else { return copy_from(self.whole_text()?, buffer, offset).map(drop) };
        let mut number = members.partition_point(|member| member.text_offset <= offset).saturating_sub(1);
        let mut done = 0;
        while done < buffer.len() {
            let member = members.get(number).ok_or(io::ErrorKind::UnexpectedEof)?;
            let text = self.member_at(number)?;
            let passed = offset + done as u64 - member.text_offset;
            let (at, rest) = (usize::try_from(passed).unwrap_or(usize::MAX).min(text.len()), &mut buffer[done..]);
            let count = rest.len().min(text.len() - at);
            rest[..count].copy_from_slice(&text[at..at + count]);
            done += count;
            number += 1;
        }
        Ok(())
    }

    /// Returns the text of a member, which is not read again if it is the one of before.
    fn member_at(&self, number: usize) -> io::Result<Bytes> {
        let known = self.newest.lock().clone();
        if let Some((_, text)) = known.filter(|(of, _)| *of == number) {
            return Ok(text);
        }
        let text = self.read_member(number)?;
        *self.newest.lock() = Some((number, text.clone()));
        Ok(text)
    }

    fn whole_text(&self) -> io::Result<&[u8]> {
        if let Some(text) = self.text.get() {
            return Ok(text);
        }
        let mut text = Vec::new();
        self.reader().read_to_end(&mut text)?;
        Ok(self.text.get_or_init(|| text))
    }
}

/// Reads the text of a gzip file.
#[derive(Debug)]
pub struct GzipReader<'a> {
    gzip: &'a GzipFile,
    source: Source<'a>,
    /// Bytes of text that may still come.
    left: u64,
}

#[derive(Debug)]
enum Source<'a> {
    Members { next: usize, text: Bytes },
    Stream(Box<MultiGzDecoder<FileReader<'a>>>),
}

impl Read for GzipReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.source {
            Source::Members { next, text } => {
                while text.is_empty() {
                    if self.gzip.member_count() == Some(*next) {
                        return Ok(0);
                    }
                    *text = self.gzip.read_member(*next)?;
                    *next += 1;
                }
                let piece = text.split_to(text.len().min(buffer.len()));
                buffer[..piece.len()].copy_from_slice(&piece);
                piece.len()
            }
            Source::Stream(stream) => stream.read(buffer).map_err(as_damage)?,
        };
        self.left = self.left.checked_sub(count as u64).ok_or_else(too_large)?;
        Ok(count)
    }
}

/// Returns the hash in the last member of a file.
fn find_hash(file: &File, length: u64) -> io::Result<Option<String>> {
    let Some(offset) = length.checked_sub(HASH_MEMBER_BYTES as u64) else { return Ok(None) };
    let mut member = [0; HASH_MEMBER_BYTES];
    file.read_exact_at(&mut member, offset)?;
    Ok(parse_hash_member(&member))
}

/// Finds the members of the first `length` bytes; `None` if there is anything else in it than what a [`GzipWriter`](super::GzipWriter) writes.
fn find_members(file: &File, length: u64) -> io::Result<Option<Vec<Member>>> {
    let (mut offset, mut text_offset, mut members) = (0, 0, Vec::new());
    while offset < length {
        let mut header = [0; HEADER_BYTES];
        match file.read_exact_at(&mut header, offset) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let Some((bytes, text_bytes)) = parse_member_header(&header) else { return Ok(None) };
        members.push(Member { offset, bytes, text_offset, text_bytes });
        offset += u64::from(bytes);
        text_offset += u64::from(text_bytes);
        if text_offset > MAX_TEXT_BYTES {
            return Err(too_large());
        }
    }
    Ok((offset == length && !members.is_empty()).then_some(members))
}

pub(super) fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its text is larger than 1 GiB")
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its compressed text is damaged")
}

/// Makes an error of a damaged file of one that the decoder returned.
pub(super) fn as_damage(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => damaged(),
        _ => error,
    }
}

/// Reads a file from its start without using its cursor.
#[derive(Debug)]
pub(crate) struct FileReader<'a> {
    file: &'a File,
    offset: u64,
}

impl<'a> FileReader<'a> {
    pub(crate) fn new(file: &'a File) -> Self {
        Self { file, offset: 0 }
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Copies from a position of `text`.
fn copy_from(text: &[u8], buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let part = text.get(start..).and_then(|rest| rest.get(..buffer.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
    buffer.copy_from_slice(part);
    Ok(())
}
