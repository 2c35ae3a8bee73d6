//! Per-model ratio of reported to estimated tokens over the last 16 calls. Kept in memory and rebuilt from the table
//! `usage`, whose rows have both numbers.

use std::collections::{HashMap, VecDeque};

use super::UsageRow;

/// Maximum number of samples per model.
pub(super) const MAX_SAMPLES: usize = 16;
/// Samples with fewer estimated tokens are ignored: too much of such a request is the provider's overhead.
const MIN_SAMPLE_TOKENS: u64 = 200;
/// Samples with a larger ratio, or a smaller one than its inverse, are ignored: no tokenizer differs that much.
const MAX_RATIO: f64 = 4.0;

/// The token counts of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Estimated tokens of the request.
    pub estimated: u64,
    /// Tokens that the provider reported.
    pub input: u64,
    /// Tokens read from the provider's cache. Some servers include them in `input`, others report them separately.
    pub cache_read: u64,
}

impl From<&UsageRow> for Sample {
    fn from(row: &UsageRow) -> Self {
        // A row with an estimate says nothing about the tokenizer.
        let input = if row.by_estimate { 0 } else { row.input };
        Self { estimated: row.estimated, input, cache_read: row.cache_read }
    }
}

/// The ratios of all models, by `provider/model`.
#[derive(Debug, Default)]
pub struct Calibration {
    models: HashMap<String, ModelSamples>,
}

#[derive(Debug)]
struct ModelSamples {
    /// Estimated tokens and ratio of each call; the newest is last.
    samples: VecDeque<(u64, f64)>,
    ratio: f64,
}

impl Calibration {
    /// Adds a call, unless it is unsuitable as a sample.
    pub fn add_sample(&mut self, model: &str, sample: Sample) {
        let Sample { estimated, input, cache_read } = sample;
        if estimated < MIN_SAMPLE_TOKENS || input == 0 {
            return;
        }
        let expected = estimated as f64 * self.ratio(model).unwrap_or(1.0);
        let whole = input.saturating_add(cache_read);
        // Decide whether the cached tokens are part of `input`. A part cannot exceed the whole. And an input below half
        // of what the earlier calls predict lacks the cached tokens, unless with them it would be more than twice that.
        let apart = cache_read > input || (2.0 * (input as f64) < expected && whole as f64 <= 2.0 * expected);
        let ratio = if apart { whole } else { input } as f64 / estimated as f64;
        if !(1.0 / MAX_RATIO..=MAX_RATIO).contains(&ratio) {
            return;
        }
        let known = self
            .models
            .entry(model.to_owned())
            .or_insert_with(|| ModelSamples { samples: VecDeque::with_capacity(MAX_SAMPLES), ratio: 1.0 });
        if known.samples.len() == MAX_SAMPLES {
            known.samples.pop_front();
        }
        known.samples.push_back((estimated, ratio));
        known.ratio = weighted_median(known.samples.iter().copied());
    }

    /// Returns how many tokens the model counts per estimated token, or `None` if there is no sample yet.
    #[must_use]
    pub fn ratio(&self, model: &str) -> Option<f64> {
        self.models.get(model).map(|model| model.ratio)
    }
}

/// Returns the median ratio, weighted by tokens. One odd call among many has little influence, and a long request has
/// more than a short one.
fn weighted_median(calls: impl Iterator<Item = (u64, f64)>) -> f64 {
    let mut calls: Vec<_> = calls.collect();
    calls.sort_by(|one, two| one.1.total_cmp(&two.1));
    let half = calls.iter().map(|(tokens, _)| tokens).sum::<u64>() / 2;
    let mut seen = 0;
    for (tokens, ratio) in &calls {
        seen += tokens;
        if seen > half {
            return *ratio;
        }
    }
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(samples: &[(u64, u64, u64)]) -> Option<f64> {
        let mut calibration = Calibration::default();
        for &(estimated, input, cache_read) in samples {
            calibration.add_sample("p/m", Sample { estimated, input, cache_read });
        }
        calibration.ratio("p/m")
    }

    #[test]
    fn the_ratio_is_that_of_the_calls() {
        assert_eq!(learned(&[]), None);
        assert_eq!(learned(&[(1000, 1300, 0)]), Some(1.3));
        assert_eq!(learned(&[(1000, 1300, 0), (1000, 1200, 0), (1000, 1250, 0)]), Some(1.25));
        assert_eq!(learned(&[(1000, 2000, 0), (50_000, 60_000, 0)]), Some(1.2), "the long one says more");
        let mut drifts = vec![(1000, 1000, 0); 100];
        drifts.extend(vec![(1000, 1500, 0); MAX_SAMPLES]);
        assert_eq!(learned(&drifts), Some(1.5), "old calls are forgotten");
    }

    #[test]
    fn calls_that_say_nothing_are_passed_over() {
        assert_eq!(learned(&[(MIN_SAMPLE_TOKENS - 1, 900, 0), (1000, 0, 0), (0, 1000, 0)]), None);
        assert_eq!(learned(&[(1000, 90_000, 0), (1000, 10, 0)]), None);
        let odd = [(1000, 1200, 0), (1000, 1200, 0), (1000, 400, 0), (1000, 1200, 0), (1000, 1200, 0)];
        assert_eq!(learned(&odd), Some(1.2), "one odd call among many");
    }

    #[test]
    fn cached_tokens_count_whether_they_are_part_of_the_input_or_beside_it() {
        assert_eq!(learned(&[(10_000, 12_000, 11_000)]), Some(1.2), "a part");
        assert_eq!(learned(&[(10_000, 1000, 11_000)]), Some(1.2), "beside");
        assert_eq!(learned(&[(10_000, 4800, 7200)]), Some(1.2), "less than half is not the whole");
        let grows = [(10_000, 8000, 0), (11_000, 8800, 8000), (12_000, 9600, 8800)];
        assert_eq!(learned(&grows), Some(0.8), "a part, of a model that counts less than is estimated");
    }
}
