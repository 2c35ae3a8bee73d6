//! Reads the block of data at the end of a file while the lines before it are parsed, a part at a time.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read as _, Seek, SeekFrom};

use super::super::line_reader::{LINE_TOO_LONG, MAX_LINE_BYTES};
use super::super::writer::SessionWriter;
use super::BOM;
use crate::markdown::{DATA_END, DATA_START, MessageRecord, SESSION_COMMENT, parse_data_line, parse_speaker_label};

/// Number of records and of bytes that are read at a time.
const MAX_BATCH_RECORDS: usize = 256;
const MAX_BATCH_BYTES: usize = 1 << 20;

/// Number of lines at the start of a file in which the session's id is searched for.
const MAX_HEADER_LINES: u64 = 64;

/// The place of the block in a file.
#[derive(Debug, Clone)]
pub(super) struct DataBlock {
    /// Offset of its first line.
    pub start: u64,
    /// Offset and number of the line after that one.
    offset: u64,
    line: u64,
    /// Bytes of the file before the block, as if all lines ended with a newline.
    pub text_bytes: u64,
    /// The id of the session in the visible lines. A block of another session is part of a text.
    pub session_id: String,
}

/// Finds the last block in the file. Files of earlier releases have none.
pub(super) fn find_data_block(source: &mut (impl BufRead + Seek)) -> io::Result<Option<DataBlock>> {
    source.rewind()?;
    let (mut found, mut bytes, mut session_id) = (None, Vec::new(), String::new());
    let (mut line, mut offset, mut text_bytes, mut windows) = (0, 0, 0, false);
    loop {
        bytes.clear();
        bytes.shrink_to(MAX_BATCH_BYTES);
        let read = source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? as u64;
        if read == 0 {
            return Ok(found);
        }
        line += 1;
        windows = if line == 1 { bytes.ends_with(b"\r\n") } else { windows };
        if line == 1 && bytes.starts_with(SESSION_COMMENT.as_bytes()) {
            return Ok(None);
        }
        if line <= MAX_HEADER_LINES && session_id.is_empty() && bytes.starts_with(b"**UUID:**") {
            let text = String::from_utf8_lossy(&bytes);
            session_id = parse_speaker_label(&text).map(|(_, id)| id.trim().to_owned()).unwrap_or_default();
        }
        if bytes.starts_with(DATA_START.as_bytes()) && bytes.trim_ascii_end() == DATA_START.as_bytes() {
            let session_id = session_id.clone();
            found = Some(DataBlock { start: offset, offset: offset + read, line: line + 1, text_bytes, session_id });
        }
        offset += read;
        let mark = if line == 1 && bytes.starts_with(BOM.as_bytes()) { BOM.len() as u64 } else { 0 };
        text_bytes += read - mark - u64::from(windows && bytes.ends_with(b"\r\n"));
    }
}

/// A record that was read, `None` if it is invalid.
pub(super) type ReadRecord = Option<MessageRecord>;

/// Reads the records of a block in order.
#[derive(Debug)]
pub(super) struct RecordReader {
    offset: u64,
    line: u64,
    ended: bool,
    records: VecDeque<ReadRecord>,
}

impl RecordReader {
    /// Reads the first line of the block. Returns it with the reader of the others, or `None` if there is none.
    pub(super) fn open(
        source: &mut (impl BufRead + Seek),
        block: &DataBlock,
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<Option<(String, Self)>> {
        let mut reader = Self { offset: block.offset, line: block.line, ended: false, records: VecDeque::new() };
        source.seek(SeekFrom::Start(reader.offset))?;
        Ok(reader.read_line(source, writer)?.flatten().map(|header| (header, reader)))
    }

    /// Returns the number of the next line.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Returns the records from the next one on; at least `count` of them unless fewer are left or they are very long.
    /// Leaves the position of the source as it was.
    pub(super) fn peek(
        &mut self,
        count: usize,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<&VecDeque<ReadRecord>> {
        if self.records.len() < count && !self.ended {
            let here = source.stream_position()?;
            source.seek(SeekFrom::Start(self.offset))?;
            let start = self.offset;
            while self.records.len() < MAX_BATCH_RECORDS && self.offset - start < MAX_BATCH_BYTES as u64 {
                let line = self.line;
                let Some(read) = self.read_line(source, writer)? else { break };
                let record = read.and_then(|json| match serde_json::from_str(&json) {
                    Ok(record) => Some(record),
                    Err(error) => {
                        writer.skip(line, format!("invalid record in the block of data: {error}"));
                        None
                    }
                });
                self.records.push_back(record);
            }
            source.seek(SeekFrom::Start(here))?;
        }
        Ok(&self.records)
    }

    /// Removes the next record.
    pub(super) fn pop(&mut self) -> ReadRecord {
        self.records.pop_front().flatten()
    }

    /// Returns the next line, `None` at the end of the block, `Some(None)` for one that cannot be read.
    fn read_line(
        &mut self,
        source: &mut (impl BufRead + Seek),
        writer: &mut SessionWriter<'_>,
    ) -> io::Result<Option<Option<String>>> {
        if self.ended {
            return Ok(None);
        }
        let (mut bytes, line) = (Vec::new(), self.line);
        let mut read = source.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? as u64;
        let too_long = read == MAX_LINE_BYTES && !bytes.ends_with(b"\n");
        if too_long {
            read += source.skip_until(b'\n')? as u64;
        }
        self.offset += read;
        self.line += 1;
        if read == 0 || bytes.trim_ascii() == DATA_END.as_bytes() {
            if read == 0 {
                writer.skip(line, "the block of data has no end; the file may be truncated");
            }
            self.ended = true;
            return Ok(None);
        }
        if too_long {
            writer.skip(line, LINE_TOO_LONG);
            return Ok(Some(None));
        }
        let text = std::str::from_utf8(&bytes).ok().map(|text| parse_data_line(text.trim()));
        if text.is_none() {
            writer.skip(line, "not valid UTF-8");
        }
        Ok(Some(text))
    }
}
