//! Beginning and end of an output, however much it is, without secrets.

use std::sync::Arc;

use super::flow::Flow;
use super::redactor::Redactor;

/// Bytes before the end of a flood that are looked at, so that a secret which begins there is known for one.
const LEAD: usize = 32 << 10;

/// Takes an output as it comes. Its beginning goes on at once, but for what may become a secret; of what is behind it only the end is
/// looked through, when there is no more.
#[derive(Debug)]
pub struct Ends {
    /// `None`: secrets stay.
    redactor: Option<Arc<Redactor>>,
    flow: Option<Flow>,
    /// Bytes of the beginning that are still to come, and of the end at most.
    wanted: u64,
    most: usize,
    came: u64,
    given: u64,
    /// What is behind the beginning: first what was looked through together with it, then what was not yet.
    clean: Vec<u8>,
    raw: Vec<u8>,
    overflown: bool,
}

/// What is behind the beginning.
#[derive(Debug)]
pub struct Behind {
    /// Bytes between the two.
    pub left_out: u64,
    pub end: Vec<u8>,
}

impl Ends {
    /// With so many bytes of the beginning and of the end.
    pub fn new(redactor: Option<&Arc<Redactor>>, beginning: u64, end: usize) -> Self {
        Self {
            redactor: redactor.cloned(),
            flow: redactor.map(Redactor::flow),
            wanted: beginning,
            most: end,
            came: 0,
            given: 0,
            clean: Vec::new(),
            raw: Vec::new(),
            overflown: false,
        }
    }

    /// Takes a piece; what is of the beginning goes to `beginning`.
    pub fn push(&mut self, piece: &[u8], beginning: &mut Vec<u8>) {
        self.came += piece.len() as u64;
        if self.wanted > 0 {
            match &mut self.flow {
                Some(flow) => flow.push_bytes(piece, &mut self.clean),
                None => self.clean.extend_from_slice(piece),
            }
            return self.give(beginning);
        }
        self.raw.extend_from_slice(piece);
        let keeps = self.most + LEAD;
        if self.raw.len() > 2 * keeps {
            self.raw.drain(..self.raw.len() - keeps);
            self.overflown = true;
        }
    }

    /// There is no more; it may have been cut off.
    pub fn end(&mut self, beginning: &mut Vec<u8>) -> Behind {
        let mut raw = std::mem::take(&mut self.raw);
        if self.overflown {
            self.clean.clear();
            self.flow = self.redactor.as_ref().map(Redactor::flow);
            let rest = raw.split_off(LEAD);
            if let Some(flow) = &mut self.flow {
                flow.push_bytes(&raw, &mut Vec::new());
            }
            raw = rest;
        }
        match &mut self.flow {
            Some(flow) => {
                flow.push_bytes(&raw, &mut self.clean);
                flow.end_bytes(true, &mut self.clean);
            }
            None => self.clean.append(&mut raw),
        }
        self.give(beginning);
        let end = self.clean.split_off(self.clean.len().saturating_sub(self.most));
        let left_out = if self.overflown {
            self.came.saturating_sub(self.given + end.len() as u64)
        } else {
            self.clean.len() as u64
        };
        Behind { left_out, end }
    }

    fn give(&mut self, beginning: &mut Vec<u8>) {
        let count = usize::try_from(self.wanted).unwrap_or(usize::MAX).min(self.clean.len());
        beginning.extend_from_slice(&self.clean[..count]);
        self.clean.drain(..count);
        self.wanted -= count as u64;
        self.given += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    const KEY: &str = "own-key-0123456789-abcdefghij";

    /// Beginning, bytes left out, and end of pieces.
    fn of(pieces: &[&[u8]], redactor: Option<&Arc<Redactor>>) -> (String, u64, String) {
        let (mut ends, mut beginning) = (Ends::new(redactor, 100, 1000), Vec::new());
        pieces.iter().for_each(|piece| ends.push(piece, &mut beginning));
        assert!(ends.raw.capacity() < 8 * (LEAD + 1000));
        let Behind { left_out, end } = ends.end(&mut beginning);
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
        redactor.learn(&Secret::new(KEY.into()));
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
