//! A seeded pseudo-random number generator.

/// SplitMix64.
#[derive(Debug)]
pub(super) struct Rng {
    pub seed: u64,
    word: u64,
}

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, word: seed }
    }

    fn next_u64(&mut self) -> u64 {
        self.word = self.word.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.word;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end
    }

    /// Returns true once in `n` calls on average.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("an index")
    }
}
