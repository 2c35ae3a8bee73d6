//! Token counts of model calls. A rollout has them in separate events (`token_count`), for the last call and in total.

use chorus_proto::Usage;

use super::super::raw_object::RawObject;

/// The totals so far.
#[derive(Debug, Default)]
pub(super) struct TokenCounter {
    total: Option<TokenCounts>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TokenCounts {
    input: u64,
    cached: u64,
    output: u64,
}

impl TokenCounter {
    /// Returns the usage of the last call. An event whose total is unchanged repeats an earlier one. Older events have
    /// only the total.
    pub(super) fn usage_from_event(&mut self, payload: &RawObject<'_>) -> Option<Usage> {
        let info = payload.get("info").and_then(RawObject::from_value)?;
        let counts = |name| info.get(name).and_then(RawObject::from_value).map(|counts| TokenCounts::parse(&counts));
        let last = counts("last_token_usage");
        let Some(total) = counts("total_token_usage") else { return last.map(TokenCounts::to_usage) };
        let before = self.total.replace(total);
        if before == Some(total) {
            return None;
        }
        Some(last.unwrap_or_else(|| before.map_or(total, |before| total.since(before))).to_usage())
    }
}

impl TokenCounts {
    fn parse(fields: &RawObject<'_>) -> Self {
        let count = |name| fields.get_u64(name).unwrap_or_default();
        Self { input: count("input_tokens"), cached: count("cached_input_tokens"), output: count("output_tokens") }
    }

    fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            output: self.output.saturating_sub(before.output),
        }
    }

    fn to_usage(self) -> Usage {
        Usage {
            input_tokens: Some(self.input),
            output_tokens: Some(self.output),
            cache_read_tokens: Some(self.cached),
            ..Usage::default()
        }
    }
}

/// Adds `usage` to that of the calls before.
pub(super) fn add_usage(before: Option<Usage>, usage: Usage) -> Usage {
    let Some(before) = before else { return usage };
    let add = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).reduce(u64::saturating_add);
    Usage {
        input_tokens: add(before.input_tokens, usage.input_tokens),
        output_tokens: add(before.output_tokens, usage.output_tokens),
        cache_read_tokens: add(before.cache_read_tokens, usage.cache_read_tokens),
        ..usage
    }
}
