//! Builds the index of a session file in one pass: validates, counts and hashes the messages without keeping them.

use std::io::{self, BufRead, BufReader, Read as _};

use bytes::Bytes;
use chorus_base::parallel::run_parallel;
use chorus_proto::SessionHeader;

use super::{Layout, Offsets, SessionIndex};
use crate::file::{FileMetadata, MESSAGES_LINE, parse_native_header, scan_any_layout};
use crate::header_lines::read_header_lines;
use crate::stored_message::{StoredMessage, Totals};
use crate::{FormatError, MessageHash, SessionInput};

/// The lines after the last message.
const MESSAGES_CLOSING: &[u8] = b"  ]\n";
const OBJECT_CLOSING: &[u8] = b"}\n";

/// Bytes of messages that are processed together.
const BATCH_BYTES: usize = 1 << 20;

/// Builds the index of `file`, reading from its beginning. A file that is not in the native layout, or is invalid, is
/// read as a whole.
///
/// # Errors
/// The outer error is one of the disk. The inner one says why the file is not a session.
pub fn build(file: &SessionInput) -> io::Result<Result<SessionIndex, FormatError>> {
    let built = match index_native(&mut BufReader::with_capacity(64 << 10, file.reader())) {
        Ok(Some(index)) => return Ok(Ok(index)),
        Ok(None) => file.read_text().map(|bytes| index_any_layout(&Bytes::from(bytes))),
        Err(error) => Err(error),
    };
    built.or_else(|error| FormatError::of_damage(&error).map(Err).ok_or(error))
}

fn index_any_layout(bytes: &Bytes) -> Result<SessionIndex, FormatError> {
    let (mut marks, mut number) = (Offsets::default(), 0);
    let FileMetadata { header, sha256, defaults: filling, end } = scan_any_layout(bytes, |start, _| {
        marks.add(number, start as u64);
        number += 1;
    })?;
    Ok(SessionIndex { header, sha256, layout: Layout::Any(filling), offsets: marks, end: end as u64 })
}

/// Indexes a file in the native layout. Returns `None` if it has another layout or any error.
fn index_native(source: &mut impl BufRead) -> io::Result<Option<SessionIndex>> {
    let Some(head) = read_header_lines(source)? else { return Ok(None) };
    let mut at = (head.len() + MESSAGES_LINE.len()) as u64;
    let (mut marks, mut batch, mut totals, mut hash) =
        (Offsets::default(), Vec::new(), Totals::default(), MessageHash::default());
    let (mut number, mut ended) = (0, false);
    let mut line = Vec::new();
    loop {
        line.clear();
        source.read_until(b'\n', &mut line)?;
        if line == MESSAGES_CLOSING {
            break;
        }
        // Every message but the last is followed by a comma.
        if ended {
            return Ok(None);
        }
        let Some(json) = line.strip_prefix(b"    ").and_then(|rest| rest.strip_suffix(b"\n")) else { return Ok(None) };
        ended = !json.ends_with(b",");
        batch.extend_from_slice(json.strip_suffix(b",").unwrap_or(json));
        batch.push(b'\n');
        marks.add(number, at);
        number += 1;
        at += line.len() as u64;
        if batch.len() >= BATCH_BYTES && !process_batch(&mut batch, &mut hash, &mut totals) {
            return Ok(None);
        }
    }
    let whole = process_batch(&mut batch, &mut hash, &mut totals) && (ended || number == 0) && is_at_end(source)?;
    let header: Option<SessionHeader> = if whole { parse_native_header(head, totals) } else { None };
    let sha256 = hash.finish();
    Ok(header.map(|header| SessionIndex { header, sha256, layout: Layout::Native, offsets: marks, end: at }))
}

/// Validates, counts and hashes the messages in `batch`, one on each line, and empties it. Returns false if one is
/// invalid.
fn process_batch(batch: &mut Vec<u8>, hash: &mut MessageHash, totals: &mut Totals) -> bool {
    let bytes = Bytes::from(std::mem::take(batch));
    let (hashed, fine) = run_parallel(
        bytes.len(),
        || {
            let mut hash = hash.clone();
            hash.add_lines(&bytes);
            hash
        },
        || {
            let mut start = 0;
            memchr::memchr_iter(b'\n', &bytes).all(|end| {
                let message = StoredMessage::parse(bytes.slice(start..end));
                start = end + 1;
                message.map(|message| totals.add(message.role(), message.chars())).is_ok()
            })
        },
    );
    *hash = hashed;
    fine
}

fn is_at_end(source: &mut impl BufRead) -> io::Result<bool> {
    let mut rest = Vec::new();
    source.by_ref().take(OBJECT_CLOSING.len() as u64 + 1).read_to_end(&mut rest)?;
    Ok(rest == OBJECT_CLOSING)
}
