//! The signs of all vectors, in memory: a first look at which of them can be close.

use std::collections::HashSet;

use multiversion::multiversion;

use crate::quantize::signs_of;

/// How many times as many vectors as are wanted are chosen by their signs: more than a text has parts, so that fewer texts than wanted
/// are all that there are.
const FIRST_LOOKS: usize = 16;

/// How many times as many of these are compared exactly.
const CLOSER_LOOKS: usize = 4;

/// Distances that are looked at together.
const BLOCK: usize = 32;

/// Finds a vector in the file, and the text that it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub key: u64,
    pub row: i64,
}

/// The signs of vectors, each with its place.
#[derive(Debug, Default)]
pub struct Signs {
    /// Number of words for each vector.
    width: usize,
    places: Vec<Place>,
    words: Vec<u64>,
}

impl Signs {
    pub fn new(dimensions: usize) -> Self {
        Self { width: dimensions.div_ceil(64), ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn push(&mut self, place: Place, words: &[u64]) {
        debug_assert_eq!(words.len(), self.width);
        self.places.push(place);
        self.words.extend_from_slice(words);
    }

    /// Removes those whose key is not to be kept.
    pub fn retain(&mut self, mut keep: impl FnMut(u64) -> bool) {
        let mut kept = 0;
        for index in 0..self.places.len() {
            if keep(self.places[index].key) {
                self.places[kept] = self.places[index];
                self.words.copy_within(index * self.width..(index + 1) * self.width, kept * self.width);
                kept += 1;
            }
        }
        self.places.truncate(kept);
        self.words.truncate(kept * self.width);
    }

    pub fn keys(&self) -> impl Iterator<Item = u64> {
        self.places.iter().map(|place| place.key)
    }

    /// Returns the places of vectors that are likely to be close to one, of at least `limit` texts unless there are no more.
    pub fn nearest(&self, vector: &[f32], limit: usize) -> Vec<Place> {
        let mut close = self.least_different(vector, limit.saturating_mul(FIRST_LOOKS));
        let looks = limit.saturating_mul(CLOSER_LOOKS);
        if close.len() > looks {
            close.select_nth_unstable_by(looks, |(_, a), (_, b)| b.total_cmp(a));
            // Unless they are the parts of few texts.
            if close[..looks].iter().map(|(place, _)| place.key).collect::<HashSet<_>>().len() >= limit {
                close.truncate(looks);
            }
        }
        close.into_iter().map(|(place, _)| place).collect()
    }

    /// Returns the places of those whose signs differ the least from a vector's, at least `limit` of them, each with an estimate of its
    /// similarity.
    fn least_different(&self, vector: &[f32], limit: usize) -> Vec<(Place, f32)> {
        let words = signs_of(vector.iter().map(|value| *value > 0.0));
        let distances: Vec<u16> = match self.width {
            // The widths of common models: the compiler unrolls these.
            2 => distances::<2>(&self.words, &words),
            4 => distances::<4>(&self.words, &words),
            6 => distances::<6>(&self.words, &words),
            8 => distances::<8>(&self.words, &words),
            12 => distances::<12>(&self.words, &words),
            16 => distances::<16>(&self.words, &words),
            width => self.words.chunks_exact(width.max(1)).map(|other| distance(other, &words)).collect(),
        };
        let mut counts = vec![0_usize; self.width * 64 + 1];
        for distance in &distances {
            counts[usize::from(*distance)] += 1;
        }
        let mut within = 0;
        let most = counts.iter().position(|count| {
            within += count;
            within >= limit
        });
        let most = u16::try_from(most.unwrap_or(counts.len())).unwrap_or(u16::MAX);
        let estimator = Estimator::new(vector);
        let mut close = Vec::new();
        for (block, distances) in distances.chunks(BLOCK).enumerate() {
            // In most blocks none is close.
            if !distances.iter().fold(false, |any, distance| any | (*distance <= most)) {
                continue;
            }
            for (place, distance) in distances.iter().enumerate() {
                if *distance <= most {
                    let index = block * BLOCK + place;
                    let signs = &self.words[index * self.width..(index + 1) * self.width];
                    close.push((self.places[index], estimator.estimate(signs)));
                }
            }
        }
        close
    }
}

/// Counts the different bits of all. Iterators would not be compiled for the processor's instructions, as plain loops are.
#[expect(clippy::cast_possible_truncation, reason = "there are at most WIDTH * 64")]
#[multiversion(targets("x86_64+popcnt"))]
fn distances<const WIDTH: usize>(all: &[u64], words: &[u64]) -> Vec<u16> {
    let Ok(words) = <&[u64; WIDTH]>::try_from(words) else { return Vec::new() };
    let (all, _) = all.as_chunks::<WIDTH>();
    let mut distances = vec![0; all.len()];
    for (distance, other) in distances.iter_mut().zip(all) {
        let mut different = 0;
        for place in 0..WIDTH {
            different += (other[place] ^ words[place]).count_ones();
        }
        *distance = different as u16;
    }
    distances
}

/// The number of different bits.
fn distance(left: &[u64], right: &[u64]) -> u16 {
    let different: u32 = left.iter().zip(right).map(|(left, right)| (left ^ right).count_ones()).sum();
    u16::try_from(different).unwrap_or(u16::MAX)
}

/// Estimates the similarity of a vector to others of which only the signs are known: the sum of its dimensions, each with their sign.
struct Estimator {
    /// For each eight dimensions the sums by the byte of their signs.
    sums: Vec<[f32; 256]>,
}

impl Estimator {
    fn new(vector: &[f32]) -> Self {
        let of_bytes = |dimensions: &[f32]| {
            let mut sums = [0.0; 256];
            sums[0] = -dimensions.iter().sum::<f32>();
            for byte in 1_usize..256 {
                // As of one with a positive sign less.
                let value = dimensions.get(byte.trailing_zeros() as usize).copied().unwrap_or_default();
                sums[byte] = sums[byte & (byte - 1)] + 2.0 * value;
            }
            sums
        };
        Self { sums: vector.chunks(8).map(of_bytes).collect() }
    }

    fn estimate(&self, signs: &[u64]) -> f32 {
        let bytes = signs.iter().flat_map(|word| word.to_le_bytes());
        bytes.zip(&self.sums).map(|(byte, sums)| sums[usize::from(byte)]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_are_found_and_removed() {
        for dimensions in [128, 320] {
            let mut signs = Signs::new(dimensions);
            let width = dimensions / 64;
            for key in 0..100_u64 {
                let words = vec![if key < 64 { (1 << key) - 1 } else { u64::MAX }; width];
                signs.push(Place { key, row: 0 }, &words);
            }
            let vector = |ones: usize| -> Vec<f32> {
                (0..dimensions).map(|place| if place % 64 < ones { 1.0 } else { -1.0 }).collect()
            };
            let nearest = |signs: &Signs, ones, limit| -> Vec<u64> {
                signs.least_different(&vector(ones), limit).iter().map(|(place, _)| place.key).collect()
            };
            assert_eq!(nearest(&signs, 3, 1), [3]);
            assert_eq!(nearest(&signs, 3, 3), [2, 3, 4]);
            signs.retain(|key| key != 3);
            assert_eq!(signs.len(), 99);
            assert_eq!(nearest(&signs, 4, 1), [4]);
            assert_eq!(nearest(&signs, 0, 1000).len(), 99);
        }
    }

    #[test]
    fn similarities_are_estimated_by_signs() {
        let vector: Vec<f32> = (0..70).map(|place| if place % 3 == 0 { 0.5 } else { -0.25 }).collect();
        let mut signs = Signs::new(70);
        let same = signs_of(vector.iter().map(|value| *value > 0.0));
        let opposite = signs_of(vector.iter().map(|value| *value < 0.0));
        signs.push(Place { key: 1, row: 7 }, &same);
        signs.push(Place { key: 2, row: 8 }, &opposite);
        let size: f32 = vector.iter().map(|value| value.abs()).sum();
        let found = signs.least_different(&vector, 2);
        assert_eq!(found, [(Place { key: 1, row: 7 }, size), (Place { key: 2, row: 8 }, -size)]);
    }

    #[test]
    fn parts_of_few_texts_leave_room_for_others() {
        let mut signs = Signs::new(64);
        let vector = [1.0; 64];
        for part in 0..8 {
            (0..4).for_each(|key| signs.push(Place { key, row: part * 10 }, &[u64::MAX]));
        }
        (4..20).for_each(|key| signs.push(Place { key, row: 0 }, &[u64::MAX >> key]));
        let keys = |limit| signs.nearest(&vector, limit).iter().map(|place| place.key).collect::<HashSet<_>>();
        assert_eq!(keys(5), (0..20).collect());
        assert!(keys(3).len() >= 3 && keys(3).is_subset(&(0..4).collect()), "{:?}", keys(3));
    }
}
