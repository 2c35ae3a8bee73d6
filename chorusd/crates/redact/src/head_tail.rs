//! Redacts the head and the tail of an output of any size.

use std::sync::Arc;

use super::redactor::Redactor;
use super::stream::StreamRedactor;

/// Bytes before the tail of a large output that are scanned as well, so that a secret which begins there is recognised.
const LEAD_BYTES: usize = 32 << 10;

/// Receives an output piece by piece. Passes on its head immediately, except for what may become a secret. Of the rest,
/// only the tail is scanned, once the output has ended.
#[derive(Debug)]
pub struct HeadTail {
    /// `None` if the output is not redacted.
    redactor: Option<Arc<Redactor>>,
    stream: Option<StreamRedactor>,
    /// Bytes of the head that are still to come, and the largest number of bytes of the tail.
    head_remaining: u64,
    tail_bytes: usize,
    total_bytes: u64,
    head_written: u64,
    /// The output after the head: `redacted` was scanned together with the head, `unscanned` was not.
    redacted: Vec<u8>,
    unscanned: Vec<u8>,
    has_overflowed: bool,
}

/// The output after the head.
#[derive(Debug)]
pub struct OutputTail {
    /// Number of bytes between head and tail.
    pub left_out: u64,
    pub end: Vec<u8>,
}

impl HeadTail {
    /// Keeps `beginning` bytes of the head and `end` bytes of the tail.
    pub fn new(redactor: Option<&Arc<Redactor>>, beginning: u64, end: usize) -> Self {
        Self {
            redactor: redactor.cloned(),
            stream: redactor.map(Redactor::stream),
            head_remaining: beginning,
            tail_bytes: end,
            total_bytes: 0,
            head_written: 0,
            redacted: Vec::new(),
            unscanned: Vec::new(),
            has_overflowed: false,
        }
    }

    /// Adds a piece. Appends what belongs to the head to `beginning`.
    pub fn push(&mut self, piece: &[u8], beginning: &mut Vec<u8>) {
        self.total_bytes += piece.len() as u64;
        if self.head_remaining > 0 {
            match &mut self.stream {
                Some(flow) => flow.push_bytes(piece, &mut self.redacted),
                None => self.redacted.extend_from_slice(piece),
            }
            return self.write_head(beginning);
        }
        self.unscanned.extend_from_slice(piece);
        let keeps = self.tail_bytes + LEAD_BYTES;
        if self.unscanned.len() > 2 * keeps {
            self.unscanned.drain(..self.unscanned.len() - keeps);
            self.has_overflowed = true;
        }
    }

    /// Finishes the output, which may have been cut off.
    pub fn finish(&mut self, beginning: &mut Vec<u8>) -> OutputTail {
        let mut raw = std::mem::take(&mut self.unscanned);
        if self.has_overflowed {
            self.redacted.clear();
            self.stream = self.redactor.as_ref().map(Redactor::stream);
            let rest = raw.split_off(LEAD_BYTES);
            if let Some(flow) = &mut self.stream {
                flow.push_bytes(&raw, &mut Vec::new());
            }
            raw = rest;
        }
        match &mut self.stream {
            Some(flow) => {
                flow.push_bytes(&raw, &mut self.redacted);
                flow.finish_bytes(true, &mut self.redacted);
            }
            None => self.redacted.append(&mut raw),
        }
        self.write_head(beginning);
        let end = self.redacted.split_off(self.redacted.len().saturating_sub(self.tail_bytes));
        let left_out = if self.has_overflowed {
            self.total_bytes.saturating_sub(self.head_written + end.len() as u64)
        } else {
            self.redacted.len() as u64
        };
        OutputTail { left_out, end }
    }

    fn write_head(&mut self, beginning: &mut Vec<u8>) {
        let count = usize::try_from(self.head_remaining).unwrap_or(usize::MAX).min(self.redacted.len());
        beginning.extend_from_slice(&self.redacted[..count]);
        self.redacted.drain(..count);
        self.head_remaining -= count as u64;
        self.head_written += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use chorus_base::Secret;

    use super::*;

    const KEY: &str = "own-key-0123456789-abcdefghij";

    /// Returns the head, the number of bytes left out, and the tail.
    fn of(pieces: &[&[u8]], redactor: Option<&Arc<Redactor>>) -> (String, u64, String) {
        let (mut ends, mut beginning) = (HeadTail::new(redactor, 100, 1000), Vec::new());
        pieces.iter().for_each(|piece| ends.push(piece, &mut beginning));
        assert!(ends.unscanned.capacity() < 8 * (LEAD_BYTES + 1000));
        let OutputTail { left_out, end } = ends.finish(&mut beginning);
        (String::from_utf8(beginning).unwrap(), left_out, String::from_utf8(end).unwrap())
    }

    #[test]
    fn both_ends_are_kept_and_the_rest_is_counted() {
        assert_eq!(of(&[b"one ", b"two"], None), ("one two".into(), 0, String::new()));
        for (count, left_out) in [(100, 0), (101, 0), (1100, 0), (1101, 1), (500_000, 498_900)] {
            let pieces = vec![&b"x"[..]; count];
            let (beginning, left, end) = of(&pieces, None);
            assert_eq!((left, beginning.len() + end.len() + usize::try_from(left).unwrap()), (left_out, count));
        }
    }

    #[test]
    fn no_secret_is_cut_in_half_by_what_is_left_out() {
        let redactor = Arc::new(Redactor::new(|| [1; 32]));
        redactor.add_own_key(&Secret::new(KEY.into()));
        for flood in [0, 10, 900, 5_000, 200_000] {
            for room in 0..=KEY.len() {
                let (before, half) = (" ".repeat(100 - room), room / 2);
                let (between, after) = (" ".repeat(flood), " ".repeat(1000 - room));
                let pieces = [&before, &KEY[..half], &KEY[half..], &between, KEY, &after].map(str::as_bytes);
                let (beginning, _, end) = of(&pieces, Some(&redactor));
                let text = beginning + &end;
                assert!(!text.contains("own-") && !text.contains("hij"), "{flood} {room}: {text}");
            }
        }
    }
}
