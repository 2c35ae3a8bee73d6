//! What the calls of a turn used together.

use chorus_proto::Usage;

/// Adds what a call used.
pub fn add(total: &mut Usage, more: &Usage) {
    fn sum<T: std::ops::Add<Output = T> + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        }
    }
    total.input_tokens = sum(total.input_tokens, more.input_tokens);
    total.output_tokens = sum(total.output_tokens, more.output_tokens);
    total.cache_read_tokens = sum(total.cache_read_tokens, more.cache_read_tokens);
    total.cost_usd = sum(total.cost_usd, more.cost_usd);
    total.duration_ms = sum(total.duration_ms, more.duration_ms);
}
