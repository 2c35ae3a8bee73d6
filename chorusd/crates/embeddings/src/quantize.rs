//! Vectors in a byte for each dimension, and in a bit.

/// A vector whose dimensions are whole numbers from -127 to 127, to be multiplied by a scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    pub codes: Vec<i8>,
    pub scale: f32,
}

impl Quantized {
    /// Rounds a vector of length 1.
    #[must_use]
    pub fn of(vector: &[f32]) -> Self {
        let most = vector.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let scale = if most > 0.0 { most / 127.0 } else { 1.0 };
        #[expect(clippy::cast_possible_truncation, reason = "it is between -127 and 127")]
        let codes = vector.iter().map(|value| (value / scale).round() as i8).collect();
        Self { codes, scale }
    }

    /// Returns the cosine of the angle to a vector of length 1. `codes` are as in the file.
    #[must_use]
    pub fn similarity(codes: &[u8], scale: f32, other: &[f32]) -> f32 {
        // Eight sums, so that the compiler can take several dimensions at once.
        let mut sums = [0.0_f32; 8];
        let (codes, other) = (codes.chunks_exact(8), other.chunks_exact(8));
        let rest: f32 =
            codes.remainder().iter().zip(other.remainder()).map(|(a, b)| f32::from(a.cast_signed()) * b).sum();
        for (a, b) in codes.zip(other) {
            for place in 0..8 {
                sums[place] += f32::from(a[place].cast_signed()) * b[place];
            }
        }
        (sums.iter().sum::<f32>() + rest) * scale
    }
}

/// Returns the signs of a vector's dimensions, 64 in a word.
pub fn signs_of(positive: impl Iterator<Item = bool>) -> Vec<u64> {
    let mut words = Vec::new();
    for (place, is_positive) in positive.enumerate() {
        if place % 64 == 0 {
            words.push(0);
        }
        if is_positive && let Some(word) = words.last_mut() {
            *word |= 1 << (place % 64);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_the_angle() {
        let vector: Vec<f32> = (0..100).map(|n| (n as f32 * 0.7).sin() / 50.0_f32.sqrt()).collect();
        let other: Vec<f32> = (0..100).map(|n| (n as f32 * 0.7 + 0.4).sin() / 50.0_f32.sqrt()).collect();
        let exact: f32 = vector.iter().zip(&other).map(|(a, b)| a * b).sum();
        let rounded = Quantized::of(&vector);
        let bytes: Vec<u8> = rounded.codes.iter().map(|code| code.cast_unsigned()).collect();
        let similarity = Quantized::similarity(&bytes, rounded.scale, &other);
        assert!((similarity - exact).abs() < 0.005, "{similarity} {exact}");
        assert_eq!(Quantized::of(&[0.0; 3]).codes, [0, 0, 0]);
    }

    #[test]
    fn signs_are_bits() {
        assert_eq!(signs_of([true, false, true].into_iter()), [0b101]);
        let words = signs_of((0..65).map(|place| place == 64));
        assert_eq!(words, [0, 1]);
    }
}
