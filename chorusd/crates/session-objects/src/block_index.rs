//! The index behind the messages of a body: blocks of whole messages, each with its length and hash, so that a page is read
//! and verified without the rest.
//!
//! Bytes of an object: each message with a newline; for each block its number of messages (u32), its bytes (u64) and its
//! SHA-256; then the SHA-256 of all messages, their bytes (u64), their number (u64), the number of blocks (u32) and
//! `CHBODY1\n`. Numbers are little-endian.

use std::ops::Range;

use bytes::Bytes;
use chorus_base::error::{Error, Result};
use chorus_proto::ErrorKind;
use chorus_session::stored_message::StoredMessage;
use sha2::{Digest as _, Sha256};

use crate::bodies::BodyRow;
use crate::digest::{sha256, sha256_hex, to_hex};

/// Largest number of messages in a block.
const MAX_BLOCK_MESSAGES: u32 = 64;

/// Largest number of bytes in a block, unless a single message is larger.
const MAX_BLOCK_BYTES: u64 = 256 << 10;

const MAGIC: &[u8; 8] = b"CHBODY1\n";
const ENTRY_BYTES: usize = 4 + 8 + 32;
/// Bytes at the end of each object that say how long its index is.
pub(crate) const TRAILER_BYTES: u64 = 32 + 8 + 8 + 4 + 8;

/// A block of whole messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// Number of its first message, counted from 0.
    pub first: u64,
    pub messages: u64,
    /// The bytes of the object that it has.
    pub bytes: Range<u64>,
    pub sha256: [u8; 32],
}

/// The blocks of a body, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockIndex(pub Vec<Block>);

/// The object of some messages, and the row that names it, without its key.
pub(crate) fn build_object(key: String, messages: &[StoredMessage]) -> (Bytes, BodyRow) {
    let size: usize = messages.iter().map(|message| message.json().len() + 1).sum();
    let mut object = Vec::with_capacity(size + 4096);
    let (mut entries, mut all) = (Vec::new(), Sha256::new());
    let (mut start, mut count) = (0, 0_u32);
    let mut close = |object: &[u8], start: &mut usize, count: &mut u32| {
        let block = &object[*start..];
        all.update(block);
        entries.extend_from_slice(&count.to_le_bytes());
        entries.extend_from_slice(&(block.len() as u64).to_le_bytes());
        entries.extend_from_slice(&sha256(block));
        (*start, *count) = (object.len(), 0);
    };
    for message in messages {
        let json = message.json();
        let bytes = (object.len() - start + json.len() + 1) as u64;
        if count > 0 && (count == MAX_BLOCK_MESSAGES || bytes > MAX_BLOCK_BYTES) {
            close(&object, &mut start, &mut count);
        }
        object.extend_from_slice(json);
        object.push(b'\n');
        count += 1;
    }
    if count > 0 {
        close(&object, &mut start, &mut count);
    }
    let (body_bytes, all) = (object.len(), <[u8; 32]>::from(all.finalize()));
    let blocks = u32::try_from(entries.len() / ENTRY_BYTES).unwrap_or(u32::MAX);
    object.extend_from_slice(&entries);
    object.extend_from_slice(&all);
    object.extend_from_slice(&(body_bytes as u64).to_le_bytes());
    object.extend_from_slice(&(messages.len() as u64).to_le_bytes());
    object.extend_from_slice(&blocks.to_le_bytes());
    object.extend_from_slice(MAGIC);
    let row = BodyRow {
        key,
        messages: messages.len() as u64,
        body_bytes: body_bytes as u64,
        object_bytes: object.len() as u64,
        sha256: to_hex(&all),
        index_sha256: sha256_hex(&object[body_bytes..]),
    };
    (object.into(), row)
}

/// The error that an object is not as it was written.
pub(crate) fn corrupt(key: &str, why: &str) -> Error {
    Error::new(ErrorKind::CorruptSession, format!("the object {key} {why}"))
        .hint("the object was left unchanged; restore it from a backup or an earlier version of the bucket")
}

/// Takes the first `N` bytes off `bytes`.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

/// The row of an object, from its last [`TRAILER_BYTES`]; its hash of the index is still empty. `None` if they are not
/// those of an object.
pub(crate) fn row_of_trailer(key: &str, object_bytes: u64, mut trailer: &[u8]) -> Option<BodyRow> {
    let hash = take::<32>(&mut trailer)?;
    let body_bytes = u64::from_le_bytes(take(&mut trailer)?);
    let messages = u64::from_le_bytes(take(&mut trailer)?);
    let blocks = u32::from_le_bytes(take(&mut trailer)?);
    let tail = u64::from(blocks) * ENTRY_BYTES as u64 + TRAILER_BYTES;
    let is_whole = trailer == MAGIC && body_bytes.checked_add(tail) == Some(object_bytes);
    is_whole.then(|| BodyRow {
        key: key.to_owned(),
        messages,
        body_bytes,
        object_bytes,
        sha256: to_hex(&hash),
        index_sha256: String::new(),
    })
}

