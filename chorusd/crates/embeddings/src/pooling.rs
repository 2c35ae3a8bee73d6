//! The vector of a text, made of those of its tokens.

use rten_tensor::prelude::*;
use rten_tensor::{NdTensorView, TensorView};

use crate::error::EmbeddingError;

/// How the vectors of a text's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// That of the first token.
    First,
}

/// Returns a vector of length 1 for each text of a batch. `output` is the model's: (texts, dimensions), or (texts, tokens,
/// dimensions), of which `lengths` tokens count.
///
/// # Errors
/// Fails if the output has another shape, or numbers that are none.
pub fn pool(output: TensorView<'_, f32>, lengths: &[usize], pooling: Pooling) -> Result<Vec<Vec<f32>>, EmbeddingError> {
    let vectors: Vec<Vec<f32>> = match *output.shape() {
        [texts, _] if texts == lengths.len() => {
            (0..texts).map(|text| output.slice(text).iter().copied().collect()).collect()
        }
        [texts, tokens, _] if texts == lengths.len() && lengths.iter().all(|length| (1..=tokens).contains(length)) => {
            let of_text = |(text, length): (usize, &usize)| {
                let rows = match pooling {
                    Pooling::Mean => *length,
                    Pooling::First => 1,
                };
                mean(output.slice((text, ..rows)).nd_view())
            };
            lengths.iter().enumerate().map(of_text).collect()
        }
        ref shape => return Err(EmbeddingError::Output(format!("it has the shape {shape:?}"))),
    };
    vectors.into_iter().map(normalised).collect()
}

fn mean(rows: NdTensorView<'_, f32, 2>) -> Vec<f32> {
    let [count, dimensions] = rows.shape();
    let mut sum = vec![0.0; dimensions];
    for row in 0..count {
        sum.iter_mut().zip(rows.slice(row).iter()).for_each(|(sum, value)| *sum += value);
    }
    #[expect(clippy::cast_precision_loss, reason = "a model takes far fewer tokens")]
    sum.iter_mut().for_each(|sum| *sum /= count as f32);
    sum
}

/// Scales a vector to length 1.
///
/// # Errors
/// Fails if it has no direction.
pub fn normalised(mut vector: Vec<f32>) -> Result<Vec<f32>, EmbeddingError> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if !(length.is_normal()) {
        return Err(EmbeddingError::Output("its length is zero or not a number".into()));
    }
    vector.iter_mut().for_each(|value| *value /= length);
    Ok(vector)
}
