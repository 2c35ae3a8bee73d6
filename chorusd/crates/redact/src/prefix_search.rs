//! Searches for the prefixes of secrets: first by an automaton that is small, then, in a process that searches much, by one that
//! is fast.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

/// The fast automaton is built when so many bytes were searched. It takes 0.7 MB and 1 ms more than the small one, and half the
/// time for each search.
const BYTES_UNTIL_FAST: u64 = 4 << 20;

/// Searches for prefixes.
#[derive(Debug)]
pub(crate) struct PrefixSearch {
    patterns: Vec<Vec<u8>>,
    /// Always `Some`: the number of patterns is small.
    small: Option<AhoCorasick>,
    fast: OnceLock<Option<AhoCorasick>>,
    searched: AtomicU64,
}

impl PrefixSearch {
    /// Builds the small automaton. Of patterns that begin at one place, the longest is found.
    pub(crate) fn new(patterns: Vec<Vec<u8>>) -> Self {
        let small = build(&patterns, None);
        Self { patterns, small, fast: OnceLock::new(), searched: AtomicU64::new(0) }
    }

    /// Counts bytes that are about to be searched.
    pub(crate) fn count(&self, bytes: usize) {
        // Several threads may count too little, which only builds it later.
        let searched = self.searched.load(Ordering::Relaxed);
        if searched < BYTES_UNTIL_FAST {
            self.searched.store(searched + bytes as u64, Ordering::Relaxed);
        } else if self.fast.get().is_none() {
            self.fast.get_or_init(|| build(&self.patterns, Some(AhoCorasickKind::DFA)));
        }
    }

    /// Returns the place of the first pattern in `text[from..]`, and its index.
    pub(crate) fn find(&self, text: &[u8], from: usize) -> Option<(Range<usize>, usize)> {
        let search = self.fast.get().and_then(Option::as_ref).or(self.small.as_ref())?;
        let found = search.find(Input::new(text).range(from..))?;
        Some((found.range(), found.pattern().as_usize()))
    }
}

fn build(patterns: &[Vec<u8>], kind: Option<AhoCorasickKind>) -> Option<AhoCorasick> {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).kind(kind).build(patterns).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_automata_find_the_same() {
        let patterns = ["ghp_", "gh", "sk-", "AKIA"].map(|pattern| pattern.as_bytes().to_vec()).to_vec();
        let search = PrefixSearch::new(patterns);
        let text = b"a ghp_ and gh and sk-AKIA";
        let all = || {
            let mut at = 0;
            std::iter::from_fn(|| {
                let found = search.find(text, at)?;
                at = found.0.start + 1;
                Some(found)
            })
            .collect::<Vec<_>>()
        };
        let before = all();
        assert_eq!(before.len(), 4, "{before:?}");
        search.count(usize::try_from(BYTES_UNTIL_FAST).unwrap());
        assert!(search.fast.get().is_none());
        search.count(1);
        assert!(search.fast.get().is_some());
        assert_eq!(all(), before);
    }
}