impl BlockIndex {
    /// Parses the index that `row` names, and verifies its hash.
    ///
    /// # Errors
    /// `corrupt_session`.
    pub(crate) fn parse(row: &BodyRow, index: &[u8]) -> Result<Self> {
        if sha256_hex(index) != row.index_sha256 {
            return Err(corrupt(&row.key, "has another index than the one that was written"));
        }
        Self::parse_entries(row, index).ok_or_else(|| corrupt(&row.key, "has an index that does not fit its messages"))
    }

    fn parse_entries(row: &BodyRow, index: &[u8]) -> Option<Self> {
        let entries = index.len().checked_sub(usize::try_from(TRAILER_BYTES).ok()?)?;
        let (mut rest, trailer) = index.split_at_checked(entries)?;
        let said = row_of_trailer(&row.key, row.object_bytes, trailer)?;
        let (mut blocks, mut first, mut start) = (Vec::with_capacity(entries / ENTRY_BYTES), 0_u64, 0_u64);
        while !rest.is_empty() {
            let messages = u64::from(u32::from_le_bytes(take(&mut rest)?));
            let end = start.checked_add(u64::from_le_bytes(take(&mut rest)?))?;
            blocks.push(Block { first, messages, bytes: start..end, sha256: take(&mut rest)? });
            (first, start) = (first + messages, end);
        }
        let fits = first == row.messages && start == row.body_bytes && said.sha256 == row.sha256;
        fits.then_some(Self(blocks))
    }

    /// Returns the blocks that have the messages from `first` on, up to `count`.
    pub(crate) fn find(&self, first: u64, count: u64) -> &[Block] {
        let end = first.saturating_add(count);
        let from = self.0.partition_point(|block| block.first + block.messages <= first);
        let to = self.0.partition_point(|block| block.first < end);
        self.0.get(from..to).unwrap_or_default()
    }
}

/// Parses the messages in `bytes`, which each end with a newline. They are slices of `bytes`, not copies.
///
/// # Errors
/// `corrupt_session`.
pub(crate) fn parse_messages(key: &str, bytes: &Bytes) -> Result<Vec<StoredMessage>> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let parse = |line: &[u8]| {
        let json = line.strip_suffix(b"\n")?;
        StoredMessage::parse(bytes.slice_ref(json)).ok()
    };
    lines.map(|line| parse(line).ok_or_else(|| corrupt(key, "has an invalid message"))).collect()
}

#[cfg(test)]
mod tests {
    use chorus_session::MessageHash;

    use super::*;

    fn messages(count: usize, bytes: usize) -> Vec<StoredMessage> {
        let text = "x".repeat(bytes);
        let json = |n| format!(r#"{{"id":"{n}","role":"user","content":"{text}","timestamp":"2027-01-15T08:00:00Z"}}"#);
        (0..count).map(|n| StoredMessage::parse(json(n).into()).unwrap()).collect()
    }

    #[test]
    fn the_index_finds_each_message_in_blocks_that_hash_as_it_says() {
        for (count, bytes) in [(0, 0), (1, 10), (64, 10), (65, 10), (1000, 10), (50, 10_000), (3, 300_000)] {
            let messages = messages(count, bytes);
            let (object, row) = build_object("k".into(), &messages);
            let body = usize::try_from(row.body_bytes).unwrap();
            let index = BlockIndex::parse(&row, &object[body..]).unwrap();
            assert_eq!(row.object_bytes, object.len() as u64);
            assert_eq!(row.sha256, MessageHash::from_messages(messages.iter().map(|m| &m.json()[..])).finish());
            let trailer = &object[object.len() - usize::try_from(TRAILER_BYTES).unwrap()..];
            let found = row_of_trailer("k", row.object_bytes, trailer).unwrap();
            assert_eq!(found, BodyRow { index_sha256: String::new(), ..row.clone() });
            for block in &index.0 {
                let range = usize::try_from(block.bytes.start).unwrap()..usize::try_from(block.bytes.end).unwrap();
                let bytes = object.slice(range);
                assert_eq!(sha256(&bytes), block.sha256);
                assert!(block.messages == 1 || bytes.len() <= 256 << 10);
                let read = parse_messages("k", &bytes).unwrap();
                assert_eq!(read.len() as u64, block.messages);
                let at = usize::try_from(block.first).unwrap();
                assert_eq!(read[0].json(), messages[at].json());
            }
            for first in 0..count as u64 {
                let found = index.find(first, 1);
                assert_eq!(found.len(), 1);
                assert!((found[0].first..found[0].first + found[0].messages).contains(&first));
            }
            assert_eq!(index.find(0, u64::MAX).len(), index.0.len());
            assert!(index.find(count as u64, 50).is_empty());
        }
    }

    #[test]
    fn a_changed_index_is_refused_at_every_byte() {
        let (object, row) = build_object("k".into(), &messages(70, 10));
        let body = usize::try_from(row.body_bytes).unwrap();
        for at in body..object.len() {
            let mut index = object[body..].to_vec();
            index[at - body] ^= 1;
            assert!(BlockIndex::parse(&row, &index).is_err());
        }
        let said = BodyRow { messages: 71, ..row.clone() };
        assert!(BlockIndex::parse(&said, &object[body..]).is_err());
        assert!(BlockIndex::parse(&row, &object[body + 1..]).is_err());
    }
}
