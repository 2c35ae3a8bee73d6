//! Reads SQLite's write-ahead log without SQLite, which silently stops at the first frame with a wrong checksum.
//!
//! The format is documented at <https://sqlite.org/walformat.html>: a header of 32 bytes, then frames of 24 bytes and a
//! page. Each checksum covers everything before it in the log, so that a frame is valid only if all frames before it
//! are.

use std::collections::BTreeMap;
use std::ops::Range;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAGIC: u32 = 0x377f_0682;
/// Used if neither the log nor the database has a readable page size.
const DEFAULT_PAGE_BYTES: usize = 4096;

/// A frame of the current generation of the log.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Number of the page in this frame, from 1.
    pub page: u32,
    /// If this frame commits a transaction, the size of the database in pages after it; else 0.
    pub commit_size: u32,
    /// Whether SQLite reads the frame.
    pub valid: bool,
    /// Whether its checksum continues the one that the previous frame carries.
    linked: bool,
    body: Range<usize>,
}

/// A parsed log.
#[derive(Debug)]
pub(super) struct Wal<'a> {
    bytes: &'a [u8],
    pub page_size: usize,
    /// Frames of the current generation, in order.
    pub frames: Vec<Frame>,
    /// Whether the header is intact.
    has_valid_header: bool,
}

impl<'a> Wal<'a> {
    /// Parses `bytes`; `page_size` is the one in the database's header. Returns `None` if the log is empty, as after a
    /// first start that was interrupted.
    pub(super) fn parse(bytes: &'a [u8], page_size: Option<usize>) -> Option<Self> {
        let head = bytes.get(..HEADER_BYTES)?;
        let magic = be_u32(head, 0);
        let known = magic & !1 == MAGIC;
        let big_endian = if known { magic & 1 == 1 } else { cfg!(target_endian = "big") };
        let sum = checksum(big_endian, (0, 0), &head[..24]);
        let header = known && sum == (be_u32(head, 24), be_u32(head, 28));
        let page_size = match usize::try_from(be_u32(head, 8)) {
            Ok(size) if header && size.is_power_of_two() && (512..=65_536).contains(&size) => size,
            _ => page_size.unwrap_or(DEFAULT_PAGE_BYTES),
        };
        // If the header is damaged, take the generation's salts from the first frame.
        let salts = if header { head.get(16..24)? } else { bytes.get(HEADER_BYTES + 8..HEADER_BYTES + 16)? };
        if !header && salts.iter().all(|byte| *byte == 0) {
            return None;
        }
        let (mut frames, mut valid, mut before) = (Vec::new(), header, sum);
        for at in (HEADER_BYTES..).step_by(FRAME_HEADER_BYTES + page_size) {
            let body = at + FRAME_HEADER_BYTES..at + FRAME_HEADER_BYTES + page_size;
            let Some(page) = bytes.get(body.clone()) else { break };
            let frame = &bytes[at..at + FRAME_HEADER_BYTES];
            let sum = checksum(big_endian, checksum(big_endian, before, &frame[..8]), page);
            let carried = (be_u32(frame, 16), be_u32(frame, 20));
            let current = frame[8..16] == *salts && be_u32(frame, 0) != 0;
            valid &= current && sum == carried;
            before = carried;
            if current {
                frames.push(Frame {
                    page: be_u32(frame, 0),
                    commit_size: be_u32(frame, 4),
                    valid,
                    linked: sum == carried,
                    body,
                });
            }
        }
        Some(Self { bytes, page_size, frames, has_valid_header: header })
    }

    /// Describes the evidence that the log was damaged after it was written; `None` for every state that a crash or a
    /// loss of power can leave.
    ///
    /// After the last intact commit, a crash leaves at most one torn transaction. A frame that continues the checksums
    /// of a later commit proves that this commit was complete once; frames of earlier generations do not continue them.
    pub(super) fn damage(&self) -> Option<String> {
        if !self.has_valid_header {
            return Some(format!("the header of its log is damaged, followed by {} frames", self.frames.len()));
        }
        let whole = self.frames.iter().rposition(|frame| frame.valid && frame.commit_size > 0).map_or(0, |at| at + 1);
        let rest = &self.frames[whole..];
        let continues = rest.windows(2).any(|two| two[0].commit_size > 0 && two[1].linked);
        continues.then(|| {
            format!("frame {} of its log is damaged, followed by {} frames", whole + 1, rest.len().saturating_sub(1))
        })
    }

    /// Returns whether the log has a committed transaction, readable or not.
    pub(super) fn has_commits(&self) -> bool {
        self.frames.iter().any(|frame| frame.commit_size > 0)
    }

    /// Returns whether there are frames after the last transaction that SQLite reads: one that a crash tore, or one
    /// that was damaged since.
    pub(super) fn is_torn(&self) -> bool {
        let whole = self.frames.iter().rposition(|frame| frame.valid && frame.commit_size > 0).map_or(0, |at| at + 1);
        whole < self.frames.len()
    }

