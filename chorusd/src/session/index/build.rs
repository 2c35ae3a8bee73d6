//! Reading a file once: its messages are checked, counted and hashed, and none of them stays in memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};

use bytes::Bytes;
use chorus_proto::SessionHeader;

use super::{Index, Layout, Marks};
use crate::message::{Stored, Totals};
use crate::session::beside::beside;
use crate::session::file::{AnyLayout, header_of_lines, read_any};
use crate::session::{FormatError, MessageHash};

/// The line behind the header, and the lines behind the last message.
const OPEN: &[u8] = b"  \"messages\": [\n";
const CLOSE: &[u8] = b"  ]\n";
const END: &[u8] = b"}\n";

/// The longest header: a file with a longer one is read as a whole.
const HEADER: usize = 16 << 20;

/// Bytes of messages that are looked at together.
const BATCH: usize = 1 << 20;

/// Reads `file` from its beginning. What is no session, or not in our layout, is read as a whole.
///
/// # Errors
/// What the disk says; within that, why it is no session.
pub fn build(mut file: &File) -> io::Result<Result<Index, FormatError>> {
    file.rewind()?;
    if let Some(index) = lines(&mut BufReader::with_capacity(64 << 10, file))? {
        return Ok(Ok(index));
    }
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(any(&Bytes::from(bytes)))
}

fn any(bytes: &Bytes) -> Result<Index, FormatError> {
    let (mut marks, mut number) = (Marks::default(), 0);
    let AnyLayout { header, sha256, filling, end } = read_any(bytes, |start, _| {
        marks.add(number, start as u64);
        number += 1;
    })?;
    Ok(Index { header, sha256, layout: Layout::Any(filling), marks, end: end as u64 })
}

/// Of a file in our layout; `None` where it is in another one, or anything is wrong with it.
fn lines(source: &mut impl BufRead) -> io::Result<Option<Index>> {
    let Some(head) = head(source)? else { return Ok(None) };
    let mut at = (head.len() + OPEN.len()) as u64;
    let (mut marks, mut batch, mut totals, mut hash) =
        (Marks::default(), Vec::new(), Totals::default(), MessageHash::default());
    let (mut number, mut ended) = (0, false);
    let mut line = Vec::new();
    loop {
        line.clear();
        source.read_until(b'\n', &mut line)?;
        if line == CLOSE {
            break;
        }
        // Each but the last has a comma behind it.
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
        if batch.len() >= BATCH && !take(&mut batch, &mut hash, &mut totals) {
            return Ok(None);
        }
    }
    let whole = take(&mut batch, &mut hash, &mut totals) && (ended || number == 0) && is_end(source)?;
    let header: Option<SessionHeader> = if whole { header_of_lines(head, totals) } else { None };
    let sha256 = hash.finish();
    Ok(header.map(|header| Index { header, sha256, layout: Layout::Lines, marks, end: at }))
}

/// All before the line of `messages`.
fn head(source: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    while head.len() < HEADER {
        let start = head.len();
        if source.by_ref().take((HEADER - start) as u64).read_until(b'\n', &mut head)? == 0 {
            return Ok(None);
        }
        if head[start..] == *OPEN {
            head.truncate(start);
            return Ok(Some(head));
        }
    }
    Ok(None)
}

/// Checks, counts and hashes messages that stand on a line each, and empties `batch`; false where one is none.
fn take(batch: &mut Vec<u8>, hash: &mut MessageHash, totals: &mut Totals) -> bool {
    let bytes = Bytes::from(std::mem::take(batch));
    let (hashed, fine) = beside(
        bytes.len(),
        || {
            let mut hash = hash.clone();
            hash.add_lines(&bytes);
            hash
        },
        || {
            let mut start = 0;
            memchr::memchr_iter(b'\n', &bytes).all(|end| {
                let message = Stored::parse(bytes.slice(start..end));
                start = end + 1;
                message.map(|message| totals.add(message.role(), message.chars())).is_ok()
            })
        },
    );
    *hash = hashed;
    fine
}

fn is_end(source: &mut impl BufRead) -> io::Result<bool> {
    let mut rest = Vec::new();
    source.by_ref().take(END.len() as u64 + 1).read_to_end(&mut rest)?;
    Ok(rest == END)
}
