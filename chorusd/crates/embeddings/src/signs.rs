//! The signs of all vectors, in memory: a first look at which of them can be close.

/// The signs of vectors, each with a key and the number of its part.
#[derive(Debug, Default)]
pub struct Signs {
    /// Number of words for each vector.
    width: usize,
    places: Vec<(u64, u32)>,
    words: Vec<u64>,
}

impl Signs {
    pub fn new(dimensions: usize) -> Self {
        Self { width: dimensions.div_ceil(64), ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn push(&mut self, place: (u64, u32), words: &[u64]) {
        debug_assert_eq!(words.len(), self.width);
        self.places.push(place);
        self.words.extend_from_slice(words);
    }

    /// Removes those whose key is not to be kept.
    pub fn retain(&mut self, mut keep: impl FnMut(u64) -> bool) {
        let mut kept = 0;
        for index in 0..self.places.len() {
            if keep(self.places[index].0) {
                self.places[kept] = self.places[index];
                self.words.copy_within(index * self.width..(index + 1) * self.width, kept * self.width);
                kept += 1;
            }
        }
        self.places.truncate(kept);
        self.words.truncate(kept * self.width);
    }

    pub fn keys(&self) -> impl Iterator<Item = u64> {
        self.places.iter().map(|(key, _)| *key)
    }

    /// Returns the places of those with the fewest different signs, about `limit` of them.
    pub fn nearest(&self, words: &[u64], limit: usize) -> Vec<(u64, u32)> {
        let distances: Vec<u16> = match self.width {
            // The widths of common models: the compiler unrolls these.
            2 => distances::<2>(&self.words, words),
            4 => distances::<4>(&self.words, words),
            6 => distances::<6>(&self.words, words),
            8 => distances::<8>(&self.words, words),
            12 => distances::<12>(&self.words, words),
            16 => distances::<16>(&self.words, words),
            _ => self.words.chunks_exact(self.width.max(1)).map(|other| distance(other, words)).collect(),
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
        let most = most.unwrap_or(counts.len());
        let close = distances.iter().zip(&self.places).filter(|(distance, _)| usize::from(**distance) <= most);
        close.map(|(_, place)| *place).collect()
    }
}

fn distances<const WIDTH: usize>(all: &[u64], words: &[u64]) -> Vec<u16> {
    let Ok(words) = <&[u64; WIDTH]>::try_from(words) else { return Vec::new() };
    let (all, _) = all.as_chunks::<WIDTH>();
    all.iter().map(|other| distance(other, words)).collect()
}

/// The number of different bits.
fn distance(left: &[u64], right: &[u64]) -> u16 {
    let different: u32 = left.iter().zip(right).map(|(left, right)| (left ^ right).count_ones()).sum();
    u16::try_from(different).unwrap_or(u16::MAX)
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
                signs.push((key, 0), &vec![if key < 64 { (1 << key) - 1 } else { u64::MAX }; width]);
            }
            assert_eq!(signs.nearest(&vec![0b111; width], 1), [(3, 0)]);
            let mut close: Vec<u64> = signs.nearest(&vec![0b111; width], 3).iter().map(|place| place.0).collect();
            close.sort_unstable();
            assert_eq!(close, [2, 3, 4]);
            signs.retain(|key| key != 3);
            assert_eq!((signs.len(), signs.keys().nth(3)), (99, Some(4)));
            assert_eq!(signs.nearest(&vec![0b1111; width], 1), [(4, 0)]);
            assert_eq!(signs.nearest(&vec![0; width], 1000).len(), 99);
        }
    }
}
