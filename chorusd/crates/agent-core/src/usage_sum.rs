//! The sum of the usage of a turn's model calls.

use chorus_proto::Usage;

/// Adds the usage of a call to the total.
pub(crate) fn add_usage(total: &mut Usage, more: &Usage) {
    fn sum<T: Copy>(a: Option<T>, b: Option<T>, add: fn(T, T) -> T) -> Option<T> {
        a.zip(b).map(|(a, b)| add(a, b)).or(a).or(b)
    }
    total.input_tokens = sum(total.input_tokens, more.input_tokens, u64::saturating_add);
    total.output_tokens = sum(total.output_tokens, more.output_tokens, u64::saturating_add);
    total.cache_read_tokens = sum(total.cache_read_tokens, more.cache_read_tokens, u64::saturating_add);
    total.cost_usd = sum(total.cost_usd, more.cost_usd, std::ops::Add::add);
    total.duration_ms = sum(total.duration_ms, more.duration_ms, u64::saturating_add);
}