    /// Returns the newest content of each page as of the last commit, and the size of the database in pages. With
    /// `damaged`, also uses damaged frames for pages that have no undamaged one.
    pub(super) fn pages(&self, damaged: bool) -> Option<(BTreeMap<u32, &'a [u8]>, u32)> {
        let last = self.frames.iter().rposition(|frame| frame.commit_size > 0)?;
        let size = self.frames[last].commit_size;
        let mut pages: BTreeMap<u32, (bool, &[u8])> = BTreeMap::new();
        for frame in self.frames[..=last].iter().filter(|frame| frame.page <= size) {
            // The first frame continues the header, whose checksum may be the damaged one.
            let good = frame.linked || (!self.has_valid_header && std::ptr::eq(frame, &raw const self.frames[0]));
            let body = &self.bytes[frame.body.clone()];
            match pages.get(&frame.page) {
                Some((true, _)) if !good => {}
                _ if good || damaged => _ = pages.insert(frame.page, (good, body)),
                _ => {}
            }
        }
        Some((pages.into_iter().map(|(page, (_, body))| (page, body)).collect(), size))
    }
}

fn be_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Continues the checksum `before` with `bytes`, whose length must be a multiple of 8. A log may have many megabytes, so
/// the byte order is decided outside of the loop.
fn checksum(big_endian: bool, before: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    if big_endian {
        checksum_of(before, bytes, u32::from_be_bytes)
    } else {
        checksum_of(before, bytes, u32::from_le_bytes)
    }
}

#[inline(always)]
fn checksum_of(before: (u32, u32), bytes: &[u8], number: impl Fn([u8; 4]) -> u32) -> (u32, u32) {
    let (eights, _) = bytes.as_chunks::<8>();
    eights.iter().fold(before, |(one, two), &[a, b, c, d, e, f, g, h]| {
        let one = one.wrapping_add(number([a, b, c, d])).wrapping_add(two);
        (one, two.wrapping_add(number([e, f, g, h])).wrapping_add(one))
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// Returns a log of `commits` transactions, as `kill -9` leaves it.
    fn log(commits: usize) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let conn = Connection::open(&path).unwrap();
        conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x)").unwrap();
        for n in 0..commits {
            conn.execute("INSERT INTO t VALUES (zeroblob(?1))", [n * 100]).unwrap();
        }
        std::fs::read(dir.path().join("a.db-wal")).unwrap()
    }

    fn damage(bytes: &[u8]) -> Option<String> {
        Wal::parse(bytes, None).and_then(|wal| wal.damage())
    }

    #[test]
    fn a_whole_log_and_every_torn_end_of_it_is_no_damage() {
        let bytes = log(20);
        let wal = Wal::parse(&bytes, None).unwrap();
        assert!(wal.frames.len() > 20 && wal.frames.iter().all(|frame| frame.valid));
        for length in (0..=bytes.len()).step_by(97) {
            assert_eq!(damage(&bytes[..length]), None, "{length}");
        }
        let mut zeros = bytes.clone();
        zeros[..HEADER_BYTES + FRAME_HEADER_BYTES].fill(0);
        assert_eq!(damage(&zeros), None, "a first log whose content did not reach the disk");
    }

    #[test]
    fn a_transaction_that_reached_the_disk_in_part_is_no_damage() {
        let bytes = log(20);
        let wal = Wal::parse(&bytes, None).unwrap();
        let commits: Vec<usize> =
            wal.frames.iter().enumerate().filter(|(_, f)| f.commit_size > 0).map(|(at, _)| at).collect();
        let (last, before) = (commits[commits.len() - 1], commits[commits.len() - 2]);
        for at in before + 1..=last {
            let mut torn = bytes.clone();
            torn[wal.frames[at].body.clone()].fill(7);
            assert_eq!(damage(&torn), None, "frame {at}");
        }
    }

    #[test]
    fn a_flipped_bit_before_the_last_two_transactions_is_damage_and_later_pages_are_read() {
        let bytes = log(20);
        let wal = Wal::parse(&bytes, None).unwrap();
        let commits: Vec<usize> =
            wal.frames.iter().enumerate().filter(|(_, f)| f.commit_size > 0).map(|(at, _)| at).collect();
        let end = HEADER_BYTES + (commits[commits.len() - 3] + 1) * (FRAME_HEADER_BYTES + wal.page_size);
        let whole = wal.pages(false).unwrap();
        for at in (0..end).step_by(401) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            assert!(damage(&flipped).is_some(), "byte {at}");
            let wal = Wal::parse(&flipped, None).unwrap();
            let (pages, size) = wal.pages(true).unwrap();
            assert_eq!(size, whole.1, "byte {at}");
            let last = pages.keys().next_back();
            assert_eq!(last, whole.0.keys().next_back(), "byte {at}");
        }
    }
}
